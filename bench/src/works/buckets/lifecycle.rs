//! A run of lifecycle rules over many objects, while small ones are read.

use std::time::Instant;

use coffer_client::AdminClient;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Serves};
use crate::error::{BenchError, Result};
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};
use crate::works::buckets::stock;

/// Objects that stay, and that a rule ends.
const KEPT: (usize, usize) = (900_000, 90_000);
const ENDED: (usize, usize) = (100_000, 10_000);

/// Bytes of each.
const OBJECT_BYTES: u64 = 64;

/// Objects of 4 KiB that are read meanwhile.
const OBJECTS_READ: usize = 1_000;
const READ_BYTES: u64 = 4_096;
const CONNECTIONS: usize = 32;

/// Requests of one run: short, so that one sees soon what has become of the objects.
const GETS: usize = 10_000;

/// Runs before the rule is set, and after its work.
const RUNS: usize = 10;

/// What the server takes for a day.
const DAY_SECONDS: u64 = 20;

/// A server that has not begun after so many of its days will not.
const BEGINS_AFTER_DAYS: u64 = 4;

const RUN_MOST_SECONDS: f64 = 60.0;
const SLOWER_MOST: f64 = 2.0;

/// The metric that counts what rules have ended.
const ENDED_METRIC: &str = "coffer_lifecycle_removed_total ";

/// Sets a rule that ends a tenth of all objects, and reads until it has.
pub fn lifecycle(bench: &Bench) -> Result<Vec<Work>> {
    let client = &bench.client;
    let folder = bench.folder("lifecycle")?;
    let settings = format!("lifecycle-day-seconds = {DAY_SECONDS}\n");
    let coffer = &Coffer::start_with(&bench.coffer, &folder, bench.pinned, client, &settings)?;
    let (kept, ended) = (bench.effort.of(KEPT), bench.effort.of(ENDED));
    // Those first, for they have to be a day old.
    for (tag, count) in [("ended", ended), ("kept", kept)] {
        let objects = Object::sorted(tag, count, OBJECT_BYTES);
        stock::fill(bench, coffer, Coffer::BUCKET, &objects)?;
    }
    let small = Object::series("read", OBJECTS_READ, READ_BYTES);
    coffer.store(client, &small)?;
    disk::settle();

    let once: Vec<_> = small.iter().map(|object| coffer.get(object)).collect();
    let read = || {
        let requests = once.iter().cycle().take(GETS).cloned().collect();
        bench.load(coffer.endpoint(), CONNECTIONS, requests)
    };
    read()?; // what is cached then is cached
    let before: Vec<Sample> = (0..RUNS).map(|_| read()).collect::<Result<_>>()?;
    coffer.configure(client, Coffer::BUCKET, "lifecycle", rule())?;
    let admin = AdminClient::Local {
        data: coffer.data().into(),
    };
    let (seconds, during) = watch(bench, &admin, ended as f64, read)?;
    let after: Vec<Sample> = (0..RUNS).map(|_| read()).collect::<Result<_>>()?;
    // A run of the rule may be longer than the runs before: those stand for it once more.
    let before = before.iter().cycle().take(during.len()).cloned().collect();

    let p99 = Quantity::P99Milliseconds;
    let title = format!(
        "a lifecycle run that ends {ended} of {} objects",
        kept + ended
    );
    let seconds = Sample::from([(Quantity::Seconds, seconds)]);
    let work = |title: &str, key, series, target| Work {
        title: title.to_owned(),
        key,
        series,
        target,
    };
    let most = Target::ValueAtMost(RUN_MOST_SECONDS);
    let reading = vec![series("during the run", during), series("before", before)];
    let ratio = Target::RatioAtMost(SLOWER_MOST);
    let reading_title = format!("GET 4 KiB, {CONNECTIONS} connections");
    Ok(vec![
        work(
            &title,
            Quantity::Seconds,
            vec![series("coffer", vec![seconds])],
            Some(most),
        ),
        work(&reading_title, p99, reading, Some(ratio)),
        work(
            "the same afterwards",
            p99,
            vec![series("after", after)],
            None,
        ),
    ])
}

fn series(contender: &str, samples: Vec<Sample>) -> Series {
    Series {
        contender: contender.to_owned(),
        samples,
    }
}

fn rule() -> String {
    "<LifecycleConfiguration><Rule><ID>ended</ID><Status>Enabled</Status>\
     <Filter><Prefix>ended-</Prefix></Filter><Expiration><Days>1</Days></Expiration>\
     </Rule></LifecycleConfiguration>"
        .to_owned()
}

/// Reads until the rule has ended `all`. Gives the seconds from the last look that found none ended
/// to the first that found all so, which is a little more than the run took; and what was read in
/// between.
fn watch(
    bench: &Bench,
    admin: &AdminClient,
    all: f64,
    read: impl Fn() -> Result<Sample>,
) -> Result<(f64, Vec<Sample>)> {
    let (set, mut begun) = (Instant::now(), Instant::now());
    let mut during = Vec::new();
    loop {
        let looked = Instant::now();
        let ended = ended(&bench.client.wait(admin.text("/metrics"))?)?;
        if ended >= all {
            return Ok((begun.elapsed().as_secs_f64(), during));
        }
        if ended == 0.0 {
            begun = looked;
            during.clear();
            if set.elapsed().as_secs() > BEGINS_AFTER_DAYS * DAY_SECONDS {
                let what = "no object was ended by the rule".into();
                return Err(BenchError::Http { what });
            }
        }
        during.push(read()?);
    }
}

fn ended(metrics: &str) -> Result<f64> {
    let found = metrics
        .lines()
        .find_map(|line| line.strip_prefix(ENDED_METRIC));
    let number = found.and_then(|number| number.trim().parse().ok());
    number.ok_or_else(|| BenchError::Http {
        what: format!("metrics without {ENDED_METRIC}"),
    })
}
