//! A disk with a few files that fails: at a chosen operation the power goes, or a write is refused,
//! or it lands as zeros.

use std::io;
use std::sync::{Arc, Mutex};

use crate::medium::Medium;

/// The room of each copy of a keystore on such a disk.
pub(crate) const FAILING_SLOT_BYTES: usize = 16 * 1024;

const SECTOR_BYTES: usize = 512;

/// How the disk fails, at its `at`-th write, truncation or sync.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Fault {
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
    files: Vec<Vec<u8>>,
    unsynced: Vec<Unsynced>,
    fault: Fault,
    operation_count: usize,
    is_off: bool,
}

struct Unsynced {
    file: usize,
    change: Change,
}

enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
    /// A file that appears complete or not at all.
    Create(Vec<u8>),
}

/// A file of the disk: a handle, so that a test can look at it when its user has gone.
#[derive(Clone)]
pub(crate) struct FailingMedium {
    disk: Arc<Mutex<Disk>>,
    file: usize,
}

impl FailingMedium {
    /// The files of a disk; one that is empty is not there.
    pub(crate) fn disk<const N: usize>(files: [Vec<u8>; N]) -> [Self; N] {
        let disk = Arc::new(Mutex::new(Disk {
            files: files.into(),
            unsynced: Vec::new(),
            fault: Fault::None,
            operation_count: 0,
            is_off: false,
        }));
        std::array::from_fn(|file| Self {
            disk: disk.clone(),
            file,
        })
    }

    pub(crate) fn boxed(&self) -> Box<dyn Medium> {
        Box::new(self.clone())
    }

    /// For the whole disk, whose operations are counted from here on.
    pub(crate) fn set_fault(&self, fault: Fault) {
        let mut disk = self.disk.lock().unwrap();
        disk.fault = fault;
        disk.operation_count = 0;
    }

    /// All files as a restart finds them.
    pub(crate) fn images<const N: usize>(&self) -> [Vec<u8>; N] {
        let files = self.disk.lock().unwrap().files.clone();
        files.try_into().expect("that many files were put there")
    }

    /// Makes the file, durably.
    pub(crate) fn create(&mut self, content: &[u8]) -> io::Result<()> {
        self.change(Change::Create(content.to_vec()))?;
        self.sync()
    }

    /// This file as a restart finds it.
    pub(crate) fn image(&self) -> Vec<u8> {
        self.disk.lock().unwrap().files[self.file].clone()
    }

    pub(crate) fn operation_count(&self) -> usize {
        self.disk.lock().unwrap().operation_count
    }

    fn change(&self, change: Change) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        let file = self.file;
        let fault = disk.step()?;
        let change = match (fault, change) {
            (Fault::Lie { .. }, Change::Write(offset, bytes)) => {
                Change::Write(offset, vec![0; bytes.len()])
            }
            (Fault::Refusal { .. }, Change::Write(offset, bytes)) => {
                Change::Write(offset, bytes[..bytes.len() / 2].to_vec())
            }
            (_, change) => change,
        };
        disk.unsynced.push(Unsynced { file, change });
        match fault {
            Fault::Refusal { .. } => {
                if matches!(
                    disk.unsynced.last().map(|it| &it.change),
                    Some(Change::Create(_))
                ) {
                    disk.unsynced.pop();
                }
                disk.sync(file);
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            Fault::PowerCut { seed, .. } => Err(disk.cut_power(seed)),
            Fault::None | Fault::Lie { .. } => Ok(()),
        }
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

    /// Makes the changes of one file durable, not those of the other.
    fn sync(&mut self, file: usize) {
        for unsynced in std::mem::take(&mut self.unsynced) {
            if unsynced.file == file {
                self.apply(unsynced);
            } else {
                self.unsynced.push(unsynced);
            }
        }
    }

    fn apply(&mut self, unsynced: Unsynced) {
        let content = &mut self.files[unsynced.file];
        match unsynced.change {
            Change::Write(offset, bytes) => {
                content.resize(content.len().max(offset + bytes.len()), 0);
                content[offset..offset + bytes.len()].copy_from_slice(&bytes);
            }
            Change::Truncate(length) => content.truncate(length),
            Change::Create(bytes) => *content = bytes,
        }
    }

    fn cut_power(&mut self, seed: u64) -> io::Error {
        let mut state = seed;
        let mut random = || {
            // Knuth's MMIX constants; the upper bits are the good ones.
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            state
        };
        for Unsynced { file, change } in std::mem::take(&mut self.unsynced) {
            let Change::Write(offset, bytes) = change else {
                if random() >> 63 == 0 {
                    self.apply(Unsynced { file, change });
                }
                continue;
            };
            for (number, sector) in bytes.chunks(SECTOR_BYTES).enumerate() {
                let random = random();
                let sector = match random >> 61 {
                    0..3 => sector.to_vec(),
                    3..6 => continue,
                    _ => vec![(random >> 40) as u8; sector.len()],
                };
                let change = Change::Write(offset + number * SECTOR_BYTES, sector);
                self.apply(Unsynced { file, change });
            }
        }
        self.is_off = true;
        io::Error::other("the power was cut")
    }
}

impl Medium for FailingMedium {
    fn slot_bytes(&self) -> usize {
        FAILING_SLOT_BYTES
    }

    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let disk = self.disk.lock().unwrap();
        assert!(
            disk.unsynced
                .iter()
                .all(|unsynced| unsynced.file != self.file),
            "nothing is read before it is durable"
        );
        let content = &disk.files[self.file];
        let start = content.len().min(offset_bytes as usize);
        let end = content.len().min(offset_bytes as usize + length_bytes);
        Ok(content[start..end].to_vec())
    }

    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.change(Change::Write(offset_bytes as usize, bytes.to_vec()))
    }

    fn truncate(&mut self, length_bytes: u64) -> io::Result<()> {
        self.change(Change::Truncate(length_bytes as usize))
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut disk = self.disk.lock().unwrap();
        let file = self.file;
        match disk.step()? {
            Fault::PowerCut { seed, .. } => return Err(disk.cut_power(seed)),
            Fault::Refusal { .. } => {
                disk.sync(file);
                return Err(io::Error::other(
                    "a sync was refused, although all was written",
                ));
            }
            Fault::None | Fault::Lie { .. } => disk.sync(file),
        }
        Ok(())
    }
}
