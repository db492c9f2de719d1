//! What the store costs beside what it stands on.
//!
//! `cargo run --release -p coffer-store --example store_speed [-- DIR [ROUNDS [puts|blobs]]]`
//!
//! Each round measures, one after the other, in a folder that is made in DIR (default: `target`):
//! bare SQLCipher commits of 4 KiB in groups of 32, durable puts through `Catalog::put` from 32
//! tasks, point reads, and a blob's way in and out beside plain writes and reads of a file.

#![expect(clippy::unwrap_used, reason = "a measurement that fails may stop")]

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_seal::{SecretKey, random_bytes};
use coffer_store::record::{
    BlobRef, ContentHeaders, Details, Id, ListQuery, NewContent, NewObject, ObjectHead, ObjectName,
    Precondition,
};
use coffer_store::{BlobStore, Catalog, Database};
use futures::StreamExt;
use rusqlite::params;

const BARE: Database = Database {
    application_id: 1,
    format_version: 1,
};
const PUTS: usize = 16_000;
const TASKS: usize = 32;
const READS: usize = 50_000;
const BLOB_BYTES: usize = 64 << 20;
const BLOBS: usize = 8;

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
    for round in 0..rounds {
        println!("round {round}");
        let dir = tempfile::tempdir_in(&dir).unwrap();
        if wanted("puts") {
            let bare = bare(&runtime, dir.path());
            runtime.block_on(catalog(dir.path(), bare));
        }
        if wanted("blobs") {
            runtime.block_on(blobs(dir.path()));
        }
    }
}

/// Runs `work` and prints how long it took and what CPU time it cost, for each of `count`.
async fn timed<T>(what: &str, count: usize, work: impl Future<Output = T>) -> (T, f64) {
    let (began, cpu_began) = (Instant::now(), cpu());
    let out = work.await;
    let (wall, cpu) = (
        began.elapsed().as_secs_f64(),
        (cpu() - cpu_began).as_secs_f64(),
    );
    let each = 1e6 / count as f64;
    let rate = count as f64 / wall;
    println!(
        "  {what:44} {rate:9.0} /s {:8.2} us wall {:8.2} us cpu",
        wall * each,
        cpu * each
    );
    (out, rate)
}

/// The same for bytes.
async fn timed_bytes<T>(what: &str, bytes: usize, work: impl Future<Output = T>) -> T {
    let (began, cpu_began) = (Instant::now(), cpu());
    let out = work.await;
    let (wall, cpu) = (
        began.elapsed().as_secs_f64(),
        (cpu() - cpu_began).as_secs_f64(),
    );
    let gb = bytes as f64 / 1e9;
    println!(
        "  {what:44} {:9.2} GB/s  {:8.3} s wall/GB {:6.3} s cpu/GB",
        gb / wall,
        wall / gb,
        cpu / gb
    );
    out
}

fn bare(runtime: &tokio::runtime::Runtime, dir: &Path) -> f64 {
    let schema = "CREATE TABLE bare(id INTEGER PRIMARY KEY, name BLOB NOT NULL UNIQUE, data BLOB);";
    let connection = BARE
        .create(&dir.join("bare.db"), &SecretKey::generate(), schema)
        .unwrap();
    let group = || {
        let transaction = connection.unchecked_transaction().unwrap();
        let mut insert = connection
            .prepare_cached("INSERT INTO bare(name, data) VALUES(?, ?)")
            .unwrap();
        for _ in 0..32 {
            insert
                .execute(params![random_bytes::<24>(), [7u8; 4096]])
                .unwrap();
        }
        transaction.commit().unwrap();
    };
    let groups = async {
        for _ in 0..PUTS / 32 {
            group();
        }
    };
    runtime
        .block_on(timed("bare commits in groups of 32, 4 KiB", PUTS, groups))
        .1
}

fn object(number: usize, fill: u8) -> NewObject {
    let headers = ContentHeaders {
        content_type: Some("binary/octet-stream".into()),
        ..ContentHeaders::default()
    };
    NewObject {
        name: name(number),
        etag: "0123456789abcdef0123456789abcdef".into(),
        modified_ms: 1_700_000_000_000,
        details: Details {
            headers,
            ..Details::default()
        },
        tags: Vec::new(),
        content: NewContent::Inline(Bytes::from(vec![fill; 4096])),
    }
}

/// Names that are spread like random ones.
fn name(number: usize) -> ObjectName {
    ObjectName::new(format!(
        "{:016x}/{number:08}",
        number.wrapping_mul(0x9E37_79B9_7F4A_7C15)
    ))
    .unwrap()
}

async fn put_all(catalog: &Catalog, fill: u8) {
    let tasks = (0..TASKS).map(|task| {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            for number in (task..PUTS).step_by(TASKS) {
                catalog
                    .put(object(number, fill), Precondition::None)
                    .await
                    .unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn catalog(dir: &Path, bare: f64) {
    let catalog = Catalog::create(&dir.join("bucket"), &SecretKey::generate(), "b")
        .await
        .unwrap();
    let (_, rate) = timed("Catalog::put, new, 32 tasks", PUTS, put_all(&catalog, 1)).await;
    println!("    = {:.0} % of bare", 100.0 * rate / bare);
    let (_, rate) = timed(
        "Catalog::put, overwriting, 32 tasks",
        PUTS,
        put_all(&catalog, 2),
    )
    .await;
    println!("    = {:.0} % of bare", 100.0 * rate / bare);
    timed("Catalog::put, one task", 500, async {
        for number in 0..500 {
            catalog
                .put(object(number, 3), Precondition::None)
                .await
                .unwrap();
        }
    })
    .await;
    reads(&catalog).await;
    let mut query = ListQuery {
        limit: 1000,
        ..ListQuery::default()
    };
    timed("Catalog::list, a page of 1,000", 16, async {
        for _ in 0..16 {
            let page = catalog.list(query.clone()).await.unwrap();
            assert_eq!(page.objects.len(), 1000);
            query.start_after = page.next;
        }
    })
    .await;
    timed("Catalog::delete, 32 tasks", PUTS, async {
        let tasks = (0..TASKS).map(|task| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                for number in (task..PUTS).step_by(TASKS) {
                    catalog
                        .delete(&name(number), Precondition::None)
                        .await
                        .unwrap();
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    })
    .await;
    catalog.close().await;
}

async fn reads(catalog: &Catalog) {
    let all = |head: &ObjectHead| Ok::<_, ()>(0..head.size_bytes);
    let hot = name(17);
    timed("Catalog::read, one object of 4 KiB", READS, async {
        for _ in 0..READS {
            catalog.read(&hot, all).await.unwrap().unwrap().unwrap();
        }
    })
    .await;
    timed("Catalog::head, one object", READS, async {
        for _ in 0..READS {
            catalog.head(&hot).await.unwrap().unwrap();
        }
    })
    .await;
    timed("Catalog::read, random objects of 4 KiB", READS, async {
        for round in 0..READS {
            catalog
                .read(&name(round * 7_919 % PUTS), all)
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        }
    })
    .await;
    timed("Catalog::read, random, 32 tasks", READS, async {
        let tasks = (0..TASKS).map(|task| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                for round in (task..READS).step_by(TASKS) {
                    let name = name(round * 7_919 % PUTS);
                    catalog.read(&name, all).await.unwrap().unwrap().unwrap();
                    tokio::task::yield_now().await;
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
    })
    .await;
}

async fn blobs(dir: &Path) {
    let store = BlobStore::new(&dir.join("bucket"), Id([7; 16]));
    let data_key = SecretKey::generate();
    let piece = Bytes::from(vec![0x5a; 256 << 10]);
    let total = BLOB_BYTES * BLOBS;

    let path = dir.join("plain");
    timed_bytes("plain writes of 256 KiB, fdatasync", total, async {
        for number in 0..BLOBS {
            let file = File::create(path.with_extension(number.to_string())).unwrap();
            for offset in (0..BLOB_BYTES).step_by(piece.len()) {
                file.write_all_at(&piece, offset as u64).unwrap();
            }
            file.sync_data().unwrap();
        }
    })
    .await;
    let mut refs: Vec<BlobRef> = Vec::new();
    for (what, piece_bytes) in [("256 KiB", 256 << 10), ("17,000 bytes", 17_000)] {
        for old in &refs {
            store.remove(vec![old.id]).await;
        }
        refs.clear();
        timed_bytes(
            &format!("BlobWriter, pieces of {what}, durable"),
            total,
            async {
                for _ in 0..BLOBS {
                    let mut writer = store.create(&data_key).unwrap();
                    let mut left = BLOB_BYTES;
                    while left > 0 {
                        let count = left.min(piece_bytes);
                        writer.write(piece.slice(..count)).await.unwrap();
                        left -= count;
                    }
                    let blob = writer.finish().await.unwrap();
                    refs.push(BlobRef {
                        id: blob.id(),
                        plaintext_bytes: blob.plaintext_bytes(),
                        key_generation: 1,
                        wrapped_key: [0; 104],
                        checksum: None,
                    });
                    blob.keep();
                }
            },
        )
        .await;
    }
    timed_bytes("plain reads of 256 KiB", total, async {
        let mut buffer = vec![0; 256 << 10];
        for number in 0..BLOBS {
            let file = File::open(path.with_extension(number.to_string())).unwrap();
            for offset in (0..BLOB_BYTES).step_by(buffer.len()) {
                file.read_exact_at(&mut buffer, offset as u64).unwrap();
            }
        }
    })
    .await;
    timed_bytes("BlobReader, one after the other", total, async {
        for blob in &refs {
            drain(&store, blob, &data_key).await;
        }
    })
    .await;
    timed_bytes("BlobReader, 40 at once", total * 40 / BLOBS, async {
        let readers = (0..40).map(|number| drain(&store, &refs[number % BLOBS], &data_key));
        futures::future::join_all(readers).await;
    })
    .await;
    timed("BlobReader, 20 KiB of a blob", 20_000, async {
        for number in 0..20_000u64 {
            let blob = &refs[number as usize % BLOBS];
            let mut reader = store
                .open(blob.id, &data_key, blob.plaintext_bytes)
                .await
                .unwrap();
            reader.range(number * 1000..number * 1000 + 20_000).unwrap();
            while let Some(piece) = reader.next().await {
                piece.unwrap();
            }
        }
    })
    .await;
    timed("BlobWriter, 20 KiB, durable, 32 at once", 2_000, async {
        let tasks = (0..TASKS).map(|_| async {
            for _ in 0..2_000 / TASKS {
                let mut writer = store.create(&data_key).unwrap();
                writer.write(piece.slice(..20_000)).await.unwrap();
                writer.finish().await.unwrap().keep();
            }
        });
        futures::future::join_all(tasks).await;
    })
    .await;
}

async fn drain(store: &BlobStore, blob: &BlobRef, data_key: &SecretKey) {
    let mut reader = store
        .open(blob.id, data_key, blob.plaintext_bytes)
        .await
        .unwrap();
    let mut bytes = 0;
    while let Some(piece) = reader.next().await {
        bytes += piece.unwrap().len();
        tokio::task::yield_now().await;
    }
    assert_eq!(bytes, BLOB_BYTES);
}

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec as u32)
}
