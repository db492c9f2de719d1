//! What a sealed copy that is kept up costs clients: uploads beside one, to a folder, and without.

use std::time::{Duration, Instant};

use coffer_client::AdminClient;
use serde::Deserialize;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Receives};
use crate::error::{BenchError, Result};
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::transfers::OBJECT_BYTES;

/// Clients that upload at once.
const CONNECTIONS: usize = 100;

/// Small objects of a run, of 4 KiB.
const SMALL_PUTS: (usize, usize) = (50_000, 20_000);
const SMALL_BYTES: u64 = 4_096;
const SMALL_CONNECTIONS: usize = 32;

/// More than a run of small PUTs adds to a database, its log and the copy.
const DATABASE_BYTES: u64 = 1_000_000_000;

/// How long the copy may be behind when all has been sent.
const CATCH_UP_MOST: Duration = Duration::from_secs(300);

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(100);

/// Objects of those sent that are compared afterwards, every byte.
const OBJECTS_CHECKED: usize = 2;

const CPU_MOST: f64 = 1.3;
const P99_MOST: f64 = 1.5;

/// PUT of 64 MiB by a hundred clients, and of 4 KiB, beside a copy and without.
pub fn copy(bench: &Bench) -> Result<Vec<Work>> {
    let client = &bench.client;
    let folder = bench.folder("copy-with")?;
    let with = &Coffer::start(&bench.coffer, &folder, bench.pinned, client)?;
    let target = bench.folder("copy-target")?;
    with.command(&[
        "replica",
        "add",
        "beside",
        &format!("file://{}", target.display()),
    ])?;
    let folder = bench.folder("copy-without")?;
    let without = &Coffer::start(&bench.coffer, &folder, bench.pinned, client)?;
    caught_up(bench, with)?;
    let turns = |sizes: Sizes| {
        let entrant = |name, coffer, has_copy| Entrant {
            name,
            measure: Box::new(move |round| once(bench, (coffer, has_copy), sizes, round)),
        };
        vec![
            entrant("beside a copy", with, true),
            entrant("without", without, false),
        ]
    };
    let large = Sizes {
        connections: CONNECTIONS,
        count: CONNECTIONS,
        object_bytes: OBJECT_BYTES,
        written_bytes: 2 * CONNECTIONS as u64 * OBJECT_BYTES,
    };
    let title = format!("PUT 64 MiB, {CONNECTIONS} connections, beside a copy to a folder");
    let key = Quantity::ServerCpuSecondsPerGigabyte;
    let most = Some(Target::RatioAtMost(CPU_MOST));
    let rounds = bench.effort.heavy_rounds;
    let large = interleave(&title, key, most, rounds, turns(large))?;
    let small = Sizes {
        connections: SMALL_CONNECTIONS,
        count: bench.effort.of(SMALL_PUTS),
        object_bytes: SMALL_BYTES,
        written_bytes: DATABASE_BYTES,
    };
    let title = format!("PUT 4 KiB, {SMALL_CONNECTIONS} connections, beside a copy to a folder");
    let most = Some(Target::RatioAtMost(P99_MOST));
    let rounds = bench.effort.rounds;
    let key = Quantity::P99Milliseconds;
    let small = interleave(&title, key, most, rounds, turns(small))?;
    Ok(vec![large, small])
}

/// What is sent in a run.
#[derive(Clone, Copy)]
struct Sizes {
    connections: usize,
    count: usize,
    object_bytes: u64,
    /// What the disk has to take, copy included.
    written_bytes: u64,
}

/// Sends objects, and counts the server's work until the copy has them; then looks at some, and
/// makes room.
fn once(
    bench: &Bench,
    (coffer, has_copy): (&Coffer, bool),
    sizes: Sizes,
    round: usize,
) -> Result<Sample> {
    let tag = format!("copied-{}-{round}", sizes.object_bytes);
    let objects = Object::series(&tag, sizes.count, sizes.object_bytes);
    bench.prepare_disk(sizes.written_bytes)?;
    let requests = objects.iter().map(|object| coffer.put(object)).collect();
    let process = &coffer.endpoint().process;
    let cpu_before = process.cpu_seconds()?;
    let mut sample = bench.load(coffer.endpoint(), sizes.connections, requests)?;
    if has_copy {
        let behind = caught_up(bench, coffer)?;
        let gigabytes = (sizes.count as u64 * sizes.object_bytes) as f64 / 1e9;
        let cpu_seconds = process.cpu_seconds()? - cpu_before;
        let key = Quantity::ServerCpuSecondsPerGigabyte;
        sample.insert(key, cpu_seconds / gigabytes);
        let each = cpu_seconds * 1e6 / sizes.count as f64;
        sample.insert(Quantity::ServerCpuMicrosecondsPerRequest, each);
        sample.insert(Quantity::Seconds, behind);
    }
    coffer.check(&bench.client, &objects[..OBJECTS_CHECKED])?;
    Receives::discard(coffer, &bench.client, &objects)?;
    if has_copy {
        caught_up(bench, coffer)?;
    }
    Ok(sample)
}

/// How a copy stands, as far as it matters here.
#[derive(Deserialize)]
struct Standing {
    as_of: Option<String>,
    lag_seconds: f64,
    problem: Option<String>,
}

/// Waits until the copy has all that was acknowledged before; gives the seconds it took.
fn caught_up(bench: &Bench, coffer: &Coffer) -> Result<f64> {
    let admin = AdminClient::Local {
        data: coffer.data().into(),
    };
    let asked = Instant::now();
    loop {
        let looked = asked.elapsed().as_secs_f64();
        let copies: Vec<Standing> = bench.client.wait(admin.get("/v1/replicas"))?;
        let has_all = |copy: &Standing| copy.as_of.is_some() && copy.lag_seconds < looked;
        if !copies.is_empty() && copies.iter().all(has_all) {
            return Ok(looked);
        }
        if asked.elapsed() > CATCH_UP_MOST {
            let problem = copies.into_iter().find_map(|copy| copy.problem);
            return Err(BenchError::Http {
                what: format!("the copy does not catch up: {problem:?}"),
            });
        }
        std::thread::sleep(LOOK_AGAIN_AFTER);
    }
}
