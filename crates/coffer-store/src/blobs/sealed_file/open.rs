//! Opening a blob's file: the one place where a blob that is not in its folder is looked for
//! elsewhere, if the folder is a cache.

use std::fs::File;

use coffer_seal::limits::HEADER_BYTES;
use coffer_seal::{BlobId, Opener, SecretKey, sealed_bytes};
use rustix::io::Errno;

use crate::blobs::cache::{BlobCache, Use};
use crate::blobs::folder::BlobStore;
use crate::blobs::sealed_file::{Opened, open_cached, open_waiting};
use crate::database::readers::blocking;
use crate::error::{Result, StoreError};

/// A blob's file, open for reading.
pub(crate) struct OpenBlob {
    /// None, where there is no place for it: it is read from where it comes from.
    pub(crate) file: Option<File>,
    pub(crate) header: [u8; HEADER_BYTES],
    /// How long the file is, or will be when all of it has come.
    pub(crate) file_bytes: u64,
    /// Of a blob in a cache.
    pub(crate) used: Option<Use>,
}

impl BlobStore {
    /// Opens the file of a blob of which the catalog says that it holds `plaintext_bytes`, and its
    /// header under its data key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`]; [`StoreError::NotFetched`].
    pub(crate) async fn open_under(
        &self,
        id: BlobId,
        data_key: &SecretKey,
        plaintext_bytes: u64,
    ) -> Result<(OpenBlob, Opener)> {
        let mut is_again = false;
        loop {
            let opened = self.open_file(id, plaintext_bytes).await?;
            let (header, file_bytes) = (&opened.header, opened.file_bytes);
            if let Ok(opener) = Opener::new(data_key, &self.context(id), header, file_bytes) {
                return Ok((opened, opener));
            }
            // One that decayed in the cache is fetched anew.
            let goes = |used: &Use| used.is_bad() && used.coming.is_none();
            let goes = opened.used.as_ref().is_some_and(goes);
            if !goes || std::mem::replace(&mut is_again, true) {
                return Err(self.inner.damaged("blob: its header does not open", id));
            }
        }
    }

    /// Opens the file of a blob of which the catalog says that it holds `plaintext_bytes`.
    pub(crate) async fn open_file(&self, id: BlobId, plaintext_bytes: u64) -> Result<OpenBlob> {
        if let Some(cache) = &self.inner.cache {
            return self.open_in(cache, id, plaintext_bytes).await;
        }
        let found = self.open_there(id).await?;
        let (file, header, file_bytes) = found.map_err(|error| self.not_opened(id, error))?;
        if sealed_bytes(plaintext_bytes) != Some(file_bytes) {
            return Err(self.inner.damaged("blob: its file has another length", id));
        }
        Ok(OpenBlob {
            file: Some(file),
            header,
            file_bytes,
            used: None,
        })
    }

    async fn open_there(&self, id: BlobId) -> Result<Opened> {
        let path = self.path(id);
        // Without a hop when the kernel knows the path and has the header.
        match open_cached(&path) {
            Some(opened) => Ok(opened),
            None => blocking(move || Ok(open_waiting(&path))).await,
        }
    }

    fn not_opened(&self, id: BlobId, error: Errno) -> StoreError {
        match error {
            Errno::NOENT => self.inner.damaged("blob: its file is missing", id),
            error => self.inner.failed("open a blob", id, error),
        }
    }

    /// Opens a file that is in a cache, or comes into it.
    async fn open_in(&self, cache: &BlobCache, id: BlobId, plaintext: u64) -> Result<OpenBlob> {
        let key = (self.inner.bucket, id);
        let wanted_bytes = sealed_bytes(plaintext).ok_or(StoreError::OutOfRange)?;
        let mut known = cache.hold(key);
        loop {
            if let Some(used) = known.take_if(|used| used.coming.is_some()) {
                return self.open_coming(id, used, wanted_bytes).await;
            }
            let what = match self.open_there(id).await? {
                Ok((file, header, file_bytes)) if file_bytes == wanted_bytes => {
                    let used = known.unwrap_or_else(|| cache.adopt(key, file_bytes));
                    return Ok(OpenBlob {
                        file: Some(file),
                        header,
                        file_bytes,
                        used: Some(used),
                    });
                }
                Ok(_) => "blob: its file has another length",
                Err(Errno::NOENT) => "blob: its file is missing",
                // A disk that can't read it may take it anew.
                Err(Errno::IO) if known.is_some() => "blob: its file can't be read",
                Err(error) => return Err(self.inner.failed("open a blob", id, error)),
            };
            if let Some(used) = known.take()
                && !used.goes()
            {
                return Err(self.inner.damaged(what, id));
            }
            known = Some(cache.fetch(key, wanted_bytes));
        }
    }

    async fn open_coming(&self, id: BlobId, used: Use, file_bytes: u64) -> Result<OpenBlob> {
        let coming = used.coming.clone().ok_or(StoreError::Closed)?;
        let header_bytes = (HEADER_BYTES as u64).min(file_bytes);
        let file = match coming.file(header_bytes).await {
            Err(_) if coming.is_not_kept() => None,
            file => Some(file?),
        };
        let mut header = [0; HEADER_BYTES];
        if let Some(file) = &file {
            let read = std::os::unix::fs::FileExt::read_exact_at(file, &mut header, 0);
            read.map_err(|error| self.inner.failed("read a blob", id, error))?;
        } else {
            let begin = used.part(0..header_bytes).await?;
            header[..begin.len()].copy_from_slice(&begin);
        }
        Ok(OpenBlob {
            file,
            header,
            file_bytes,
            used: Some(used),
        })
    }

    /// Whether a blob has the length that the catalog says, of which no more can be known without
    /// its data key.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] when the file is missing or has another length;
    /// [`StoreError::NotFetched`].
    pub async fn check_length(&self, id: BlobId, plaintext_bytes: u64) -> Result<()> {
        let path = self.path(id);
        let found = blocking(move || Ok(std::fs::metadata(path))).await?;
        let is_right = |length_bytes| sealed_bytes(plaintext_bytes) == Some(length_bytes);
        let key = (self.inner.bucket, id);
        let length_bytes = match (found, &self.inner.cache) {
            // One that was cut in the cache is there as a whole.
            (Ok(found), Some(cache)) if !is_right(found.len()) => {
                cache.length_at_source(key).await?
            }
            (Ok(found), _) => found.len(),
            (Err(error), Some(cache)) if error.kind() == std::io::ErrorKind::NotFound => {
                cache.length_at_source(key).await?
            }
            (Err(error), _) => {
                let error = Errno::from_io_error(&error).unwrap_or(Errno::IO);
                return Err(self.not_opened(id, error));
            }
        };
        if is_right(length_bytes) {
            Ok(())
        } else {
            Err(self.inner.damaged("blob: its file has another length", id))
        }
    }
}

impl OpenBlob {
    /// Waits until all of it is there.
    pub(crate) async fn whole(&self) -> Result<()> {
        match self.used.as_ref().and_then(|used| used.coming.as_ref()) {
            Some(coming) => coming.until(self.file_bytes).await,
            None => Ok(()),
        }
    }
}
