//! Reading a copy back: heads, files, catalogs, blobs, each checked against what names it.

use std::fs::File;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use coffer_durable::rfc3339;
use coffer_seal::{BlobId, BucketId};
use futures::{Stream, StreamExt};
use object_store::{ObjectStoreExt, path::Path};

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::head::{BucketState, Gap, Head, KnownHead, Piece, SegmentRef};
use crate::limits::{GAP_MIN_MS, PAGE_BYTES, PIECE_MAX_BYTES, SEGMENT_MAX_BYTES};
use crate::names;
use crate::segment;
use crate::store::{Copy, get};
use crate::write::{CopyWriter, check_known};

/// A copy as one of its heads has it.
pub struct CopyReader {
    copy: Copy,
    head: Head,
    known: KnownHead,
}

/// How a moment that was asked for, and the head that was found, are to each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Whether the copy has no later head.
    pub is_newest: bool,
    /// The gap that the moment is in.
    pub gap: Option<Gap>,
    /// Heads that were passed over, because they do not open.
    pub damaged: Vec<u64>,
    /// Where the head after the one that was found does not open: the time of which it can't be
    /// told what was acknowledged in it, nor that the store withholds no head.
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
    /// [`ReplicaError::NoCopy`] of one that has none; [`ReplicaError::RolledBack`].
    pub async fn newest(copy: Copy, known: Option<&KnownHead>) -> Result<Self> {
        let newest = copy.newest_head().await?;
        check_known(newest.as_ref().map(|(_, newest)| newest), known)?;
        let (head, known) = newest.ok_or(ReplicaError::NoCopy)?;
        Ok(Self { copy, head, known })
    }

    /// The head of a writer, of which nothing is read again.
    pub fn of(writer: &CopyWriter) -> Self {
        Self {
            copy: writer.copy().clone(),
            head: writer.head().clone(),
            known: writer.known().clone(),
        }
    }

    /// As it was at a moment, in milliseconds since 1970: the newest head of that moment or before,
    /// and what is known of the time between.
    ///
    /// # Errors
    /// As [`CopyReader::newest`]; [`ReplicaError::TooEarly`].
    pub async fn at(copy: Copy, known: Option<&KnownHead>, at_ms: i64) -> Result<(Self, Moment)> {
        let newest = Self::newest(copy, known).await?;
        let at = newest.copy.head_at(at_ms).await?;
        let mut damaged = at.damaged;
        let found = at.found.filter(|(head, _)| head.as_of_ms > 0);
        let Some((head, known)) = found else {
            return Err(newest.too_early(damaged.first().copied()).await?);
        };
        let mut moment = Moment {
            is_newest: true,
            gap: None,
            damaged: Vec::new(),
            unchecked: None,
        };
        if head.number < newest.head.number {
            // What shows that the store withholds none between.
            let next = newest.copy.head(head.number + 1).await;
            if matches!(next, Err(ReplicaError::Altered { .. })) {
                let (heads, gap) = newest.copy.damage_around(head.number + 1).await?;
                damaged.extend(heads);
                moment = Moment {
                    is_newest: false,
                    gap: None,
                    damaged: damaged.into_iter().collect(),
                    unchecked: Some(gap),
                };
                let copy = newest.copy;
                return Ok((Self { copy, head, known }, moment));
            }
            let (after, after_known) = next?;
            if after.previous != known.sha256 {
                return Err(ReplicaError::Altered {
                    object: names::head(after_known.number).to_string(),
                    problem: "it follows another head than the one before it",
                });
            }
            let gap = Gap {
                from_ms: after.after_ms,
                to_ms: after.as_of_ms,
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
        Ok((Self { copy, head, known }, moment))
    }

    /// Why there is nothing of a moment, where this head is damaged, if one is.
    async fn too_early(&self, damaged: Option<u64>) -> Result<ReplicaError> {
        if let Some(number) = damaged {
            let (heads, gap) = self.copy.damage_around(number).await?;
            return Ok(ReplicaError::Unreadable {
                first: *heads.start(),
                last: *heads.end(),
                from: rfc3339(gap.to_ms),
                newest: rfc3339(self.head.as_of_ms),
            });
        }
        Ok(ReplicaError::TooEarly {
            first: rfc3339(self.head.first_ms),
            kept: format!("{} s", self.head.keep_ms / 1_000),
            newest: rfc3339(self.head.as_of_ms),
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
        &self.head
    }

    /// Which head that is.
    pub fn known(&self) -> &KnownHead {
        &self.known
    }

    /// The next piece of a file.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn piece(&self, piece: &Piece) -> Result<Bytes> {
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

    /// Puts a catalog together in `to`, or only checks that it could be. Segments are read from the
    /// newest back to the base, each once: of each page the first that is met counts.
    ///
    /// # Errors
    /// [`ReplicaError::Missing`], [`ReplicaError::Altered`].
    pub async fn catalog(
        &self,
        bucket: BucketId,
        state: &BucketState,
        to: Option<&File>,
    ) -> Result<RestoredCatalog> {
        self.catalog_after(bucket, state, None, to).await
    }

    /// As [`CopyReader::catalog`], over what `to` holds of `before`, if the chain goes back to
    /// that: then only the segments behind it are read.
    ///
    /// # Errors
    /// As [`CopyReader::catalog`].
    pub async fn catalog_after(
        &self,
        bucket: BucketId,
        state: &BucketState,
        before: Option<&BucketState>,
        to: Option<&File>,
    ) -> Result<RestoredCatalog> {
        let mut next = Some(state.last.clone());
        let mut is_there = vec![false; state.page_count as usize];
        let (mut segment_count, mut missing) = (0, state.page_count);
        while let Some(reference) = next {
            if let Some(before) = before.filter(|before| before.last == reference) {
                // All pages that it had are there; those beyond were put since.
                let spare = is_there.iter().skip(before.page_count as usize);
                if spare.filter(|there| !**there).count() > 0 {
                    return Err(self.altered(bucket, &reference, "pages are missing behind it"));
                }
                break;
            }
            let segment = self.segment(bucket, &reference).await?;
            let description = segment.description;
            let is_fit = segment_count > 0
                || (description.is_last
                    && description.commits == state.commits
                    && description.page_count == state.page_count);
            if !is_fit {
                return Err(self.altered(bucket, &reference, "it is not what the head says of it"));
            }
            for (number, page) in segment.pages {
                // A catalog that has become shorter has no use for what was behind.
                let Some(there) = is_there.get_mut(number as usize - 1) else {
                    continue;
                };
                if !std::mem::replace(there, true) {
                    missing -= 1;
                    let offset_bytes = u64::from(number - 1) * PAGE_BYTES as u64;
                    to.map(|to| to.write_all_at(&page, offset_bytes))
                        .transpose()?;
                }
            }
            segment_count += 1;
            next = description.previous;
            if missing > 0 && next.is_none() {
                return Err(self.altered(bucket, &reference, "pages are missing before it"));
            }
            if segment_count > state.segment_count {
                return Err(self.altered(bucket, &reference, "there are more than the head says"));
            }
        }
        if let Some(to) = to {
            to.set_len(u64::from(state.page_count) * PAGE_BYTES as u64)?;
            to.sync_all()?;
        }
        Ok(RestoredCatalog {
            segment_count,
            page_count: state.page_count,
            commits: state.commits,
        })
    }

    async fn segment(&self, bucket: BucketId, reference: &SegmentRef) -> Result<segment::Segment> {
        let path = names::segment(bucket, reference.at);
        let bytes = get(&*self.copy.store, &path, SEGMENT_MAX_BYTES).await?;
        segment::read(&self.copy.key, (self.copy.id, bucket), reference, &bytes)
    }

    fn altered(
        &self,
        bucket: BucketId,
        reference: &SegmentRef,
        problem: &'static str,
    ) -> ReplicaError {
        ReplicaError::Altered {
            object: names::segment(bucket, reference.at).to_string(),
            problem,
        }
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
        let path: Path = names::blob(bucket, id);
        let found = match self.copy.store.get(&path).await {
            Err(object_store::Error::NotFound { .. }) => {
                return Err(ReplicaError::Missing {
                    object: path.to_string(),
                });
            }
            found => found?,
        };
        let length_bytes = found.meta.size;
        let bytes = found
            .into_stream()
            .map(|piece| piece.map_err(ReplicaError::from));
        Ok((length_bytes, bytes))
    }
}
