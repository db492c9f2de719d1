//! Whether this build costs more than another: the same work by both, in turn.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::error::{BenchError, Doing, Result};
use crate::report::figures::{Target, Work};
use crate::works::both_ways::both_ways;

/// Of the interval's upper end: a few rounds prove nothing, and are not taken for a proof.
const MOST: f64 = 1.05;

/// Rounds of one pair of processes. Where the kernel puts a process decides some per cent of what
/// it costs, as long as it lives: rounds of a single pair would be sure of that, not of the builds.
const PAIR_ROUNDS: usize = 2;

/// GET and PUT of 64 MiB and 4 KiB by this build, against the build that `--other` names.
pub fn builds(bench: &Bench) -> Result<Vec<Work>> {
    let Some(other) = &bench.other else {
        return Err(BenchError::Missing {
            program: PathBuf::from("another build"),
            hint: "name it with --other PATH",
        });
    };
    let mut works: Vec<Work> = Vec::new();
    for first in (0..bench.effort.rounds).step_by(PAIR_ROUNDS) {
        let rounds = first..bench.effort.rounds.min(first + PAIR_ROUNDS);
        let more = pair(bench, other, rounds)?;
        if works.is_empty() {
            works = more;
        } else {
            let pairs = works.iter_mut().zip(more);
            pairs.for_each(|(work, more)| work.append(more));
        }
    }
    Ok(works)
}

/// These rounds, by a process of each build.
fn pair(bench: &Bench, other: &Path, rounds: Range<usize>) -> Result<Vec<Work>> {
    let (pinned, client) = (bench.pinned, &bench.client);
    let folders = ["this", "other"].map(|name| bench.folder(&format!("builds-{name}")));
    let [ours, others] = folders;
    let (ours, others) = (ours?, others?);
    let this = Coffer::start(&bench.coffer, &ours, pinned, client)?;
    let other = Coffer::start(other, &others, pinned, client)?;
    let sides = [
        ("this build", Bucket::of(&this, Coffer::BUCKET)),
        ("the other build", Bucket::of(&other, Coffer::BUCKET)),
    ];
    let works = both_ways(bench, "", sides, Target::IntervalAtMost(MOST), rounds)?;
    drop((this, other));
    for folder in [ours, others] {
        fs::remove_dir_all(&folder).doing(|| format!("removing {}", folder.display()))?;
    }
    Ok(works)
}
