//! A medium that fails, and what a keystore on it must survive: after a power cut at any moment it
//! is exactly what it was before the change, or exactly what it is after.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use crate::copies::{Medium, Repair};
use crate::error::KeysError;
use crate::keystore::Keystore;
use crate::limits::SLOT_BYTES;
use crate::root::RootKey;

const SECTOR_BYTES: usize = 512;

/// How the medium fails, at its `at`-th write or sync.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Fault {
    /// Never.
    None,
    /// The power goes: of what isn't synced, each sector is written, lost or garbled, by `seed`.
    PowerCut { at: usize, seed: u64 },
    /// One operation is refused after half of its bytes were written.
    Refusal { at: usize },
    /// One write lands as zeros, and nobody says so.
    Lie { at: usize },
}

struct Disk {
    durable: Vec<u8>,
    unsynced: Vec<(usize, Vec<u8>)>,
    fault: Fault,
    operation_count: usize,
    is_off: bool,
}

/// A handle, so that a test can look at the disk of a keystore that has gone.
#[derive(Clone)]
struct FailingMedium(Arc<Mutex<Disk>>);

impl FailingMedium {
    fn new(durable: Vec<u8>, fault: Fault) -> Self {
        Self(Arc::new(Mutex::new(Disk {
            durable,
            unsynced: Vec::new(),
            fault,
            operation_count: 0,
            is_off: false,
        })))
    }

    fn empty() -> Self {
        Self::new(vec![0; 2 * SLOT_BYTES], Fault::None)
    }

    fn boxed(&self) -> Box<dyn Medium> {
        Box::new(self.clone())
    }

    fn set_fault(&self, fault: Fault) {
        let mut disk = self.0.lock().unwrap();
        disk.fault = fault;
        disk.operation_count = 0;
    }

    fn image(&self) -> Vec<u8> {
        self.0.lock().unwrap().durable.clone()
    }

    fn operation_count(&self) -> usize {
        self.0.lock().unwrap().operation_count
    }
}

impl Disk {
    /// Counts an operation; what happens to it.
    fn step(&mut self) -> io::Result<Fault> {
        let number = self.operation_count;
        self.operation_count += 1;
        let now = match self.fault {
            Fault::PowerCut { at, .. } | Fault::Refusal { at } | Fault::Lie { at } => at == number,
            Fault::None => false,
        };
        if self.is_off {
            return Err(io::Error::other("no power"));
        }
        Ok(if now { self.fault } else { Fault::None })
    }

    fn sync(&mut self) {
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            self.durable[offset..offset + bytes.len()].copy_from_slice(&bytes);
        }
    }

    fn cut_power(&mut self, seed: u64) -> io::Error {
        let mut random = seed;
        for (offset, bytes) in std::mem::take(&mut self.unsynced) {
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                // Knuth's MMIX constants; the upper bits are the good ones.
                random = random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                let start = offset + number * SECTOR_BYTES;
                let place = &mut self.durable[start..start + sector.len()];
                match random >> 61 {
                    0..3 => place.copy_from_slice(sector),
                    3..6 => {}
                    _ => place.fill((random >> 40) as u8),
                }
            }
        }
        self.is_off = true;
        io::Error::other("the power was cut")
    }
}

impl Medium for FailingMedium {
    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let disk = self.0.lock().unwrap();
        assert!(
            disk.unsynced.is_empty(),
            "nothing is read before it is durable"
        );
        let start = offset_bytes as usize;
        let end = disk.durable.len().min(start + length_bytes);
        Ok(disk.durable[start..end].to_vec())
    }

    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        let fault = disk.step()?;
        let offset = offset_bytes as usize;
        match fault {
            Fault::None => disk.unsynced.push((offset, bytes.to_vec())),
            Fault::Lie { .. } => disk.unsynced.push((offset, vec![0; bytes.len()])),
            Fault::Refusal { .. } => {
                let half = bytes[..bytes.len() / 2].to_vec();
                disk.unsynced.push((offset, half));
                disk.sync();
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            Fault::PowerCut { seed, .. } => {
                disk.unsynced.push((offset, bytes.to_vec()));
                return Err(disk.cut_power(seed));
            }
        }
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.0.lock().unwrap();
        match disk.step()? {
            Fault::PowerCut { seed, .. } => return Err(disk.cut_power(seed)),
            Fault::Refusal { .. } => {
                disk.sync();
                return Err(io::Error::other(
                    "a sync was refused, although all was written",
                ));
            }
            Fault::None | Fault::Lie { .. } => disk.sync(),
        }
        Ok(())
    }
}

/// Adds or destroys buckets so that the keystore grows and shrinks by several sectors.
type Change = fn(&Keystore) -> Result<(), KeysError>;

const CHANGES: [(&str, Change); 2] = [
    ("add", |keystore| {
        let level = keystore.levels()[0].id;
        keystore.add_bucket([200; 16], level).map(drop)
    }),
    ("destroy", |keystore| keystore.destroy_bucket(&[3; 16])),
];

fn path() -> &'static Path {
    Path::new("keystore")
}

fn keystore_of_twenty() -> (RootKey, FailingMedium) {
    let (root, medium) = (RootKey::generate(), FailingMedium::empty());
    let keystore = Keystore::create_on(medium.boxed(), path(), &root).unwrap();
    let level = keystore.levels()[0].id;
    for number in 0..20 {
        keystore.add_bucket([number; 16], level).unwrap();
    }
    (root, medium)
}

/// Everything a user could see, and that every key opens.
fn view(keystore: &Keystore) -> (u64, Vec<[u8; 16]>) {
    let ids: Vec<_> = keystore.buckets().iter().map(|bucket| bucket.id).collect();
    for id in &ids {
        keystore.bucket_key(id).unwrap();
    }
    (keystore.generation(), ids)
}

fn view_of(image: Vec<u8>, root: &RootKey) -> (u64, Vec<[u8; 16]>) {
    let medium = FailingMedium::new(image, Fault::None);
    let (keystore, _) = Keystore::open_on(medium.boxed(), path(), root).unwrap();
    let seen = view(&keystore);
    // Whatever had to be mended is mended now, down to the bytes behind the copies.
    let (again, repair) = Keystore::open_on(medium.boxed(), path(), root).unwrap();
    assert_eq!((view(&again), repair), (seen.clone(), Repair::None));
    seen
}

#[test]
fn a_power_cut_at_any_moment_leaves_old_or_new() {
    for (name, change) in CHANGES {
        let (root, medium) = keystore_of_twenty();
        let before_image = medium.image();
        let before = view_of(before_image.clone(), &root);
        medium.set_fault(Fault::None);
        let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
        change(&keystore).unwrap();
        let after = view(&keystore);
        let operation_count = medium.operation_count();
        assert_eq!(operation_count, 4, "two writes, each synced");

        let (mut old, mut new) = (0, 0);
        for at in 0..operation_count {
            for seed in 0..40 {
                let medium = FailingMedium::new(before_image.clone(), Fault::None);
                let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
                medium.set_fault(Fault::PowerCut { at, seed });
                let error = change(&keystore).unwrap_err();
                assert!(matches!(error, KeysError::Io { .. }), "{error}");
                let seen = view_of(medium.image(), &root);
                assert!(
                    seen == before || seen == after,
                    "{name} at {at}, seed {seed}"
                );
                old += usize::from(seen == before);
                new += usize::from(seen == after);
            }
        }
        assert!(old >= 40 && new >= 80, "{name}: {old} old and {new} new");
    }
}

#[test]
fn a_refused_operation_is_made_good_by_the_next_change() {
    for (name, change) in CHANGES {
        for at in 0..4 {
            let (root, medium) = keystore_of_twenty();
            let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
            medium.set_fault(Fault::Refusal { at });
            change(&keystore).unwrap_err();
            let told = view(&keystore);
            // At the first copy the change is off, at the second it is done but not yet twice.
            assert_eq!(told.0, if at < 2 { 21 } else { 22 }, "{name} at {at}");

            let level = keystore.levels()[0].id;
            keystore.add_bucket([99; 16], level).unwrap();
            let now = view(&keystore);
            assert_eq!(now.0, told.0 + 1);
            assert_eq!(view_of(medium.image(), &root), now, "{name} at {at}");
        }
    }
}

#[test]
fn destroying_again_completes_what_was_half_destroyed() {
    let (root, medium) = keystore_of_twenty();
    let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
    medium.set_fault(Fault::Refusal { at: 2 });
    keystore.destroy_bucket(&[3; 16]).unwrap_err();
    medium.set_fault(Fault::None);
    let again = keystore.destroy_bucket(&[3; 16]).unwrap_err();
    assert!(matches!(again, KeysError::NoSuchBucket { .. }));
    let image = medium.image();
    assert_eq!(
        image[..SLOT_BYTES],
        image[SLOT_BYTES..],
        "both copies are as new"
    );
}

#[test]
fn a_torn_copy_is_mended_at_the_first_occasion() {
    let (root, medium) = keystore_of_twenty();
    let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
    let before = medium.image();
    for at in [0, 1] {
        medium.set_fault(Fault::Refusal { at });
        keystore.destroy_bucket(&[3; 16]).unwrap_err();
        assert!(medium.image() != before, "one copy is torn, or new");
        medium.set_fault(Fault::None);
        keystore.destroy_bucket(&[250; 16]).unwrap_err();
        assert!(medium.image() == before, "both copies are as they were");
    }
}

#[test]
fn a_disk_that_lies_is_found_out() {
    for at in [0, 2] {
        let (root, medium) = keystore_of_twenty();
        let (keystore, _) = Keystore::open_on(medium.boxed(), path(), &root).unwrap();
        medium.set_fault(Fault::Lie { at });
        let error = keystore.destroy_bucket(&[3; 16]).unwrap_err();
        assert!(matches!(error, KeysError::NotReadBack { .. }), "{error}");
        // The other copy is whole all the same.
        view_of(medium.image(), &root);
    }
}
