//! A log to try things on.

use std::sync::Arc;

use coffer_seal::{KeystoreId, SecretKey};
use parking_lot::Mutex;

use crate::error::AuditError;
use crate::event::{Event, Outcome};
use crate::format::checkpoint::CheckpointKey;
use crate::format::record::{AuditKey, Record};
use crate::read::reader::Reader;
use crate::verify::finding::Report;
use crate::verify::verifier::verify_on;
use crate::write::open::{Opened, open_on};
use crate::write::prune::{self, Pruned, find_old};
use crate::write::writer::{Options, Writer};
use coffer_durable::Disk;
use coffer_durable::simulated::SimulatedDisk;

/// Small, so that a few records fill a segment.
pub(crate) const SMALL: Options = Options {
    segment_bytes: 2_500,
    checkpoint_every: 4,
    known: None,
};

pub(crate) fn key() -> AuditKey {
    AuditKey::new(SecretKey::from_bytes([0xA0; 32]), KeystoreId([0xA1; 16]))
}

pub(crate) fn signer() -> CheckpointKey {
    CheckpointKey::from_seed(&SecretKey::from_bytes([0xA2; 32]))
}

/// An event of this number.
pub(crate) fn event(number: usize) -> Vec<u8> {
    let event = Event::new("test.act", "me", Outcome::Done).with("number", number);
    event.encode(0).unwrap()
}

pub(crate) fn open(disk: Box<dyn Disk>) -> (Writer, Opened) {
    open_on(disk, key(), Box::new(signer()), SMALL).unwrap()
}

pub(crate) fn verify(disk: &dyn Disk) -> Report {
    verify_on(disk, &key(), &signer().public_key(), None, None).unwrap()
}

/// Everything that can be read, from the first record on.
pub(crate) fn records(disk: Box<dyn Disk>) -> Vec<Record> {
    let mut reader = Reader::new(disk, key(), 1, None);
    std::iter::from_fn(|| reader.next().unwrap()).collect()
}

/// Prunes all whole segments.
pub(crate) fn prune(
    disk: &SimulatedDisk,
    writer: &mut Writer,
) -> Result<Option<Pruned>, AuditError> {
    let end = Arc::new(Mutex::new(writer.end()));
    let old = find_old(|| disk.boxed(), &key(), &end, i64::MAX)?;
    prune::prune(writer, old, vec![("by", "me".to_owned())], |_| {})
}

/// The number of an event of [`event`].
pub(crate) fn number(record: &Record) -> Option<usize> {
    record.event.details.get("number")?.parse().ok()
}
