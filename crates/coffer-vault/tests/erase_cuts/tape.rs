//! What is done to the files of one folder, in its order, and which of it is refused.

use std::collections::HashMap;
use std::fs;
use std::os::fd::RawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use coffer_durable::simulated::{DiskState, NameChange, Step};
use parking_lot::{Mutex, MutexGuard};

/// Whether anything is recorded at all.
static IS_RUNNING: AtomicBool = AtomicBool::new(false);

static TAPE: Mutex<Option<Tape>> = Mutex::new(None);

/// One recording at a time.
static RECORDING: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// What has been recorded so far.
pub(crate) struct Tape {
    root: PathBuf,
    /// Each file's inode and number, by its path.
    files: HashMap<PathBuf, (u64, usize)>,
    file_count: usize,
    /// The disk, after all steps so far.
    disk: DiskState,
    steps: Vec<Step>,
    change_count: usize,
    refuse_at: Option<usize>,
    /// A file all of whose changes are refused.
    refused_file: Option<&'static str>,
    told: Option<usize>,
}

/// All that happened.
pub(crate) struct Recording {
    /// The disk before.
    pub(crate) before: DiskState,
    pub(crate) steps: Vec<Step>,
    /// The steps that were done when the erase was acknowledged, if it was.
    pub(crate) told: Option<usize>,
    /// Whether a change was refused.
    pub(crate) has_refused: bool,
}

/// A folder as a disk, and which number each file has.
pub(crate) fn disk_of(root: &Path) -> (DiskState, Vec<(PathBuf, usize)>) {
    DiskState::of(root, is_kept).unwrap()
}

/// Whether a file is any use after a restart: the lock is only held.
fn is_kept(path: &Path) -> bool {
    path.file_name().unwrap_or_default() != "lock"
}

/// Records what `work` does to the files below `root`. Its change of this number is refused.
pub(crate) async fn record(
    root: &Path,
    refuse_at: Option<usize>,
    work: impl Future<Output = ()>,
) -> Recording {
    let _one = RECORDING.lock().await;
    let (before, numbers) = disk_of(root);
    let inode = |path: &Path| fs::metadata(root.join(path)).unwrap().ino();
    let file_count = numbers.len();
    let numbered = |(path, number): (PathBuf, usize)| {
        let inode = inode(&path);
        (path, (inode, number))
    };
    *TAPE.lock() = Some(Tape {
        root: root.to_owned(),
        files: numbers.into_iter().map(numbered).collect(),
        file_count,
        disk: before.clone(),
        steps: Vec::new(),
        change_count: 0,
        refuse_at,
        refused_file: None,
        told: None,
    });
    IS_RUNNING.store(true, Ordering::SeqCst);
    work.await;
    IS_RUNNING.store(false, Ordering::SeqCst);
    let tape = TAPE.lock().take().unwrap();
    Recording {
        before,
        steps: tape.steps,
        told: tape.told,
        has_refused: refuse_at.is_some_and(|at| at < tape.change_count),
    }
}

/// The caller who asked for the erase is told of it.
pub(crate) fn tell() {
    if let Some(tape) = &mut *TAPE.lock() {
        tape.push(Step::Mark);
        tape.told = Some(tape.steps.len());
    }
}

/// From now on all changes of this file are refused; or of none any more.
pub(crate) fn refuse_file(name: Option<&'static str>) {
    if let Some(tape) = &mut *TAPE.lock() {
        tape.refused_file = name;
    }
}

/// The tape, held while a change of this path is made, if it is recorded.
pub(crate) struct Running {
    tape: MutexGuard<'static, Option<Tape>>,
    /// Below the root.
    pub(crate) path: PathBuf,
}

/// The tape, if changes of the file or folder behind a descriptor are recorded.
pub(crate) fn of_descriptor(descriptor: RawFd) -> Option<Running> {
    if !IS_RUNNING.load(Ordering::SeqCst) {
        return None;
    }
    of_path(&descriptor_path(descriptor)?)
}

/// The tape, if changes of this path are recorded.
pub(crate) fn of_path(path: &Path) -> Option<Running> {
    if !IS_RUNNING.load(Ordering::SeqCst) {
        return None;
    }
    let tape = TAPE.lock();
    let path = path.strip_prefix(&tape.as_ref()?.root).ok()?.to_owned();
    // What has no name any more is told with its old one and this behind.
    let is_removed = path.to_string_lossy().ends_with(" (deleted)");
    (is_kept(&path) && !is_removed).then_some(Running { tape, path })
}

/// The path behind a descriptor.
pub(crate) fn descriptor_path(descriptor: RawFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{descriptor}")).ok()
}

impl Tape {
    fn push(&mut self, step: Step) {
        self.disk.apply(&step);
        self.steps.push(step);
    }
}

impl Running {
    fn tape(&mut self) -> &mut Tape {
        self.tape.as_mut().expect("it is there while it is running")
    }

    /// Counts a change; whether it is to be refused.
    pub(crate) fn is_refused(&mut self) -> bool {
        let path = self.path.clone();
        let tape = self.tape();
        let number = tape.change_count;
        tape.change_count += 1;
        let is_of_file = tape
            .refused_file
            .is_some_and(|name| path == Path::new(name));
        tape.refuse_at == Some(number) || is_of_file
    }

    pub(crate) fn push(&mut self, step: Step) {
        self.tape().push(step);
    }

    /// A sync of the file failed: from here on it shows what is on the disk, and so does the real
    /// one when it has been given these bytes.
    pub(crate) fn refuse_sync(&mut self) -> Vec<u8> {
        let file = self.file();
        let tape = self.tape();
        let seed = tape.steps.len() as u64;
        tape.push(Step::SyncRefused { file, seed });
        tape.disk.durable(file)
    }

    /// The number of the file; one that is new has been created.
    pub(crate) fn file(&mut self) -> usize {
        let path = self.path.clone();
        let tape = self.tape();
        let inode = fs::metadata(tape.root.join(&path)).map_or(0, |metadata| metadata.ino());
        if let Some((known, file)) = tape.files.get(&path)
            && *known == inode
        {
            return *file;
        }
        let file = tape.file_count;
        tape.file_count += 1;
        tape.files.insert(path.clone(), (inode, file));
        tape.push(Step::Name(NameChange::Create { path, file }));
        file
    }

    /// After a change of names.
    pub(crate) fn renamed(&mut self, change: NameChange) {
        let tape = self.tape();
        match &change {
            NameChange::Remove { path } => drop(tape.files.remove(path)),
            NameChange::Rename { from, to } => {
                if let Some(file) = tape.files.remove(from) {
                    tape.files.insert(to.clone(), file);
                }
            }
            NameChange::Create { .. } | NameChange::MakeFolder { .. } => {}
        }
        tape.push(Step::Name(change));
    }

    /// A path below the root.
    pub(crate) fn below(&mut self, path: &Path) -> PathBuf {
        let root = &self.tape().root;
        path.strip_prefix(root).unwrap_or(path).to_owned()
    }
}
