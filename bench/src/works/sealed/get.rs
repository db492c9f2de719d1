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

/// Connections, and objects moved over them in a run and in a quick one.
const PLANS: [(usize, (usize, usize)); 3] = [(1, (32, 16)), (8, (64, 32)), (100, (200, 100))];

/// Different objects that are read.
const OBJECTS_READ: usize = 8;

const AGAINST_PLAIN_MOST: f64 = 1.15;
const AGAINST_TLS_MOST: f64 = 0.35;

pub(super) fn get(bench: &Bench) -> Result<Vec<Work>> {
    let coffer = &start(bench, "sealed-get", "")?;
    let nginx = &Nginx::start(&bench.folder("sealed-nginx")?, bench.pinned)?;
    let sealed = &SealedClient::new(coffer.another_s3()?, SEALED)?;
    let mut works = Vec::new();
    for (connections, count) in PLANS {
        let count = bench.effort.of(count);
        let entrants = vec![
            Entrant {
                name: "sealed",
                measure: Box::new(move |round| {
                    sealed_once(bench, coffer, sealed, (connections, round), count)
                }),
            },
            Entrant {
                name: "nginx http, sendfile",
                measure: Box::new(move |round| {
                    plain_once(bench, nginx, (connections, round), count)
                }),
            },
            Entrant {
                name: "TLS",
                measure: Box::new(move |round| {
                    tls_once(bench, coffer, (connections, round), count)
                }),
            },
        ];
        let plural = plural(connections);
        let title = format!("sealed GET 64 MiB, {connections} connection{plural}");
        let key = Quantity::ServerCpuSecondsPerGigabyte;
        let all = interleave(&title, key, None, bench.effort.rounds, entrants)?;
        works.push(against(&all, 0, 1, AGAINST_PLAIN_MOST));
        works.push(against(&all, 0, 2, AGAINST_TLS_MOST));
    }
    Ok(works)
}

/// Connections and round: what makes names that were never used.
type Turn = (usize, usize);

fn objects(who: &str, (connections, round): Turn) -> Vec<Object> {
    let tag = format!("{who}-{connections}-{round}");
    Object::series(&tag, OBJECTS_READ, OBJECT_BYTES)
}

fn sealed_once(
    bench: &Bench,
    coffer: &Coffer,
    sealed: &SealedClient,
    turn: Turn,
    count: usize,
) -> Result<Sample> {
    let (bucket, objects) = (Bucket::of(coffer, SEALED), objects("sealed", turn));
    bucket.store(&bench.client, &objects)?;
    disk::settle();
    let begin = || {
        let mut lane = Lane::new();
        let objects = &objects;
        Ok(move |number: usize| {
            let object = &objects[number % OBJECTS_READ];
            sealed.get(&mut lane, &object.name, object.content)
        })
    };
    let bytes = count as u64 * OBJECT_BYTES;
    let process = &coffer.endpoint().process;
    let sample = moving(process, bytes, || share(turn.0, count, begin))?;
    Serves::discard(&bucket, &bench.client, &objects)?;
    Ok(sample)
}

fn plain_once(bench: &Bench, nginx: &Nginx, turn: Turn, count: usize) -> Result<Sample> {
    let objects = objects("plain", turn);
    nginx.store(&bench.client, &objects)?;
    disk::settle();
    let begin = || {
        let mut connection = PlainHttp::connect(nginx.plain_address())?;
        let objects = &objects;
        Ok(move |number: usize| {
            let object = &objects[number % OBJECTS_READ];
            connection.get(&object.name, object.content)
        })
    };
    let bytes = count as u64 * OBJECT_BYTES;
    let process = &nginx.endpoint().process;
    let sample = moving(process, bytes, || share(turn.0, count, begin))?;
    nginx.discard(&bench.client, &objects)?;
    Ok(sample)
}

fn tls_once(bench: &Bench, coffer: &Coffer, turn: Turn, count: usize) -> Result<Sample> {
    let (bucket, objects) = (Bucket::of(coffer, SEALED), objects("tls", turn));
    bucket.store(&bench.client, &objects)?;
    disk::settle();
    let requests = (0..count).map(|number| bucket.get(&objects[number % OBJECTS_READ]));
    let sample = bench.load(coffer.endpoint(), turn.0, requests.collect())?;
    Serves::discard(&bucket, &bench.client, &objects)?;
    Ok(sample)
}
