//! Many small objects in a bucket, for works that are about their number.

use std::time::Instant;

use crate::bench::Bench;
use crate::contenders::bucket::Bucket;
use crate::contenders::coffer::Coffer;
use crate::contenders::{Object, Receives};
use crate::error::Result;

/// So many commits are shared that the disk's syncs matter little.
const CONNECTIONS: usize = 128;

/// Requests that are signed at once: they take memory, and are good for minutes only.
const SIGNED_AT_ONCE: usize = 20_000;

/// Stores objects as fast as the server takes them, and says how it goes.
pub fn fill(bench: &Bench, coffer: &Coffer, bucket: &str, objects: &[Object]) -> Result<()> {
    let target = Bucket::of(coffer, bucket);
    let begun = Instant::now();
    let mut connections = coffer.endpoint().connect(&bench.client, CONNECTIONS)?;
    for objects in objects.chunks(SIGNED_AT_ONCE) {
        let requests = objects.iter().map(|object| target.put(object)).collect();
        bench.client.run(&mut connections, requests)?;
    }
    let (count, seconds) = (objects.len(), begun.elapsed().as_secs_f64());
    eprintln!("stored {count} objects in {bucket} in {seconds:.0} s");
    Ok(())
}
