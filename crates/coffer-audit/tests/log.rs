//! The log as the vault uses it.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use coffer_audit::{
    AuditError, AuditKey, AuditLog, CheckpointKey, Event, Options, Outcome, Record, verify,
};
use coffer_seal::{KeystoreId, SecretKey};

fn key() -> AuditKey {
    AuditKey::new(SecretKey::from_bytes([1; 32]), KeystoreId([2; 16]))
}

fn signer() -> CheckpointKey {
    CheckpointKey::from_seed(&SecretKey::from_bytes([3; 32]))
}

fn open(folder: &Path, options: Options) -> AuditLog {
    AuditLog::open(folder, key(), Box::new(signer()), options)
        .unwrap()
        .0
}

fn event(act: &'static str, number: usize) -> Event {
    Event::new(act, "me", Outcome::Done).with("number", number)
}

fn all(log: &AuditLog) -> Vec<Record> {
    let mut reader = log.reader(1);
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

fn acts(records: &[Record]) -> Vec<&str> {
    records
        .iter()
        .map(|record| record.event.act.as_ref())
        .collect()
}

#[test]
fn threads_share_syncs_and_all_is_there() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        segment_bytes: 20_000,
        checkpoint_every: 50,
        ..Options::default()
    };
    let log = open(folder.path(), options);
    let is_done = AtomicBool::new(false);
    let mut recorded = thread::scope(|scope| {
        let writers: Vec<_> = (0..8)
            .map(|thread| {
                let log = &log;
                let append =
                    move |number: usize| log.append(event("a", thread * 100 + number)).unwrap();
                scope.spawn(move || (0..50).map(append).collect::<Vec<_>>())
            })
            .collect();
        // Read and verified all the while.
        let following = scope.spawn(|| {
            let mut reader = log.reader(1);
            let mut count = 0;
            loop {
                let is_last = is_done.load(Ordering::SeqCst);
                while let Some(record) = reader.next().unwrap() {
                    count += 1;
                    assert_eq!(record.sequence, count);
                }
                assert!(log.verify(&signer().public_key(), None).unwrap().is_sound());
                if is_last {
                    return count;
                }
            }
        });
        let recorded: Vec<_> = writers
            .into_iter()
            .flat_map(|writer| writer.join().unwrap())
            .collect();
        is_done.store(true, Ordering::SeqCst);
        assert!(following.join().unwrap() >= 400);
        recorded
    });
    recorded.sort_by_key(|recorded| recorded.sequence);
    let records = all(&log);
    let mut found: Vec<_> = records
        .iter()
        .filter(|record| record.event.act == "a")
        .collect();
    assert_eq!(found.len(), 400);
    for (recorded, record) in recorded.iter().zip(&found) {
        assert_eq!(
            (recorded.sequence, recorded.hash),
            (record.sequence, record.hash)
        );
    }
    found.sort_by_key(|record| record.event.details["number"].clone());
    found.dedup_by_key(|record| record.event.details["number"].clone());
    assert_eq!(found.len(), 400);
    assert_eq!(log.last().sequence, records.len() as u64);
    log.close().unwrap();

    let segments = fs::read_dir(folder.path()).unwrap().count() - 1;
    assert!(segments > 3, "{segments}");
    let report = verify(folder.path(), &key(), &signer().public_key(), None).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.segment_count as usize, segments);
}

#[test]
fn notes_are_durable_within_a_second() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), Options::default());
    let start = Instant::now();
    log.note(event("deny", 1)).unwrap();
    log.note(event("deny", 2)).unwrap();
    while log.last().sequence < 2 {
        assert!(start.elapsed() < Duration::from_secs(1));
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(acts(&all(&log)), ["deny", "deny"]);
    // Those that wait when the log is closed are written as well.
    log.note(event("deny", 3)).unwrap();
    log.close().unwrap();
    let log = open(folder.path(), Options::default());
    assert_eq!(
        acts(&all(&log)),
        ["deny", "deny", "deny", "audit.checkpoint"]
    );
}

#[test]
fn notes_without_room_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), Options::default());
    for number in 0..2_000 {
        log.note(event("deny", number)).unwrap();
    }
    log.close().unwrap();
    let log = open(folder.path(), Options::default());
    let records = all(&log);
    let notes = records
        .iter()
        .filter(|record| record.event.act == "deny")
        .count();
    let dropped: usize = records
        .iter()
        .filter(|record| record.event.act == "audit.dropped")
        .map(|record| record.event.details["count"].parse::<usize>().unwrap())
        .sum();
    assert!(notes >= 1_024 && dropped > 0, "{notes} {dropped}");
    assert_eq!(notes + dropped, 2_000);
}

#[test]
fn a_log_that_cannot_be_written_refuses_and_recovers() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("audit");
    let log = open(&path, Options::default());
    log.append(event("a", 1)).unwrap();
    // As good as a full disk, also for root: the files are elsewhere.
    let away = folder.path().join("away");
    fs::rename(&path, &away).unwrap();
    log.note(event("note", 2)).unwrap();
    let error = log.append(event("a", 3)).unwrap_err();
    assert!(error.to_string().contains("00000001.log"), "{error}");
    assert!(log.failure().is_some());
    fs::rename(&away, &path).unwrap();
    log.append(event("a", 4)).unwrap();
    assert!(log.failure().is_none());
    log.close().unwrap();

    let log = open(&path, Options::default());
    let records = all(&log);
    assert_eq!(acts(&records), ["a", "a", "note", "audit.checkpoint"]);
    assert!(log.verify(&signer().public_key(), None).unwrap().is_sound());
}

#[test]
fn a_closed_log_takes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), Options::default());
    log.close().unwrap();
    assert!(matches!(log.append(event("a", 1)), Err(AuditError::Closed)));
    log.close().unwrap();
}

#[test]
fn reading_begins_anywhere() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options {
        segment_bytes: 3_000,
        ..Options::default()
    };
    let log = open(folder.path(), options);
    for number in 0..40 {
        log.append(event("a", number)).unwrap();
    }
    let records = all(&log);
    for from in 1..=records.len() + 1 {
        let mut reader = log.reader(from as u64);
        let rest: Vec<_> = std::iter::from_fn(|| reader.next().unwrap()).collect();
        assert_eq!(rest, records[from - 1..]);
        assert_eq!(reader.next().unwrap(), None);
    }
    let mut reader = log.reader(records.len() as u64 + 1);
    assert_eq!(reader.next().unwrap(), None);
    let recorded = log.append(event("b", 0)).unwrap();
    let next = reader.next().unwrap().unwrap();
    assert_eq!(
        (next.sequence, next.hash),
        (recorded.sequence, recorded.hash)
    );
}

#[test]
fn records_are_exported_as_json_lines() {
    let folder = tempfile::tempdir().unwrap();
    let log = open(folder.path(), Options::default());
    let recorded = log.append(event("level.create", 7)).unwrap();
    let text = all(&log)[0].to_json();
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(!text.contains('\n'));
    assert_eq!(json["sequence"], 1);
    assert_eq!(json["hash"], recorded.hash.to_string());
    assert_eq!(json["act"], "level.create");
    assert_eq!(json["details"]["number"], "7");
    let time = json["time"].as_str().unwrap();
    assert!(time.starts_with("20") && time.ends_with('Z'), "{time}");
}
