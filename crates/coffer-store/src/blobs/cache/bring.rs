//! Fetching a blob into a cache: under a name of its own until it is whole, and told of as it
//! comes.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use coffer_durable::check_own_folder;
use futures::StreamExt;

use crate::blobs::cache::coming::{Coming, Failed};
use crate::blobs::cache::index::Key;
use crate::blobs::cache::source::{ComingBlob, NotFetched};
use crate::blobs::cache::{BlobCache, UNFINISHED};
use crate::blobs::path::path_of;
use crate::database::readers::blocking;
use crate::free_space;
use crate::limits::CACHE_WRITE_BYTES;

/// Tells those who wait that a blob does not come, however what brings it ends.
struct Bringing(Arc<Coming>);

impl Drop for Bringing {
    fn drop(&mut self) {
        self.0.failed(Failed::GivenUp);
    }
}

impl BlobCache {
    /// Fetches a blob into the folder.
    pub(super) async fn bring(self, key: Key, bytes: u64, coming: Arc<Coming>) {
        let bringing = Bringing(coming.clone());
        match self.bring_into_place(key, bytes, &coming).await {
            Ok(placed) => {
                let is_wanted = self.0.index.lock().came(key, &coming);
                if let Some(path) = placed.filter(|_| !is_wanted) {
                    let _ = in_thread(move || fs::remove_file(path)).await;
                }
            }
            Err(failed) => {
                let (bucket, blob) = key;
                tracing::warn!(%bucket, %blob, ?failed, "a blob was not fetched");
                self.0.failures.fetch_add(1, Ordering::Relaxed);
                // First, so that who asks after having heard of it has it fetched anew.
                self.0.index.lock().failed(key, &coming);
                coming.failed(failed);
            }
        }
        drop(bringing);
        let _ = blocking(move || Ok(self.make_room(0))).await;
    }

    /// Where it is then; nowhere, if it is not wanted any more.
    async fn bring_into_place(
        &self,
        key: Key,
        bytes: u64,
        coming: &Arc<Coming>,
    ) -> Result<Option<PathBuf>, Failed> {
        let permit = self.0.fetches.acquire().await;
        let _permit = permit.map_err(|_| Failed::GivenUp)?;
        let (bucket, id) = key;
        let found = self.0.source.fetch(bucket, id);
        let found = found.await.map_err(Failed::Source)?;
        if found.length_bytes != bytes {
            return Err(Failed::Altered(
                "blob: its store has it with another length",
            ));
        }
        self.0.index.lock().comes(key, coming, bytes);
        let number = self.0.fetch_count.fetch_add(1, Ordering::Relaxed);
        let name = format!("{bucket}-{id}-{number}");
        let unfinished = Unfinished(self.0.folder.join(UNFINISHED).join(name));
        let (this, path) = (self.clone(), unfinished.0.clone());
        let file = in_thread(move || {
            this.assure_fits(bytes)?;
            this.make_room(bytes);
            // What is kept free is for what takes data away.
            if free_space::room_bytes_at(&this.0.folder) < bytes {
                return Err(ErrorKind::StorageFull.into());
            }
            create(&path)
        })
        .await?;
        let shared = file.try_clone().map_err(failed)?;
        coming.begins(shared);
        let file = self.receive(key, found, file, coming).await?;
        let to = path_of(&self.blobs_of(bucket), id);
        let from = unfinished.0.clone();
        let (this, coming) = (self.clone(), coming.clone());
        in_thread(move || {
            // A file with its name is whole, whatever happens to the machine.
            file.sync_data()?;
            // Nor is it put over what was fetched anew because this one was found to be bad.
            if !this.0.index.lock().is_brought(key, &coming) {
                return Ok(None);
            }
            place(&from, &to)?;
            Ok(Some(to))
        })
        .await
    }

    /// Whether so much has room where all that may go is gone: else nothing is to go for it.
    fn assure_fits(&self, bytes: u64) -> std::io::Result<()> {
        let room_bytes = free_space::room_bytes_at(&self.0.folder);
        let fits = room_bytes >= bytes
            || room_bytes.saturating_add(self.0.index.lock().idle_bytes()) >= bytes;
        fits.then_some(())
            .ok_or_else(|| ErrorKind::StorageFull.into())
    }

    /// Writes what comes, and tells how far it is.
    async fn receive(
        &self,
        key: Key,
        found: ComingBlob,
        mut file: File,
        coming: &Arc<Coming>,
    ) -> Result<File, Failed> {
        let ComingBlob {
            length_bytes,
            mut bytes,
        } = found;
        let (mut there, mut is_over) = (0_u64, false);
        while !is_over {
            let (mut pieces, mut waiting) = (Vec::new(), 0);
            while waiting < CACHE_WRITE_BYTES {
                let Some(piece) = bytes.next().await else {
                    is_over = true;
                    break;
                };
                let piece = piece.map_err(Failed::Source)?;
                waiting += piece.len();
                pieces.push(piece);
            }
            there += waiting as u64;
            if there > length_bytes {
                return Err(Failed::Altered("blob: its store has more of it"));
            }
            if self.is_given_up(key, length_bytes, coming) {
                return Err(Failed::GivenUp);
            }
            let this = self.clone();
            file = in_thread(move || this.write(file, &pieces)).await?;
            self.0
                .fetched_bytes
                .fetch_add(waiting as u64, Ordering::Relaxed);
            coming.reached(there);
        }
        if there < length_bytes {
            let cut = NotFetched::Away("it ended before it was whole".to_owned());
            return Err(Failed::Source(cut));
        }
        Ok(file)
    }

    /// Whether none reads it any more, and it would not stay, or others wait.
    fn is_given_up(&self, key: Key, bytes: u64, coming: &Arc<Coming>) -> bool {
        let is_of_use = bytes <= self.0.max_bytes && self.0.fetches.available_permits() > 0;
        !is_of_use && self.0.index.lock().give_up(key, coming)
    }

    /// Writes pieces. Where the disk is full, others make room, as long as there are any.
    fn write(&self, mut file: File, pieces: &[Bytes]) -> std::io::Result<File> {
        // Others are fetched as well, and what is kept free is for what takes data away.
        while free_space::room_bytes_for(&file) == 0 {
            if !self.evict() {
                return Err(ErrorKind::StorageFull.into());
            }
        }
        for piece in pieces {
            let mut rest = &piece[..];
            while !rest.is_empty() {
                match file.write(rest) {
                    Ok(count) => rest = &rest[count..],
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) if is_full(&error) && self.evict() => {}
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(file)
    }
}

/// A file that is not whole. It is removed, unless it has another name by then.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn create(path: &Path) -> std::io::Result<File> {
    check_own_folder(path)?;
    let mut options = OpenOptions::new();
    let options = options.read(true).write(true).create(true).truncate(true);
    let options = options.mode(0o600);
    match (options.open(path), path.parent()) {
        (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
            match fs::create_dir(folder) {
                // Another fetch is the first as well.
                Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
                _ => options.open(path),
            }
        }
        (opened, _) => opened,
    }
}

/// Gives a file its name. A bucket whose folder is gone is not made anew.
fn place(from: &Path, to: &Path) -> std::io::Result<()> {
    check_own_folder(to)?;
    match (fs::rename(from, to), to.parent()) {
        (Err(error), Some(folder)) if error.kind() == ErrorKind::NotFound => {
            for folder in [folder.parent(), Some(folder)].into_iter().flatten() {
                match fs::create_dir(folder) {
                    Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error),
                    _ => {}
                }
            }
            fs::rename(from, to)
        }
        (renamed, _) => renamed,
    }
}

fn is_full(error: &std::io::Error) -> bool {
    let kinds = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    kinds.contains(&error.kind())
}

fn failed(error: std::io::Error) -> Failed {
    if is_full(&error) {
        Failed::Full
    } else {
        Failed::Disk(error.to_string())
    }
}

async fn in_thread<T: Send + 'static>(
    work: impl FnOnce() -> std::io::Result<T> + Send + 'static,
) -> Result<T, Failed> {
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Failed::GivenUp)?.map_err(failed)
}
