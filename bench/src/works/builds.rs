//! Whether this build costs more than another: the same work by both, in turn.

use std::path::PathBuf;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::error::{BenchError, Result};
use crate::report::figures::{Target, Work};
use crate::works::both_ways::both_ways;

/// Of the interval's upper end: a few rounds prove nothing, and are not taken for a proof.
const MOST: f64 = 1.05;

/// GET and PUT of 64 MiB and 4 KiB by this build, against the build that `--other` names.
pub fn builds(bench: &Bench) -> Result<Vec<Work>> {
    let Some(other) = &bench.other else {
        return Err(BenchError::Missing {
            program: PathBuf::from("another build"),
            hint: "name it with --other PATH",
        });
    };
    let (pinned, client) = (bench.pinned, &bench.client);
    let this = Coffer::start(&bench.coffer, &bench.folder("builds-this")?, pinned, client)?;
    let other = Coffer::start(other, &bench.folder("builds-other")?, pinned, client)?;
    let sides = [
        ("this build", Bucket::of(&this, Coffer::BUCKET)),
        ("the other build", Bucket::of(&other, Coffer::BUCKET)),
    ];
    both_ways(bench, "", sides, Target::IntervalAtMost(MOST))
}
