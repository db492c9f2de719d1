//! A disk that fails: at chosen operations the power goes, or a write or sync is refused.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard};

use crate::disk::Disk;

const SECTOR_BYTES: usize = 512;

/// Files by name, as a restart finds them.
pub(crate) type Image = BTreeMap<String, Vec<u8>>;

/// How the disk fails, at its `at`-th write, truncation, sync, renaming or sync of the folder.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fault {
    /// The power goes: of what isn't synced, each sector is written, lost or garbled, by the seed.
    PowerCut { at: usize },
    /// One operation is refused. Half of a write is done; what a sync was to make durable is so or
    /// is not, sector by sector, and the system takes it for done from then on.
    Refusal { at: usize },
}

/// A handle, so that a test can look at it when its user has gone.
#[derive(Clone)]
pub(crate) struct FailingDisk(Arc<Mutex<State>>);

struct State {
    files: Vec<File>,
    /// What is seen, and what is durable.
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    renamed: Vec<(String, usize)>,
    removed: Vec<String>,
    faults: Vec<Fault>,
    operation_count: usize,
    random: u64,
    is_off: bool,
}

#[derive(Default)]
struct File {
    /// What is seen.
    content: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

impl FailingDisk {
    pub(crate) fn new(image: Image, faults: &[Fault], seed: u64) -> Self {
        let mut state = State {
            files: Vec::new(),
            names: BTreeMap::new(),
            durable_names: BTreeMap::new(),
            renamed: Vec::new(),
            removed: Vec::new(),
            faults: faults.to_vec(),
            operation_count: 0,
            random: seed,
            is_off: false,
        };
        for (name, content) in image {
            state.names.insert(name, state.files.len());
            state.files.push(File {
                durable: content.clone(),
                content,
                unsynced: Vec::new(),
            });
        }
        state.durable_names = state.names.clone();
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn boxed(&self) -> Box<dyn Disk> {
        Box::new(self.clone())
    }

    pub(crate) fn operation_count(&self) -> usize {
        self.state().operation_count
    }

    /// Ends by a power cut, unless there was one; what a restart finds.
    pub(crate) fn cut_power(&self) -> Image {
        let mut state = self.state();
        if !state.is_off {
            state.cut_power();
        }
        let content =
            |(name, file): (&String, &usize)| (name.clone(), state.files[*file].durable.clone());
        state.durable_names.iter().map(content).collect()
    }

    /// What is seen while the power is on.
    pub(crate) fn image(&self) -> Image {
        let state = self.state();
        let content =
            |(name, file): (&String, &usize)| (name.clone(), state.files[*file].content.clone());
        state.names.iter().map(content).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl State {
    /// Counts an operation; whether it is to be refused.
    fn step(&mut self) -> io::Result<bool> {
        let at = self.operation_count;
        self.operation_count += 1;
        if self.is_off {
            return Err(io::Error::other("no power"));
        }
        if self.faults.contains(&Fault::PowerCut { at }) {
            // What is being done is under way.
            self.is_off = true;
        }
        Ok(self.faults.contains(&Fault::Refusal { at }))
    }

    /// After an operation that the power may have gone in.
    fn done(&mut self) -> io::Result<()> {
        if self.is_off {
            self.cut_power();
            return Err(io::Error::other("the power was cut"));
        }
        Ok(())
    }

    fn random(&mut self) -> u64 {
        // Knuth's MMIX constants; the upper bits are the good ones.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.random >> 32
    }

    fn file(&self, name: &str) -> io::Result<usize> {
        let file = self.names.get(name).copied();
        file.ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn change(&mut self, file: usize, change: Change) -> io::Result<()> {
        let is_refused = self.step()?;
        let change = match (is_refused, change) {
            (true, Change::Write(offset, bytes)) => {
                Change::Write(offset, bytes[..bytes.len() / 2].to_vec())
            }
            (true, Change::Truncate(_)) => return Err(refused()),
            (false, change) => change,
        };
        let file = &mut self.files[file];
        apply(&mut file.content, &change);
        file.unsynced.push(change);
        self.done()?;
        if is_refused { Err(refused()) } else { Ok(()) }
    }

    fn sync(&mut self, file: usize) -> io::Result<()> {
        let is_refused = self.step()?;
        self.done()?;
        if is_refused {
            self.lose(file);
            return Err(refused());
        }
        let file = &mut self.files[file];
        for change in std::mem::take(&mut file.unsynced) {
            apply(&mut file.durable, &change);
        }
        Ok(())
    }

    /// Makes some of what is not synced durable, and forgets the rest.
    fn lose(&mut self, file: usize) {
        for change in std::mem::take(&mut self.files[file].unsynced) {
            let Change::Write(offset, bytes) = change else {
                if self.random().is_multiple_of(2) {
                    apply(&mut self.files[file].durable, &change);
                }
                continue;
            };
            // Sectors are those of the disk: one that is partly old is written whole.
            let mut start = 0;
            while start < bytes.len() {
                let end = bytes
                    .len()
                    .min(((offset + start) / SECTOR_BYTES + 1) * SECTOR_BYTES - offset);
                let sector = &bytes[start..end];
                let random = self.random();
                let sector = match random % 8 {
                    0..3 => Some(sector.to_vec()),
                    3..6 => None,
                    _ => Some(vec![(random >> 8) as u8; sector.len()]),
                };
                if let Some(sector) = sector {
                    let change = Change::Write(offset + start, sector);
                    apply(&mut self.files[file].durable, &change);
                }
                start = end;
            }
        }
    }

    fn cut_power(&mut self) {
        for file in 0..self.files.len() {
            self.lose(file);
        }
        for (name, file) in std::mem::take(&mut self.renamed) {
            if self.random().is_multiple_of(2) {
                self.durable_names.insert(name, file);
            }
        }
        for name in std::mem::take(&mut self.removed) {
            if self.random().is_multiple_of(2) {
                self.durable_names.remove(&name);
            }
        }
        self.is_off = true;
    }
}

fn apply(content: &mut Vec<u8>, change: &Change) {
    match change {
        Change::Write(offset, bytes) => {
            content.resize(content.len().max(offset + bytes.len()), 0);
            content[*offset..offset + bytes.len()].copy_from_slice(bytes);
        }
        Change::Truncate(length) => content.truncate(*length),
    }
}

fn refused() -> io::Error {
    io::Error::from(io::ErrorKind::StorageFull)
}

impl Disk for FailingDisk {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.state().names.keys().cloned().collect())
    }

    fn length_bytes(&self, name: &str) -> io::Result<u64> {
        let state = self.state();
        Ok(state.files[state.file(name)?].content.len() as u64)
    }

    fn read(&self, name: &str, offset_bytes: u64, length_bytes: usize) -> io::Result<Vec<u8>> {
        let state = self.state();
        let content = &state.files[state.file(name)?].content;
        let start = content.len().min(offset_bytes as usize);
        let end = content.len().min(start + length_bytes);
        Ok(content[start..end].to_vec())
    }

    fn write(&mut self, name: &str, offset_bytes: u64, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let file = state.file(name)?;
        state.change(file, Change::Write(offset_bytes as usize, bytes.to_vec()))
    }

    fn truncate(&mut self, name: &str, length_bytes: u64) -> io::Result<()> {
        let mut state = self.state();
        let file = state.file(name)?;
        state.change(file, Change::Truncate(length_bytes as usize))
    }

    fn sync(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        let file = state.file(name)?;
        state.sync(file)
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        if state.step()? {
            return Err(refused());
        }
        if state.names.remove(name).is_some() {
            state.removed.push(name.to_owned());
        }
        state.done()?;
        let is_refused = state.step()?;
        state.done()?;
        if is_refused {
            return Err(refused());
        }
        for name in std::mem::take(&mut state.removed) {
            state.durable_names.remove(&name);
        }
        Ok(())
    }

    fn place(&mut self, name: &str, bytes: &[u8]) -> io::Result<()> {
        let mut state = self.state();
        let file = state.files.len();
        state.files.push(File::default());
        state.change(file, Change::Write(0, bytes.to_vec()))?;
        state.sync(file)?;
        if state.step()? {
            return Err(refused());
        }
        state.names.insert(name.to_owned(), file);
        state.renamed.push((name.to_owned(), file));
        state.done()?;
        let is_refused = state.step()?;
        state.done()?;
        if is_refused {
            return Err(refused());
        }
        for (name, file) in std::mem::take(&mut state.renamed) {
            state.durable_names.insert(name, file);
        }
        Ok(())
    }
}
