//! Anchors come back; a power cut leaves the one before or the one that was written.

use std::convert::Infallible;
use std::path::Path;

use coffer_durable::Access;
use coffer_durable::simulated::{Fault, Image, SimulatedDisk};
use coffer_seal::{BucketId, KeystoreId, SecretKey};

use crate::anchor::{Anchor, AnchorFile};
use crate::limits::BUCKET_COUNT_MAX;

fn anchor(number: u64, bucket_count: u64) -> Anchor {
    let id = |bucket: u64| {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&bucket.to_be_bytes());
        BucketId(id)
    };
    Anchor {
        system_commits: number,
        audit_record: 2 * number,
        audit_hash: [number as u8; 32],
        held_ms: -1,
        commits: (0..bucket_count).map(|at| (id(at), number + at)).collect(),
    }
}

fn open_on(disk: &SimulatedDisk) -> AnchorFile {
    let key = SecretKey::try_filled(|out| {
        out.fill(9);
        Ok::<_, Infallible>(())
    });
    let path = Path::new("anchor");
    AnchorFile::open_on(
        disk.boxed(),
        path,
        Access::Write,
        key.unwrap(),
        KeystoreId([3; 16]),
    )
    .unwrap()
}

#[test]
fn the_fullest_anchor_fits_and_comes_back() {
    let disk = SimulatedDisk::new(&Image::new());
    let full = anchor(7, BUCKET_COUNT_MAX as u64);
    assert_eq!(open_on(&disk).number(), 0);
    assert_eq!(open_on(&disk).write(full.clone(), 40).unwrap(), 41);
    let again = open_on(&disk);
    assert_eq!((again.number(), again.newest()), (41, Some(&full)));
}

#[test]
fn a_power_cut_leaves_the_one_before_or_the_new_one() {
    let disk = SimulatedDisk::new(&Image::new());
    for number in 1..=2 {
        assert_eq!(open_on(&disk).write(anchor(number, 40), 0).unwrap(), number);
    }
    let before = disk.image();
    let (mut old, mut new) = (0, 0);
    for at in 0..2 {
        for seed in 0..200 {
            let disk = SimulatedDisk::new(&before);
            let mut file = open_on(&disk);
            disk.fail(&[Fault::PowerCut { at }], seed);
            file.write(anchor(3, 40), 0).unwrap_err();
            let disk = SimulatedDisk::new(&disk.restart_image());
            let found = open_on(&disk);
            let number = found.number();
            assert_eq!(found.newest(), Some(&anchor(number, 40)));
            assert!(number == 2 || number == 3, "{number} at {at}, seed {seed}");
            old += u32::from(number == 2);
            new += u32::from(number == 3);
        }
    }
    assert!(old > 20 && new > 0, "{old}, {new}");
}

#[test]
fn an_anchor_of_another_number_does_not_open() {
    let disk = SimulatedDisk::new(&Image::new());
    open_on(&disk).write(anchor(1, 1), 0).unwrap();
    let mut image = disk.image();
    image.get_mut("anchor").unwrap()[8 + 4 + 7] += 1;
    let disk = SimulatedDisk::new(&image);
    assert_eq!(open_on(&disk).number(), 0);
}
