//! A disk as a power cut leaves it: which files there are, what of them is durable, what is not.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use super::content::{Change, Content, by_sector};

/// What changes a disk. Paths are below one folder; files have numbers, for names change.
#[derive(Clone, Debug)]
pub enum Step {
    /// A write.
    Write {
        /// The file's number.
        file: usize,
        /// Where.
        offset: usize,
        /// What.
        bytes: Vec<u8>,
    },
    /// A new length.
    Truncate {
        /// The file's number.
        file: usize,
        /// The length in bytes.
        length: usize,
    },
    /// A sync that succeeded.
    Sync {
        /// The file's number.
        file: usize,
    },
    /// One that failed: each sector is written, lost or garbled, by the seed, and passes for
    /// written.
    SyncRefused {
        /// The file's number.
        file: usize,
        /// What decides.
        seed: u64,
    },
    /// A change of a name.
    Name(NameChange),
    /// A sync of a folder.
    SyncFolder {
        /// The folder; empty for the one that all paths are below.
        path: PathBuf,
    },
    /// No change: a place that a test finds again.
    Mark,
}

/// A change of a name.
#[derive(Clone, Debug)]
#[allow(missing_docs)] // which path is which is told by the names
pub enum NameChange {
    Create { path: PathBuf, file: usize },
    MakeFolder { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

/// Which changes of names a power cut leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrder {
    /// The first ones, as on a file system with a journal.
    Kept,
    /// Any of them.
    Any,
}

/// Which files a disk has, and what of them is durable.
#[derive(Clone, Default)]
pub struct DiskState {
    pub(super) files: Vec<File>,
    pub(super) names: BTreeMap<PathBuf, Node>,
    unsynced_names: UnsyncedNames,
}

/// With what a change of a name makes a name of, as the names were when it was made.
type UnsyncedNames = Vec<(NameChange, Option<Node>)>;

#[derive(Clone, Copy, Hash, PartialEq, Eq)]
pub(super) enum Node {
    Folder,
    File(usize),
}

#[derive(Clone, Default)]
pub(super) struct File {
    pub(super) durable: Content,
    unsynced: Vec<Change>,
}

impl DiskState {
    /// Adds a durable file.
    pub fn add(&mut self, path: &Path, file: usize, content: &[u8]) {
        self.file(file).durable = Content::of(content);
        self.names.insert(path.to_owned(), Node::File(file));
    }

    /// Does a step.
    pub fn apply(&mut self, step: &Step) {
        match step {
            Step::Sync { file } => self.sync(*file),
            Step::SyncRefused { file, seed } => self.lose(*file, &mut Random::new(*seed)),
            Step::SyncFolder { path } => {
                let unsynced = std::mem::take(&mut self.unsynced_names);
                let (synced, rest) = unsynced
                    .into_iter()
                    .partition(|(change, _)| change.is_in(path));
                self.unsynced_names = rest;
                self.rename(synced);
            }
            step => self.begin(step),
        }
    }

    /// As far as a step that is not yet done has any effect: nothing of it is durable for certain.
    pub fn begin(&mut self, step: &Step) {
        match step {
            Step::Write {
                file,
                offset,
                bytes,
            } => {
                let change = Change::Write(*offset, bytes.clone());
                self.file(*file).unsynced.push(change);
            }
            Step::Truncate { file, length } => {
                self.file(*file).unsynced.push(Change::Truncate(*length));
            }
            Step::Name(change) => {
                let node = match change {
                    NameChange::Create { file, .. } => Some(Node::File(*file)),
                    NameChange::MakeFolder { .. } => Some(Node::Folder),
                    NameChange::Rename { from, .. } => self.node(from),
                    NameChange::Remove { .. } => None,
                };
                self.unsynced_names.push((change.clone(), node));
            }
            Step::Sync { .. } | Step::SyncRefused { .. } | Step::SyncFolder { .. } => {}
            Step::Mark => {}
        }
    }

    /// The power goes: of what isn't synced, each sector is written, lost or garbled.
    pub fn cut_power(&mut self, random: &mut Random, order: NameOrder) {
        for file in 0..self.files.len() {
            self.lose(file, random);
        }
        let names = std::mem::take(&mut self.unsynced_names);
        let kept_count = random.below(names.len() + 1);
        let mut is_durable = |index| match order {
            NameOrder::Kept => index < kept_count,
            NameOrder::Any => random.below(2) == 0,
        };
        let numbered = names.into_iter().enumerate();
        let durable = numbered.filter(|(index, _)| is_durable(*index));
        self.rename(durable.map(|(_, change)| change).collect());
    }

    /// All that was done is durable.
    pub fn sync_all(&mut self) {
        for file in 0..self.files.len() {
            self.sync(file);
        }
        let names = std::mem::take(&mut self.unsynced_names);
        self.rename(names);
    }

    fn sync(&mut self, file: usize) {
        let file = self.file(file);
        for change in std::mem::take(&mut file.unsynced) {
            file.durable.apply(&change);
        }
    }

    /// Makes some of what is not synced durable, garbles some, and forgets the rest.
    pub(super) fn lose(&mut self, file: usize, random: &mut Random) {
        let file = self.file(file);
        for change in std::mem::take(&mut file.unsynced) {
            let Change::Write(offset, bytes) = &change else {
                if random.below(2) == 0 {
                    file.durable.apply(&change);
                }
                continue;
            };
            for (start, piece) in by_sector(*offset, bytes) {
                // Also a sector that is written again with what it holds: a disk doesn't compare,
                // and one that stops within the sector spoils it all the same.
                match random.below(8) {
                    0..3 => file.durable.write(start, piece),
                    3..6 => {}
                    _ => {
                        let garbled = vec![random.below(256) as u8; piece.len()];
                        file.durable.write(start, &garbled);
                    }
                }
            }
        }
    }

    pub(super) fn file(&mut self, file: usize) -> &mut File {
        if file >= self.files.len() {
            self.files.resize_with(file + 1, File::default);
        }
        &mut self.files[file]
    }

    /// What a name stands for while the power is on.
    fn node(&self, path: &Path) -> Option<Node> {
        let mut node = self.names.get(path).copied();
        for (change, made) in &self.unsynced_names {
            match change {
                NameChange::Rename { from, .. } if from == path => node = None,
                NameChange::Remove { path: removed } if path.starts_with(removed) => node = None,
                change if change.path() == path => node = *made,
                _ => {}
            }
        }
        node
    }

    fn rename(&mut self, changes: UnsyncedNames) {
        for (change, node) in changes {
            match change {
                // With a folder goes what is in it.
                NameChange::Remove { path } => {
                    self.names.retain(|name, _| !name.starts_with(&path));
                    continue;
                }
                NameChange::Rename { ref from, .. } if self.names.get(from).copied() == node => {
                    self.names.remove(from);
                }
                _ => {}
            }
            if let Some(Node::File(file)) = node {
                // It may be empty.
                self.file(file);
            }
            if let Some(node) = node {
                self.names.insert(change.path().to_owned(), node);
            }
        }
    }

    /// What of a file is durable.
    pub fn durable(&self, file: usize) -> Vec<u8> {
        let file = self.files.get(file);
        file.map_or_else(Vec::new, |file| file.durable.to_bytes())
    }

    /// The files whose names are durable, and what of them is.
    pub fn durable_files(&self) -> impl Iterator<Item = (&Path, Vec<u8>)> {
        self.names.iter().filter_map(|(path, node)| match node {
            Node::Folder => None,
            Node::File(file) => Some((path.as_path(), self.durable(*file))),
        })
    }

    /// Whether nothing of the file waits to be synced.
    pub(super) fn is_synced(&self, file: usize) -> bool {
        let file = self.files.get(file);
        file.is_none_or(|file| file.unsynced.is_empty())
    }

    /// What tells this disk from others.
    pub fn digest(&self) -> u64 {
        let mut hasher = DefaultHasher::new();
        for (path, node) in &self.names {
            path.hash(&mut hasher);
            match node {
                Node::Folder => 0.hash(&mut hasher),
                Node::File(file) => self.files[*file].durable.hash(&mut hasher),
            }
        }
        hasher.finish()
    }
}

impl NameChange {
    /// The name that changes, or that there is afterwards.
    fn path(&self) -> &Path {
        let (Self::Create { path, .. }
        | Self::MakeFolder { path }
        | Self::Rename { to: path, .. }
        | Self::Remove { path }) = self;
        path
    }

    fn is_in(&self, folder: &Path) -> bool {
        self.path().parent() == Some(folder)
    }
}

/// Numbers by seed: Knuth's MMIX constants, whose upper bits are the good ones.
#[derive(Clone)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next one, below a limit.
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
