//! What the store costs beside what it stands on.
//!
//! `cargo run --release -p coffer-store --example store_speed [-- DIR [ROUNDS [puts|blobs]]]`
//!
//! Each round measures, one after the other, in a folder that is made in DIR (default: `target`):
//! bare SQLCipher commits of 4 KiB in groups of 32, durable puts through `Catalog::put` from 32
//! tasks, point reads, and a blob's way in and out beside plain writes and reads of a file. Of all
//! rounds the best of each is printed, for others may be at work on the same machine: rates are of
//! wall time, costs of CPU time.

#![expect(clippy::unwrap_used, reason = "a measurement that fails may stop")]

mod measure;

mod blobs;
mod catalogs;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| "target".to_owned());
    let rounds: usize = arguments
        .next()
        .and_then(|count| count.parse().ok())
        .unwrap_or(3);
    let only = arguments.next();
    let wanted = |what| only.as_deref().is_none_or(|only| only == what);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap();
    for _ in 0..rounds {
        let dir = tempfile::tempdir_in(&dir).unwrap();
        if wanted("puts") {
            runtime.block_on(catalogs::measure(dir.path()));
        }
        if wanted("blobs") {
            runtime.block_on(blobs::measure(dir.path()));
        }
    }
    measure::report();
}
