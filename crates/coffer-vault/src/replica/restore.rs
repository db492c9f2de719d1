//! Restoring a copy into a data folder, which a server then starts on.
//!
//! The folder has the keystore, and what opens it; the copy has the rest. It is marked as a backup
//! that is not complete until all of it is there and durable, and as a complete one afterwards: a
//! start refuses either, the second until it is told that the rollback is on purpose.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use coffer_durable::{now_ms, rfc3339, sync_folder};
use coffer_keys::{KeyFolder, Keystore, SourceSecrets, SourceSpec};
use coffer_replica::{BucketState, Copy, CopyReader, CopyRecord, KnownHead, Place, ReplicaError};
use coffer_seal::{BlobId, BucketId, sealed_bytes};
use coffer_store::{BlobStore, CATALOG_FILE, Catalog};
use futures::StreamExt;
use futures::stream::{self, TryStreamExt};

use super::check::new_file;
use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::{CopyError, Result};
use crate::limits::COPY_BLOBS_AT_ONCE;

/// What a folder may hold that is restored into: a keystore, and what opens it; and what a restore
/// left that was ended while it wrote the mark, or a start that made the lock.
const KEY_FILES: [&str; 11] = [
    "keystore",
    "keystore.source",
    "root.key",
    "root.passphrase",
    "root-2.passphrase",
    "root.token",
    "root-2.token",
    "tls",
    "backup.json.new",
    "lock",
    "lost+found",
];

/// What is restored, and where to.
pub struct Restore {
    /// The copy.
    pub from: Place,
    /// The data folder.
    pub data: PathBuf,
    /// Where the root key is, if the folder does not say.
    pub source: Option<SourceSpec>,
    /// What opens the source.
    pub secrets: SourceSecrets,
    /// A head that the copy must have, or a later one.
    pub known: Option<KnownHead>,
}

/// What a restore tells as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreEvent {
    /// So much is there.
    Progress {
        /// Blobs.
        blob_count: u64,
        /// Bytes that were fetched of them.
        fetched_bytes: u64,
    },
    /// The keystore has no key for a bucket: it was erased, or made after that keystore was copied.
    NoKey {
        /// Its id.
        bucket: String,
    },
    /// All is there.
    Done {
        /// Which head that is.
        head: KnownHead,
        /// All that was acknowledged before is there, in milliseconds since 1970.
        as_of_ms: i64,
        /// Buckets.
        bucket_count: u64,
        /// Blobs.
        blob_count: u64,
        /// Bytes that were fetched of them.
        fetched_bytes: u64,
    },
}

/// Restores a copy; the last event is [`RestoreEvent::Done`]. What an interrupted restore left is
/// used.
///
/// # Errors
/// [`CopyError::Target`]; when something is missing in the copy, or is not what was written.
pub async fn restore(restore: Restore, mut told: impl FnMut(RestoreEvent)) -> Result<()> {
    let Restore {
        from,
        data,
        source,
        secrets,
        known,
    } = restore;
    let (_folder, keystore) = {
        let data = data.clone();
        blocking(move || take_folder(&data, source.as_ref(), &secrets)).await?
    };
    let store = blocking(move || Ok(from.open(false)?)).await?;
    let record = CopyRecord::read(&*store).await?;
    if record.keystore != keystore.id().to_string() {
        let found = record.keystore;
        return Err(ReplicaError::ForeignCopy { found }.into());
    }
    let copy = Copy::new(store, record.copy, &keystore.system_key());
    let reader = CopyReader::newest(copy, known.as_ref()).await?;
    let head = reader.head().clone();
    if head.as_of_ms == 0 {
        let problem = "the copy was never complete: there is nothing to restore yet";
        return Err(target(&data, problem));
    }
    let mark = BackupRecord::begun(keystore.id(), rfc3339(head.as_of_ms));
    mark.write(&data)?;
    let mut work = Work {
        reader: &reader,
        data: &data,
        blob_count: 0,
        fetched_bytes: 0,
    };
    let mut bucket_count = 0;
    for (id, state) in &head.buckets {
        let Some(bucket) = BucketId::from_hex(id) else {
            continue;
        };
        if !keystore.holds_bucket(bucket) {
            told(RestoreEvent::NoKey { bucket: id.clone() });
            continue;
        }
        work.bucket(bucket, state, &keystore, &mut told).await?;
        bucket_count += 1;
    }
    work.files().await?;
    let (blob_count, fetched_bytes) = (work.blob_count, work.fetched_bytes);
    let generation = keystore.generation();
    mark.complete(&data, generation)?;
    told(RestoreEvent::Done {
        head: reader.known().clone(),
        as_of_ms: head.as_of_ms,
        bucket_count,
        blob_count,
        fetched_bytes,
    });
    Ok(())
}

fn target(data: &Path, problem: &'static str) -> crate::error::VaultError {
    let path = data.display().to_string();
    CopyError::Target { path, problem }.into()
}

/// Takes a folder that holds a keystore and nothing else, or what an interrupted restore left.
fn take_folder(
    data: &Path,
    source: Option<&SourceSpec>,
    secrets: &SourceSecrets,
) -> Result<(Folder, Keystore)> {
    let no_keystore = "put the server's `keystore` there, with what opens it (`root.key`, \
                       `root.passphrase` and `keystore.source`, or name it by --root-key): a copy \
                       has no keys";
    if !data.join("keystore").exists() {
        return Err(target(data, no_keystore));
    }
    let is_going_on = BackupRecord::is_begun(data);
    for entry in fs::read_dir(data).map_err(failed("read", data))? {
        let name = entry.map_err(failed("read", data))?.file_name();
        let is_key = KEY_FILES.iter().any(|known| name == *known);
        if !is_going_on && !is_key {
            let problem = "it holds more than a keystore and what opens it: take a folder of its \
                           own";
            return Err(target(data, problem));
        }
    }
    let folder = Folder::open_existing(data)?;
    let keystore = KeyFolder::new(data).open_read_only(source, secrets)?;
    Ok((folder, keystore))
}

struct Work<'a> {
    reader: &'a CopyReader,
    data: &'a Path,
    blob_count: u64,
    fetched_bytes: u64,
}

impl Work<'_> {
    async fn bucket(
        &mut self,
        id: BucketId,
        state: &BucketState,
        keystore: &Keystore,
        told: &mut impl FnMut(RestoreEvent),
    ) -> Result<()> {
        let folder = self.data.join("buckets").join(id.to_string());
        let file = new_file(&folder, CATALOG_FILE)?;
        self.reader.catalog(id, state, Some(&file)).await?;
        drop(file);
        let key = keystore.bucket_key(id)?;
        let catalog = Catalog::open_read_only(&folder, &key.catalog_key()).await?;
        let blobs = BlobStore::new(&folder, id);
        let mut after = None;
        loop {
            let page = catalog.blobs_after(after).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            let this = &*self;
            let fetched =
                stream::iter(page.iter().copied()).map(|blob| this.blob(&blobs, id, blob));
            let mut fetched = fetched.buffer_unordered(COPY_BLOBS_AT_ONCE);
            let (mut blob_count, mut bytes) = (0, 0);
            while let Some(length_bytes) = fetched.try_next().await? {
                blob_count += 1;
                bytes += length_bytes;
                told(RestoreEvent::Progress {
                    blob_count: self.blob_count + blob_count,
                    fetched_bytes: self.fetched_bytes + bytes,
                });
            }
            drop(fetched);
            self.blob_count += blob_count;
            self.fetched_bytes += bytes;
        }
        catalog.close().await;
        let sync = move || {
            sync_folders(&folder)?;
            Ok(())
        };
        blocking(sync).await
    }

    /// Fetches a blob, unless it is there: it gets its name when it is whole and durable. How many
    /// bytes were fetched.
    async fn blob(
        &self,
        blobs: &BlobStore,
        bucket: BucketId,
        (id, plaintext_bytes): (BlobId, u64),
    ) -> Result<u64> {
        let path = blobs.path(id);
        let wanted_bytes = sealed_bytes(plaintext_bytes);
        let is_there = fs::metadata(&path).is_ok_and(|found| Some(found.len()) == wanted_bytes);
        if is_there {
            return Ok(0);
        }
        let (length_bytes, mut stream) = self.reader.blob(bucket, id).await?;
        if Some(length_bytes) != wanted_bytes {
            let object = CopyReader::blob_name(bucket, id);
            let problem = "it has another length";
            return Err(ReplicaError::Altered { object, problem }.into());
        }
        let folder = path.parent().unwrap_or(self.data);
        let name = format!("{id}.new");
        let mut file = new_file(folder, &name)?;
        let mut written_bytes = 0;
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            written_bytes += piece.len() as u64;
            file.write_all(&piece).map_err(failed("write", &path))?;
        }
        if written_bytes != length_bytes {
            let object = CopyReader::blob_name(bucket, id);
            let problem = "it is cut off";
            return Err(ReplicaError::Altered { object, problem }.into());
        }
        let unfinished = folder.join(name);
        let finish = move || {
            file.sync_all().map_err(failed("sync", &path))?;
            fs::rename(&unfinished, &path).map_err(failed("rename", &path))
        };
        blocking(finish).await?;
        Ok(length_bytes)
    }

    async fn files(&self) -> Result<()> {
        for (name, pieces) in &self.reader.head().files {
            let (folder, file_name) = match name.split_once('/') {
                Some(("audit", file)) => (self.data.join("audit"), file),
                None if ["system.db", "anchor"].contains(&name.as_str()) => {
                    (self.data.to_owned(), name.as_str())
                }
                // Of a later version.
                _ => continue,
            };
            let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            if !file_name.bytes().all(is_plain) || file_name.starts_with('.') {
                continue;
            }
            let mut file: File = new_file(&folder, file_name)?;
            let path = folder.join(file_name);
            for piece in pieces {
                let bytes = self.reader.piece(piece).await?;
                file.write_all(&bytes).map_err(failed("write", &path))?;
            }
            file.sync_all().map_err(failed("sync", &path))?;
            sync_folder(&folder).map_err(failed("sync", &folder))?;
        }
        sync_folder(self.data).map_err(failed("sync", self.data))?;
        tracing::debug!(at_ms = now_ms(), "files are restored");
        Ok(())
    }
}

/// Makes the names in a bucket's folder durable, and its own.
fn sync_folders(bucket: &Path) -> Result<()> {
    let synced = |path: &Path| sync_folder(path).map_err(failed("sync", path));
    let blobs = bucket.join("blobs");
    if blobs.exists() {
        for entry in fs::read_dir(&blobs).map_err(failed("read", &blobs))? {
            synced(&entry.map_err(failed("read", &blobs))?.path())?;
        }
        synced(&blobs)?;
    }
    synced(bucket)?;
    bucket.parent().map_or(Ok(()), synced)
}
