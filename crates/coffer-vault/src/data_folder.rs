//! The data folder: what lies where, who holds it, and whether it is ours.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coffer_durable::{OwnFolder, check_own_folder, sync_folder, write_file_atomically};
use coffer_seal::BucketId;
use coffer_store::CATALOG_FILE;
use rustix::fs::FlockOperation;
use rustix::io::Errno;

use crate::error::{Result, VaultError, is_out_of_files};

/// Names that a folder without a keystore may hold and still be taken for a new one: what a first
/// start leaves when it is interrupted, and what a file system puts at its root. All else comes
/// after the keystore, which appears in one step: so a folder without one holds no data, or has
/// lost its keystore.
const FIRST_START_LEAVES: [&str; 13] = [
    "lock",
    "keystore.new",
    "keystore.source",
    "keystore.source.new",
    "root.key",
    "root.key.new",
    "root.passphrase",
    "root.passphrase.new",
    "root.token",
    "root.token.new",
    "tls",
    ENGINE_FILE,
    "lost+found",
];

/// Says that a folder is a cache, of a gateway of an engine.
pub const ENGINE_FILE: &str = "engine.json";

/// The folder in a standby's, of what it keeps beside what is a data folder's.
pub const STANDBY: &str = "standby";

/// A data folder that this process holds.
#[derive(Debug)]
pub(crate) struct Folder {
    path: PathBuf,
    /// The file `lock`, locked for as long as it is open; `None` on a medium that takes no writes
    /// and has none.
    lock: Option<File>,
    /// The folder, locked likewise. Before something is opened, written or made by path, it is
    /// looked whether this has its name still.
    own: OwnFolder,
}

impl Folder {
    /// Makes the folder where it is absent, takes its lock, and refuses one that is not ours.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        if !path.exists() {
            DirBuilder::new()
                .recursive(true)
                .mode(0o700)
                .create(path)
                .map_err(failed("make the data folder", path))?;
        }
        refuse_foreign(path)?;
        let folder = Self::lock(path, false)?;
        if !path.join("keystore").exists() {
            // Also for a start that was interrupted before this.
            sync_ancestors(path)?;
        }
        Ok(folder)
    }

    /// Takes the lock of a folder that a standby keeps, made where it is absent.
    pub(crate) fn hold(path: &Path) -> Result<Self> {
        if !path.exists() {
            let made = DirBuilder::new().mode(0o700).create(path);
            made.map_err(failed("make", path))?;
        }
        Self::lock(path, false)
    }

    /// Takes the lock of a folder that must exist and hold a keystore.
    pub(crate) fn open_existing(path: &Path) -> Result<Self> {
        if !path.join("keystore").exists() {
            return Err(failed("find a keystore in", path)(
                io::ErrorKind::NotFound.into(),
            ));
        }
        Self::lock(path, true)
    }

    /// The folder itself is locked as well, for its file `lock` looks like what a crash left, and
    /// may be removed beneath a server.
    fn lock(path: &Path, may_be_read_only: bool) -> Result<Self> {
        let lock_path = path.join("lock");
        let lock = open_lock(&lock_path, may_be_read_only).map_err(failed("open", &lock_path))?;
        let folder = File::open(path).map_err(failed("open", path))?;
        let in_use = || VaultError::FolderInUse {
            path: path.display().to_string(),
        };
        let exclusive = FlockOperation::NonBlockingLockExclusive;
        match lock.as_ref().map(|lock| rustix::fs::flock(lock, exclusive)) {
            None | Some(Ok(())) => {}
            Some(Err(Errno::WOULDBLOCK)) => return Err(in_use()),
            Some(Err(errno)) => return Err(failed("lock", &lock_path)(errno.into())),
        }
        match rustix::fs::flock(&folder, exclusive) {
            // NFS locks files alone.
            Ok(()) | Err(Errno::BADF | Errno::OPNOTSUPP | Errno::INVAL) => Ok(Self {
                path: path.to_owned(),
                lock,
                own: OwnFolder::hold(path, folder).map_err(failed("find", path))?,
            }),
            Err(Errno::WOULDBLOCK) => Err(in_use()),
            Err(errno) => Err(failed("lock", path)(errno.into())),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a cache, in which only some of the blobs are.
    pub(crate) fn is_cache(&self) -> bool {
        self.path.join(ENGINE_FILE).exists()
    }

    /// Whether another folder has its name now: what is opened by path lies there.
    pub(crate) fn is_another(&self) -> bool {
        self.own.is_another()
    }

    /// Has `end` called by whatever finds that another folder has its name, before it does anything
    /// there.
    pub(crate) fn when_another(&self, end: impl Fn() + Send + Sync + 'static) {
        self.own.when_lost(end);
    }

    /// Makes sure that what is about to be made or removed at `path` lies in it.
    ///
    /// # Errors
    /// [`VaultError::Folder`] where another folder has its name.
    pub(crate) fn assure_own(path: &Path) -> Result<()> {
        check_own_folder(path).map_err(failed("use", path))
    }

    /// Whether it was copied while a server ran on it, as far as that shows: `lock` says in which
    /// file the server wrote that it runs, and that is another one.
    pub(crate) fn was_copied_live(&self) -> bool {
        let Some(lock) = &self.lock else { return false };
        let mut text = [0; 24];
        let length = lock.read_at(&mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..length]).ok();
        let noted = text.and_then(|text| text.trim_end().parse::<u64>().ok());
        let own = lock.metadata().map(|own| own.ino()).ok();
        noted.is_some() && noted != own
    }

    /// Notes that a server runs on it; what can't be written is done without.
    pub(crate) fn begin_serving(&self) {
        let Some(lock) = &self.lock else { return };
        let noted = lock.metadata().and_then(|own| {
            lock.set_len(0)?;
            lock.write_all_at(format!("{}\n", own.ino()).as_bytes(), 0)
        });
        if let Err(error) = noted {
            tracing::warn!(%error, "that a server runs here can't be noted");
        }
    }

    /// Notes that all is at rest.
    pub(crate) fn end_serving(&self) {
        let _ = self.lock.as_ref().map(|lock| lock.set_len(0));
    }

    pub(crate) fn system_db(&self) -> PathBuf {
        self.path.join("system.db")
    }

    pub(crate) fn credentials(&self) -> PathBuf {
        self.path.join("credentials")
    }

    /// What a standby keeps beside what is a data folder's.
    pub(crate) fn standby(&self) -> PathBuf {
        self.path.join(STANDBY)
    }

    pub(crate) fn audit(&self) -> PathBuf {
        self.path.join("audit")
    }

    pub(crate) fn buckets(&self) -> PathBuf {
        self.path.join("buckets")
    }

    pub(crate) fn bucket(&self, id: BucketId) -> PathBuf {
        self.buckets().join(id.to_string())
    }

    /// Whether a bucket's catalog is there. What can't be looked at may be.
    pub(crate) fn has_catalog(&self, id: BucketId) -> bool {
        let found = self.bucket(id).join(CATALOG_FILE).symlink_metadata();
        !found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    }
}

/// The file that is locked, made where it is absent. A medium that takes no writes may have none:
/// no server runs there, and who only looks at it locks the folder alone.
fn open_lock(path: &Path, may_be_read_only: bool) -> io::Result<Option<File>> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    match options.mode(0o600).open(path) {
        Err(error) if may_be_read_only && error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            match File::open(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                opened => opened.map(Some),
            }
        }
        opened => opened.map(Some),
    }
}

fn refuse_foreign(path: &Path) -> Result<()> {
    if path.join("keystore").exists() {
        return Ok(());
    }
    let mut is_foreign = false;
    for entry in fs::read_dir(path).map_err(failed("read", path))? {
        let name = entry.map_err(failed("read", path))?.file_name();
        if name == "buckets" || name == "system.db" {
            return Err(VaultError::KeystoreMissing {
                path: path.display().to_string(),
            });
        }
        is_foreign |= !FIRST_START_LEAVES.iter().any(|left| name == *left);
    }
    if is_foreign {
        return Err(VaultError::ForeignFolder {
            path: path.display().to_string(),
        });
    }
    Ok(())
}

/// Makes an error of an I/O error on `path`.
pub(crate) fn failed(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> VaultError {
    let path = path.display().to_string();
    move |source| {
        if matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ) {
            return VaultError::StorageFull;
        }
        if is_out_of_files(&source) {
            return VaultError::OutOfFiles;
        }
        VaultError::Folder {
            action,
            path,
            source,
        }
    }
}

/// Writes a file of mode 0600 in one durable step.
pub(crate) fn write_private(path: &Path, text: &str) -> Result<()> {
    let written = write_file_atomically(path, text.as_bytes()).map_err(io::Error::from);
    written.map_err(failed("write", path))
}

/// Makes the name of a new folder durable, and those of the folders above it that may be new, too.
/// One that we may not read was not made by us.
fn sync_ancestors(path: &Path) -> Result<()> {
    let path = std::path::absolute(path).map_err(failed("find", path))?;
    for above in path.ancestors().skip(1) {
        match sync_folder(above) {
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {}
            // A read-only file system has nothing new.
            Err(error) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {}
            synced => synced.map_err(failed("sync", above))?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_folder_is_private_and_held_once() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("data");
        let held = Folder::open(&path).unwrap();
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        for _ in 0..2 {
            assert!(matches!(
                Folder::open(&path),
                Err(VaultError::FolderInUse { .. })
            ));
            // Taken for what a crash left.
            fs::remove_file(path.join("lock")).unwrap();
        }
        drop(held);
        Folder::open(&path).unwrap();
    }

    #[test]
    fn foreign_folders_are_refused_and_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("thesis.tex"), "x").unwrap();
        assert!(matches!(
            Folder::open(root.path()),
            Err(VaultError::ForeignFolder { .. })
        ));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
    }

    #[test]
    fn data_without_its_keystore_is_not_taken_for_a_new_folder() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("credentials"), "").unwrap();
        fs::create_dir(root.path().join("buckets")).unwrap();
        assert!(matches!(
            Folder::open(root.path()),
            Err(VaultError::KeystoreMissing { .. })
        ));
    }
}
