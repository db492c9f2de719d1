//! Reading a copy's blobs: opened in memory chunk by chunk, and given to no one.

use bytes::Bytes;
use coffer_replica::{CopyReader, ReplicaError};
use coffer_seal::limits::{HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{BucketId, Context, Opener, SecretKey, sealed_bytes};
use coffer_store::record::BlobRef;
use futures::{Stream, StreamExt};
use zeroize::Zeroizing;

use crate::error::Result;

/// Bytes of a stream, so many at a time.
struct Pieces<S> {
    stream: S,
    waiting: Vec<u8>,
}

impl<S: Stream<Item = coffer_replica::Result<Bytes>> + Unpin> Pieces<S> {
    /// Fewer at the end of the stream only.
    async fn take(&mut self, length: usize) -> Result<Vec<u8>> {
        while self.waiting.len() < length {
            match self.stream.next().await {
                Some(piece) => self.waiting.extend_from_slice(&piece?),
                None => break,
            }
        }
        let rest = self.waiting.split_off(length.min(self.waiting.len()));
        Ok(std::mem::replace(&mut self.waiting, rest))
    }
}

/// Opens all of a blob as the copy has it. Without a key, for which a client's is needed, its
/// length is checked.
///
/// # Errors
/// When it is not there, or not what was written.
pub(super) async fn check_blob(
    reader: &CopyReader,
    bucket: BucketId,
    blob: &BlobRef,
    key: Option<&SecretKey>,
) -> Result<()> {
    let altered = |problem| ReplicaError::Altered {
        object: CopyReader::blob_name(bucket, blob.id),
        problem,
    };
    let (length_bytes, stream) = reader.blob(bucket, blob.id).await?;
    if sealed_bytes(blob.plaintext_bytes) != Some(length_bytes) {
        return Err(altered("it has another length").into());
    }
    let Some(key) = key else { return Ok(()) };
    let mut pieces = Pieces {
        stream,
        waiting: Vec::new(),
    };
    let header = pieces.take(HEADER_BYTES).await?;
    let header = header
        .first_chunk()
        .ok_or_else(|| altered("it is cut off"))?;
    let context = Context::blob(bucket, blob.id);
    let opener = Opener::new(key, &context, header, length_bytes)
        .map_err(|_| altered("it is not sealed under its key"))?;
    let mut plaintext = Zeroizing::new(vec![0; SEALED_CHUNK_BYTES]);
    for index in 0..opener.chunk_count() {
        let range = opener.chunk_range(index);
        let chunk = pieces.take((range.end - range.start) as usize).await?;
        let opened = opener.open_chunk(index, &chunk, &mut plaintext);
        opened.map_err(|_| altered("a chunk of it does not open"))?;
    }
    Ok(())
}
