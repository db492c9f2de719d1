//! Two buckets, perhaps of two servers, with the same work in turn: large and small objects, there
//! and back.

use std::ops::Range;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::error::Result;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::{small, transfers};

/// Connections that move large objects.
const LARGE_CONNECTIONS: usize = 8;

/// Large objects read in a run, and in a quick one; and sent.
const LARGE_GETS: (usize, usize) = (64, 16);
const LARGE_PUTS: (usize, usize) = (32, 8);

/// A bucket, and what it stands for in the table.
pub type Side<'a> = (&'a str, Bucket<'a>);

type Once = fn(&Bench, &Bucket<'_>, usize) -> Result<Sample>;

/// GET and PUT of 64 MiB and 4 KiB on the first against the second, in rounds of these numbers.
/// `what` begins each title.
pub fn both_ways(
    bench: &Bench,
    what: &str,
    sides: [Side<'_>; 2],
    target: Target,
    rounds: Range<usize>,
) -> Result<Vec<Work>> {
    let large = format!("64 MiB, {LARGE_CONNECTIONS} connections");
    let small = format!("4 KiB, {} connections", small::CONNECTIONS);
    let (gigabyte, request) = (
        Quantity::ServerCpuSecondsPerGigabyte,
        Quantity::ServerCpuMicrosecondsPerRequest,
    );
    let plans: [(String, Quantity, Once); 4] = [
        (format!("GET {large}"), gigabyte, get_large),
        (format!("PUT {large}"), gigabyte, put_large),
        (format!("GET {small}"), request, |bench, bucket, round| {
            small::get_once(bench, bucket, round)
        }),
        (format!("PUT {small}"), request, |bench, bucket, round| {
            small::put_once(bench, bucket, round)
        }),
    ];
    let mut works = Vec::new();
    for (title, key, once) in plans {
        if !bench.wants_row(&title) {
            continue;
        }
        let first = rounds.start;
        let entrants = sides.map(|(name, bucket)| Entrant {
            name,
            measure: Box::new(move |round| once(bench, &bucket, first + round)),
        });
        let title = format!("{what}{title}");
        let target = Some(target);
        works.push(interleave(
            &title,
            key,
            target,
            rounds.len(),
            entrants.into(),
        )?);
    }
    Ok(works)
}

fn get_large(bench: &Bench, bucket: &Bucket<'_>, round: usize) -> Result<Sample> {
    let count = bench.effort.of(LARGE_GETS);
    transfers::get_once(bench, bucket, &format!("{round}"), LARGE_CONNECTIONS, count)
}

fn put_large(bench: &Bench, bucket: &Bucket<'_>, round: usize) -> Result<Sample> {
    let count = bench.effort.of(LARGE_PUTS);
    transfers::put_once(bench, bucket, &format!("{round}"), LARGE_CONNECTIONS, count)
}
