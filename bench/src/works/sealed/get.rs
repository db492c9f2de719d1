//! Sealed GET, against nginx that sends plain files, and against coffer's own TLS.

use coffer_client::sealed::Lane;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::contenders::nginx::Nginx;
use crate::contenders::{Object, Serves};
use crate::error::Result;
use crate::load_client::plain::PlainHttp;
use crate::load_client::sealed::SealedClient;
use crate::load_client::waiting::share;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::sealed::{SEALED, against, moving, plural, start};
use crate::works::transfers::OBJECT_BYTES;

/// A way of fetching.
#[derive(Clone, Copy)]
struct Plan {
    connections: usize,
    object_bytes: u64,
    /// Different objects that are read.
    objects: usize,
    /// Objects moved in a run, and in a quick one.
    count: (usize, usize),
}

const PLANS: [Plan; 4] = [
    Plan {
        connections: 1,
        object_bytes: OBJECT_BYTES,
        objects: 8,
        count: (32, 16),
    },
    Plan {
        connections: 1,
        object_bytes: 1 << 30,
        objects: 1,
        count: (3, 0),
    },
    Plan {
        connections: 8,
        object_bytes: OBJECT_BYTES,
        objects: 8,
        count: (64, 32),
    },
    Plan {
        connections: 100,
        object_bytes: OBJECT_BYTES,
        objects: 8,
        count: (200, 100),
    },
];

const AGAINST_PLAIN_MOST: f64 = 1.15;
const AGAINST_TLS_MOST: f64 = 0.35;

/// Sealed GET; titles say what of.
pub fn get(bench: &Bench) -> Result<Vec<Work>> {
    let coffer = &start(bench, "sealed-get", "")?;
    let nginx = &Nginx::start(
        bench.nginx.as_deref(),
        &bench.folder("sealed-nginx")?,
        bench.pinned,
    )?;
    let sealed = &SealedClient::new(coffer.another_s3()?, SEALED)?;
    let mut works = Vec::new();
    for plan in PLANS {
        let count = bench.effort.of(plan.count);
        if count == 0 {
            continue;
        }
        type Once<'a> = Box<dyn Fn(&Turn) -> Result<Sample> + 'a>;
        let ways: [(&str, Once<'_>); 3] = [
            (
                "sealed",
                Box::new(|turn| sealed_once(bench, coffer, sealed, turn)),
            ),
            (
                "nginx http, sendfile",
                Box::new(|turn| plain_once(bench, nginx, turn)),
            ),
            ("TLS", Box::new(|turn| tls_once(bench, coffer, turn))),
        ];
        let entrants = ways.map(|(name, once)| Entrant {
            name,
            measure: Box::new(move |round| once(&Turn::new(name, plan, count, round))),
        });
        let (connections, mebibytes) = (plan.connections, plan.object_bytes >> 20);
        let plural = plural(connections);
        let title = format!("sealed GET {mebibytes} MiB, {connections} connection{plural}");
        let key = Quantity::ServerCpuSecondsPerGigabyte;
        let all = interleave(&title, key, None, bench.effort.rounds, entrants.into())?;
        works.push(against(&all, 0, 1, AGAINST_PLAIN_MOST));
        works.push(against(&all, 0, 2, AGAINST_TLS_MOST));
    }
    Ok(works)
}

/// What is fetched in a round.
struct Turn {
    connections: usize,
    objects: Vec<Object>,
    count: usize,
}

impl Turn {
    /// Objects of names that were never used.
    fn new(who: &str, plan: Plan, count: usize, round: usize) -> Self {
        let who = who.split(' ').next().unwrap_or_default();
        let tag = format!("{who}-{}-{}-{round}", plan.object_bytes, plan.connections);
        Self {
            connections: plan.connections,
            objects: Object::series(&tag, plan.objects, plan.object_bytes),
            count,
        }
    }

    fn object(&self, number: usize) -> &Object {
        &self.objects[number % self.objects.len()]
    }

    fn bytes(&self) -> u64 {
        self.count as u64 * self.objects[0].content.length_bytes
    }
}

fn sealed_once(
    bench: &Bench,
    coffer: &Coffer,
    sealed: &SealedClient,
    turn: &Turn,
) -> Result<Sample> {
    let bucket = Bucket::of(coffer, SEALED);
    bucket.store(&bench.client, &turn.objects)?;
    disk::settle();
    let begin = || {
        let mut lane = Lane::new();
        Ok(move |number: usize| {
            let Object { name, content } = turn.object(number);
            sealed.get(&mut lane, name, *content)
        })
    };
    let process = &coffer.endpoint().process;
    let sample = moving(process, turn.bytes(), || {
        share(turn.connections, turn.count, begin)
    })?;
    Serves::discard(&bucket, &bench.client, &turn.objects)?;
    Ok(sample)
}

fn plain_once(bench: &Bench, nginx: &Nginx, turn: &Turn) -> Result<Sample> {
    nginx.store(&bench.client, &turn.objects)?;
    disk::settle();
    let begin = || {
        let mut connection = PlainHttp::connect(nginx.plain_address())?;
        Ok(move |number: usize| {
            let Object { name, content } = turn.object(number);
            connection.get(name, *content)
        })
    };
    let process = &nginx.endpoint().process;
    let sample = moving(process, turn.bytes(), || {
        share(turn.connections, turn.count, begin)
    })?;
    nginx.discard(&bench.client, &turn.objects)?;
    Ok(sample)
}

fn tls_once(bench: &Bench, coffer: &Coffer, turn: &Turn) -> Result<Sample> {
    let bucket = Bucket::of(coffer, SEALED);
    bucket.store(&bench.client, &turn.objects)?;
    disk::settle();
    let requests = (0..turn.count).map(|number| bucket.get(turn.object(number)));
    let sample = bench.load(coffer.endpoint(), turn.connections, requests.collect())?;
    Serves::discard(&bucket, &bench.client, &turn.objects)?;
    Ok(sample)
}
