//! Catalogs that are damaged, or too new.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use coffer_keys::KeyFolder;
use coffer_store::{CATALOG, CATALOG_FILE, Database};
use coffer_vault::record::{Details, ListQuery, Precondition, Tags};
use coffer_vault::*;
use futures::StreamExt;

use crate::door::{self, Door, bytes, eventually, gone, name, recorded};
use crate::exports;

const LOCAL: Actor = Actor::Local { uid: 0 };
const PAGE_BYTES: usize = 4_096;

fn catalog_file(data: &Path) -> PathBuf {
    let mut folders = fs::read_dir(data.join("buckets")).unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    folder.join(CATALOG_FILE)
}

fn flip(path: &Path, at: usize) {
    let mut file = fs::read(path).unwrap();
    file[at] ^= 1;
    fs::write(path, file).unwrap();
}

/// A stopped server's folder, with small objects in one bucket.
async fn stopped(data: &Path) {
    let door = door::door(data).await;
    for number in 0..60 {
        door.put(&format!("{number:02}"), &bytes(500 * number))
            .await
            .unwrap();
    }
    door.vault.close().await;
}

async fn verified(vault: &Vault) -> Vec<String> {
    let events = vault.verify(&LOCAL, VerifyDepth::Everything, None).await;
    let of_damage = |event| async move {
        match event {
            VerifyEvent::Damage { what, .. } => Some(what),
            _ => None,
        }
    };
    events.unwrap().filter_map(of_damage).collect().await
}

/// How much damage the audit log tells of, but for what a verification found.
async fn told(data: &Path) -> u64 {
    let vault = door::open(data).await;
    let mut events = recorded(&vault).await;
    vault.close().await;
    events.retain(|event| event.act == "storage.damage");
    let counts = events.iter().filter_map(|event| event.details.get("count"));
    counts.map(|count| count.parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_page_is_counted_by_what_meets_it() {
    let data = tempfile::tempdir().unwrap();
    stopped(data.path()).await;
    let path = catalog_file(data.path());
    let pages = fs::metadata(&path).unwrap().len() as usize / PAGE_BYTES;
    for page in [pages / 2, pages - 2] {
        flip(&path, page * PAGE_BYTES + 1_000);
    }
    let door = door::door(data.path()).await;
    let mut refused = 0;
    for number in 0..60 {
        match door.read(&format!("{number:02}"), RangeRequest::All).await {
            Ok(read) => assert_eq!(read, bytes(500 * number)),
            Err(VaultError::Damaged) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0);
    assert_eq!(door.vault.counters().damage_count, refused);
    let found = verified(&door.vault).await.len() as u64;
    assert!(found > 0);
    assert!(door.vault.counters().damage_count >= refused + found);
    door.vault.close().await;
    drop(door);
    flip(&path, (pages / 2) * PAGE_BYTES + 1_000);
    flip(&path, (pages - 2) * PAGE_BYTES + 1_000);
    assert_eq!(told(data.path()).await, refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_catalog_whose_head_is_damaged_or_that_is_gone_is_damage() {
    for is_gone in [false, true] {
        let data = tempfile::tempdir().unwrap();
        stopped(data.path()).await;
        let path = catalog_file(data.path());
        if is_gone {
            fs::remove_file(&path).unwrap()
        } else {
            flip(&path, 100)
        }
        let Door {
            vault,
            subject,
            bucket,
        } = &door::door(data.path()).await;
        // The start has met it.
        eventually("it is counted", || vault.counters().damage_count > 0).await;
        let object = name("01");
        let read = vault.head_object(subject, bucket, &object, ReadOptions::default());
        assert!(matches!(read.await.err(), Some(VaultError::Damaged)));
        let told = verified(vault).await;
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("can't be opened"), "{told:?}");
        vault.close().await;
    }
}

fn newer(database: Database, path: &Path, key: &coffer_seal::SecretKey) {
    fs::remove_file(path).unwrap();
    let newer = Database {
        format_version: database.format_version + 1,
        ..database
    };
    drop(newer.create(path, key, "CREATE TABLE t(x);").unwrap());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_start_refuses_what_a_newer_version_wrote_and_says_what_to_do() {
    let system = Database {
        application_id: 0x636f_6673,
        format_version: 6,
    };
    for of_system in [false, true] {
        let data = tempfile::tempdir().unwrap();
        stopped(data.path()).await;
        let keys = KeyFolder::new(data.path());
        let keystore = keys.open_read_only(None, &Default::default()).unwrap();
        let known = if of_system { system } else { CATALOG }.format_version;
        let (path, named) = if of_system {
            let path = data.path().join("system.db");
            newer(system, &path, &keystore.system_key());
            (path.clone(), path.display().to_string())
        } else {
            let id = keystore.buckets()[0].id;
            let key = keystore.bucket_key(id).unwrap();
            let path = catalog_file(data.path());
            newer(CATALOG, &path, &key.catalog_key());
            (path, "the catalog buckets/".to_owned())
        };
        drop((keys, keystore));
        let before = fs::read(&path).unwrap();
        let opened = Vault::open(VaultOptions::new(data.path())).await;
        let message = opened.err().unwrap().to_string();
        let formats = format!("in format {}, and", known + 1);
        let formats_known = format!("formats up to {known}");
        for part in [&*named, &*formats, &*formats_known, "newer one"] {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_system_database_is_named() {
    let data = tempfile::tempdir().unwrap();
    stopped(data.path()).await;
    flip(&data.path().join("system.db"), 100);
    let opened = Vault::open(VaultOptions::new(data.path())).await;
    let message = opened.err().unwrap().to_string();
    assert!(message.contains("system.db is damaged"), "{message}");
}

#[tokio::test(flavor = "multi_thread")]
async fn open_uploads_are_counted_at_the_start() {
    let data = tempfile::tempdir().unwrap();
    {
        let Door {
            vault,
            subject,
            bucket,
        } = &door::door(data.path()).await;
        for object in ["a", "b", "b"] {
            let new = NewUpload {
                encryption: Default::default(),
                lock: Default::default(),
                acl: Default::default(),
                acl_sent: Default::default(),
                name: name(object),
                details: Details::default(),
                tags: Tags::new(),
                checksum: None,
            };
            vault.create_upload(subject, bucket, new).await.unwrap();
        }
        vault.close().await;
    }
    let vault = door::open(data.path()).await;
    eventually("all are counted", || {
        vault.counters().open_upload_count == 3
    })
    .await;
    vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_verification_tells_no_damage_when_the_server_stops_or_the_bucket_goes() {
    for stops in [true, false] {
        let data = tempfile::tempdir().unwrap();
        stopped(data.path()).await;
        let door = door::door(data.path()).await;
        let rate = Some(1 << 20);
        let walk = door.vault.verify(&LOCAL, VerifyDepth::Everything, rate);
        let walk = tokio::spawn(walk.await.unwrap().collect::<Vec<_>>());
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert!(!walk.is_finished());
        if stops {
            door.vault.close().await;
        } else {
            let names = door.names().await;
            let doomed = names
                .iter()
                .map(|object| gone(name(object), Precondition::None));
            let (subject, bucket) = (&door.subject, &door.bucket);
            let deleted = door.vault.delete_objects(subject, bucket, doomed.collect());
            deleted.await.unwrap();
            door.vault.delete_bucket(subject, bucket).await.unwrap();
        }
        let events = walk.await.unwrap();
        let damage = |event: &VerifyEvent| matches!(event, VerifyEvent::Damage { .. });
        assert!(!events.iter().any(damage), "{events:?}");
        let is_done = matches!(events.last(), Some(VerifyEvent::Done { .. }));
        assert_eq!(is_done, !stops, "{events:?}");
        door.vault.close().await;
    }
}

/// The row of a bucket is there before its making is answered, and others use it from then on. Had
/// they opened its catalog once more, what is acknowledged would go to a log without a name.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_stored_while_a_bucket_is_being_made_stays() {
    let data = tempfile::tempdir().unwrap();
    let door = door::door(data.path()).await;
    let mut stored = 0;
    for number in 0..40 {
        let bucket = BucketName::new(&format!("made-{number}")).unwrap();
        let put_soon = async |object: String| {
            let until = std::time::Instant::now() + Duration::from_secs(10);
            while std::time::Instant::now() < until {
                let put = door::put(&object, &bytes(300));
                match door.vault.put_object(&door.subject, &bucket, put).await {
                    Ok(_) => return 1,
                    Err(VaultError::NoSuchBucket) => tokio::task::yield_now().await,
                    Err(other) => panic!("{other}"),
                }
            }
            0
        };
        let (made, one, other) = tokio::join!(
            door.vault.create_bucket(&door.subject, &bucket, None),
            put_soon("one".to_owned()),
            put_soon("other".to_owned()),
        );
        made.unwrap();
        stored += one + other;
        let put = door::put("after", &bytes(300));
        door.vault
            .put_object(&door.subject, &bucket, put)
            .await
            .unwrap();
    }
    assert_eq!(stored, 80);

    // As a killed process leaves it.
    let left = tempfile::tempdir().unwrap();
    exports::copy(data.path(), left.path());
    let again = door::door(left.path()).await;
    for number in 0..40 {
        let bucket = BucketName::new(&format!("made-{number}")).unwrap();
        let query = ListQuery {
            limit: 100,
            ..ListQuery::default()
        };
        let page = again.vault.list_objects(&again.subject, &bucket, query);
        let found = page.await.unwrap().objects;
        let names: Vec<_> = found.iter().map(|row| row.name.expose()).collect();
        assert_eq!(names, ["after", "one", "other"], "{bucket}");
    }
}
