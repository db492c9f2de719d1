//! Writing a blob: plaintext in, sealed chunks into its file.

use bytes::Bytes;
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES, TAG_BYTES};
use coffer_seal::{BlobId, Context, SealError, Sealer, SecretKey};

use crate::blobs::buffers::Buffer;
use crate::blobs::folder::BlobStore;
use crate::blobs::in_flight::{BlobFile, FinishedBlob};
use crate::error::{Result, StoreError};

impl BlobStore {
    /// Begins a blob with a new random id, sealed under `data_key`. Its file is made with the
    /// first bytes that are written to it.
    ///
    /// # Errors
    /// None so far; what the disk says comes from the writer.
    pub fn create(&self, data_key: &SecretKey) -> Result<BlobWriter> {
        let mut file = BlobFile::new(self);
        let sealer = Sealer::new(data_key, &Context::blob(self.inner.bucket, file.id()));
        let mut out = file.buffer();
        out[..HEADER_BYTES].copy_from_slice(sealer.header());
        Ok(BlobWriter {
            file,
            sealer,
            plaintext_bytes: 0,
            out,
            filled: HEADER_BYTES,
            begun: 0,
        })
    }
}

/// A blob being written. Dropping it removes its file.
pub struct BlobWriter {
    file: BlobFile,
    sealer: Sealer,
    plaintext_bytes: u64,
    /// The first `filled` bytes are sealed and still to be written. Behind them lie `begun` bytes
    /// of a chunk that is still arriving, which will be sealed where it lies.
    out: Buffer,
    filled: usize,
    begun: usize,
}

impl BlobWriter {
    /// The blob's id.
    pub fn id(&self) -> BlobId {
        self.file.id()
    }

    /// Seals the bytes that come next.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::Io`]; the blob can't be finished then.
    pub async fn write(&mut self, mut bytes: Bytes) -> Result<()> {
        self.plaintext_bytes += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.begun == 0 {
                self.room().await?;
                if bytes.len() >= CHUNK_BYTES {
                    let chunk = bytes.split_to(CHUNK_BYTES);
                    let sealed = &mut self.out[self.filled..self.filled + SEALED_CHUNK_BYTES];
                    self.sealer.seal_chunk(&chunk, sealed).map_err(no_room)?;
                    self.filled += SEALED_CHUNK_BYTES;
                    continue;
                }
            }
            let start = self.filled + self.begun;
            let piece = bytes.split_to(bytes.len().min(CHUNK_BYTES - self.begun));
            self.out.set_plaintext(self.filled..start + piece.len());
            self.out[start..start + piece.len()].copy_from_slice(&piece);
            self.begun += piece.len();
            if self.begun == CHUNK_BYTES {
                let chunk = &mut self.out[self.filled..self.filled + SEALED_CHUNK_BYTES];
                self.sealer.seal_chunk_in_place(chunk).map_err(no_room)?;
                self.out.set_plaintext(0..0);
                self.filled += SEALED_CHUNK_BYTES;
                self.begun = 0;
            }
        }
        Ok(())
    }

    /// Seals the last chunk and makes the whole file durable.
    ///
    /// # Errors
    /// As [`BlobWriter::write`]; nothing is left behind.
    pub async fn finish(mut self) -> Result<FinishedBlob> {
        if self.begun == 0 {
            self.room().await?;
        }
        let Self {
            file,
            sealer,
            plaintext_bytes,
            mut out,
            filled,
            begun,
        } = self;
        let end = filled + begun + TAG_BYTES;
        sealer
            .seal_last_in_place(&mut out[filled..end])
            .map_err(no_room)?;
        out.set_plaintext(0..0);
        file.finish(Some(out), end, plaintext_bytes).await
    }

    /// Makes room for one more sealed chunk; none may have begun.
    async fn room(&mut self) -> Result<()> {
        if self.filled + SEALED_CHUNK_BYTES > self.out.len() {
            self.filled = self.file.write_front(&mut self.out, self.filled).await?;
        }
        Ok(())
    }
}

/// The lengths are right, so it can only be that a blob has no room for more.
fn no_room(_: SealError) -> StoreError {
    StoreError::OutOfRange
}
