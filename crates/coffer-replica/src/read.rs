//! Reading a copy back: heads, files, catalogs, blobs, each checked against what names it.

use bytes::Bytes;
use coffer_durable::rfc3339;
use coffer_seal::{BlobId, BucketId};
use futures::Stream;

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::find::fold::State;
use crate::head::{Gap, Head, KnownHead, Piece};
use crate::limits::{GAP_MIN_MS, PIECE_MAX_BYTES};
use crate::names;
use crate::store::blobs::BlobPlace;
use crate::store::{Copy, get};
use crate::write::{CopyWriter, check_known};

mod catalogs;

/// A copy as one of its heads has it, or one of the records behind a head.
pub struct CopyReader {
    copy: Copy,
    state: State,
}

/// How a moment that was asked for, and the head that was found, are to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Whether the copy has no later head.
    pub is_newest: bool,
    /// The gap that the moment is in.
    pub gap: Option<Gap>,
    /// Heads that were passed over, because they do not open, or are gone.
    pub damaged: Vec<u64>,
    /// Where the head after the one that was found does not open, or is gone: the time of which it
    /// can't be told what was acknowledged in it, nor that the store withholds no head.
    pub unchecked: Option<Gap>,
}

/// A catalog that was put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestoredCatalog {
    /// How many segments were read.
    pub segment_count: u32,
    /// How many pages it has.
    pub page_count: u32,
    /// How many commits it has had.
    pub commits: u64,
}

impl CopyReader {
    /// The newest head, which is `known` or a later one.
    ///
    /// # Errors
    /// [`ReplicaError::NoHeads`] of one that has none; [`ReplicaError::RolledBack`].
    pub async fn newest(copy: Copy, known: Option<&KnownHead>) -> Result<Self> {
        let newest = copy.newest_state().await?;
        check_known(newest.as_ref().map(|newest| &newest.known), known)?;
        let state = newest.ok_or(ReplicaError::NoHeads)?;
        Ok(Self { copy, state })
    }

    /// The head of a writer, of which nothing is read again.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`], where records do not fit it.
    pub fn of(writer: &CopyWriter) -> Result<Self> {
        let (copy, state) = (writer.copy().clone(), writer.state()?);
        Ok(Self { copy, state })
    }

    /// As it was at a moment, in milliseconds since 1970: the newest head of that moment or before,
    /// and what is known of the time between.
    ///
    /// # Errors
    /// As [`CopyReader::newest`]; [`ReplicaError::TooEarly`].
    pub async fn at(copy: Copy, known: Option<&KnownHead>, at_ms: i64) -> Result<(Self, Moment)> {
        let newest = Self::newest(copy, known).await?;
        let at = newest.copy.entry_at(at_ms).await?;
        let mut damaged = at.damaged;
        let found = at.found.filter(|entry| entry.as_of_ms() > 0);
        let Some(found) = found else {
            return Err(newest.too_early(damaged.first().copied()).await?);
        };
        if newest.copy.base_of(&found).await?.is_none() {
            // What is left of before the oldest head.
            return Err(newest.too_early(None).await?);
        }
        let (number, sha256) = (found.number(), found.known.sha256.clone());
        let state = newest.copy.state_of(found).await?;
        let mut moment = Moment {
            is_newest: true,
            gap: None,
            damaged: Vec::new(),
            unchecked: None,
        };
        if number < newest.known().number {
            // What shows that the store withholds none between.
            let next = newest.copy.entry(number + 1).await;
            if matches!(
                next,
                Err(ReplicaError::Altered { .. } | ReplicaError::Missing { .. })
            ) {
                let (heads, gap) = newest.copy.damage_around(number + 1).await?;
                damaged.extend(heads);
                moment = Moment {
                    is_newest: false,
                    gap: None,
                    damaged: damaged.into_iter().collect(),
                    unchecked: Some(gap),
                };
                let copy = newest.copy;
                return Ok((Self { copy, state }, moment));
            }
            let after = next?;
            if after.previous() != sha256 {
                return Err(ReplicaError::Altered {
                    object: names::head(after.number()).to_string(),
                    problem: "it follows another head than the one before it",
                });
            }
            let gap = Gap {
                from_ms: after.after_ms(),
                to_ms: after.as_of_ms(),
            };
            let is_in_gap = at_ms > gap.from_ms && gap.to_ms - gap.from_ms > GAP_MIN_MS;
            moment = Moment {
                is_newest: false,
                gap: is_in_gap.then_some(gap),
                ..moment
            };
        }
        moment.damaged = damaged.into_iter().collect();
        let copy = newest.copy;
        Ok((Self { copy, state }, moment))
    }

    /// Why there is nothing of a moment, where this head is damaged, if one is.
    async fn too_early(&self, damaged: Option<u64>) -> Result<ReplicaError> {
        if let Some(number) = damaged {
            let (heads, gap) = self.copy.damage_around(number).await?;
            return Ok(ReplicaError::Unreadable {
                first: *heads.start(),
                last: *heads.end(),
                from: rfc3339(gap.to_ms),
                newest: rfc3339(self.head().as_of_ms),
            });
        }
        Ok(ReplicaError::TooEarly {
            first: rfc3339(self.head().first_ms),
            kept: format!("{} s", self.head().keep_ms / 1_000),
            newest: rfc3339(self.head().as_of_ms),
        })
    }

    /// Whether the copy has this very head; false when it is out of the window.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`] when it has another one in its place; [`ReplicaError::Missing`].
    pub async fn has(&self, known: &KnownHead) -> Result<bool> {
        self.copy.is_there(known).await
    }

    /// The copy.
    pub fn copy(&self) -> &Copy {
        &self.copy
    }

    /// Whether the newest head lacks this bucket: what is of it was removed, or is soon.
    ///
    /// # Errors
    /// Of the store.
    pub async fn is_removed(&self, bucket: BucketId) -> Result<bool> {
        let newest = self.copy.newest_head().await?;
        let has = |(head, _): &(Head, _)| head.buckets.contains_key(&bucket.to_string());
        Ok(!newest.as_ref().is_some_and(has))
    }

    /// What it holds.
    pub fn head(&self) -> &Head {
        &self.state.head
    }

    /// Which head that is.
    pub fn known(&self) -> &KnownHead {
        &self.state.known
    }

    /// The next piece of a file.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn piece(&self, piece: &Piece) -> Result<Bytes> {
        if let Some(carried) = &piece.carried {
            return Ok(carried.clone());
        }
        let path = names::piece(piece.at);
        let bytes = get(&*self.copy.store, &path, PIECE_MAX_BYTES as u64).await?;
        if sha256_hex(&bytes) != piece.sha256 || bytes.len() as u64 != piece.bytes {
            return Err(ReplicaError::Altered {
                object: path.to_string(),
                problem: "its hash is another one",
            });
        }
        Ok(bytes)
    }

    /// The name of a blob's object, for messages.
    pub fn blob_name(bucket: BucketId, id: BlobId) -> String {
        names::blob(bucket, id).to_string()
    }

    /// A blob: its length, and its bytes as they come. Whether they are the blob's is told by its
    /// data key only.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`].
    pub async fn blob(
        &self,
        bucket: BucketId,
        id: BlobId,
    ) -> Result<(
        u64,
        impl Stream<Item = Result<Bytes>> + Send + Unpin + use<>,
    )> {
        let place = BlobPlace::new(self.copy.store.clone());
        let found = place.blob(bucket, id).await?;
        Ok((found.length_bytes, found.bytes))
    }
}
