//! The folder of a backup: `copy`, which is complete, and `unfinished`, which becomes the next one.
//!
//! The two change places in one step. So whenever the server is stopped, `copy` is the one before
//! or the new one; what is in `unfinished` then is used by the next backup.

use std::ffi::OsString;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coffer_durable::{now_ms, rfc3339, sync_folder};
use coffer_seal::KeystoreId;
use rustix::fs::{CWD, FlockOperation, OFlags, RenameFlags, flock, renameat_with, syncfs};
use rustix::io::Errno;
use rustix::process::geteuid;

use super::record::{BACKUP_FILE, BackupRecord};
use crate::data_folder::{Folder, failed};
use crate::error::{BackupError, Result, VaultError};
use crate::limits::PATH_MAX_BYTES;

const COPY: &str = "copy";
const UNFINISHED: &str = "unfinished";

/// Where a copy is kept for a moment on a file system that can't exchange two folders.
const PREVIOUS: &str = "previous";

/// Where a blob is written before it is whole.
const BLOB: &str = "blob.new";

/// Write permission of the group and of all others, and what keeps them from renaming what is
/// not theirs: bits of a mode.
const OTHERS_WRITE: u32 = 0o022;
const STICKY: u32 = 0o1000;

/// The folder of a backup, held.
pub(super) struct Destination {
    folder: PathBuf,
    record: BackupRecord,
    /// To sync by, and to learn what could not be written since it was opened.
    held: File,
    _lock: File,
    /// The copy before, which nothing else has open.
    before_copy: Option<Folder>,
}

impl Destination {
    /// Takes the folder of a backup of the keystore with this id, which is served in `data`; makes
    /// it where it is absent. Blocks.
    ///
    /// # Errors
    /// [`BackupError::NoBackupFolder`], [`VaultError::FolderInUse`].
    pub(super) fn open(folder: &Path, data: &Path, keystore_id: KeystoreId) -> Result<Self> {
        let refused = |problem| {
            let path = folder.display().to_string();
            BackupError::NoBackupFolder { path, problem }
        };
        if !folder.is_absolute() {
            return Err(refused("name it by an absolute path").into());
        }
        if folder.as_os_str().len() > PATH_MAX_BYTES {
            let problem = "its path is too long";
            return Err(BackupError::NoBackupFolder {
                path: "DIR".to_owned(),
                problem,
            }
            .into());
        }
        let data = resolved(data)?;
        let fit = |folder: &Path| match unfit(folder, &data)? {
            Some(problem) => Err(VaultError::from(refused(problem))),
            None => Ok(()),
        };
        // Before it is made, so that a refusal leaves nothing behind.
        fit(&resolved_to_be(folder)?)?;
        make_folder(folder)?;
        // From here on the path has no links in it, and what it leads through is not changed by
        // other users.
        let folder = &resolved(folder)?;
        fit(folder)?;
        let lock = lock(folder)?;
        let (copy, previous) = (folder.join(COPY), folder.join(PREVIOUS));
        if !copy.exists() && previous.exists() {
            fs::rename(&previous, &copy).map_err(failed("rename", &previous))?;
        }
        let before = if copy.exists() {
            Some(Folder::open_existing(&copy)?)
        } else {
            None
        };
        let record = BackupRecord::begun(keystore_id, rfc3339(now_ms()));
        if before.is_some() {
            let known = BackupRecord::read(&copy)?;
            if known.is_none_or(|known| known.keystore != record.keystore) {
                return Err(
                    refused("it holds a backup of another server, or one that is served").into(),
                );
            }
        }
        let destination = Self {
            held: File::open(folder).map_err(failed("open", folder))?,
            folder: folder.to_owned(),
            record,
            _lock: lock,
            before_copy: before,
        };
        let unfinished = destination.unfinished();
        make_folder(&unfinished)?;
        destination.record.write(&unfinished)?;
        Ok(destination)
    }

    /// The folder that is being filled.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.folder.join(UNFINISHED)
    }

    /// The copy before, if there is one.
    pub(super) fn before(&self) -> Option<PathBuf> {
        self.before_copy
            .as_ref()
            .map(|before| before.path().to_owned())
    }

    /// Where a blob is written before it is whole.
    pub(super) fn blob(&self) -> PathBuf {
        self.folder.join(BLOB)
    }

    /// Completes the copy, with the keystore of this generation, and puts it in the place of the
    /// one before, which is removed. Gives out where it is. Blocks.
    pub(super) fn complete(&self, generation: u64) -> Result<PathBuf> {
        let (copy, unfinished) = (self.folder.join(COPY), self.unfinished());
        // Files are durable; this is for their names.
        syncfs(&self.held).map_err(|error| failed("sync", &self.folder)(error.into()))?;
        let record = BackupRecord {
            ended: Some(rfc3339(now_ms())),
            generation,
            ..self.record.clone()
        };
        record.write(&unfinished)?;
        // What an earlier backup left, where two folders can't be exchanged.
        self.remove(&self.folder.join(PREVIOUS))?;
        self.exchange(&copy, &unfinished)
            .map_err(failed("rename", &unfinished))?;
        sync_folder(&self.folder).map_err(failed("sync", &self.folder))?;
        for left in [&unfinished, &self.folder.join(PREVIOUS)] {
            if let Err(error) = self.remove(left) {
                tracing::warn!(%error, "the copy before could not be removed yet");
            }
        }
        Ok(copy)
    }

    /// Removes a copy, which is none from the beginning.
    fn remove(&self, copy: &Path) -> Result<()> {
        if !copy.exists() {
            return Ok(());
        }
        self.record.write(copy)?;
        for entry in fs::read_dir(copy).map_err(failed("read", copy))? {
            let path = entry.map_err(failed("read", copy))?.path();
            if path.is_dir() {
                fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
            }
        }
        fs::remove_dir_all(copy).map_err(failed("remove", copy))
    }

    fn exchange(&self, copy: &Path, unfinished: &Path) -> io::Result<()> {
        if !copy.exists() {
            return fs::rename(unfinished, copy);
        }
        match renameat_with(CWD, unfinished, CWD, copy, RenameFlags::EXCHANGE) {
            // Some file systems (NFS among them) can't.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                fs::rename(copy, self.folder.join(PREVIOUS))?;
                fs::rename(unfinished, copy)
            }
            exchanged => exchanged.map_err(io::Error::from),
        }
    }
}

fn make_folder(path: &Path) -> Result<()> {
    match DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        made => made.map_err(failed("make", path)),
    }
}

/// The path without links.
fn resolved(path: &Path) -> Result<PathBuf> {
    path.canonicalize().map_err(failed("find", path))
}

/// The path without links, also of a folder that is not made yet.
fn resolved_to_be(folder: &Path) -> Result<PathBuf> {
    match (folder.parent(), folder.file_name()) {
        (Some(parent), Some(name)) if !folder.exists() => {
            let parent = parent.canonicalize().map_err(failed("make", folder))?;
            Ok(parent.join(name))
        }
        _ => resolved(folder),
    }
}

/// Why a folder, which may be absent yet, can't be one of backups, if so. Both paths have no links
/// in them.
fn unfit(folder: &Path, data: &Path) -> Result<Option<&'static str>> {
    if folder.starts_with(data) || data.starts_with(folder) {
        return Ok(Some(
            "a copy of the data folder can't lie within it, or around it",
        ));
    }
    if !is_ours_alone(folder)? {
        return Ok(Some(
            "it must belong to the server's user, and neither it nor a folder that it lies in may \
             be changed by others: make one with mode 700",
        ));
    }
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        entries => entries.map_err(failed("read", folder))?,
    };
    for entry in entries {
        let entry = entry.map_err(failed("read", folder))?;
        let name = entry.file_name();
        let known = [COPY, UNFINISHED, PREVIOUS, BLOB, "lock", "lost+found"];
        if !known.iter().any(|known| name == *known) {
            return Ok(Some(
                "it is not empty and holds no backup: choose another folder",
            ));
        }
        let kind = entry.file_type().map_err(failed("look at", folder))?;
        if kind.is_symlink() {
            return Ok(Some("something in it is a link: choose another folder"));
        }
    }
    let is_begun = is_begun_copy(&folder.join(UNFINISHED))?;
    Ok((!is_begun).then_some("`unfinished` in it is no copy that was begun"))
}

/// Whether the folder belongs to this process's user, or is not made yet, and others can't change
/// what lies on the way to it: a link in the place of a folder would lead elsewhere.
fn is_ours_alone(folder: &Path) -> Result<bool> {
    let user = geteuid().as_raw();
    for path in folder.ancestors() {
        let metadata = match fs::symlink_metadata(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && path == folder => continue,
            metadata => metadata.map_err(failed("look at", path))?,
        };
        let (owner, mode) = (metadata.uid(), metadata.mode());
        let is_sticky = mode & STICKY != 0 && path != folder;
        let is_known = owner == user || (owner == 0 && path != folder);
        if !is_known || (mode & OTHERS_WRITE != 0 && !is_sticky) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether a folder is absent, or empty, or one that a backup has begun to fill.
fn is_begun_copy(unfinished: &Path) -> Result<bool> {
    let entries = match fs::read_dir(unfinished) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries.map_err(failed("read", unfinished))?,
    };
    let names: io::Result<Vec<_>> = entries.map(|entry| Ok(entry?.file_name())).collect();
    let names = names.map_err(failed("read", unfinished))?;
    // The record comes first, by way of another name.
    let is_record = |name: &OsString| name.to_string_lossy().starts_with(BACKUP_FILE);
    Ok(names.iter().any(|name| name == BACKUP_FILE) || names.iter().all(is_record))
}

fn lock(folder: &Path) -> Result<File> {
    let path = folder.join("lock");
    let mut options = OpenOptions::new();
    let options = options.create(true).truncate(false).write(true).mode(0o600);
    let options = options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let lock = options.open(&path).map_err(failed("open", &path))?;
    match flock(&lock, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(lock),
        Err(Errno::WOULDBLOCK) => Err(BackupError::NoBackupFolder {
            path: folder.display().to_string(),
            problem: "another backup is being made there: wait for it to end",
        }
        .into()),
        Err(errno) => Err(failed("lock", &path)(errno.into())),
    }
}
