//! A folder that fails: at chosen operations the power goes, or one of them is refused, or lies.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;

use super::state::{DiskState, NameChange, NameOrder, Random, Step};
use crate::disk::{Access, Disk, DiskFile};

/// Files by name.
pub type Image = BTreeMap<String, Vec<u8>>;

/// How the disk fails, at its `at`-th operation: a write, a change of length, a sync, or a change
/// or sync of names. What only reads is not counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fault {
    /// The power goes while the operation is under way.
    PowerCut {
        /// The operation.
        at: usize,
    },
    /// The operation is refused.
    Refusal {
        /// The operation.
        at: usize,
    },
    /// The operation, if it is a write, lands as zeros, and is reported as done.
    Lie {
        /// The operation.
        at: usize,
    },
}

/// A handle, so that a test can look at it when its user has gone.
#[derive(Clone)]
pub struct SimulatedDisk(Arc<Mutex<State>>);

struct State {
    disk: DiskState,
    /// What is seen while the power is on: names, and each file's content.
    names: BTreeMap<String, usize>,
    seen: Vec<Vec<u8>>,
    faults: Vec<Fault>,
    random: Random,
    operation_count: usize,
    is_off: bool,
}

impl SimulatedDisk {
    /// A disk with these files, durable, that doesn't fail.
    pub fn new(image: &Image) -> Self {
        let mut disk = DiskState::default();
        let mut names = BTreeMap::new();
        for (file, (name, content)) in image.iter().enumerate() {
            disk.add(Path::new(name), file, content);
            names.insert(name.clone(), file);
        }
        Self(Arc::new(Mutex::new(State {
            disk,
            names,
            seen: image.values().cloned().collect(),
            faults: Vec::new(),
            random: Random::new(0),
            operation_count: 0,
            is_off: false,
        })))
    }

    /// As [`SimulatedDisk::new`], to fail so, by this seed.
    pub fn failing(image: &Image, faults: &[Fault], seed: u64) -> Self {
        let disk = Self::new(image);
        disk.fail(faults, seed);
        disk
    }

    /// The same disk.
    pub fn boxed(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }

    /// Has it fail so, by this seed, its operations counted from here on.
    pub fn fail(&self, faults: &[Fault], seed: u64) {
        let mut state = self.0.lock();
        state.faults = faults.to_vec();
        state.random = Random::new(seed);
        state.operation_count = 0;
    }

    /// How many operations there were since [`SimulatedDisk::fail`].
    pub fn operation_count(&self) -> usize {
        self.0.lock().operation_count
    }

    /// What is seen while the power is on.
    pub fn image(&self) -> Image {
        let state = self.0.lock();
        let content = |(name, file): (&String, &usize)| (name.clone(), state.seen[*file].clone());
        state.names.iter().map(content).collect()
    }

    /// What a restart finds after a power cut: the one that there was, or one now, after which this
    /// disk goes on all the same.
    pub fn restart_image(&self) -> Image {
        let state = self.0.lock();
        let mut disk = state.disk.clone();
        if !state.is_off {
            disk.cut_power(&mut state.random.clone(), NameOrder::Any);
        }
        let name = |path: &Path| path.to_string_lossy().into_owned();
        let files = disk.durable_files();
        files.map(|(path, content)| (name(path), content)).collect()
    }
}

/// What becomes of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Refused,
    LiedAbout,
}

impl State {
    /// Counts an operation, which the power may go in.
    fn begin(&mut self, step: &Step) -> io::Result<Fate> {
        let at = self.operation_count;
        self.operation_count += 1;
        if self.is_off {
            return Err(io::Error::other("no power"));
        }
        if self.faults.contains(&Fault::PowerCut { at }) {
            self.disk.begin(step);
            self.disk.cut_power(&mut self.random, NameOrder::Any);
            self.is_off = true;
            return Err(io::Error::other("the power was cut"));
        }
        if self.faults.contains(&Fault::Refusal { at }) {
            return Ok(Fate::Refused);
        }
        if self.faults.contains(&Fault::Lie { at }) {
            Ok(Fate::LiedAbout)
        } else {
            Ok(Fate::Done)
        }
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        let file = self.names.get(name).copied();
        file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn write(&mut self, file: usize, offset: usize, bytes: &[u8]) -> io::Result<()> {
        let write = |bytes: &[u8]| Step::Write {
            file,
            offset,
            bytes: bytes.to_vec(),
        };
        let fate = self.begin(&write(bytes))?;
        let (shown, stored) = match fate {
            Fate::Done => (bytes, write(bytes)),
            Fate::Refused => (&bytes[..bytes.len() / 2], write(&bytes[..bytes.len() / 2])),
            Fate::LiedAbout => (bytes, write(&vec![0; bytes.len()])),
        };
        self.disk.begin(&stored);
        let seen = &mut self.seen[file];
        if !shown.is_empty() {
            seen.resize(seen.len().max(offset + shown.len()), 0);
            seen[offset..offset + shown.len()].copy_from_slice(shown);
        }
        match fate {
            Fate::Refused => Err(no_space()),
            Fate::Done | Fate::LiedAbout => Ok(()),
        }
    }

    fn set_length(&mut self, file: usize, length: usize) -> io::Result<()> {
        let step = Step::Truncate { file, length };
        if self.begin(&step)? == Fate::Refused {
            return Err(no_space());
        }
        self.disk.begin(&step);
        self.seen[file].resize(length, 0);
        Ok(())
    }

    fn sync(&mut self, file: usize) -> io::Result<()> {
        let step = Step::Sync { file };
        if self.begin(&step)? != Fate::Refused {
            self.disk.apply(&step);
            return Ok(());
        }
        match self.random.below(3) {
            // It was written, and only the answer was lost.
            0 => self.disk.apply(&step),
            _ => self.disk.lose(file, &mut self.random),
        }
        Err(failed())
    }

    fn change_name(&mut self, change: NameChange) -> io::Result<()> {
        let step = Step::Name(change);
        if self.begin(&step)? == Fate::Refused {
            return Err(no_space());
        }
        self.disk.begin(&step);
        Ok(())
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        let file = self.file(from)?;
        self.change_name(NameChange::Rename {
            from: from.into(),
            to: to.into(),
        })?;
        self.names.remove(from);
        self.names.insert(to.to_owned(), file);
        Ok(())
    }
}

fn no_space() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

fn failed() -> io::Error {
    io::Error::other("an I/O error")
}

impl Disk for SimulatedDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.lock().names.keys().cloned().collect())
    }

    fn open(&self, name: &str, _access: Access) -> io::Result<Box<dyn DiskFile>> {
        let file = self.0.lock().file(name)?;
        Ok(Box::new(SimulatedFile {
            disk: self.clone(),
            file,
        }))
    }

    fn create_new(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut state = self.0.lock();
        if state.names.contains_key(name) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let file = state.seen.len();
        state.change_name(NameChange::Create {
            path: name.into(),
            file,
        })?;
        state.names.insert(name.to_owned(), file);
        state.seen.push(Vec::new());
        drop(state);
        self.open(name, Access::Write)
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.0.lock().rename(from, to)
    }

    fn rename_to_new(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        if state.names.contains_key(to) {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        state.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.0.lock();
        state.file(name)?;
        state.change_name(NameChange::Remove { path: name.into() })?;
        state.names.remove(name);
        Ok(())
    }

    fn sync_names(&self) -> io::Result<()> {
        let mut state = self.0.lock();
        let step = Step::SyncFolder {
            path: Path::new("").to_owned(),
        };
        if state.begin(&step)? == Fate::Refused {
            return Err(failed());
        }
        state.disk.apply(&step);
        Ok(())
    }
}

struct SimulatedFile {
    disk: SimulatedDisk,
    file: usize,
}

impl DiskFile for SimulatedFile {
    fn length_bytes(&self) -> io::Result<u64> {
        Ok(self.disk.0.lock().seen[self.file].len() as u64)
    }

    fn mode(&self) -> io::Result<u32> {
        Ok(0o600)
    }

    fn again(&self) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(Self {
            disk: self.disk.clone(),
            file: self.file,
        }))
    }

    fn read(&self, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let state = self.disk.0.lock();
        let content = &state.seen[self.file];
        let start = content.len().min(offset_bytes as usize);
        let end = content.len().min(start + length_bytes);
        Ok(content[start..end].to_vec())
    }

    fn write(&mut self, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        self.disk
            .0
            .lock()
            .write(self.file, offset_bytes as usize, bytes)
    }

    fn set_length(&mut self, length_bytes: u64) -> io::Result<()> {
        self.disk
            .0
            .lock()
            .set_length(self.file, length_bytes as usize)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.disk.0.lock().sync(self.file)
    }

    fn drop_cache(&self) {
        let mut state = self.disk.0.lock();
        if state.disk.is_synced(self.file) {
            state.seen[self.file] = state.disk.durable(self.file);
        }
    }
}
