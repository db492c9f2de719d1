//! Opening blobs as a copy has them, or as they go there: in memory, chunk by chunk, and given to
//! no one.

use coffer_replica::{BlobCheck, CopyReader, ReplicaError};
use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES};
use coffer_seal::{BlobId, BucketId, Context, Opener, SecretKey, sealed_bytes};
use coffer_store::record::BlobRef;
use futures::StreamExt;
use zeroize::Zeroizing;

use crate::error::Result;

/// A blob that is opened as its bytes come.
pub(super) struct OpenedOnTheWay<'a> {
    key: &'a SecretKey,
    context: Context,
    length_bytes: u64,
    /// Once its header has come.
    opener: Option<Opener>,
    next_chunk: u64,
    /// The beginning of its header, or of the next chunk.
    begun: Vec<u8>,
    plaintext: Zeroizing<Vec<u8>>,
}

impl<'a> OpenedOnTheWay<'a> {
    /// A blob of which `length_bytes` are to come, sealed under its data key.
    pub(super) fn new(
        key: &'a SecretKey,
        (bucket, id): (BucketId, BlobId),
        length_bytes: u64,
    ) -> Self {
        Self {
            key,
            context: Context::blob(bucket, id),
            length_bytes,
            opener: None,
            next_chunk: 0,
            begun: Vec::new(),
            plaintext: Zeroizing::new(vec![0; CHUNK_BYTES]),
        }
    }

    /// How many bytes are opened next; none, when all were.
    fn wanted(&self) -> usize {
        let Some(opener) = &self.opener else {
            return HEADER_BYTES;
        };
        let range = opener.chunk_range(self.next_chunk);
        // A chunk is short.
        (range.end - range.start) as usize
    }

    /// Opens the header, or the next chunk.
    fn open(&mut self, sealed: &[u8]) -> std::result::Result<(), &'static str> {
        let Some(opener) = &self.opener else {
            let header = sealed.first_chunk().ok_or("it is cut off")?;
            let opener = Opener::new(self.key, &self.context, header, self.length_bytes);
            self.opener = Some(opener.map_err(|_| "it is not sealed under its key")?);
            return Ok(());
        };
        let opened = opener.open_chunk(self.next_chunk, sealed, &mut self.plaintext);
        opened.map_err(|_| "a chunk of it does not open")?;
        self.next_chunk += 1;
        Ok(())
    }
}

impl BlobCheck for OpenedOnTheWay<'_> {
    fn feed(&mut self, bytes: &[u8]) -> std::result::Result<(), &'static str> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let wanted = self.wanted();
            if wanted == 0 {
                return Err("it is longer than it was");
            }
            let missing = wanted.saturating_sub(self.begun.len());
            let (next, after) = rest.split_at(missing.min(rest.len()));
            rest = after;
            if next.len() == wanted {
                self.open(next)?;
                continue;
            }
            self.begun.extend_from_slice(next);
            if self.begun.len() == wanted {
                let begun = std::mem::take(&mut self.begun);
                self.open(&begun)?;
            }
        }
        Ok(())
    }

    fn end(&mut self) -> std::result::Result<(), &'static str> {
        (self.wanted() == 0).then_some(()).ok_or("it is cut off")
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
    let (length_bytes, mut bytes) = reader.blob(bucket, blob.id).await?;
    if sealed_bytes(blob.plaintext_bytes) != Some(length_bytes) {
        return Err(altered("it has another length").into());
    }
    let Some(key) = key else { return Ok(()) };
    let mut opened = OpenedOnTheWay::new(key, (bucket, blob.id), length_bytes);
    while let Some(piece) = bytes.next().await {
        opened.feed(&piece?).map_err(altered)?;
    }
    Ok(opened.end().map_err(altered)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use coffer_seal::seal;

    use super::*;

    const PLACE: (BucketId, BlobId) = (BucketId([1; 16]), BlobId([2; 16]));

    /// What is told of these bytes when they come so many at a time.
    fn told(key: &SecretKey, length: usize, sealed: &[u8], at_once: usize) -> Option<&'static str> {
        let mut opened = OpenedOnTheWay::new(key, PLACE, length as u64);
        for piece in sealed.chunks(at_once) {
            if let Err(problem) = opened.feed(piece) {
                return Some(problem);
            }
        }
        opened.end().err()
    }

    #[test]
    fn what_is_not_the_blob_is_told_however_its_bytes_come() {
        let key = SecretKey::generate();
        for plaintext_bytes in [0, 1, CHUNK_BYTES - 1, CHUNK_BYTES, 3 * CHUNK_BYTES + 5] {
            let context = Context::blob(PLACE.0, PLACE.1);
            let whole = seal(&key, &context, &vec![9; plaintext_bytes]);
            let length = whole.len();
            assert_eq!(sealed_bytes(plaintext_bytes as u64), Some(length as u64));
            for at_once in [1, 50, CHUNK_BYTES, length] {
                assert_eq!(told(&key, length, &whole, at_once), None, "{at_once}");
                for at in [0, HEADER_BYTES - 1, HEADER_BYTES, length / 2, length - 1] {
                    let mut bytes = whole.clone();
                    bytes[at] ^= 1;
                    assert!(told(&key, length, &bytes, at_once).is_some(), "{at}");
                }
                let longer = [&whole[..], &[0]].concat();
                let shorter = &whole[..length - 1];
                for bytes in [&longer[..], shorter, &whole[..HEADER_BYTES], &[]] {
                    assert!(told(&key, length, bytes, at_once).is_some(), "{at_once}");
                }
                assert!(told(&SecretKey::generate(), length, &whole, at_once).is_some());
            }
        }
    }
}
