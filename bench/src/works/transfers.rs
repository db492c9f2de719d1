//! Large objects, there and back: what a gigabyte costs the server.

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::nginx::Nginx;
use crate::contenders::receiver::Receiver;
use crate::contenders::{Object, Receives, Serves};
use crate::error::Result;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};

/// 64 MiB.
pub const OBJECT_BYTES: u64 = 64 * 1024 * 1024;

/// Different objects that a run reads, and a quick one: more than any cache of the processor.
const OBJECTS_READ: (usize, usize) = (16, 8);

/// Objects of those sent that are compared afterwards, every byte.
const OBJECTS_CHECKED: usize = 2;

/// A work of this file.
struct Plan {
    connections: usize,
    /// Objects moved in a run, and in a quick one.
    count: usize,
    quick_count: usize,
    target: Option<f64>,
}

const GETS: [Plan; 4] = [
    Plan {
        connections: 1,
        count: 32,
        quick_count: 0,
        target: None,
    },
    Plan {
        connections: 8,
        count: 64,
        quick_count: 32,
        target: Some(0.80),
    },
    Plan {
        connections: 32,
        count: 96,
        quick_count: 0,
        target: None,
    },
    Plan {
        connections: 100,
        count: 200,
        quick_count: 100,
        target: Some(0.72),
    },
];

const PUTS: [Plan; 3] = [
    Plan {
        connections: 1,
        count: 16,
        quick_count: 0,
        target: None,
    },
    Plan {
        connections: 8,
        count: 32,
        quick_count: 16,
        target: Some(1.25),
    },
    Plan {
        connections: 100,
        count: 100,
        quick_count: 100,
        target: Some(1.25),
    },
];

/// GET, against plain files from nginx.
pub fn get(bench: &Bench) -> Result<Vec<Work>> {
    let mut servers: Vec<Box<dyn Serves>> = Vec::new();
    if bench.wants("coffer") {
        let folder = bench.folder("get-coffer")?;
        let coffer = Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
        servers.push(Box::new(coffer));
    }
    if bench.wants("nginx") {
        servers.push(Box::new(Nginx::start(
            bench.nginx.as_deref(),
            &bench.folder("get-nginx")?,
            bench.pinned,
        )?));
    }
    run(
        bench,
        "GET",
        &GETS,
        servers.iter().map(AsRef::as_ref).collect(),
        get_once,
    )
}

/// PUT, durable, against receiving and writing plain files.
pub fn put(bench: &Bench) -> Result<Vec<Work>> {
    let mut servers: Vec<Box<dyn Receives>> = Vec::new();
    if bench.wants("coffer") {
        let folder = bench.folder("put-coffer")?;
        let coffer = Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
        servers.push(Box::new(coffer));
    }
    if bench.wants("receiver") {
        servers.push(Box::new(Receiver::start(
            &bench.folder("put-receiver")?,
            bench.pinned,
        )?));
    }
    run(
        bench,
        "PUT",
        &PUTS,
        servers.iter().map(AsRef::as_ref).collect(),
        put_once,
    )
}

/// All plans of one direction.
fn run<S: NamedServer + ?Sized>(
    bench: &Bench,
    verb: &str,
    plans: &[Plan],
    servers: Vec<&S>,
    once: fn(&Bench, &S, &str, usize, usize) -> Result<Sample>,
) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    for plan in plans {
        let count = if bench.effort.quick {
            plan.quick_count
        } else {
            plan.count
        };
        if count == 0 {
            continue;
        }
        let connections = plan.connections;
        let plural = if connections == 1 { "" } else { "s" };
        let durable = if verb == "PUT" { ", durable" } else { "" };
        let title = format!("{verb} 64 MiB, {connections} connection{plural}{durable}");
        let entrants = servers.iter().map(|&server| Entrant {
            name: server.name(),
            measure: Box::new(move |round| {
                once(
                    bench,
                    server,
                    &format!("{connections}-{round}"),
                    connections,
                    count,
                )
            }),
        });
        let key = Quantity::ServerCpuSecondsPerGigabyte;
        let target = plan.target.map(Target::RatioAtMost);
        let rounds = if verb == "PUT" && connections > 8 {
            bench.effort.heavy_rounds
        } else {
            bench.effort.rounds
        };
        let entrants = entrants.collect();
        works.push(interleave(&title, key, target, rounds, entrants)?);
    }
    Ok(works)
}

/// Writes objects anew, then reads them: old files in the page cache cost a server more or less
/// than new ones do.
pub fn get_once(
    bench: &Bench,
    server: &dyn Serves,
    tag: &str,
    connections: usize,
    count: usize,
) -> Result<Sample> {
    let read = if bench.effort.quick {
        OBJECTS_READ.1
    } else {
        OBJECTS_READ.0
    };
    let objects = Object::series(&format!("get-{tag}"), read, OBJECT_BYTES);
    server.store(&bench.client, &objects)?;
    disk::settle();
    let requests = (0..count).map(|number| server.get(&objects[number % objects.len()]));
    let sample = bench.load(server.endpoint(), connections, requests.collect())?;
    server.discard(&bench.client, &objects)?;
    Ok(sample)
}

/// Sends objects, then looks at some, and makes room.
pub fn put_once(
    bench: &Bench,
    server: &dyn Receives,
    tag: &str,
    connections: usize,
    count: usize,
) -> Result<Sample> {
    let objects = Object::series(&format!("put-{tag}"), count, OBJECT_BYTES);
    bench.prepare_disk(count as u64 * OBJECT_BYTES)?;
    let requests = objects.iter().map(|object| server.put(object)).collect();
    let sample = bench.load(server.endpoint(), connections, requests)?;
    server.check(&bench.client, &objects[..OBJECTS_CHECKED])?;
    server.discard(&bench.client, &objects)?;
    Ok(sample)
}

/// What both kinds of server have.
trait NamedServer {
    fn name(&self) -> &'static str;
}

impl NamedServer for dyn Serves + '_ {
    fn name(&self) -> &'static str {
        self.endpoint().name
    }
}

impl NamedServer for dyn Receives + '_ {
    fn name(&self) -> &'static str {
        self.endpoint().name
    }
}
