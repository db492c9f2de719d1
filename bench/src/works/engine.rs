//! Commits of an engine: what many clients of a gateway share, against what one connection reaches
//! at the store by itself.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use coffer_measure::statistics;

use crate::bench::Bench;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Receives};
use crate::error::{Doing, Result};
use crate::machine::late::late;
use crate::machine::server_process::free_address;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::small::CONNECTIONS;

mod gateways;

use self::gateways::two_gateways;

const OBJECT_BYTES: u64 = 4_096;

/// How late the store's answers are.
const LATE: Duration = Duration::from_millis(20);

/// PUTs of a run, and of a quick one: of the gateway, and of the store.
const PUTS: (usize, usize) = (12_000, 4_000);
const STORE_PUTS: (usize, usize) = (400, 150);

/// Objects that are read back, each byte.
const CHECKED: usize = 100;

/// More than a run adds to the databases and to the store.
const WRITTEN_BYTES: u64 = 1_000_000_000;

const LEAST: f64 = 20.0;

/// For whom the keystore in the store is sealed. It keeps nothing that is worth keeping.
const IDENTITY: &str =
    "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX\n";

/// Durable PUT of 4 KiB by one gateway, and GET by two.
pub fn engine(bench: &Bench) -> Result<Vec<Work>> {
    Ok(vec![commits(bench)?, two_gateways(bench)?])
}

fn commits(bench: &Bench) -> Result<Work> {
    let folder = bench.folder("engine-store")?;
    let store = &Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    store.make_bucket(&bench.client, "log")?;
    let address = late(store.endpoint().address, LATE)?;
    let gateway = &gateway(bench, store, address)?;
    let entrants = vec![
        Entrant {
            name: "a gateway",
            measure: Box::new(move |round| shared(bench, gateway, round)),
        },
        Entrant {
            name: "the store, one connection",
            measure: Box::new(move |round| alone(bench, store, address, round)),
        },
    ];
    let title = format!("PUT 4 KiB, {CONNECTIONS} connections, an engine's store 20 ms late");
    let least = Some(Target::RatioAtLeast(LEAST));
    let rounds = bench.effort.rounds;
    interleave(&title, Quantity::PerSecond, least, rounds, entrants)
}

fn gateway(bench: &Bench, store: &Coffer, address: SocketAddr) -> Result<Coffer> {
    let folder = bench.folder("engine-gateway")?;
    let arguments = gateway_arguments(&folder, store, address)?;
    let (program, client) = (&bench.coffer, &bench.client);
    Coffer::start_as(program, &folder, bench.pinned, client, ("", &arguments))
}

/// What makes a coffer a gateway of the engine on this store, which is reached at this address.
fn gateway_arguments(folder: &Path, store: &Coffer, address: SocketAddr) -> Result<[String; 6]> {
    let identity = folder.join("identity");
    fs::write(&identity, IDENTITY).doing(|| format!("writing {}", identity.display()))?;
    let url = format!(
        "s3://log/engine?endpoint=https://{address}&ca={}&credentials={}",
        store.authority().display(),
        store.data().join("credentials").display()
    );
    Ok([
        "--engine".to_owned(),
        url,
        "--identity".to_owned(),
        identity.display().to_string(),
        "--gateway-listen".to_owned(),
        free_address()?.to_string(),
    ])
}

/// Stores objects by the gateway, and looks at some.
fn shared(bench: &Bench, gateway: &Coffer, round: usize) -> Result<Sample> {
    let count = bench.effort.of(PUTS);
    let objects = Object::series(&format!("shared-{round}"), count, OBJECT_BYTES);
    let requests = objects.iter().map(|object| gateway.put(object)).collect();
    bench.prepare_disk(WRITTEN_BYTES)?;
    let sample = bench.load(gateway.endpoint(), CONNECTIONS, requests)?;
    gateway.check(&bench.client, &objects[..CHECKED])?;
    Ok(sample)
}

/// Stores objects in the store itself, one after the other, over the same network.
fn alone(bench: &Bench, store: &Coffer, address: SocketAddr, round: usize) -> Result<Sample> {
    let count = bench.effort.of(STORE_PUTS);
    let objects = Object::series(&format!("alone-{round}"), count, OBJECT_BYTES);
    let requests = objects.iter().map(|object| store.put(object)).collect();
    bench.prepare_disk(WRITTEN_BYTES)?;
    let mut connection = bench.client.connect(address, &store.endpoint().tls, 1)?;
    let mut outcome = bench.client.run(&mut connection, requests)?;
    let p50_ns = statistics::percentile(&mut outcome.latencies_ns, 50);
    Ok(Sample::from([
        (
            Quantity::PerSecond,
            count as f64 / outcome.elapsed.as_secs_f64(),
        ),
        (Quantity::P50Milliseconds, p50_ns as f64 / 1e6),
    ]))
}
