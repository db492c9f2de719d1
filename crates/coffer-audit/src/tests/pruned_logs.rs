//! Logs whose beginning was pruned: what is left verifies, and any other loss is found.

use std::sync::Arc;

use crate::error::AuditError;
use crate::event::{Event, Outcome};
use crate::format::record::Recorded;
use crate::format::segment::segment_name;
use crate::log::AuditLog;
use crate::read::reader::Reader;
use crate::tests::fixture::{self, SMALL, event, key, number, records, signer};
use crate::verify::finding::{Report, Wrong};
use crate::verify::verifier::{verify, verify_on};
use crate::write::open::open_on;
use crate::write::prune::Pruned;
use crate::write::writer::Writer;
use coffer_durable::simulated::{Fault, Image, SimulatedDisk};
use parking_lot::Mutex;

fn write(writer: &mut Writer, numbers: std::ops::Range<usize>) -> Vec<Recorded> {
    let mut recorded = Vec::new();
    for number in numbers {
        recorded.extend(writer.write(&[event(number)]).unwrap());
    }
    recorded
}

/// A log of some segments that was pruned, and written on.
fn pruned_log() -> (Image, Pruned, Vec<Recorded>) {
    let disk = SimulatedDisk::new(&Image::new());
    let (mut writer, _) = fixture::open(disk.boxed());
    let mut recorded = write(&mut writer, 0..30);
    let pruned = fixture::prune(&disk, &mut writer).unwrap().unwrap();
    recorded.extend(write(&mut writer, 30..60));
    writer.close().unwrap();
    (disk.image(), pruned, recorded)
}

fn verified(image: &Image, wanted: Option<&Recorded>) -> Report {
    let disk = SimulatedDisk::new(&image.clone());
    verify_on(&disk, &key(), &signer().public_key(), wanted, None).unwrap()
}

fn segments(image: &Image) -> Vec<String> {
    let names = image.keys().filter(|name| name.ends_with(".log"));
    names.cloned().collect()
}

#[test]
fn what_is_left_verifies_and_says_what_was_pruned() {
    let (image, pruned, recorded) = pruned_log();
    assert_eq!(pruned.first, 1);
    assert!(!image.contains_key(&segment_name(1)));
    let report = verified(&image, recorded.last());
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.pruned_through, pruned.through.sequence);

    // What is gone can't be looked for; the last of it can, for its hash is there.
    let report = verified(&image, recorded.first());
    let through = pruned.through.sequence;
    assert_eq!(report.findings[0].wrong, Wrong::Pruned { through });
    assert!(verified(&image, Some(&pruned.through)).is_sound());

    // The record says what was removed, and by whom.
    let disk = SimulatedDisk::new(&image.clone());
    let told = records(disk.boxed());
    assert_eq!(told[0].sequence, through + 1);
    let told = told
        .iter()
        .find(|record| record.event.act == "audit.pruned");
    let details = &told.unwrap().event.details;
    assert_eq!(details["first"], "1");
    assert_eq!(details["sequence"], through.to_string());
    assert_eq!(details["count"], through.to_string());
    assert_eq!(details["hash"], pruned.through.hash.to_string());
    assert_eq!(details["by"], "me");

    let (mut writer, opened) = fixture::open(disk.boxed());
    assert_eq!(opened.damage, None);
    write(&mut writer, 60..90);
    let again = fixture::prune(&disk, &mut writer).unwrap().unwrap();
    assert_eq!(again.first, through + 1);
    let report = fixture::verify(&disk);
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.pruned_through, again.through.sequence);
}

#[test]
fn any_other_removal_is_found() {
    let (image, _, _) = pruned_log();
    let names = segments(&image);
    assert!(names.len() > 3, "{names:?}");
    // From the beginning, as if more had been pruned; and each one alone.
    for count in 1..names.len() {
        let mut less = image.clone();
        less.retain(|name, _| !names[..count].contains(name));
        let report = verified(&less, None);
        assert_eq!(report.findings[0].wrong, Wrong::SegmentMissing, "{count}");
    }
    for name in &names {
        let mut less = image.clone();
        less.remove(name);
        assert!(!verified(&less, None).is_sound(), "{name}");
        let disk = SimulatedDisk::new(&less);
        let (_, opened) = fixture::open(disk.boxed());
        assert!(opened.damage.is_some(), "{name}");
    }
    let mut headless = image.clone();
    headless.remove("head");
    let disk = SimulatedDisk::new(&headless);
    let (_, opened) = fixture::open(disk.boxed());
    assert_eq!(opened.damage.as_deref(), Some("head is missing"));
    let (mut writer, opened) = fixture::open(disk.boxed());
    assert_eq!(opened.damage, None, "it is told once");
    write(&mut writer, 90..91);
}

#[test]
fn a_cut_that_another_key_signed_is_none() {
    let (image, _, _) = pruned_log();
    let disk = SimulatedDisk::new(&image);
    let report = verify_on(&disk, &key(), &[7; 32], None, None).unwrap();
    assert_eq!(report.findings[0].wrong, Wrong::SegmentMissing);
    assert_eq!(report.pruned_through, 0);
}

#[test]
fn what_does_not_verify_is_not_pruned() {
    let disk = SimulatedDisk::new(&Image::new());
    let (mut writer, _) = fixture::open(disk.boxed());
    write(&mut writer, 0..30);
    writer.close().unwrap();
    let mut image = disk.image();
    let name = segment_name(2);
    let middle = image[&name].len() / 2;
    image.get_mut(&name).unwrap()[middle] ^= 1;
    let disk = SimulatedDisk::new(&image);
    let (mut writer, _) = fixture::open(disk.boxed());
    let refused = fixture::prune(&disk, &mut writer);
    assert!(matches!(refused, Err(AuditError::Unreadable { .. })));
    assert!(disk.image().contains_key(&segment_name(1)));
}

#[test]
fn reading_goes_on_behind_what_is_pruned_meanwhile() {
    let disk = SimulatedDisk::new(&Image::new());
    let (mut writer, _) = fixture::open(disk.boxed());
    write(&mut writer, 0..30);
    let end = Arc::new(Mutex::new(writer.end()));
    let mut reader = Reader::new(disk.boxed(), key(), 1, Some(end.clone()));
    assert_eq!(reader.next().unwrap().unwrap().sequence, 1);
    let pruned = fixture::prune(&disk, &mut writer).unwrap().unwrap();
    *end.lock() = writer.end();
    let mut sequences = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        sequences.push(record.sequence);
    }
    let left = pruned.through.sequence + 1..=writer.end().last.sequence;
    assert!(
        sequences.ends_with(&left.collect::<Vec<_>>()),
        "{sequences:?}"
    );
}

#[test]
fn a_log_in_use_is_pruned_but_not_of_what_is_young() {
    let folder = tempfile::tempdir().unwrap();
    let (log, _) = AuditLog::open(folder.path(), key(), Box::new(signer()), SMALL).unwrap();
    let append = |number: usize| {
        let event = Event::new("test.act", "me", Outcome::Done).with("number", number);
        log.append(event).unwrap()
    };
    let recorded: Vec<_> = (0..30).map(append).collect();
    let mut reader = log.reader(1);
    assert_eq!(reader.next().unwrap().unwrap().sequence, 1);

    // All of it is from today, whatever is asked for.
    assert_eq!(log.prune(i64::MAX, Vec::new()).unwrap(), None);
    assert!(folder.path().join(segment_name(1)).exists());

    let pruned = log.prune_before(i64::MAX, Vec::new()).unwrap().unwrap();
    assert!(!folder.path().join(segment_name(1)).exists());
    assert_eq!(log.prune_before(0, Vec::new()).unwrap(), None);
    while reader.next().unwrap().is_some() {}
    append(30);
    assert_eq!(
        reader.next().unwrap().unwrap().sequence,
        log.last().sequence
    );
    assert!(log.last().sequence > pruned.recorded.sequence);
    let public_key = signer().public_key();
    let report = log.verify(&public_key, recorded.last()).unwrap();
    assert!(report.is_sound(), "{report:?}");
    assert_eq!(report.pruned_through, pruned.through.sequence);
    log.close().unwrap();
    assert!(
        verify(folder.path(), &key(), &public_key, None)
            .unwrap()
            .is_sound()
    );
    let (log, opened) = AuditLog::open(folder.path(), key(), Box::new(signer()), SMALL).unwrap();
    assert_eq!(opened.damage, None);
    // What was the last segment then is whole by now, and can go.
    let again = log.prune_before(i64::MAX, Vec::new()).unwrap().unwrap();
    assert_eq!(again.first, pruned.through.sequence + 1);
}

/// Writes, prunes, writes and prunes; gives back what was acknowledged and pruned.
fn story(disk: &SimulatedDisk) -> (Vec<(usize, Recorded)>, u64) {
    let (mut acknowledged, mut through) = (Vec::new(), 0);
    let Ok((mut writer, opened)) = open_on(disk.boxed(), key(), Box::new(signer()), SMALL) else {
        return (acknowledged, through);
    };
    assert_eq!(opened.damage, None);
    for number in 0..36 {
        if let Ok(recorded) = writer.write(&[event(number)]) {
            acknowledged.push((number, recorded[0]));
        }
        if number % 17 == 16
            && let Ok(Some(pruned)) = fixture::prune(disk, &mut writer)
        {
            through = pruned.through.sequence;
        }
    }
    let _ = writer.close();
    (acknowledged, through)
}

#[test]
fn power_cuts_and_refusals_at_any_operation_lose_nothing_that_was_not_pruned() {
    let disk = SimulatedDisk::new(&Image::new());
    let (_, through) = story(&disk);
    assert!(through > 0);
    for at in 0..disk.operation_count() {
        for seed in 0..6 {
            let fault = match seed % 3 {
                0 => Fault::Refusal { at },
                _ => Fault::PowerCut { at },
            };
            let disk = SimulatedDisk::failing(&Image::new(), &[fault], 3 + 7 * seed);
            let (acknowledged, through) = story(&disk);
            let disk = SimulatedDisk::new(&disk.restart_image());
            let (mut writer, opened) = fixture::open(disk.boxed());
            assert_eq!(opened.damage, None, "{at} {seed}");
            write(&mut writer, 100..101);
            writer.close().unwrap();
            let report = fixture::verify(&disk);
            assert!(report.is_sound(), "{at} {seed} {report:?}");
            assert!(report.pruned_through >= through, "{at} {seed}");
            let found = records(disk.boxed());
            for (wanted, recorded) in acknowledged {
                let is_found = found
                    .iter()
                    .any(|record| number(record) == Some(wanted) && record.hash == recorded.hash);
                let is_pruned = recorded.sequence <= report.pruned_through;
                assert!(is_found != is_pruned, "{at} {seed} {recorded:?}");
            }
        }
    }
}
