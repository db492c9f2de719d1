//! Bytes on their way out: the blobs of an object, one after the other, opened chunk by chunk.

use std::collections::VecDeque;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use coffer_keys::BucketKey;
use coffer_seal::{BucketId, SecretKey};
use coffer_store::record::{BlobRef, Content};
use coffer_store::{BlobReader, ReadPin, StoreError};
use futures::{FutureExt, Stream, StreamExt};
use tokio::task::JoinHandle;

use crate::access::Reading;
use crate::counters::{Tally, add};
use crate::cutoff::SubjectCutoff;
use crate::error::{CustomerKeyError, Result, VaultError};
use crate::open_buckets::{CustomerKey, OpenBucket, UsedBucket, customer_key};

/// The selected bytes of an object, as a stream. It ends with an error before the first byte that
/// does not open; a front door that passes it on must then break off, not end well.
pub struct ObjectBody {
    remaining_bytes: u64,
    source: Unread,
    tally: Arc<Tally>,
    cutoff: Option<Arc<SubjectCutoff>>,
    /// That it is read, for the subject's mark.
    _reading: Option<Reading>,
}

enum Unread {
    Inline(Option<Bytes>),
    Blobs(Box<Blobs>),
}

/// The blobs that are still to be read. The pin keeps their files while another request deletes or
/// replaces the object.
struct Blobs {
    bucket: UsedBucket,
    keys: Keys,
    /// What was opened before the body was given out.
    first: Option<Bytes>,
    reader: Reader,
    later: VecDeque<(BlobRef, Range<u64>)>,
    _pin: ReadPin,
}

/// The bucket's key before and after the object was looked up. Should it be rotated meanwhile, one
/// of the two has the generation that wrapped each data key; and they stay what they are for
/// however long the body is read.
#[derive(Clone)]
pub(crate) struct Keys {
    before: BucketKey,
    after: BucketKey,
    /// The client's, where the object is sealed under one.
    customer: Option<CustomerKey>,
}

impl Keys {
    /// `before` is what [`OpenBucket::key`] gave before the catalog was asked; to be called after.
    pub(crate) fn around(before: BucketKey, bucket: &OpenBucket) -> Self {
        let after = bucket.key();
        Self {
            before,
            after,
            customer: None,
        }
    }

    /// Unwraps a blob's data key; none where it takes a client's key, and none is at hand.
    pub(crate) fn unwrap(
        &self,
        bucket: BucketId,
        blob: &BlobRef,
    ) -> Result<Option<SecretKey>, StoreError> {
        let unwrap = |key: &BucketKey| customer_key::unwrap(key, blob, self.customer.as_ref());
        let unwrapped = unwrap(&self.after).or_else(|_| unwrap(&self.before));
        unwrapped.map_err(|_| StoreError::Damaged {
            what: "data key",
            bucket,
            blob: Some(blob.id),
        })
    }
}

enum Reader {
    Reading(BlobReader),
    /// The next blob is being opened. A task, for a handle may be shared between threads as the
    /// front doors demand, and a future may not.
    Opening(JoinHandle<Result<BlobReader>>),
    Ended,
}

impl ObjectBody {
    /// A body over `range` of an object whose bytes are `content`; opens the first bytes, so that
    /// what is missing or altered there is an answer, not a broken connection. The keys
    /// are the bucket's from before the object was looked up, and the client's if it has one.
    pub(crate) async fn new(
        bucket: UsedBucket,
        (before, customer): (BucketKey, Option<CustomerKey>),
        pin: ReadPin,
        content: Content,
        range: Range<u64>,
        tally: Arc<Tally>,
    ) -> Result<Self> {
        let remaining_bytes = range.end - range.start;
        let source = match content {
            Content::Inline(bytes) => {
                let range = usize::try_from(range.start)
                    .and_then(|start| Ok(start..usize::try_from(range.end)?))
                    .map_err(|_| VaultError::Damaged)?;
                if range.end > bytes.len() {
                    return Err(VaultError::Damaged);
                }
                Unread::Inline(Some(bytes.slice(range)).filter(|bytes| !bytes.is_empty()))
            }
            Content::Blobs {
                first_offset_bytes,
                blobs,
            } => {
                let keys = Keys {
                    customer,
                    ..Keys::around(before, &bucket)
                };
                let later = select(first_offset_bytes, blobs, &range)?;
                Unread::Blobs(Box::new(
                    Blobs::begin(bucket, keys, later, pin, &tally).await?,
                ))
            }
        };
        Ok(Self {
            remaining_bytes,
            source,
            tally,
            cutoff: None,
            _reading: None,
        })
    }

    /// The body, for as long as the subject that asked for it may have it.
    pub(crate) fn while_allowed(
        mut self,
        cutoff: Arc<SubjectCutoff>,
        reading: Option<Reading>,
    ) -> Self {
        self.cutoff = Some(cutoff);
        self._reading = reading;
        self
    }

    /// How many bytes are still to come.
    pub fn remaining_bytes(&self) -> u64 {
        self.remaining_bytes
    }
}

/// The part of each blob that lies within `range` of the object; they must cover it.
pub(super) fn select(
    first_offset_bytes: u64,
    blobs: Vec<BlobRef>,
    range: &Range<u64>,
) -> Result<VecDeque<(BlobRef, Range<u64>)>> {
    let mut offset_bytes = first_offset_bytes;
    let mut selected = VecDeque::with_capacity(blobs.len());
    let mut covered_to = range.start;
    for blob in blobs {
        let start = range.start.max(offset_bytes);
        let end = range.end.min(offset_bytes + blob.plaintext_bytes);
        let blob_offset = offset_bytes;
        offset_bytes += blob.plaintext_bytes;
        if start < end {
            if start != covered_to {
                return Err(VaultError::Damaged);
            }
            covered_to = end;
            selected.push_back((blob, start - blob_offset..end - blob_offset));
        }
    }
    if covered_to < range.end {
        return Err(VaultError::Damaged);
    }
    Ok(selected)
}

async fn open(
    bucket: &OpenBucket,
    keys: &Keys,
    blob: &BlobRef,
    within: Range<u64>,
    tally: &Tally,
) -> Result<BlobReader> {
    let unwrapped = keys.unwrap(bucket.id, blob);
    let unwrapped = unwrapped.map_err(|error| count_damage(error, tally))?;
    let data_key = unwrapped.ok_or(CustomerKeyError::Missing)?;
    let open = async {
        let mut reader = bucket
            .blobs
            .open(blob.id, &data_key, blob.plaintext_bytes)
            .await?;
        reader.range(within)?;
        Ok(reader)
    };
    open.await
        .map_err(|error: StoreError| count_damage(error, tally))
}

/// Counts and logs what did not open.
pub(crate) fn count_damage(error: StoreError, tally: &Tally) -> VaultError {
    tally.met(&error);
    error.into()
}

impl Blobs {
    async fn begin(
        bucket: UsedBucket,
        keys: Keys,
        mut later: VecDeque<(BlobRef, Range<u64>)>,
        pin: ReadPin,
        tally: &Tally,
    ) -> Result<Self> {
        let (reader, first) = match later.pop_front() {
            Some((blob, within)) => {
                let mut reader = open(&bucket, &keys, &blob, within, tally).await?;
                let first = reader.next().await.transpose();
                let first = first.map_err(|error| count_damage(error, tally))?;
                (Reader::Reading(reader), first)
            }
            None => (Reader::Ended, None),
        };
        Ok(Self {
            bucket,
            keys,
            first,
            reader,
            later,
            _pin: pin,
        })
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        tally: &Arc<Tally>,
    ) -> Poll<Option<Result<Bytes>>> {
        if self.bucket.is_cut() && !matches!(self.reader, Reader::Ended) {
            self.end();
            return Poll::Ready(Some(Err(VaultError::NoSuchBucket)));
        }
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(first)));
        }
        loop {
            match &mut self.reader {
                Reader::Reading(reader) => match ready!(reader.poll_next_unpin(cx)) {
                    Some(Ok(bytes)) => return Poll::Ready(Some(Ok(bytes))),
                    Some(Err(error)) => {
                        self.end();
                        return Poll::Ready(Some(Err(count_damage(error, tally))));
                    }
                    None => self.reader = self.open_next(tally),
                },
                Reader::Opening(handle) => {
                    let opened = ready!(handle.poll_unpin(cx));
                    match opened.unwrap_or(Err(VaultError::ShuttingDown)) {
                        Ok(reader) => self.reader = Reader::Reading(reader),
                        Err(error) => {
                            self.end();
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                Reader::Ended => return Poll::Ready(None),
            }
        }
    }

    fn end(&mut self) {
        self.first = None;
        self.reader = Reader::Ended;
        self.later.clear();
    }

    fn open_next(&mut self, tally: &Arc<Tally>) -> Reader {
        let Some((blob, within)) = self.later.pop_front() else {
            return Reader::Ended;
        };
        let (bucket, keys, tally) = (self.bucket.clone(), self.keys.clone(), tally.clone());
        Reader::Opening(tokio::spawn(async move {
            open(&bucket, &keys, &blob, within, &tally).await
        }))
    }
}

impl Stream for ObjectBody {
    type Item = Result<Bytes>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        let is_cut = this.cutoff.as_ref().is_some_and(|cutoff| cutoff.is_cut());
        if is_cut && this.remaining_bytes > 0 {
            this.source = Unread::Inline(None);
            this.remaining_bytes = 0;
            return Poll::Ready(Some(Err(VaultError::AccessDenied)));
        }
        let item = match &mut this.source {
            Unread::Inline(bytes) => bytes.take().map(Ok),
            Unread::Blobs(blobs) => ready!(blobs.poll_next(cx, &this.tally)),
        };
        if let Some(Ok(bytes)) = &item {
            this.remaining_bytes -= bytes.len() as u64;
            add(&this.tally.read_bytes, bytes.len() as u64);
        }
        Poll::Ready(item)
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::BlobId;
    use coffer_store::record::WRAPPED_KEY_BYTES;
    use proptest::prelude::*;

    use super::*;

    fn blob(plaintext_bytes: u64) -> BlobRef {
        BlobRef {
            id: BlobId([0; 16]),
            plaintext_bytes,
            key_generation: 1,
            wrapped_key: [0; WRAPPED_KEY_BYTES].into(),
            checksum: None,
        }
    }

    proptest! {
        #[test]
        fn selected_pieces_are_exactly_the_range(
            sizes in prop::collection::vec(0u64..50, 1..8),
            a in 0u64..400,
            b in 0u64..400,
        ) {
            let total: u64 = sizes.iter().sum();
            let (start, end) = (a.min(b).min(total), a.max(b).min(total));
            let blobs = sizes.iter().map(|&size| blob(size)).collect();
            let pieces = select(0, blobs, &(start..end)).unwrap();
            let length: u64 = pieces.iter().map(|(_, within)| within.end - within.start).sum();
            prop_assert_eq!(length, end - start);
            prop_assert!(pieces.iter().all(|(blob, within)| within.end <= blob.plaintext_bytes));
        }

        #[test]
        fn a_gap_is_damage(size in 1u64..50, beyond in 1u64..50) {
            let selected = select(0, vec![blob(size)], &(0..size + beyond));
            prop_assert!(matches!(selected, Err(VaultError::Damaged)));
        }
    }
}
