//! Small objects: how many requests a second, and what one costs.

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::nginx::Nginx;
use crate::contenders::{Object, Receives, Serves};
use crate::error::Result;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::commits;
use crate::works::rounds::{Entrant, interleave};

/// 4 KiB.
const OBJECT_BYTES: usize = 4_096;

/// Different objects that a run reads, again and again.
const OBJECTS_READ: usize = 1_000;

/// Connections of both works.
pub const CONNECTIONS: usize = 32;

/// Requests of a run, and of a quick one.
const GETS: (usize, usize) = (150_000, 50_000);
const PUTS: (usize, usize) = (50_000, 20_000);

/// More than a run of PUTs adds to a database and its log.
const DATABASE_BYTES: u64 = 500_000_000;

const LEAST: f64 = 0.5;
const LEAST_DURABLE: f64 = 0.65;

/// CPU of the server, a GET.
const MOST: f64 = 1.6;

/// GET and durable PUT of 4 KiB over 32 connections.
pub fn small(bench: &Bench) -> Result<Vec<Work>> {
    let coffer = if bench.wants("coffer") {
        let folder = bench.folder("small-coffer")?;
        Some(Coffer::start(
            &bench.coffer,
            &folder,
            bench.pinned,
            &bench.client,
        )?)
    } else {
        None
    };
    let nginx = if bench.wants("nginx") {
        Some(Nginx::start(
            bench.nginx.as_deref(),
            &bench.folder("small-nginx")?,
            bench.pinned,
        )?)
    } else {
        None
    };
    let get = get(bench, coffer.as_ref(), nginx.as_ref())?;
    let cpu = Work {
        title: format!("{}, server CPU", get.title),
        key: Quantity::ServerCpuMicrosecondsPerRequest,
        series: get.series.clone(),
        target: Some(Target::RatioAtMost(MOST)),
    };
    Ok(vec![get, cpu, put(bench, coffer.as_ref())?])
}

fn get(bench: &Bench, coffer: Option<&Coffer>, nginx: Option<&Nginx>) -> Result<Work> {
    let servers: [Option<&dyn Serves>; 2] = [
        coffer.map(|coffer| coffer as _),
        nginx.map(|nginx| nginx as _),
    ];
    let entrants = servers.into_iter().flatten().map(|server| Entrant {
        name: server.endpoint().name,
        measure: Box::new(move |round| get_once(bench, server, round)),
    });
    let title = format!("GET 4 KiB, {CONNECTIONS} connections");
    let target = Some(Target::RatioAtLeast(LEAST));
    interleave(
        &title,
        Quantity::PerSecond,
        target,
        bench.effort.rounds,
        entrants.collect(),
    )
}

/// Stores objects, and reads them again and again.
pub fn get_once(bench: &Bench, server: &dyn Serves, round: usize) -> Result<Sample> {
    let tag = format!("small-get-{round}");
    let objects = Object::series(&tag, OBJECTS_READ, OBJECT_BYTES as u64);
    server.store(&bench.client, &objects)?;
    disk::settle();
    // Signed once: a request is good for 15 minutes, and the client must not be what is measured.
    let once: Vec<_> = objects.iter().map(|object| server.get(object)).collect();
    let count = if bench.effort.quick { GETS.1 } else { GETS.0 };
    let requests = once.iter().cycle().take(count).cloned().collect();
    let sample = bench.load(server.endpoint(), CONNECTIONS, requests)?;
    server.discard(&bench.client, &objects)?;
    Ok(sample)
}

fn put(bench: &Bench, coffer: Option<&Coffer>) -> Result<Work> {
    let mut entrants = Vec::new();
    if let Some(coffer) = coffer {
        entrants.push(Entrant {
            name: coffer.endpoint().name,
            measure: Box::new(move |round| put_once(bench, coffer, round)),
        });
    }
    if bench.wants("sqlcipher") {
        entrants.push(Entrant {
            name: "bare SQLCipher commits",
            measure: Box::new(move |round| {
                let folder = bench.folder(&format!("commits-{round}"))?;
                let count = if bench.effort.quick { PUTS.1 } else { PUTS.0 };
                bench.prepare_disk(DATABASE_BYTES)?;
                commits::measure(&folder, bench.pinned, count, OBJECT_BYTES)
            }),
        });
    }
    let title = format!("PUT 4 KiB, {CONNECTIONS} connections, durable");
    let target = Some(Target::RatioAtLeast(LEAST_DURABLE));
    interleave(
        &title,
        Quantity::PerSecond,
        target,
        bench.effort.rounds,
        entrants,
    )
}

/// Stores objects, looks at some, and makes room.
pub fn put_once(bench: &Bench, server: &dyn Receives, round: usize) -> Result<Sample> {
    let count = if bench.effort.quick { PUTS.1 } else { PUTS.0 };
    let objects = Object::series(&format!("small-put-{round}"), count, OBJECT_BYTES as u64);
    let requests = objects.iter().map(|object| server.put(object)).collect();
    bench.prepare_disk(DATABASE_BYTES)?;
    let sample = bench.load(server.endpoint(), CONNECTIONS, requests)?;
    server.check(&bench.client, &objects[..OBJECTS_READ])?;
    server.discard(&bench.client, &objects)?;
    Ok(sample)
}
