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

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use bytes::Bytes;
use coffer_seal::SecretKey;
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
const PUTS: usize = 8_000;
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
    for _ in 0..rounds {
        let dir = tempfile::tempdir_in(&dir).unwrap();
        if wanted("puts") {
            bare(&runtime, dir.path());
            runtime.block_on(catalog(dir.path()));
        }
        if wanted("blobs") {
            runtime.block_on(blobs(dir.path()));
        }
    }
    report();
}

/// The best of each measurement: what, and seconds of wall and of CPU time for each of its unit.
static BEST: Mutex<Vec<(String, Unit, f64, f64)>> = Mutex::new(Vec::new());

#[derive(Clone, Copy, PartialEq)]
enum Unit {
    Piece,
    Gigabyte,
}

async fn timed<T>(what: &str, unit: Unit, count: f64, work: impl Future<Output = T>) -> T {
    let (began, cpu_began) = (Instant::now(), cpu());
    let out = work.await;
    let wall = began.elapsed().as_secs_f64() / count;
    let cpu = (cpu() - cpu_began).as_secs_f64() / count;
    let mut best = BEST.lock().unwrap();
    match best.iter_mut().find(|(name, ..)| name == what) {
        Some((_, _, least_wall, least_cpu)) => {
            *least_wall = least_wall.min(wall);
            *least_cpu = least_cpu.min(cpu);
        }
        None => best.push((what.to_owned(), unit, wall, cpu)),
    }
    out
}

/// Measures the cost of each of `count` pieces.
async fn pieces(what: &str, count: usize, work: impl Future<Output = ()>) {
    timed(what, Unit::Piece, count as f64, work).await;
}

/// Measures the cost of a gigabyte.
async fn gigabytes(what: &str, bytes: usize, work: impl Future<Output = ()>) {
    timed(what, Unit::Gigabyte, bytes as f64 / 1e9, work).await;
}

fn report() {
    let best = BEST.lock().unwrap();
    let of_bare = |what: &str, wall: f64| {
        let order = NAMES.iter().find(|(order, _)| what.contains(order))?.0;
        let is_bare = |what: &str| what.starts_with("bare") && what.contains(order);
        let bare = best.iter().find(|(what, ..)| is_bare(what))?;
        Some(100.0 * bare.2 / wall).filter(|_| what.contains("32 tasks"))
    };
    for (what, unit, wall, cpu) in best.iter() {
        match unit {
            Unit::Piece => print!(
                "{what:54} {:9.0} /s   {:8.2} us of CPU",
                1.0 / wall,
                cpu * 1e6
            ),
            Unit::Gigabyte => print!("{what:54} {:9.2} GB/s {:8.3} s of CPU/GB", 1.0 / wall, cpu),
        }
        match of_bare(what, *wall) {
            Some(percent) if what.starts_with("Catalog::put") => {
                println!(" {percent:6.0} % of bare");
            }
            _ => println!(),
        }
    }
}

/// Rows of one table, as a bench that knows nothing of objects would commit them.
fn bare(runtime: &tokio::runtime::Runtime, dir: &Path) {
    let schema = "CREATE TABLE bare(name BLOB PRIMARY KEY, details TEXT, data BLOB) WITHOUT ROWID;";
    for (order, name) in NAMES {
        let path = dir.join(format!("bare {order}"));
        let connection = BARE.create(&path, &SecretKey::generate(), schema).unwrap();
        let group = |first: usize| {
            let transaction = connection.unchecked_transaction().unwrap();
            let mut insert = connection
                .prepare_cached("INSERT INTO bare VALUES(?, ?, ?)")
                .unwrap();
            for number in first..first + 32 {
                let name = name(number);
                let details = "0123456789".repeat(10);
                insert
                    .execute(params![name.expose().as_bytes(), details, [7u8; 4096]])
                    .unwrap();
            }
            transaction.commit().unwrap();
        };
        let groups = async {
            (0..PUTS).step_by(32).for_each(group);
        };
        let what = format!("bare commits in groups of 32, {order} names");
        runtime.block_on(pieces(&what, PUTS, groups));
    }
}

fn object(name: ObjectName, fill: u8) -> NewObject {
    let headers = ContentHeaders {
        content_type: Some("binary/octet-stream".into()),
        ..ContentHeaders::default()
    };
    NewObject {
        name,
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

type Name = fn(usize) -> ObjectName;

const NAMES: [(&str, Name); 2] = [("ascending", ascending), ("random", random)];

fn ascending(number: usize) -> ObjectName {
    ObjectName::new(format!("a folder/{number:08}")).unwrap()
}

/// Names that are spread like random ones.
fn random(number: usize) -> ObjectName {
    let spread = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ObjectName::new(format!("{spread:016x}/{number:08}")).unwrap()
}

async fn put_all(catalog: &Catalog, name: Name, fill: u8) {
    let tasks = (0..TASKS).map(|task| {
        let catalog = catalog.clone();
        tokio::spawn(async move {
            for number in (task..PUTS).step_by(TASKS) {
                catalog
                    .put(object(name(number), fill), Precondition::None)
                    .await
                    .unwrap();
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
}

async fn catalog(dir: &Path) {
    let catalog = Catalog::create(&dir.join("bucket"), &SecretKey::generate(), "b")
        .await
        .unwrap();
    for (order, name) in NAMES {
        let what = format!("Catalog::put, new, {order} names, 32 tasks");
        pieces(&what, PUTS, put_all(&catalog, name, 1)).await;
        let what = format!("Catalog::put, overwriting, {order} names, 32 tasks");
        pieces(&what, PUTS, put_all(&catalog, name, 2)).await;
    }
    pieces("Catalog::put, one task", 500, async {
        for number in 0..500 {
            catalog
                .put(object(random(number), 3), Precondition::None)
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
    pieces("Catalog::list, a page of 1,000", 16, async {
        for _ in 0..16 {
            let page = catalog.list(query.clone()).await.unwrap();
            assert_eq!(page.objects.len(), 1000);
            query.start_after = page.next;
        }
    })
    .await;
    pieces("Catalog::delete, 32 tasks", PUTS, async {
        let tasks = (0..TASKS).map(|task| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                for number in (task..PUTS).step_by(TASKS) {
                    catalog
                        .delete(&random(number), Precondition::None)
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
    let hot = random(17);
    pieces("Catalog::read, one object of 4 KiB", READS, async {
        for _ in 0..READS {
            catalog.read(&hot, all).await.unwrap().unwrap().unwrap();
        }
    })
    .await;
    pieces("Catalog::head, one object", READS, async {
        for _ in 0..READS {
            catalog.head(&hot).await.unwrap().unwrap();
        }
    })
    .await;
    pieces("Catalog::read, random objects of 4 KiB", READS, async {
        for round in 0..READS {
            catalog
                .read(&random(round * 7_919 % PUTS), all)
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        }
    })
    .await;
    pieces("Catalog::read, random, 32 tasks", READS, async {
        let tasks = (0..TASKS).map(|task| {
            let catalog = catalog.clone();
            tokio::spawn(async move {
                for round in (task..READS).step_by(TASKS) {
                    let name = random(round * 7_919 % PUTS);
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
    gigabytes("plain writes of 256 KiB, fdatasync", total, async {
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
        gigabytes(
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
    gigabytes("plain reads of 256 KiB", total, async {
        let mut buffer = vec![0; 256 << 10];
        for number in 0..BLOBS {
            let file = File::open(path.with_extension(number.to_string())).unwrap();
            for offset in (0..BLOB_BYTES).step_by(buffer.len()) {
                file.read_exact_at(&mut buffer, offset as u64).unwrap();
            }
        }
    })
    .await;
    gigabytes("BlobReader, one after the other", total, async {
        for blob in &refs {
            drain(&store, blob, &data_key).await;
        }
    })
    .await;
    gigabytes("BlobReader, 40 at once", total * 40 / BLOBS, async {
        let readers = (0..40).map(|number| drain(&store, &refs[number % BLOBS], &data_key));
        futures::future::join_all(readers).await;
    })
    .await;
    pieces("BlobReader, 20 KiB of a blob", 20_000, async {
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
    pieces("BlobWriter, 20 KiB, durable, 32 at once", 2_000, async {
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
