//! A copy of a catalog that is in use, of one moment.
//!
//! The database is copied as it lies there, sealed, while a transaction that reads keeps its log
//! from beginning anew: so whatever is copied into the database meanwhile, and may be met torn, the
//! log has as well. The log comes last, in the place of a write, when nothing else is at it. Both
//! together are what a power cut at that moment would have left. The copy is opened once, which
//! makes it one file.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;

use coffer_seal::{BlobId, SecretKey};
use rusqlite::params;

use crate::catalog::open::{CATALOG_FILE, Catalog};
use crate::catalog::tables::columns::{decode_id, decode_u64};
use crate::catalog::tables::rows::{blob_columns, read_blob, row_limit};
use crate::database::connections::Connections;
use crate::database::doubt::{DOUBT_FILE, NEWEST_FILE, keep_in_doubt};
use crate::database::page_tap::{PageTap, TakenPages};
use crate::error::{Result, StoreError};
use crate::limits::{COPY_LOOK, COPY_PIECE_BYTES, WALK_PAGE};
use crate::record::BlobRef;

impl Catalog {
    /// Copies the catalog into `dir`, a folder that is made when it is absent; what is there of
    /// another copy is replaced. Others read and write meanwhile. It is cut off when the catalog is
    /// closed. What is there then, and after an error, is no catalog. `key` is the catalog's.
    ///
    /// # Errors
    /// [`StoreError::InDoubt`] while the log is.
    pub async fn copy_into(&self, dir: &Path, key: &SecretKey) -> Result<Self> {
        let (path, this) = (dir.join(CATALOG_FILE), self.clone());
        self.past(move |connections| this.copy_files(connections, &path))
            .await?;
        let copy = Self::open(dir, key).await?;
        copy.close().await;
        Self::open_read_only(dir, key).await
    }

    fn copy_files(&self, connections: &Connections, path: &Path) -> Result<()> {
        let folder = path.parent().unwrap_or(Path::new("/"));
        let mut builder = fs::DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(folder);
        made.map_err(|error| failed(folder, error))?;
        for suffix in ["", "-wal", "-shm"] {
            remove_if_there(&beside(path, suffix))?;
        }
        for note in [NEWEST_FILE, DOUBT_FILE] {
            remove_if_there(&folder.join(note))?;
        }
        if self.is_in_doubt() {
            keep_in_doubt(folder, "the catalog that this is a copy of was in doubt")?;
        }
        let reader = connections.open_read_only()?;
        reader.execute_batch("BEGIN")?;
        reader.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(()))?;
        copy_file(connections.path(), path, &|| connections.is_closed())?;
        let (log, to) = (beside(connections.path(), "-wal"), beside(path, "-wal"));
        // That it fails is no failure of the writes beside it.
        let copy_log = self.write(move |_| {
            Ok(match copy_file(&log, &to, &|| false) {
                Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                    Ok(())
                }
                copied => copied.map(drop),
            })
        });
        let runtime = tokio::runtime::Handle::try_current();
        let runtime = runtime.map_err(|_| StoreError::Closed)?;
        runtime.block_on(async {
            let mut copy_log = pin!(copy_log);
            loop {
                tokio::select! {
                    copied = &mut copy_log => return copied?,
                    // It waits for all who read, then, and so for this.
                    () = tokio::time::sleep(COPY_LOOK) => if connections.is_log_in_doubt() {
                        return Err(StoreError::InDoubt);
                    },
                }
            }
        })
    }

    /// The next blobs that objects or parts refer to, ascending by their ids, and how many bytes of
    /// plaintext each holds.
    pub async fn blobs_after(&self, after: Option<BlobId>) -> Result<Vec<(BlobId, u64)>> {
        let after = after.map_or(Vec::new(), |id| id.0.to_vec());
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT blob_id, plaintext_bytes FROM blob WHERE blob_id > ?1
                 UNION ALL SELECT blob_id, plaintext_bytes FROM part WHERE blob_id > ?1
                 ORDER BY blob_id LIMIT ?2",
            )?;
            let mut rows = statement.query(params![after, row_limit(WALK_PAGE, WALK_PAGE)])?;
            let mut blobs = Vec::new();
            while let Some(row) = rows.next()? {
                let id = row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?;
                blobs.push((decode_id(id, BlobId)?, decode_u64(row.get(1)?)?));
            }
            Ok(blobs)
        })
        .await
    }

    /// Those of these blobs that objects or parts refer to, with what opens them.
    pub async fn blob_refs(&self, ids: Vec<BlobId>) -> Result<Vec<BlobRef>> {
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                blob_columns!(),
                " FROM blob WHERE blob_id = ?1 UNION ALL SELECT ",
                blob_columns!(),
                " FROM part WHERE blob_id = ?1"
            ))?;
            let mut blobs = Vec::new();
            for id in ids {
                let mut rows = statement.query([id.0])?;
                if let Some(row) = rows.next()? {
                    blobs.push(read_blob(row, 0)?);
                }
            }
            Ok(blobs)
        })
        .await
    }
}

/// Page by page, sealed as they are, for copies that are kept up.
impl Catalog {
    /// Has changes noted from now on, which outlast this catalog's being closed. The first tap
    /// stays. Said before the catalog is used, or else all pages count as changed.
    pub async fn tap_by(&self, tap: Arc<PageTap>) -> Result<()> {
        let tapped = self.connections().tapped();
        // In the place of a write, so that no commit is passed over.
        self.write(move |_| {
            tapped.attach(tap.clone());
            Ok(())
        })
        .await
    }

    /// Has the log read for changes.
    pub async fn note_changes(&self) -> Result<()> {
        let tapped = self.connections().tapped();
        self.write(move |_| {
            tapped.note();
            Ok(())
        })
        .await
    }

    /// Takes pages that were changed since `cursor` took them, `page_max` at most; what was taken
    /// before and has not arrived is taken again. None of a catalog that has no tap, or that
    /// `cursor` does not follow, or where all is new to one who takes only changes.
    pub async fn take_pages(&self, cursor: u32, page_max: usize) -> Result<Option<TakenPages>> {
        let tapped = self.connections().tapped();
        self.write(move |session| tapped.take(cursor, session.commit_count()?, page_max))
            .await
    }
}

/// Copies a file, of mode 0600 and durable, in place of another. `is_over`: it ends early.
///
/// # Errors
/// [`StoreError::Closed`] when it ended early; those of the disk.
pub fn copy_file(from: &Path, to: &Path, is_over: &dyn Fn() -> bool) -> Result<u64> {
    let mut from = File::open(from).map_err(|error| failed(from, error))?;
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(true).mode(0o600);
    let failed = |error| failed(to, error);
    let mut to = options.open(to).map_err(failed)?;
    let mut copied_bytes = 0;
    loop {
        if is_over() {
            return Err(StoreError::Closed);
        }
        // The system copies it, or shares it where the file system can.
        let mut piece = (&mut from).take(COPY_PIECE_BYTES);
        let length_bytes = io::copy(&mut piece, &mut to).map_err(failed)?;
        copied_bytes += length_bytes;
        if length_bytes < COPY_PIECE_BYTES {
            break;
        }
    }
    to.flush().and_then(|()| to.sync_all()).map_err(failed)?;
    Ok(copied_bytes)
}

fn remove_if_there(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(path, error)),
        _ => Ok(()),
    }
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut file = path.as_os_str().to_owned();
    file.push(suffix);
    file.into()
}

fn failed(path: &Path, error: io::Error) -> StoreError {
    StoreError::io("copy a file", path, error)
}
