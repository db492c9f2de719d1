//! Logs as files that can be changed.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use coffer_audit::{
    AuditKey, AuditLog, CheckpointKey, Event, Options, Outcome, Reader, Record, Recorded, Report,
    Wrong, verify,
};
use coffer_seal::{KeystoreId, SecretKey};
use tempfile::TempDir;

pub(crate) const SMALL: Options = Options {
    segment_bytes: 2_500,
    checkpoint_every: 5,
    known: None,
};

pub(crate) const HEADER_BYTES: usize = 72;

/// What is done to the files.
pub(crate) type Damage = fn(&mut Files);

/// Files by name.
pub(crate) type Files = BTreeMap<String, Vec<u8>>;

pub(crate) fn key() -> AuditKey {
    AuditKey::new(SecretKey::from_bytes([1; 32]), KeystoreId([2; 16]))
}

pub(crate) fn signer() -> CheckpointKey {
    CheckpointKey::from_seed(&SecretKey::from_bytes([3; 32]))
}

pub(crate) fn open(folder: &Path) -> (AuditLog, coffer_audit::Opened) {
    AuditLog::open(folder, key(), Box::new(signer()), SMALL).unwrap()
}

pub(crate) fn append(log: &AuditLog, count: usize) -> Recorded {
    let event = |number| Event::new("level.create", "me", Outcome::Done).with("number", number);
    (0..count)
        .map(|number| log.append(event(number)).unwrap())
        .last()
        .unwrap()
}

pub(crate) fn load(folder: &Path) -> Files {
    let mut files = Files::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        files.insert(name, fs::read(entry.path()).unwrap());
    }
    files
}

pub(crate) fn store(files: &Files) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, content) in files {
        fs::write(folder.path().join(name), content).unwrap();
    }
    folder
}

/// A log of some segments, closed.
pub(crate) fn closed(count: usize) -> Files {
    let folder = tempfile::tempdir().unwrap();
    let (log, opened) = open(folder.path());
    assert!(opened.is_new);
    append(&log, count);
    log.close().unwrap();
    load(folder.path())
}

pub(crate) fn verify_in(folder: &Path) -> Report {
    verify(folder, &key(), &signer().public_key(), None).unwrap()
}

pub(crate) fn verified(files: &Files) -> Report {
    verify_in(store(files).path())
}

/// The first thing that is wrong: with which record, and what.
pub(crate) fn first_wrong(files: &Files) -> (Option<u64>, Wrong) {
    let report = verified(files);
    let first = report
        .findings
        .first()
        .unwrap_or_else(|| panic!("nothing found: {report:?}"));
    (first.sequence, first.wrong.clone())
}

/// A record's place in its file.
#[derive(Clone)]
pub(crate) struct Place {
    pub(crate) file: String,
    pub(crate) start: usize,
    pub(crate) end: usize,
}

/// Where the records are: the first one at index 0.
pub(crate) fn places(files: &Files) -> Vec<Place> {
    let mut places = Vec::new();
    for (file, content) in files.iter().filter(|(name, _)| name.ends_with(".log")) {
        let mut start = HEADER_BYTES;
        while start < content.len() {
            let length = u32::from_be_bytes(content[start..start + 4].try_into().unwrap());
            let end = start + 4 + 8 + length as usize + 32;
            let file = file.clone();
            places.push(Place { file, start, end });
            start = end;
        }
    }
    places
}

pub(crate) fn records(folder: &Path) -> Vec<Record> {
    let mut reader = Reader::open(folder, key(), 1);
    std::iter::from_fn(|| reader.next().ok().flatten()).collect()
}
