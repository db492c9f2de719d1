//! How a catalog's connections come to be, for as long as it is open, and whether its file is
//! still the one that was opened.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coffer_durable::check_own_folder;
use coffer_seal::SecretKey;
use parking_lot::Mutex;
use rusqlite::Connection;

use crate::database::doubt::keep_in_doubt;
use crate::database::held::Held;
use crate::database::log::DurableCopy;
use crate::database::own_files::OwnFiles;
use crate::database::page_tap::Tapped;
use crate::database::sealed::Database;
use crate::error::{Result, StoreError};

/// Opens connections to one database until it is told to stop.
pub(crate) struct Connections {
    database: Database,
    path: PathBuf,
    /// There is no writer, and nothing may change.
    is_still: bool,
    /// Whether what is in the log may not be on the disk.
    is_log_in_doubt: AtomicBool,
    /// The newest commit; 0 where none was made, and as long as nothing is written.
    last_commit: AtomicU64,
    is_committing: AtomicBool,
    /// Device and inode of the file, where they could be told.
    identity: Option<(u64, u64)>,
    own_files: Arc<OwnFiles>,
    tapped: Arc<Tapped>,
    /// When the file was last written, as of the last look at it, in nanoseconds.
    written: Mutex<Option<(i64, i64)>>,
    /// Whether the file was found to be another one.
    is_replaced: AtomicBool,
    /// Has a connection see an older format as the newest, where nothing may change.
    show: fn(&Connection) -> Result<()>,
    /// SQLCipher holds the same key in every connection for as long.
    key: Mutex<Option<SecretKey>>,
    /// The folder, until the last connection is closed: of one that may be written.
    held: Mutex<Option<Held>>,
}

/// A commit that is under way.
pub(crate) struct Committing<'a>(&'a AtomicBool);

impl Drop for Committing<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

impl Connections {
    /// Of a database whose folder is held, or of one to which nothing is written.
    pub(crate) fn new(
        database: Database,
        path: PathBuf,
        key: SecretKey,
        held: Option<Held>,
    ) -> Self {
        Self {
            last_commit: AtomicU64::new(0),
            is_committing: AtomicBool::new(false),
            identity: identity(&path),
            own_files: Arc::new(OwnFiles::new(path.clone())),
            tapped: Arc::new(Tapped::new(path.clone())),
            written: Mutex::new(None),
            is_replaced: AtomicBool::new(false),
            database,
            path,
            is_still: held.is_none(),
            is_log_in_doubt: AtomicBool::new(false),
            show: |_| Ok(()),
            key: Mutex::new(Some(key)),
            held: Mutex::new(held),
        }
    }

    /// Has each connection prepared that reads what nothing may change.
    pub(crate) fn showing(mut self, show: fn(&Connection) -> Result<()>) -> Self {
        self.show = show;
        self
    }

    /// A connection that may write. There is one at a time, and the log is not in doubt.
    pub(crate) fn open(&self) -> Result<Connection> {
        self.database.open_again(&self.path, &self.key()?)
    }

    /// A durable copy of the log, if that is in doubt.
    pub(crate) fn copy_log_in_doubt(&self) -> Result<Option<DurableCopy>> {
        self.is_log_in_doubt()
            .then(|| DurableCopy::make(&self.path))
            .transpose()
    }

    /// Puts the copy in the log's place, while there are no connections.
    pub(crate) fn settle_log(&self, copy: DurableCopy) -> Result<()> {
        copy.put()
    }

    /// What is in the log is on the disk, and is about to be counted.
    pub(crate) fn believe_the_log(&self) {
        self.is_log_in_doubt.store(false, Ordering::Release);
    }

    /// Writing to the log failed, or it is not known how far it goes: what it holds is made durable
    /// before it is believed again.
    pub(crate) fn doubt_the_log(&self) {
        self.is_log_in_doubt.store(true, Ordering::Release);
    }

    /// Whether what is in the log may not be on the disk.
    pub(crate) fn is_log_in_doubt(&self) -> bool {
        self.is_log_in_doubt.load(Ordering::Acquire)
    }

    /// A connection for reading only.
    pub(crate) fn open_read_only(&self) -> Result<Connection> {
        if self.is_still {
            let connection = self.database.open_read_only(&self.path, &self.key()?)?;
            (self.show)(&connection)?;
            Ok(connection)
        } else {
            self.database.open_beside(&self.path, &self.key()?)
        }
    }

    /// Whether there is no writer, and nothing may change.
    pub(crate) fn is_still(&self) -> bool {
        self.is_still
    }

    /// A commit begins, which shows before it is remembered: until what is returned is dropped.
    pub(crate) fn committing(&self) -> Committing<'_> {
        self.is_committing.store(true, Ordering::SeqCst);
        Committing(&self.is_committing)
    }

    /// Whether a commit is under way, or in doubt for now: one that shows already may not be in
    /// [`last_commit`](Self::last_commit).
    pub(crate) fn is_committing(&self) -> bool {
        self.is_committing.load(Ordering::SeqCst) || self.is_log_in_doubt()
    }

    /// Remembers a commit that is durable.
    pub(crate) fn committed(&self, count: u64) {
        self.last_commit.store(count, Ordering::Release);
    }

    /// The newest commit, whatever has become of the file. One more than there was, where another
    /// program has written over it.
    pub(crate) fn last_commit(&self) -> u64 {
        self.last_commit.load(Ordering::Acquire)
    }

    /// Makes sure that the file in its place is the one that was opened.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] from the time on that it was not.
    pub(crate) fn assure_own_file(&self) -> Result<()> {
        if self.identity.is_none() || self.identity == identity(&self.path) {
            return self.refuse_replaced();
        }
        if self.is_closed() {
            return Err(StoreError::Closed);
        }
        self.assure_own_folder()?;
        self.replaced("another file is in its place");
        Err(StoreError::Replaced)
    }

    /// Whatever has the file's name in another data folder is not judged, nor told of there.
    fn assure_own_folder(&self) -> Result<()> {
        let path = &self.path;
        check_own_folder(path).map_err(|error| StoreError::io("find a catalog", path, error))
    }

    /// The files as their writer left them.
    pub(crate) fn own_files(&self) -> Arc<OwnFiles> {
        self.own_files.clone()
    }

    /// Who is told which pages change, if anything is.
    pub(crate) fn tapped(&self) -> Arc<Tapped> {
        self.tapped.clone()
    }

    /// Makes sure that the files are as their writer left them. For who keeps others from writing.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] from the time on that they were not.
    pub(crate) fn assure_untouched(&self) -> Result<()> {
        if let Err(how) = self.own_files.check() {
            self.assure_own_folder()?;
            // What is there now may count as many commits, and is not what those left: it counts as
            // lacking one.
            self.last_commit.fetch_add(1, Ordering::AcqRel);
            self.replaced(how);
        }
        self.refuse_replaced()
    }

    /// Whether the file was written since this was asked last, by whomever.
    pub(crate) fn was_written(&self) -> bool {
        let metadata = fs::metadata(&self.path).ok();
        let now = metadata.map(|metadata| (metadata.mtime(), metadata.mtime_nsec()));
        let mut written = self.written.lock();
        std::mem::replace(&mut *written, now) != now
    }

    /// Nothing is read or written any more, for the file is another one, or an older one.
    pub(crate) fn replaced(&self, how: &'static str) {
        if self.is_replaced.swap(true, Ordering::AcqRel) {
            return;
        }
        let path = self.path.display();
        tracing::error!(
            %path,
            how,
            "ROLLBACK: a catalog was replaced while it was open: its bucket is not served until \
             the server is started again, with the newest copy in its place"
        );
        let dir = self.path.parent().unwrap_or(Path::new("/"));
        let why = format!("its catalog was replaced while the server had it open: {how}");
        if let Err(error) = keep_in_doubt(dir, &why) {
            tracing::warn!(%path, %error, "that a bucket is in doubt could not be noted");
        }
    }

    /// # Errors
    /// [`StoreError::Replaced`] once that was noticed.
    pub(crate) fn refuse_replaced(&self) -> Result<()> {
        if self.is_replaced.load(Ordering::Acquire) {
            Err(StoreError::Replaced)
        } else {
            Ok(())
        }
    }

    /// The database's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.key.lock().is_none()
    }

    /// Lets go of the key: from now on everything answers [`StoreError::Closed`].
    pub(crate) fn close(&self) {
        self.key.lock().take();
    }

    /// All connections are closed: the database may be opened anew.
    pub(crate) fn let_go(&self) {
        drop(self.held.lock().take());
    }

    /// The key, while it is open.
    pub(crate) fn key(&self) -> Result<SecretKey> {
        self.key.lock().clone().ok_or(StoreError::Closed)
    }
}

/// Device and inode of a file, where they can be told.
fn identity(path: &Path) -> Option<(u64, u64)> {
    let metadata = fs::metadata(path).ok()?;
    Some((metadata.dev(), metadata.ino()))
}
