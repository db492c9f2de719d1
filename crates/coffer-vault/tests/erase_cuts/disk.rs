//! A disk as a power cut leaves it: which files there are, what of them is durable, what is not.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

const SECTOR_BYTES: usize = 512;

type Sector = [u8; SECTOR_BYTES];

/// What changes a disk. Paths are below the data folder; files have numbers, for names change.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Write {
        file: usize,
        offset: usize,
        bytes: Vec<u8>,
    },
    Truncate {
        file: usize,
        length: usize,
    },
    Sync {
        file: usize,
    },
    /// It failed: each sector is written, lost or garbled, by the seed, and passes for written.
    SyncRefused {
        file: usize,
        seed: u64,
    },
    Name(NameChange),
    SyncFolder {
        path: PathBuf,
    },
    /// No change: whoever asked for the erase was told of it here.
    Told,
}

#[derive(Clone, Debug)]
pub(crate) enum NameChange {
    Create { path: PathBuf, file: usize },
    MakeFolder { path: PathBuf },
    Rename { from: PathBuf, to: PathBuf },
    Remove { path: PathBuf },
}

#[derive(Clone, Default)]
pub(crate) struct Disk {
    files: Vec<File>,
    names: BTreeMap<PathBuf, Node>,
    unsynced_names: Vec<NameChange>,
}

#[derive(Clone, Copy, Hash)]
enum Node {
    Folder,
    File(usize),
}

#[derive(Clone, Default)]
struct File {
    durable: Content,
    unsynced: Vec<Change>,
}

#[derive(Clone)]
enum Change {
    Write(usize, Vec<u8>),
    Truncate(usize),
}

/// A file's sectors; those that are not there are zeros.
#[derive(Clone, Default, Hash)]
struct Content {
    length: usize,
    sectors: BTreeMap<usize, Sector>,
}

impl Content {
    fn of(bytes: &[u8]) -> Self {
        let mut content = Self::default();
        content.write(0, bytes);
        content
    }

    fn write(&mut self, offset: usize, bytes: &[u8]) {
        self.length = self.length.max(offset + bytes.len());
        for (start, piece) in by_sector(offset, bytes) {
            let place = start / SECTOR_BYTES;
            let mut sector = self.sectors.get(&place).copied();
            let within = start % SECTOR_BYTES;
            sector.get_or_insert([0; SECTOR_BYTES])[within..within + piece.len()]
                .copy_from_slice(piece);
            match sector.filter(|sector| *sector != [0; SECTOR_BYTES]) {
                Some(sector) => self.sectors.insert(place, sector),
                None => self.sectors.remove(&place),
            };
        }
    }

    /// Whether it holds these bytes, within a sector, at this place.
    fn holds(&self, start: usize, piece: &[u8]) -> bool {
        let within = start % SECTOR_BYTES;
        let sector = self.sectors.get(&(start / SECTOR_BYTES));
        let sector = sector.unwrap_or(&[0; SECTOR_BYTES]);
        start + piece.len() <= self.length && sector[within..within + piece.len()] == *piece
    }

    fn truncate(&mut self, length: usize) {
        self.length = length;
        self.sectors
            .retain(|place, _| place * SECTOR_BYTES < length);
        if let Some(last) = self.sectors.get_mut(&(length / SECTOR_BYTES)) {
            last[length % SECTOR_BYTES..].fill(0);
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Write(offset, bytes) => self.write(*offset, bytes),
            Change::Truncate(length) => self.truncate(*length),
        }
    }
}

/// The pieces of a write, each within a sector of the disk, and where they begin.
fn by_sector(offset: usize, bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let at = offset + start;
        let end = bytes.len().min(start + SECTOR_BYTES - at % SECTOR_BYTES);
        let piece = (start < end).then(|| (at, &bytes[start..end]));
        start = end;
        piece
    })
}

impl Disk {
    /// All of a folder, durable, and which number each file has.
    pub(crate) fn of(root: &Path) -> (Self, Vec<(PathBuf, usize)>) {
        let (mut disk, mut numbers) = (Self::default(), Vec::new());
        let mut folders = vec![PathBuf::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder)).unwrap() {
                let entry = entry.unwrap();
                let path = folder.join(entry.file_name());
                if entry.file_type().unwrap().is_dir() {
                    disk.names.insert(path.clone(), Node::Folder);
                    folders.push(path);
                } else if is_kept(&path) {
                    let content = Content::of(&fs::read(entry.path()).unwrap());
                    numbers.push((path.clone(), disk.files.len()));
                    disk.names.insert(path, Node::File(disk.files.len()));
                    disk.files.push(File {
                        durable: content,
                        unsynced: Vec::new(),
                    });
                }
            }
        }
        (disk, numbers)
    }

    /// Does a step.
    pub(crate) fn apply(&mut self, step: &Step) {
        match step {
            Step::Sync { file } => self.sync(*file),
            Step::SyncRefused { file, seed } => self.lose(*file, &mut Random(*seed)),
            Step::SyncFolder { path } => {
                let changes = std::mem::take(&mut self.unsynced_names);
                for change in changes {
                    match change.is_in(path) {
                        true => self.rename(change),
                        false => self.unsynced_names.push(change),
                    }
                }
            }
            step => self.begin(step),
        }
    }

    /// As far as a step that is not yet done has any effect: nothing of it is durable for certain.
    pub(crate) fn begin(&mut self, step: &Step) {
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
            Step::Name(change) => self.unsynced_names.push(change.clone()),
            Step::Sync { .. } | Step::SyncRefused { .. } | Step::SyncFolder { .. } => {}
            Step::Told => {}
        }
    }

    /// The power goes: of what isn't synced, each sector is written, lost or garbled; names change
    /// in their order, up to somewhere.
    pub(crate) fn cut_power(&mut self, random: &mut Random) {
        for file in 0..self.files.len() {
            self.lose(file, random);
        }
        let names = std::mem::take(&mut self.unsynced_names);
        let durable = random.below(names.len() + 1);
        for change in names.into_iter().take(durable) {
            self.rename(change);
        }
    }

    /// All that was done is durable.
    pub(crate) fn sync_all(&mut self) {
        for file in 0..self.files.len() {
            self.sync(file);
        }
        for change in std::mem::take(&mut self.unsynced_names) {
            self.rename(change);
        }
    }

    fn sync(&mut self, file: usize) {
        let file = self.file(file);
        for change in std::mem::take(&mut file.unsynced) {
            file.durable.apply(&change);
        }
    }

    fn lose(&mut self, file: usize, random: &mut Random) {
        let file = self.file(file);
        for change in std::mem::take(&mut file.unsynced) {
            let Change::Write(offset, bytes) = &change else {
                if random.below(2) == 0 {
                    file.durable.apply(&change);
                }
                continue;
            };
            for (start, piece) in by_sector(*offset, bytes) {
                match random.below(8) {
                    // Written again with what it holds, it holds that however far the write came.
                    _ if file.durable.holds(start, piece) => {}
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

    fn file(&mut self, file: usize) -> &mut File {
        if file >= self.files.len() {
            self.files.resize_with(file + 1, File::default);
        }
        &mut self.files[file]
    }

    fn rename(&mut self, change: NameChange) {
        match change {
            NameChange::Create { path, file } => {
                self.file(file);
                self.names.insert(path, Node::File(file));
            }
            NameChange::MakeFolder { path } => drop(self.names.insert(path, Node::Folder)),
            // With a folder goes what is in it.
            NameChange::Remove { path } => self.names.retain(|name, _| !name.starts_with(&path)),
            NameChange::Rename { from, to } => {
                if let Some(node) = self.names.remove(&from) {
                    self.names.insert(to, node);
                }
            }
        }
    }

    /// What of a file is durable.
    pub(crate) fn durable(&mut self, file: usize) -> Vec<u8> {
        let content = &self.file(file).durable;
        let mut bytes = vec![0; content.length.next_multiple_of(SECTOR_BYTES)];
        for (place, sector) in &content.sectors {
            bytes[place * SECTOR_BYTES..][..SECTOR_BYTES].copy_from_slice(sector);
        }
        bytes.truncate(content.length);
        bytes
    }

    /// What tells this disk from others.
    pub(crate) fn digest(&self) -> u64 {
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

    /// Puts it, as a restart finds it, into a folder.
    pub(crate) fn place(&self, folder: &Path) {
        let private = |path: &Path| fs::DirBuilder::new().mode(0o700).create(path).unwrap();
        private(folder);
        for (path, node) in &self.names {
            let path = folder.join(path);
            let Node::File(file) = node else {
                private(&path);
                continue;
            };
            let content = &self.files[*file].durable;
            let mut options = OpenOptions::new();
            let placed = options.create_new(true).write(true).mode(0o600).open(&path);
            let placed = placed.unwrap();
            placed.set_len(content.length as u64).unwrap();
            for (place, sector) in &content.sectors {
                let start = place * SECTOR_BYTES;
                let length = SECTOR_BYTES.min(content.length - start);
                placed
                    .write_all_at(&sector[..length], start as u64)
                    .unwrap();
            }
        }
    }
}

impl NameChange {
    fn is_in(&self, folder: &Path) -> bool {
        let (Self::Create { path, .. }
        | Self::MakeFolder { path }
        | Self::Rename { to: path, .. }
        | Self::Remove { path }) = self;
        path.parent() == Some(folder)
    }
}

/// Whether a file is any use after a restart: SQLite's shared memory is not, and the lock is only
/// held.
pub(crate) fn is_kept(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name != "lock" && !name.ends_with("-shm")
}

/// Numbers by seed: Knuth's MMIX constants, whose upper bits are the good ones.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}
