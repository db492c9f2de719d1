//! How much memory coffer holds on to, idle and with a hundred clients.

use std::time::Duration;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Receives, Serves};
use crate::error::Result;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Series, Target, Work};
use crate::works::transfers::OBJECT_BYTES;

const CONNECTIONS: usize = 100;

/// Objects that the readers share.
const OBJECTS_READ: usize = 8;

/// What an idle server may still be doing after its start.
const SETTLE: Duration = Duration::from_secs(2);

const IDLE_MOST_MEGABYTES: f64 = 40.0;
const BUSY_MOST_MEGABYTES: f64 = 150.0;

/// Starts a server of its own and loads it step by step. The kernel keeps the peak, so nothing
/// is missed between two looks.
pub fn memory(bench: &Bench) -> Result<Vec<Work>> {
    if !bench.wants("coffer") {
        return Ok(Vec::new());
    }
    let folder = bench.folder("memory")?;
    let coffer = Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    let process = &coffer.endpoint().process;
    std::thread::sleep(SETTLE);
    let idle_bytes = process.resident()?.now_bytes;

    let read = Object::series("memory-get", OBJECTS_READ, OBJECT_BYTES);
    coffer.store(&bench.client, &read)?;
    let peak_of = |requests: Vec<_>, connections| -> Result<u64> {
        disk::settle();
        process.forget_peak()?;
        bench.load(coffer.endpoint(), connections, requests)?;
        Ok(process.resident()?.peak_bytes)
    };
    let gets = |count| {
        read.iter()
            .cycle()
            .take(count)
            .map(|object| coffer.get(object))
    };
    let down_bytes = peak_of(gets(CONNECTIONS).collect(), CONNECTIONS)?;

    let sent = Object::series("memory-put", CONNECTIONS, OBJECT_BYTES);
    let both_ways = sent
        .iter()
        .map(|object| coffer.put(object))
        .zip(gets(CONNECTIONS));
    let both_ways: Vec<_> = both_ways.flat_map(|(put, get)| [put, get]).collect();
    // As many again as there are connections: a client that sent first reads next, or sends again.
    let both_bytes = peak_of(both_ways.clone(), CONNECTIONS)?;
    let twice_bytes = if bench.effort.quick {
        None
    } else {
        Receives::discard(&coffer, &bench.client, &sent)?;
        Some(peak_of(both_ways, 2 * CONNECTIONS)?)
    };
    Receives::check(&coffer, &bench.client, &sent[..1])?;
    Serves::discard(&coffer, &bench.client, &read)?;
    Receives::discard(&coffer, &bench.client, &sent)?;
    std::thread::sleep(SETTLE);
    let after_bytes = process.resident()?.now_bytes;

    let busy = Some(Target::ValueAtMost(BUSY_MOST_MEGABYTES));
    let idle = Some(Target::ValueAtMost(IDLE_MOST_MEGABYTES));
    let busy_title = "peak, 100 connections, half reading, half writing 64 MiB";
    let mut works = vec![
        work("idle, after the start", idle_bytes, idle),
        work("peak, 100 connections reading 64 MiB", down_bytes, None),
        work(busy_title, both_bytes, busy),
    ];
    let twice = twice_bytes.map(|bytes| work("peak, 100 reading and 100 writing", bytes, None));
    works.extend(twice);
    works.push(work("idle, after all that", after_bytes, None));
    Ok(works)
}

fn work(title: &str, bytes: u64, target: Option<Target>) -> Work {
    let key = Quantity::ResidentMegabytes;
    let megabytes = bytes as f64 / 1e6;
    let title = format!("memory, {title}");
    eprintln!("{title}: {} {}", key.format(megabytes), key.unit());
    let samples = vec![Sample::from([(key, megabytes)])];
    Work {
        title,
        key,
        series: vec![Series {
            contender: "coffer".into(),
            samples,
        }],
        target,
    }
}
