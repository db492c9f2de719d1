//! Sealed transfer: what a gigabyte costs the server when bytes go as they lie on the disk, or come
//! as they will lie there.

pub mod get;

pub mod put;

pub mod together;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::error::Result;
use crate::machine::server_process::ServerProcess;
use crate::report::figures::{Quantity, Sample, Target, Work};

/// A bucket whose level allows sealed transfer.
const SEALED: &str = "sealed";

/// Starts a server with such a bucket.
fn start(bench: &Bench, folder: &str, settings: &str) -> Result<Coffer> {
    let (folder, client) = (bench.folder(folder)?, &bench.client);
    let coffer = Coffer::start_with(&bench.coffer, &folder, bench.pinned, client, settings)?;
    // By the same label, so that the first access key may use it.
    let level = [
        "level",
        "create",
        SEALED,
        "--rank",
        "0",
        "--same-label",
        "--sealed-transfer",
    ];
    coffer.command(&level)?;
    coffer.command(&["bucket", "create", SEALED, "--level", SEALED])?;
    Ok(coffer)
}

/// Measures what moves so many bytes; it gives the seconds it took.
fn moving(
    process: &ServerProcess,
    bytes: u64,
    work: impl FnOnce() -> Result<std::time::Duration>,
) -> Result<Sample> {
    let cpu_before = process.cpu_seconds()?;
    let seconds = work()?.as_secs_f64();
    let cpu_seconds = process.cpu_seconds()? - cpu_before;
    Ok(Sample::from([
        (
            Quantity::ServerCpuSecondsPerGigabyte,
            cpu_seconds / (bytes as f64 / 1e9),
        ),
        (Quantity::MegabytesPerSecond, bytes as f64 / 1e6 / seconds),
    ]))
}

/// A work of two of those that took turns.
fn against(all: &Work, ours: usize, peer: usize, most: f64) -> Work {
    let pick = |index: usize| all.series[index].clone();
    Work {
        title: all.title.clone(),
        key: all.key,
        series: vec![pick(ours), pick(peer)],
        target: Some(Target::RatioAtMost(most)),
    }
}

fn plural(connections: usize) -> &'static str {
    if connections == 1 { "" } else { "s" }
}
