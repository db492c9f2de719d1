//! A stopped server's files can be changed, but not unnoticed.

#![allow(clippy::unwrap_used)]

mod stored;

use std::path::Path;

use coffer_audit::{AuditLog, CheckpointKey, Options, Reader, Wrong, verify};
use coffer_seal::SecretKey;

use stored::{
    Damage, Files, HEADER_BYTES, SMALL, append, closed, first_wrong, key, load, open, places,
    records, signer, store, verified, verify_in,
};

#[test]
fn a_log_left_alone_is_sound() {
    let files = closed(30);
    assert!(files.len() > 3, "several segments and the head");
    let report = verified(&files);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.record_count as usize, places(&files).len());
    assert!(report.checkpoint_count >= 6);
    assert_eq!(report.torn_bytes, 0);
}

#[test]
fn any_altered_record_is_found() {
    let files = closed(30);
    for (index, place) in places(&files).iter().enumerate() {
        // In the length, the sequence, the salt, the ciphertext, its tag and the hash.
        let length = place.end - place.start;
        for offset in [3, 11, 12, 100, length - 33, length - 1] {
            let mut files = files.clone();
            files.get_mut(&place.file).unwrap()[place.start + offset] ^= 1;
            let (sequence, wrong) = first_wrong(&files);
            assert_eq!(sequence, Some(index as u64 + 1), "{wrong:?}");
            let is_told = matches!(wrong, Wrong::Altered | Wrong::Truncated { .. });
            assert!(is_told, "{wrong:?}");
        }
    }
}

#[test]
fn any_removed_record_is_found() {
    let files = closed(30);
    let places = places(&files);
    for (index, place) in places.iter().enumerate() {
        let mut files = files.clone();
        let content = files.get_mut(&place.file).unwrap();
        content.drain(place.start..place.end);
        let through = index as u64 + 1;
        let expected = if index + 1 == places.len() {
            Wrong::Truncated { through }
        } else {
            Wrong::Missing { through }
        };
        assert_eq!(first_wrong(&files), (Some(through), expected));
    }
}

#[test]
fn any_reordered_record_is_found() {
    let files = closed(30);
    let places = places(&files);
    for (index, pair) in places.windows(2).enumerate() {
        let [first, second] = pair else { continue };
        if first.file != second.file {
            continue;
        }
        let mut files = files.clone();
        let content = files.get_mut(&first.file).unwrap();
        let length = second.end - second.start;
        content[first.start..second.end].rotate_right(length);
        let sequence = index as u64 + 1;
        let found = sequence + 1;
        let expected = (Some(sequence), Wrong::Reordered { found });
        assert_eq!(first_wrong(&files), expected);
        // A record twice.
        let mut files = files.clone();
        let content = files.get_mut(&first.file).unwrap();
        let copy = content[first.start..first.start + length].to_vec();
        content.splice(second.end..second.end, copy);
        assert!(!verified(&files).is_sound());
    }
}

#[test]
fn any_truncation_is_found() {
    let files = closed(30);
    let places = places(&files);
    let through = places.len() as u64;
    let last = &places.last().unwrap().file;
    for (index, place) in places.iter().enumerate() {
        let sequence = index as u64 + 1;
        for end in [
            place.start,
            place.start + 2,
            place.start + 50,
            place.end - 1,
        ] {
            let mut files = files.clone();
            files.get_mut(&place.file).unwrap().truncate(end);
            let (found, wrong) = first_wrong(&files);
            assert_eq!(found, Some(sequence));
            match wrong {
                Wrong::Truncated { through: told } if place.file == *last => {
                    assert_eq!(told, through);
                }
                Wrong::Truncated { .. } | Wrong::Missing { .. } if place.file != *last => {}
                other => panic!("{other:?}"),
            }
            // And whole segments behind it.
            files.retain(|name, _| name <= &place.file || name == "head");
            assert!(!verified(&files).is_sound());
        }
    }
}

#[test]
fn any_flipped_bit_is_found() {
    let files = closed(9);
    for (name, content) in files.iter().filter(|(name, _)| *name != "head") {
        for offset in 0..content.len() {
            let mut files = files.clone();
            files.get_mut(name).unwrap()[offset] ^= 1 << (offset % 8);
            let folder = store(&files);
            match verify(folder.path(), &key(), &signer().public_key(), None) {
                Ok(report) => assert!(!report.is_sound(), "{name} {offset}"),
                Err(error) => assert!(error.to_string().contains("has format"), "{error}"),
            }
        }
    }
}

#[test]
fn other_files_are_found() {
    let files = closed(30);
    let changed = |change: fn(&mut Files)| {
        let mut files = files.clone();
        change(&mut files);
        first_wrong(&files).1
    };
    let missing = changed(|files| drop(files.remove("00000002.log")));
    assert_eq!(missing, Wrong::SegmentMissing);
    let missing = changed(|files| drop(files.remove("00000001.log")));
    assert_eq!(missing, Wrong::SegmentMissing);
    assert_eq!(
        changed(|files| drop(files.remove("head"))),
        Wrong::HeadMissing
    );
    let altered = changed(|files| files.get_mut("head").unwrap().fill(0));
    assert_eq!(altered, Wrong::HeadAltered);
    let swapped = changed(|files| {
        let (one, two) = (files["00000001.log"].clone(), files["00000002.log"].clone());
        files.insert("00000001.log".to_owned(), two);
        files.insert("00000002.log".to_owned(), one);
    });
    assert_eq!(swapped, Wrong::HeaderAltered);
}

#[test]
fn one_torn_place_of_the_head_hides_nothing() {
    let files = closed(7);
    for offset in [20, 4096 + 20] {
        let mut files = files.clone();
        files.get_mut("head").unwrap()[offset] ^= 1;
        assert!(verified(&files).is_sound());
        let places = places(&files);
        let last = places.last().unwrap();
        files.get_mut(&last.file).unwrap().truncate(last.start);
        assert!(!verified(&files).is_sound());
    }
}

#[test]
fn an_older_copy_of_the_log_lacks_what_a_receipt_names() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = open(folder.path());
    let early = append(&log, 3);
    log.close().unwrap();
    let old = load(folder.path());
    let (log, _) = open(folder.path());
    let late = append(&log, 3);
    log.close().unwrap();

    let find = |folder: &Path, wanted| {
        verify(folder, &key(), &signer().public_key(), Some(&wanted)).unwrap()
    };
    assert!(find(folder.path(), early).is_sound());
    assert!(find(folder.path(), late).is_sound());
    let old = store(&old);
    assert!(find(old.path(), early).is_sound());
    let report = find(old.path(), late);
    assert_eq!(report.findings[0].wrong, Wrong::NotInLog);
    assert_eq!(report.findings[0].sequence, Some(late.sequence));
}

#[test]
fn another_servers_signature_is_none() {
    let folder = store(&closed(7));
    let other = CheckpointKey::from_seed(&SecretKey::from_bytes([9; 32])).public_key();
    let report = verify(folder.path(), &key(), &other, None).unwrap();
    assert_eq!(report.findings[0].wrong, Wrong::NotSigned);
    assert_eq!(report.checkpoint_count, 0);
}

#[test]
fn a_damaged_log_goes_on_and_stays_damaged() {
    let sound = closed(30);
    let last = places(&sound).len() as u64;
    let damages: [(&str, Damage); 5] = [
        ("cut", |files| {
            let content = files.values_mut().rev().nth(1).unwrap();
            content.truncate(content.len() - 10);
        }),
        ("altered", |files| {
            let content = files.values_mut().rev().nth(1).unwrap();
            content[HEADER_BYTES + 70] ^= 1;
        }),
        ("no head", |files| drop(files.remove("head"))),
        ("no segments", |files| {
            files.retain(|name, _| name == "head")
        }),
        ("one is missing", |files| drop(files.remove("00000002.log"))),
    ];
    for (name, damage) in damages {
        let mut files = sound.clone();
        damage(&mut files);
        let folder = store(&files);
        let (log, opened) = open(folder.path());
        assert!(opened.damage.is_some(), "{name}");
        let recorded = append(&log, 3);
        assert!(recorded.sequence > last, "{name}: no number is used twice");
        log.close().unwrap();

        for _ in 0..2 {
            let report = verify_in(folder.path());
            let told = |wrong: &Wrong| matches!(wrong, Wrong::DamageRecorded { .. });
            let mut wrongs = report.findings.iter().map(|finding| &finding.wrong);
            assert!(wrongs.any(told), "{name}: {report:?}");
            let (log, opened) = open(folder.path());
            let is_gap = ["no segments", "one is missing"].contains(&name);
            assert_eq!(opened.damage.is_some(), is_gap, "{name}: else told once");
            log.close().unwrap();
        }
        // What was found is left as it was, but for the head.
        let now = load(folder.path());
        let is_kept = |(file, content): (&String, &Vec<u8>)| {
            now.get(file).is_some_and(|now| now.starts_with(content))
        };
        assert!(
            files
                .iter()
                .filter(|(file, _)| *file != "head")
                .all(is_kept),
            "{name}"
        );
    }
}

#[test]
fn a_log_that_was_replaced_is_missed() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = open(folder.path());
    append(&log, 3);
    log.close().unwrap();
    let old = load(folder.path());
    let (log, _) = open(folder.path());
    let known = append(&log, 3);
    log.close().unwrap();

    let options = Options {
        known: Some(known),
        ..SMALL
    };
    let reopen = |folder: &Path| {
        let (log, opened) = AuditLog::open(folder, key(), Box::new(signer()), options).unwrap();
        assert!(append(&log, 1).sequence > known.sequence || opened.is_new);
        log.close().unwrap();
        opened
    };
    assert_eq!(reopen(folder.path()).damage, None);
    for (files, is_gone) in [(old, false), (Files::new(), true)] {
        let folder = store(&files);
        let opened = reopen(folder.path());
        assert!(opened.damage.is_some());
        assert_eq!(opened.is_new, is_gone);
        assert!(!verify_in(folder.path()).is_sound());
    }
}

#[test]
fn nothing_readable_is_in_the_files() {
    for (name, content) in closed(30) {
        for word in ["level.create", "number", "outcome"] {
            let found = content
                .windows(word.len())
                .any(|window| window == word.as_bytes());
            assert!(!found, "{word} in {name}");
        }
    }
}

#[test]
fn what_is_readable_is_still_read() {
    let files = closed(30);
    let mut altered = files.clone();
    altered.get_mut("00000001.log").unwrap()[HEADER_BYTES + 80] ^= 1;
    let folder = store(&altered);
    assert!(records(folder.path()).is_empty(), "the first record");
    let mut reader = Reader::open(folder.path(), key(), 1);
    let error = reader.next().unwrap_err();
    assert!(
        error.to_string().contains("record 1 of the audit log"),
        "{error}"
    );
    let next = reader.next().unwrap().unwrap();
    assert_eq!(next.segment, 2);
    assert_eq!(records(store(&files).path()).len(), places(&files).len());
}
