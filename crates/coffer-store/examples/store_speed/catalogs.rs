//! Catalogs beside bare SQLCipher.

use std::path::Path;

use bytes::Bytes;
use coffer_seal::SecretKey;
use coffer_store::lock::{Lock, LockTest};
use coffer_store::record::{
    ContentHeaders, Details, ListQuery, NewContent, NewObject, ObjectHead, ObjectName, Precondition,
};
use coffer_store::version::Which;
use coffer_store::{Catalog, Database, Deletion};
use rusqlite::params;

use crate::measure::pieces;

const BARE: Database = Database {
    application_id: 1,
    format_version: 1,
};
const PUTS: usize = 8_000;
const TASKS: usize = 32;
const READS: usize = 50_000;

/// Rows of one table, as a bench that knows nothing of objects would commit them.
async fn bare(dir: &Path) {
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
        pieces(&what, PUTS, groups).await;
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
        lock: Lock::default(),
        access: Default::default(),
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

/// Measures bare commits, and then what the catalog makes of them.
pub(crate) async fn measure(dir: &Path) {
    bare(dir).await;
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
                        .delete(Deletion {
                            name: random(number),
                            which: Which::Current,
                            precondition: Precondition::None,
                            only_if: Default::default(),
                            now_ms: 0,
                            test: LockTest {
                                now_ms: 0,
                                bypasses_governance: false,
                            },
                        })
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
            catalog
                .read(&hot, Which::Current, all)
                .await
                .unwrap()
                .unwrap()
                .unwrap();
        }
    })
    .await;
    pieces("Catalog::head, one object", READS, async {
        for _ in 0..READS {
            catalog.head(&hot, Which::Current).await.unwrap().unwrap();
        }
    })
    .await;
    pieces("Catalog::read, random objects of 4 KiB", READS, async {
        for round in 0..READS {
            catalog
                .read(&random(round * 7_919 % PUTS), Which::Current, all)
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
                    catalog
                        .read(&name, Which::Current, all)
                        .await
                        .unwrap()
                        .unwrap()
                        .unwrap();
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
