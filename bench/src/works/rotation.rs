//! What custodians do to a server in use: a rotation of all of its keys, and an erase.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Serves};
use crate::error::{BenchError, Doing, Result};
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};

/// Objects that have a data key of their own: longer than what a catalog holds itself.
const BLOBS: (usize, usize) = (100_000, 10_000);
const BLOB_BYTES: u64 = 17_000;

/// 4 KiB objects that are read meanwhile.
const OBJECTS_READ: usize = 1_000;
const OBJECT_BYTES: u64 = 4_096;
const CONNECTIONS: usize = 32;

/// Requests of one run.
const GETS: usize = 30_000;

/// Runs before and after the rotation.
const RUNS: usize = 4;

const ROTATION_MOST_SECONDS: f64 = 30.0;
const SLOWER_MOST: f64 = 2.0;
const ERASE_MOST_SECONDS: f64 = 0.1;

/// Rotates the level of many blobs while small objects are read, then erases it.
pub fn rotation(bench: &Bench) -> Result<Vec<Work>> {
    let folder = bench.folder("rotation")?;
    let coffer = Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    let data = folder.join("data");
    let small = Object::series("rotation-small", OBJECTS_READ, OBJECT_BYTES);
    coffer.store(&bench.client, &small)?;
    let count = if bench.effort.quick { BLOBS.1 } else { BLOBS.0 };
    eprintln!("storing {count} objects of {BLOB_BYTES} bytes");
    coffer.store(
        &bench.client,
        &Object::series("rotation", count, BLOB_BYTES),
    )?;
    disk::settle();

    let once: Vec<_> = small.iter().map(|object| coffer.get(object)).collect();
    let read = || {
        let requests = once.iter().cycle().take(GETS).cloned().collect();
        bench.load(coffer.endpoint(), CONNECTIONS, requests)
    };
    read()?; // what is cached then is cached
    let before: Vec<Sample> = (0..RUNS).map(|_| read()).collect::<Result<_>>()?;
    let begun = Instant::now();
    let mut rotating = command(&bench.coffer, &data, &["level", "rotate", "default"])?;
    let mut during = Vec::new();
    while is_running(&mut rotating)? {
        during.push(read()?);
    }
    let rotated_seconds = begun.elapsed().as_secs_f64();
    let after: Vec<Sample> = (0..RUNS).map(|_| read()).collect::<Result<_>>()?;
    coffer.store(&bench.client, &small[..1])?; // still in use

    let begun = Instant::now();
    let mut erasing = command(
        &bench.coffer,
        &data,
        &["level", "erase", "default", "--yes"],
    )?;
    while is_running(&mut erasing)? {
        std::thread::yield_now();
    }
    let erased_seconds = begun.elapsed().as_secs_f64();
    let erased = count + OBJECTS_READ;
    Ok(vec![
        seconds(
            &format!("rotation of a level over {count} blobs, while it is read"),
            rotated_seconds,
            ROTATION_MOST_SECONDS,
        ),
        reading(
            &format!("GET 4 KiB, {CONNECTIONS} connections"),
            [("during the rotation", during), ("before", before)],
        ),
        Work {
            title: "the same afterwards".to_owned(),
            key: Quantity::P99Milliseconds,
            series: vec![Series {
                contender: "after".to_owned(),
                samples: after,
            }],
            target: None,
        },
        seconds(
            &format!("erase of a level of {erased} objects, the command from start to end"),
            erased_seconds,
            ERASE_MOST_SECONDS,
        ),
    ])
}

fn command(program: &Path, data: &Path, arguments: &[&str]) -> Result<Child> {
    Command::new(program)
        .arg("--data")
        .arg(data)
        .args(arguments)
        .arg("--json")
        .stdout(Stdio::null())
        .spawn()
        .doing(|| format!("starting {}", program.display()))
}

/// Whether it runs; that it failed is an error.
fn is_running(child: &mut Child) -> Result<bool> {
    match child.try_wait().doing(|| "waiting for a command".into())? {
        None => Ok(true),
        Some(status) if status.success() => Ok(false),
        Some(status) => Err(BenchError::Http {
            what: format!("a command ended with {status}"),
        }),
    }
}

fn reading(title: &str, series: [(&str, Vec<Sample>); 2]) -> Work {
    let series = series.map(|(contender, samples)| Series {
        contender: contender.to_owned(),
        samples,
    });
    Work {
        title: title.to_owned(),
        key: Quantity::P99Milliseconds,
        series: series.into(),
        target: Some(Target::RatioAtMost(SLOWER_MOST)),
    }
}

fn seconds(title: &str, value: f64, most: f64) -> Work {
    Work {
        title: title.to_owned(),
        key: Quantity::Seconds,
        series: vec![Series {
            contender: "coffer".to_owned(),
            samples: vec![Sample::from([(Quantity::Seconds, value)])],
        }],
        target: Some(Target::ValueAtMost(most)),
    }
}
