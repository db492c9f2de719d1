//! What a log must survive on a disk that fails: what was acknowledged is in it, and a log that
//! was not altered verifies.

use std::collections::BTreeMap;

use crate::format::record::Recorded;
use crate::tests::fixture::{self, SMALL, event, key, number, records, signer};
use crate::write::open::open_on;
use coffer_durable::simulated::{Fault, Image, SimulatedDisk};

/// What a test knows of a log.
#[derive(Default)]
struct Story {
    image: Image,
    /// Acknowledged, by number.
    acknowledged: BTreeMap<usize, Recorded>,
    attempted_count: usize,
    closed_count: usize,
}

impl Story {
    /// Opens the log, writes ten groups, and closes it, if the disk lets it; then cuts the power.
    fn go_on(&mut self, faults: &[Fault], seed: u64) -> usize {
        let disk = SimulatedDisk::failing(&std::mem::take(&mut self.image), faults, seed);
        self.write(&disk, seed);
        self.image = disk.restart_image();
        disk.operation_count()
    }

    fn write(&mut self, disk: &SimulatedDisk, seed: u64) {
        let Ok((mut writer, opened)) = open_on(disk.boxed(), key(), Box::new(signer()), SMALL)
        else {
            return;
        };
        assert_eq!(opened.damage, None);
        for group in 0..10 {
            let count = 1 + (seed as usize + group * 5) % 7;
            let numbers = self.attempted_count..self.attempted_count + count;
            self.attempted_count += count;
            let events: Vec<_> = numbers.clone().map(event).collect();
            if let Ok(recorded) = writer.write(&events) {
                self.acknowledged.extend(numbers.zip(recorded));
            }
        }
        if writer.close().is_ok() {
            self.closed_count += 1;
        }
    }

    /// What a restart finds, without any fault.
    fn check(&mut self) {
        let disk = SimulatedDisk::new(&std::mem::take(&mut self.image));
        let (mut writer, opened) = fixture::open(disk.boxed());
        assert_eq!(opened.damage, None);
        writer.write(&[event(usize::MAX)]).unwrap();
        writer.close().unwrap();
        self.image = disk.image();

        let report = fixture::verify(&disk);
        assert!(report.is_sound(), "{report:?}");
        assert_eq!(report.torn_bytes, 0);
        let mut found = BTreeMap::new();
        for record in records(disk.boxed()) {
            if let Some(number) = number(&record).filter(|number| *number != usize::MAX) {
                let recorded = Recorded {
                    sequence: record.sequence,
                    hash: record.hash,
                };
                assert_eq!(found.insert(number, recorded), None, "it is there once");
            }
        }
        for (number, recorded) in &self.acknowledged {
            assert_eq!(found.get(number), Some(recorded), "what was acknowledged");
        }
        let is_attempted = |number: &usize| *number < self.attempted_count;
        assert!(found.keys().all(is_attempted), "nothing else");
    }
}

#[test]
fn a_power_cut_at_any_operation_loses_nothing_acknowledged() {
    let operation_count = Story::default().go_on(&[], 3);
    assert!(operation_count > 40, "{operation_count}");
    for at in 0..operation_count {
        for seed in 0..30 {
            let mut story = Story::default();
            // The operations are the same ones up to the fault.
            story.go_on(&[Fault::PowerCut { at }], 3 + 7 * seed);
            assert_eq!(story.closed_count, 0);
            story.check();
        }
    }
}

#[test]
fn a_refusal_at_any_operation_loses_nothing_acknowledged() {
    let operation_count = Story::default().go_on(&[], 3);
    for at in 0..operation_count {
        for seed in 0..10 {
            let mut story = Story::default();
            story.go_on(&[Fault::Refusal { at }], 3 + 7 * seed);
            story.check();
            if at > 16 && at + 2 < operation_count {
                assert_eq!(story.closed_count, 1, "it went on");
                let refused = story.attempted_count - story.acknowledged.len();
                // Also when only the head could not be written.
                assert!(
                    (1..=7).contains(&refused),
                    "one group was refused, not {refused} records"
                );
            }
        }
    }
}

#[test]
fn after_a_sync_that_failed_the_log_goes_on_in_another_segment() {
    let disk = SimulatedDisk::new(&Image::new());
    let (mut writer, _) = fixture::open(disk.boxed());
    writer.write(&[event(0)]).unwrap();
    let operation_count = disk.operation_count();
    // The second group is written, then synced.
    for (at, segment_count) in [(operation_count, 1), (operation_count + 1, 2)] {
        let disk = SimulatedDisk::failing(&Image::new(), &[Fault::Refusal { at }], 1);
        let (mut writer, _) = fixture::open(disk.boxed());
        writer.write(&[event(0)]).unwrap();
        writer.write(&[event(1)]).unwrap_err();
        writer.write(&[event(2)]).unwrap();
        let segments = disk.image().into_keys();
        let segments: Vec<_> = segments.filter(|name| name.ends_with(".log")).collect();
        assert_eq!(segments.len(), segment_count, "{segments:?}");
        assert!(fixture::verify(&disk).is_sound());
    }
}

#[test]
fn many_refusals_and_power_cuts_lose_nothing_acknowledged() {
    let mut acknowledged_count = 0;
    for seed in 0..3_000 {
        let mut state: u64 = seed + 1;
        let mut random = |below: u64| {
            // Marsaglia's xorshift64.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 20) % below) as usize
        };
        let mut story = Story::default();
        for round in 0..4 {
            let mut faults: Vec<_> = (0..random(6))
                .map(|_| Fault::Refusal { at: random(70) })
                .collect();
            if random(3) > 0 {
                faults.push(Fault::PowerCut { at: random(80) });
            }
            story.go_on(&faults, seed * 4 + round);
        }
        story.check();
        acknowledged_count += story.acknowledged.len();
    }
    assert!(acknowledged_count > 100_000, "{acknowledged_count}");
}

#[test]
fn a_full_disk_at_the_start_only_postpones() {
    let mut story = Story::default();
    // Killed after some groups: what it left is unsigned, and torn.
    story.go_on(&[Fault::PowerCut { at: 30 }], 3);
    let torn = b"\0\0\0\x80torn";
    let last = story.image.keys().rfind(|name| name.ends_with(".log"));
    let last = last.unwrap().clone();
    story.image.get_mut(&last).unwrap().extend(torn);

    // Cutting and the first write of what is to be recorded about it; no write succeeds.
    let faults: Vec<_> = (2..40).map(|at| Fault::Refusal { at }).collect();
    let disk = SimulatedDisk::failing(&std::mem::take(&mut story.image), &faults, 1);
    let (mut writer, opened) = fixture::open(disk.boxed());
    assert!(opened.cut_bytes > 0);
    while disk.operation_count() < 40 {
        assert!(writer.write(&[event(1_000)]).is_err());
    }
    writer.write(&[event(1_001)]).unwrap();
    drop(writer);
    let acts: Vec<_> = records(disk.boxed())
        .into_iter()
        .map(|record| record.event.act.into_owned())
        .collect();
    assert!(acts.contains(&"audit.cut".to_owned()), "{acts:?}");
    assert!(fixture::verify(&disk).is_sound());
}

#[test]
fn a_disk_that_refuses_for_long_fills_no_folder() {
    let faults: Vec<_> = (20..400).map(|at| Fault::Refusal { at }).collect();
    let disk = SimulatedDisk::failing(&Image::new(), &faults, 1);
    let (mut writer, _) = fixture::open(disk.boxed());
    let mut refused_count = 0;
    while disk.operation_count() < 420 {
        refused_count += usize::from(writer.write(&[event(0)]).is_err());
    }
    assert!(refused_count > 100, "{refused_count}");
    writer.close().unwrap();
    assert!(disk.image().len() < 12, "{:?}", disk.image().keys());
    assert!(fixture::verify(&disk).is_sound());
}
