//! Two gateways of an engine on two buckets, each held to a share of a core, against one of them.
//!
//! Only reads: changes are committed by one gateway, whichever takes them. The gateway that has the
//! lease reads one bucket, the other the other one.

use std::time::{Duration, Instant};

use coffer_client::AdminClient;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Serves};
use crate::error::{BenchError, Result};
use crate::load_client::connection::Request;
use crate::machine::held::Held;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::small::CONNECTIONS;

use super::gateway_arguments;

const OBJECT_BYTES: u64 = 4_096;

/// Different objects in each bucket.
const OBJECTS: usize = 1_000;

/// Of a core.
const PERCENT: u32 = 20;

/// GETs of a run at each gateway, and of a quick one.
const GETS: (usize, usize) = (10_000, 4_000);

const LEAST: f64 = 1.8;

/// How many of its reads a gateway is to answer itself: else it is forwarding that is measured.
const ITSELF_LEAST: f64 = 0.9;

const ANSWERED_METRIC: &str = "coffer_s3_requests_total{";

/// Within which the gateway that follows has what was stored.
const FOLLOWS_WITHIN: Duration = Duration::from_secs(4);

/// A gateway with what is read by it.
struct Reader {
    gateway: Coffer,
    once: Vec<Request>,
    /// After the gateway, whose process has ended then.
    _held: Held,
}

impl Reader {
    fn new(gateway: Coffer, bucket: &str, objects: &[Object]) -> Result<Self> {
        let place = Bucket::of(&gateway, bucket);
        let once = objects.iter().map(|object| place.get(object)).collect();
        let _held = Held::to(gateway.endpoint().process.id(), PERCENT)?;
        Ok(Self {
            gateway,
            once,
            _held,
        })
    }

    fn requests(&self, count: usize) -> Vec<Request> {
        self.once.iter().cycle().take(count).cloned().collect()
    }

    /// How many requests it has answered itself.
    fn answered(&self, bench: &Bench) -> Result<f64> {
        let admin = AdminClient::Local {
            data: self.gateway.data().into(),
        };
        let metrics = bench.client.wait(admin.text("/metrics"))?;
        let series = metrics.lines();
        let series = series.filter(|line| line.starts_with(ANSWERED_METRIC));
        let counts = series.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
        Ok(counts.sum())
    }
}

/// GET of 4 KiB.
pub(super) fn two_gateways(bench: &Bench) -> Result<Work> {
    let folder = bench.folder("gateways-store")?;
    let store = &Coffer::start(&bench.coffer, &folder, bench.pinned, &bench.client)?;
    store.make_bucket(&bench.client, "log")?;
    let address = store.endpoint().address;
    let folder = bench.folder("gateways-first")?;
    let arguments = gateway_arguments(&folder, store, address)?;
    let (program, client, pinned) = (&bench.coffer, &bench.client, bench.pinned);
    let first = Coffer::start_as(program, &folder, pinned, client, ("", &arguments))?;
    let folder = bench.folder("gateways-second")?;
    let arguments = gateway_arguments(&folder, store, address)?;
    let second = Coffer::beside(&first, &folder, pinned, &arguments)?;
    let objects = Object::series("gateways", OBJECTS, OBJECT_BYTES);
    let buckets = [Coffer::BUCKET, "bench-second"];
    first.make_bucket(client, buckets[1])?;
    for bucket in buckets {
        Bucket::of(&first, bucket).store(client, &objects)?;
    }
    std::thread::sleep(FOLLOWS_WITHIN);
    let readers = [
        Reader::new(first, buckets[0], &objects)?,
        Reader::new(second, buckets[1], &objects)?,
    ];
    let entrants = vec![
        Entrant {
            name: "two gateways",
            measure: Box::new(|_| read(bench, &readers)),
        },
        Entrant {
            name: "one gateway",
            measure: Box::new(|_| read(bench, &readers[..1])),
        },
    ];
    let title = format!(
        "GET 4 KiB by gateways of an engine, each held to {PERCENT} % of a core, \
         {CONNECTIONS} connections each"
    );
    let least = Some(Target::RatioAtLeast(LEAST));
    let rounds = bench.effort.rounds;
    interleave(&title, Quantity::PerSecond, least, rounds, entrants)
}

fn answered(bench: &Bench, readers: &[Reader]) -> Result<Vec<f64>> {
    { readers.iter() }
        .map(|reader| reader.answered(bench))
        .collect()
}

/// Reads by these at once.
fn read(bench: &Bench, readers: &[Reader]) -> Result<Sample> {
    let count = bench.effort.of(GETS);
    let client = &bench.client;
    let mut connections = Vec::new();
    for reader in readers {
        let mut opened = reader.gateway.endpoint().connect(client, CONNECTIONS)?;
        client.run(&mut opened, reader.requests(OBJECTS))?;
        connections.push(opened);
    }
    let requests = readers.iter().map(|reader| reader.requests(count));
    let groups = connections.iter_mut().zip(requests).collect();
    let before = answered(bench, readers)?;
    let begun = Instant::now();
    let outcomes = client.run_together(groups)?;
    let seconds = begun.elapsed().as_secs_f64();
    for (after, before) in answered(bench, readers)?.into_iter().zip(before) {
        let itself = (after - before) / count as f64;
        if itself < ITSELF_LEAST {
            let what = format!(
                "a gateway answered {:.0} % of its reads itself",
                100.0 * itself
            );
            return Err(BenchError::Http { what });
        }
    }
    let client_seconds = outcomes.first().map_or(0.0, |it| it.client_cpu_seconds);
    let total = (count * readers.len()) as f64;
    Ok(Sample::from([
        (Quantity::PerSecond, total / seconds),
        (
            Quantity::ClientBusyPercent,
            100.0 * client_seconds / seconds,
        ),
    ]))
}
