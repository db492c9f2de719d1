//! What it costs to list versions, where there are many of each object.

use crate::bench::Bench;
use crate::contenders::Object;
use crate::contenders::coffer::Coffer;
use crate::error::{BenchError, Result};
use crate::load_client::connection::Request;
use crate::load_client::response::Expected;
use crate::machine::disk;
use crate::report::figures::{Quantity, Sample, Target, Work};
use crate::works::buckets::features::enable_versions;
use crate::works::buckets::stock;
use crate::works::rounds::{Entrant, interleave};

/// Objects in each of both buckets, and in a quick run.
const OBJECTS: (usize, usize) = (100_000, 10_000);

/// Versions of each, in one of them.
const VERSIONS: usize = 10;

/// Bytes of each.
const OBJECT_BYTES: u64 = 64;

/// Entries of a page.
const PAGE: usize = 1_000;

/// Pages that are listed in a round, at places all over the bucket.
const PAGES: usize = 500;

const VERSIONED: &str = "versioned";

const SLOWER_MOST: f64 = 1.5;

/// Lists 1,000 of many versions, against 1,000 of as many objects as there are names.
pub fn versions(bench: &Bench) -> Result<Vec<Work>> {
    let client = &bench.client;
    let folder = bench.folder("versions")?;
    let coffer = &Coffer::start(&bench.coffer, &folder, bench.pinned, client)?;
    coffer.make_bucket(client, VERSIONED)?;
    enable_versions(coffer, client, VERSIONED)?;
    let count = bench.effort.of(OBJECTS);
    let objects = Object::sorted("listed", count, OBJECT_BYTES);
    stock::fill(bench, coffer, Coffer::BUCKET, &objects)?;
    for _ in 0..VERSIONS {
        stock::fill(bench, coffer, VERSIONED, &objects)?;
    }
    check(bench, coffer)?;
    disk::settle();

    let starts: Vec<&str> = (0..PAGES)
        // Behind each of them there is a page at least, also where a page is of many names.
        .map(|page| objects[page * (count - PAGE - 1) / PAGES].name.as_str())
        .collect();
    let of_versions = requests(coffer, VERSIONED, &starts, |start| {
        format!("key-marker={start}&max-keys={PAGE}&versions=")
    });
    let of_objects = requests(coffer, Coffer::BUCKET, &starts, |start| {
        format!("list-type=2&max-keys={PAGE}&start-after={start}")
    });
    let entrants = [("versions", of_versions), ("objects", of_objects)];
    let entrants = entrants.map(|(name, requests)| Entrant {
        name,
        measure: Box::new(move |_| list(bench, coffer, &requests)),
    });
    let title = format!(
        "listing {PAGE} of {} versions of {count} objects, against {PAGE} of {count} objects",
        count * VERSIONS
    );
    let key = Quantity::P50Milliseconds;
    let target = Some(Target::RatioAtMost(SLOWER_MOST));
    let rounds = bench.effort.rounds;
    let work = interleave(&title, key, target, rounds, entrants.into())?;
    Ok(vec![work])
}

fn requests(
    coffer: &Coffer,
    bucket: &str,
    starts: &[&str],
    query: impl Fn(&str) -> String,
) -> Vec<Request> {
    let path = format!("/{bucket}");
    let request = |start| coffer.request("GET", &path, &query(start), None, Expected::Success);
    starts.iter().map(|start| request(start)).collect()
}

/// One page after the other.
fn list(bench: &Bench, coffer: &Coffer, requests: &[Request]) -> Result<Sample> {
    bench.load(coffer.endpoint(), 1, requests.to_vec())
}

/// That there is what is meant to be listed, and that a page is full.
fn check(bench: &Bench, coffer: &Coffer) -> Result<()> {
    let versions = coffer.s3().list_versions(VERSIONED, "", None);
    let versions = bench.client.wait(versions)?.versions;
    let objects = coffer.s3().list_objects(Coffer::BUCKET, "", None, None);
    let objects = bench.client.wait(objects)?.objects;
    let names = versions.iter().filter(|version| version.is_latest).count();
    if versions.len() != PAGE || objects.len() != PAGE || names != PAGE / VERSIONS {
        return Err(BenchError::Http {
            what: format!(
                "pages of {} versions of {names} objects, and of {} objects",
                versions.len(),
                objects.len()
            ),
        });
    }
    Ok(())
}
