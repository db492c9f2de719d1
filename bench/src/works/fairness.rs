//! A hundred clients at once: whether each gets its share, and what memory the server takes.

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Receives, Serves};
use crate::error::Result;
use crate::load_client::connection::Request;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};
use crate::works::transfers::OBJECT_BYTES;

const CONNECTIONS: usize = 100;

/// Objects that the readers share.
const OBJECTS_READ: usize = 8;

const SLOWEST_LEAST: f64 = 0.5;
const MOST_MEGABYTES: f64 = 100.0;

/// GET and PUT of 64 MiB by a hundred clients, an object each. What each has moved is looked at
/// when the first has all of its object, for from then on the others have its share.
pub fn fairness(bench: &Bench) -> Result<Vec<Work>> {
    let client = &bench.client;
    let folder = bench.folder("fairness")?;
    let coffer = &Coffer::start(&bench.coffer, &folder, bench.pinned, client)?;
    let bucket = Bucket::of(coffer, Coffer::BUCKET);
    let mut works = Vec::new();
    let (mut down, mut up) = (Vec::new(), Vec::new());
    for round in 0..bench.effort.heavy_rounds {
        let read = Object::series(&format!("read-{round}"), OBJECTS_READ, OBJECT_BYTES);
        bucket.store(client, &read)?;
        disk::settle();
        let gets = read.iter().cycle().take(CONNECTIONS);
        down.push(shares(
            bench,
            coffer,
            gets.map(|object| bucket.get(object)).collect(),
        )?);
        Serves::discard(&bucket, client, &read)?;
        let sent = Object::series(&format!("sent-{round}"), CONNECTIONS, OBJECT_BYTES);
        bench.prepare_disk(CONNECTIONS as u64 * OBJECT_BYTES)?;
        up.push(shares(
            bench,
            coffer,
            sent.iter().map(|object| bucket.put(object)).collect(),
        )?);
        bucket.check(client, &sent[..1])?;
        Receives::discard(&bucket, client, &sent)?;
    }
    for (way, samples) in [("GET", down), ("PUT", up)] {
        for (what, key, target) in [
            (
                "the slowest's share of the median's",
                Quantity::Share,
                Target::ValueAtLeast(SLOWEST_LEAST),
            ),
            (
                "the server's peak",
                Quantity::ResidentMegabytes,
                Target::ValueAtMost(MOST_MEGABYTES),
            ),
        ] {
            works.push(Work {
                title: format!("{CONNECTIONS} clients, {way} 64 MiB: {what}"),
                key,
                series: vec![Series {
                    contender: "coffer".to_owned(),
                    samples: samples.iter().map(|sample| only(sample, key)).collect(),
                }],
                target: Some(target),
            });
        }
    }
    Ok(works)
}

fn only(sample: &Sample, key: Quantity) -> Sample {
    sample
        .get(&key)
        .map(|&value| (key, value))
        .into_iter()
        .collect()
}

fn shares(bench: &Bench, coffer: &Coffer, requests: Vec<Request>) -> Result<Sample> {
    let endpoint = coffer.endpoint();
    let mut connections = endpoint.connect(&bench.client, CONNECTIONS)?;
    endpoint.process.forget_peak()?;
    let outcome = bench.client.run(&mut connections, requests)?;
    let peak_bytes = endpoint.process.resident()?.peak_bytes;
    let mut moved = outcome.moved_at_first_end;
    moved.sort_unstable();
    let (slowest, median) = (moved[0] as f64, moved[moved.len() / 2] as f64);
    let sample = Sample::from([
        (Quantity::Share, slowest / median),
        (Quantity::ResidentMegabytes, peak_bytes as f64 / 1e6),
    ]);
    eprintln!(
        "{CONNECTIONS} clients: the slowest has {:.0} MB, the median {:.0} MB",
        slowest / 1e6,
        median / 1e6
    );
    Ok(sample)
}
