//! Sealed PUT: opened later, against storing a plain stream; opened before it is acknowledged,
//! against coffer's own TLS.

use std::time::{Duration, Instant};

use coffer_client::AdminClient;
use coffer_client::sealed::Lane;
use parking_lot::Mutex;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::contenders::plain_receiver::PlainReceiver;
use crate::contenders::{Object, Receives};
use crate::error::{BenchError, Doing, Result};
use crate::load_client::content::Content;
use crate::load_client::plain::{connect, send_stream};
use crate::load_client::sealed::{SealedClient, told_checksum};
use crate::load_client::waiting::share;
use crate::report::figures::{Quantity, Sample, Work};
use crate::works::rounds::{Entrant, interleave};
use crate::works::sealed::{SEALED, against, moving, plural, start};
use crate::works::transfers::OBJECT_BYTES;

/// Connections, and objects moved over them in a run and in a quick one.
const PLANS: [(usize, (usize, usize)); 3] = [(1, (16, 8)), (8, (32, 16)), (100, (100, 100))];

/// Objects of those sent that are compared afterwards, every byte.
const OBJECTS_CHECKED: usize = 2;

/// How long the server may take to open what it put off.
const LATER_MOST: Duration = Duration::from_secs(300);

const LOOK_AGAIN_AFTER: Duration = Duration::from_millis(50);

/// The metric that counts what was opened later, and was whole.
const WHOLE_METRIC: &str = "coffer_verified_later_total{outcome=\"whole\"} ";

const AGAINST_PLAIN_MOST: f64 = 1.15;
const AGAINST_TLS_MOST: f64 = 0.60;

/// Sealed PUT, opened later and at once.
pub fn put(bench: &Bench) -> Result<Vec<Work>> {
    let later = &Sender::new(start(bench, "sealed-later", "verify = \"later\"\n")?)?;
    let at_once = &Sender::new(start(bench, "sealed-at-once", "")?)?;
    let plain = &PlainReceiver::start(&bench.folder("sealed-plain")?, bench.pinned)?;
    let mut works = Vec::new();
    for (connections, count) in PLANS {
        let count = bench.effort.of(count);
        let objects = move |who: &str, round: usize| {
            let tag = format!("{who}-{connections}-{round}");
            let mut objects = Object::series(&tag, count, OBJECT_BYTES);
            for object in &mut objects {
                object.content = content();
            }
            objects
        };
        type Measure<'a> = Box<dyn FnMut(usize) -> Result<Sample> + 'a>;
        let entrants: [(&str, Measure<'_>); 4] = [
            (
                "sealed, opened later",
                Box::new(move |round| later.later(bench, connections, &objects("later", round))),
            ),
            (
                "receive and write, plain",
                Box::new(move |round| {
                    plain_once(bench, plain, connections, &objects("plain", round))
                }),
            ),
            (
                "sealed, opened at once",
                Box::new(move |round| at_once.at_once(bench, connections, &objects("now", round))),
            ),
            (
                "TLS",
                Box::new(move |round| at_once.tls(bench, connections, &objects("tls", round))),
            ),
        ];
        let entrants = entrants.map(|(name, measure)| Entrant { name, measure });
        let plural = plural(connections);
        let title = format!("sealed PUT 64 MiB, {connections} connection{plural}, durable");
        let rounds = if connections > 8 {
            bench.effort.heavy_rounds
        } else {
            bench.effort.rounds
        };
        let key = Quantity::ServerCpuSecondsPerGigabyte;
        let all = interleave(&title, key, None, rounds, entrants.into())?;
        works.push(against(&all, 0, 1, AGAINST_PLAIN_MOST));
        works.push(against(&all, 2, 3, AGAINST_TLS_MOST));
    }
    Ok(works)
}

/// All objects hold the same, so that it is made once.
fn content() -> Content {
    Content::new(OBJECT_BYTES, 0)
}

fn plaintext() -> Vec<u8> {
    let (content, mut plaintext) = (content(), Vec::with_capacity(OBJECT_BYTES as usize));
    while (plaintext.len() as u64) < content.length_bytes {
        plaintext.extend_from_slice(content.piece(plaintext.len() as u64, 1 << 16));
    }
    plaintext
}

/// A server, and what sends to it.
struct Sender {
    coffer: Coffer,
    sealed: SealedClient,
    plaintext: Vec<u8>,
    checksum: String,
}

impl Sender {
    fn new(coffer: Coffer) -> Result<Self> {
        let plaintext = plaintext();
        Ok(Self {
            sealed: SealedClient::new(coffer.another_s3()?, SEALED)?,
            checksum: told_checksum(&plaintext),
            coffer,
            plaintext,
        })
    }

    fn commit(&self, object: &Object, ticket: &str, expected: Option<&str>) -> Result<()> {
        let told = self.sealed.commit(&object.name, ticket, &self.checksum)?;
        (told.as_deref() == expected)
            .then_some(())
            .ok_or_else(|| BenchError::Http {
                what: format!("{} is stored as {told:?}", object.name),
            })
    }

    /// All is sent first and committed then: opening begins with the first commit, and is not what
    /// is measured. What it came to in the end stands beside.
    fn later(&self, bench: &Bench, connections: usize, objects: &[Object]) -> Result<Sample> {
        let bytes = objects.len() as u64 * OBJECT_BYTES;
        bench.prepare_disk(bytes)?;
        let process = &self.coffer.endpoint().process;
        let (cpu_before, opened_before) = (process.cpu_seconds()?, self.opened(bench)?);
        let tickets = Mutex::new(Vec::with_capacity(objects.len()));
        let begin = || {
            let (mut lane, tickets) = (Lane::new(), &tickets);
            Ok(move |number: usize| {
                let object = &objects[number];
                let ticket = self.sealed.send(&mut lane, &object.name, &self.plaintext)?;
                tickets.lock().push((object, ticket));
                Ok(())
            })
        };
        let mut sample = moving(process, bytes, || {
            let sending = share(connections, objects.len(), begin)?;
            let (begun, tickets) = (Instant::now(), tickets.lock());
            let commit = |number: usize| {
                let (object, ticket): &(&Object, String) = &tickets[number];
                self.commit(object, ticket, Some("unverified"))
            };
            share(connections, tickets.len(), || Ok(commit))?;
            Ok(sending + begun.elapsed())
        })?;
        let begun = Instant::now();
        while self.opened(bench)? < opened_before + objects.len() as f64 {
            if begun.elapsed() > LATER_MOST {
                let what = "what was stored unverified was not opened".into();
                return Err(BenchError::Http { what });
            }
            std::thread::sleep(LOOK_AGAIN_AFTER);
        }
        let cpu_seconds = process.cpu_seconds()? - cpu_before;
        let in_the_end = cpu_seconds / (bytes as f64 / 1e9);
        sample.insert(Quantity::LaterCpuSecondsPerGigabyte, in_the_end);
        self.finish(bench, objects)?;
        Ok(sample)
    }

    fn at_once(&self, bench: &Bench, connections: usize, objects: &[Object]) -> Result<Sample> {
        let bytes = objects.len() as u64 * OBJECT_BYTES;
        bench.prepare_disk(bytes)?;
        let begin = || {
            let mut lane = Lane::new();
            Ok(move |number: usize| {
                let object = &objects[number];
                let ticket = self.sealed.send(&mut lane, &object.name, &self.plaintext)?;
                self.commit(object, &ticket, None)
            })
        };
        let process = &self.coffer.endpoint().process;
        let sample = moving(process, bytes, || share(connections, objects.len(), begin))?;
        self.finish(bench, objects)?;
        Ok(sample)
    }

    fn tls(&self, bench: &Bench, connections: usize, objects: &[Object]) -> Result<Sample> {
        bench.prepare_disk(objects.len() as u64 * OBJECT_BYTES)?;
        let bucket = Bucket::of(&self.coffer, SEALED);
        let requests = objects.iter().map(|object| bucket.put(object)).collect();
        let sample = bench.load(self.coffer.endpoint(), connections, requests)?;
        self.finish(bench, objects)?;
        Ok(sample)
    }

    /// Compares what was stored, and makes room.
    fn finish(&self, bench: &Bench, objects: &[Object]) -> Result<()> {
        let bucket = Bucket::of(&self.coffer, SEALED);
        bucket.check(&bench.client, &objects[..OBJECTS_CHECKED])?;
        Receives::discard(&bucket, &bench.client, objects)
    }

    /// How many objects were opened later, and were whole.
    fn opened(&self, bench: &Bench) -> Result<f64> {
        let admin = AdminClient::Local {
            data: self.coffer.data().into(),
        };
        let metrics = bench.client.wait(admin.text("/metrics"))?;
        let found = metrics
            .lines()
            .find_map(|line| line.strip_prefix(WHOLE_METRIC));
        let number = found.and_then(|number| number.trim().parse().ok());
        number.ok_or_else(|| BenchError::Http {
            what: format!("metrics without {WHOLE_METRIC}"),
        })
    }
}

fn plain_once(
    bench: &Bench,
    plain: &PlainReceiver,
    connections: usize,
    objects: &[Object],
) -> Result<Sample> {
    let (bytes, plaintext) = (objects.len() as u64 * OBJECT_BYTES, plaintext());
    bench.prepare_disk(bytes)?;
    let begin = || {
        let (mut stream, plaintext) = (connect(plain.address)?, &plaintext);
        Ok(move |number: usize| send_stream(&mut stream, &objects[number].name, plaintext))
    };
    let sample = moving(&plain.process, bytes, || {
        share(connections, objects.len(), begin)
    })?;
    for (number, object) in objects.iter().enumerate() {
        let path = plain.file(&object.name);
        if number < OBJECTS_CHECKED
            && !object
                .content
                .is_in(&path)
                .doing(|| format!("reading {}", path.display()))?
        {
            let request = object.name.clone();
            return Err(BenchError::WrongContents { request, offset: 0 });
        }
        plain.discard(&object.name)?;
    }
    Ok(sample)
}
