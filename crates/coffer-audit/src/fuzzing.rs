//! Bodies of the fuzz targets: the bytes of segments and of the head.

use crate::format::checkpoint::CheckpointSigner;
use crate::format::head::{HEAD_NAME, HeadState, parse_head};
use crate::format::record::{AuditKey, Recorded, write_frame};
use crate::format::segment::{Header, SegmentHeader, segment_name};
use crate::read::reader::Reader;
use crate::verify::verifier::verify_on;
use crate::write::open::open_on;
use crate::write::writer::Options;
use coffer_durable::simulated::SimulatedDisk;
use coffer_seal::KeystoreId;

struct NoSigner;

impl CheckpointSigner for NoSigner {
    fn sign(&self, _message: &[u8]) -> Option<[u8; 64]> {
        Some([0; 64])
    }

    fn public_key(&self) -> [u8; 32] {
        [0; 32]
    }
}

/// Any bytes as a segment, as what follows the records of one, and as the head: verified, read and
/// opened for going on.
///
/// # Panics
///
/// When bytes of others pass for records, or a log can't go on: what the fuzzer looks for.
pub fn fuzz_audit(data: &[u8]) {
    let key = AuditKey::new(
        coffer_seal::SecretKey::from_bytes([0xF1; 32]),
        KeystoreId([0xF2; 16]),
    );
    let head = parse_head(&key, Some(data));
    assert!(!matches!(head, HeadState::Found { .. }), "a forgery opened");
    if let Header::Whole(header) = Header::parse(data) {
        assert!(
            data.starts_with(&header.to_bytes()),
            "one way only to write it"
        );
    }

    let header = SegmentHeader {
        keystore_id: key.keystore_id(),
        number: 1,
        before: Recorded::NONE,
    };
    let mut segment = header.to_bytes();
    let event = br#"{"time_ms":0,"act":"a","actor":"","outcome":"done"}"#;
    write_frame(&key, &Recorded::NONE, event, &mut segment);
    segment.extend(data);
    let name = segment_name(1);
    for (files, record_count) in [
        (vec![(name.clone(), data.to_vec())], 0),
        (vec![(HEAD_NAME.to_owned(), data.to_vec())], 0),
        (vec![(name, segment)], 1),
    ] {
        let files = SimulatedDisk::new(&files.into_iter().collect());
        let Ok(report) = verify_on(&files, &key, &[0; 32], None, None) else {
            continue; // of a newer version
        };
        assert_eq!(report.record_count, record_count, "{report:?}");
        assert!(!report.is_sound(), "there is no head, or a forged one");
        go_on(files, &key, record_count);
    }
}

/// Opens the log, adds a record, and reads all of it.
fn go_on(files: SimulatedDisk, key: &AuditKey, record_count: u64) {
    let disk = Box::new(files.clone());
    let signer = Box::new(NoSigner);
    let Ok((mut writer, _)) = open_on(disk, key.clone(), signer, Options::default()) else {
        return; // of a newer version
    };
    let event = br#"{"time_ms":0,"act":"b","actor":"","outcome":"done"}"#.to_vec();
    let recorded = writer.write(&[event]).expect("memory refuses nothing");
    let mut reader = Reader::new(Box::new(files), key.clone(), 1, None);
    let mut found = Vec::new();
    for _ in 0..10 {
        if let Ok(Some(record)) = reader.next() {
            found.push(record.sequence);
        }
    }
    assert!(found.len() as u64 > record_count);
    assert_eq!(found.last(), Some(&recorded[0].sequence));
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::tests::fixture::{event, key};

    proptest! {
        #[test]
        fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..600)) {
            fuzz_audit(&bytes);
        }

        #[test]
        fn records_of_another_log_are_not_believed(
            place in any::<prop::sample::Index>(), mask in any::<u8>(),
        ) {
            let mut bytes = Vec::new();
            let last = write_frame(&key(), &Recorded::NONE, &event(1), &mut bytes);
            write_frame(&key(), &last, &event(2), &mut bytes);
            let offset = place.index(bytes.len());
            bytes[offset] ^= mask;
            fuzz_audit(&bytes);
        }
    }
}
