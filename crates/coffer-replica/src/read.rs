//! Reading a copy back: heads, files, catalogs, blobs, each checked against what names it.

use std::collections::BTreeSet;

use bytes::Bytes;
use coffer_durable::{rfc3339, stretch_exactly};
use coffer_seal::{BlobId, BucketId};
use futures::Stream;

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::find::fold::State;
use crate::head::entry::Entry;
use crate::head::{Gap, Head, KnownHead, Piece};
use crate::limits::{CLOCK_TOLD_WITHIN_MS, GAP_MIN_MS, PIECE_MAX_BYTES};
use crate::names;
use crate::store::blobs::BlobPlace;
use crate::store::{Copy, get};
use crate::write::{CopyWriter, check_known};

mod catalogs;

mod going_on;

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
    /// All that was acknowledged by then is there, in milliseconds since 1970, as far as it was
    /// before the moment.
    pub complete_ms: i64,
    /// Whether it can't be told what was at the moment.
    pub clock: Option<WrongClock>,
}

/// A time of which it can't be told which entry is of which moment: the clock of who wrote the copy
/// was put back from its end to its beginning. It was ahead before, or behind after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WrongClock {
    /// That time.
    pub time: Gap,
    /// What was written at the moment, or last before it, by the clock that was put back.
    pub head: KnownHead,
    /// When that was, in milliseconds since 1970.
    pub written_ms: i64,
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

/// What is behind an entry that was found.
enum Behind {
    /// What says until when that was all there was.
    Tells(Entry),
    /// Nothing says it yet.
    Silent,
    /// What has this number does not open, or is gone.
    Damaged(u64),
}

// Why what has a number can't be restored.
const GONE: &str = "the time that the copy keeps does not reach back to it any more";
const TO_COME: &str = "none of that number was written yet";
const EMPTY: &str = "it was written before the copy was complete for the first time, and holds \
                     nothing";

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

    /// As it was at a moment, in milliseconds since 1970: the newest head that has nothing from
    /// after it, and what is known of the time between.
    ///
    /// # Errors
    /// As [`CopyReader::newest`]; [`ReplicaError::TooEarly`].
    pub async fn at(copy: Copy, known: Option<&KnownHead>, at_ms: i64) -> Result<(Self, Moment)> {
        let newest = Self::newest(copy, known).await?;
        let at = newest.copy.entry_at(at_ms).await?;
        let damaged = at.damaged;
        let found = at.found.filter(|entry| entry.as_of_ms() > 0);
        let Some(found) = found else {
            return Err(newest.nothing_of(at_ms, damaged.first().copied()).await?);
        };
        if newest.copy.base_of(&found).await?.is_none() {
            // What is left of before the oldest head.
            return Err(newest.nothing_of(at_ms, None).await?);
        }
        let found_number = found.number();
        let mut moment = newest.moment(at_ms, &found, damaged).await?;
        moment.clock = newest.clock_at(at_ms, found_number).await?;
        let state = newest.copy.state_of(found).await?;
        let copy = newest.copy;
        Ok((Self { copy, state }, moment))
    }

    /// The head or record of this number.
    ///
    /// # Errors
    /// As [`CopyReader::newest`]; [`ReplicaError::NotKept`] where it is out of the window, or holds
    /// nothing; [`ReplicaError::Missing`] where it is to be there, [`ReplicaError::Altered`].
    pub async fn numbered(copy: Copy, known: Option<&KnownHead>, number: u64) -> Result<Self> {
        let reader = Self::newest(copy, known).await?;
        let copy = &reader.copy;
        let entry = match copy.entry(number).await {
            Err(missing @ ReplicaError::Missing { .. }) => {
                return Err(reader.not_there(number, missing).await?);
            }
            entry => entry?,
        };
        // Of a copy that was never complete more is said by who restores it.
        if entry.as_of_ms() == 0 && reader.head().as_of_ms > 0 {
            return Err(reader.not_kept(number, EMPTY).await?);
        }
        let state = copy.state_of(entry).await?;
        let copy = reader.copy;
        Ok(Self { copy, state })
    }

    /// What is said of a number that is not there: the store lost it only if the window has it.
    async fn not_there(&self, number: u64, missing: ReplicaError) -> Result<ReplicaError> {
        let (head, newest) = (self.head(), self.known().number);
        if number > newest {
            return self.not_kept(number, TO_COME).await;
        }
        let now_ms = (self.copy.clock)().max(head.as_of_ms);
        let horizon_ms = now_ms.saturating_sub(head.keep_ms);
        let lost = self.copy.missing_heads(newest, horizon_ms).await?;
        if lost.iter().any(|(numbers, _)| numbers.contains(&number)) {
            return Ok(missing);
        }
        self.not_kept(number, GONE).await
    }

    async fn not_kept(&self, number: u64, why: &'static str) -> Result<ReplicaError> {
        let newest = self.known().number;
        let first = self.copy.number_from(0).await?.unwrap_or(newest);
        Ok(ReplicaError::NotKept {
            number,
            why,
            first,
            newest,
        })
    }

    /// How what was found is to the moment that was asked for, and to what comes after it.
    async fn moment(
        &self,
        at_ms: i64,
        found: &Entry,
        mut damaged: BTreeSet<u64>,
    ) -> Result<Moment> {
        let number = found.number();
        let mut moment = Moment {
            is_newest: number >= self.known().number,
            gap: None,
            damaged: Vec::new(),
            unchecked: None,
            complete_ms: found.as_of_ms(),
            clock: None,
        };
        if !moment.is_newest {
            match self.behind(found).await? {
                Behind::Damaged(number) => {
                    let (heads, gap) = self.copy.damage_around(number).await?;
                    damaged.extend(heads);
                    moment.unchecked = Some(gap);
                }
                Behind::Silent => {}
                Behind::Tells(after) => {
                    moment.complete_ms = moment.complete_ms.max(after.after_ms()).min(at_ms);
                    let gap = Gap {
                        from_ms: after.after_ms(),
                        to_ms: after.until_ms(),
                    };
                    let is_in_gap = at_ms > gap.from_ms && gap.to_ms - gap.from_ms > GAP_MIN_MS;
                    moment.gap = is_in_gap.then_some(gap);
                }
            }
        }
        moment.damaged = damaged.into_iter().collect();
        Ok(moment)
    }

    /// What the entry behind this one says, which also shows that the store withholds none between.
    /// The first head of a start repeats what was there, however long that is ago: what was between
    /// is told by what comes behind it.
    async fn behind(&self, found: &Entry) -> Result<Behind> {
        let mut before = found.clone();
        while before.number() < self.known().number {
            let number = before.number() + 1;
            let after = match self.copy.entry(number).await {
                Err(ReplicaError::Altered { .. } | ReplicaError::Missing { .. }) => {
                    return Ok(Behind::Damaged(number));
                }
                after => after?,
            };
            if after.previous() != before.known.sha256 {
                return Err(ReplicaError::Altered {
                    object: names::head(number).to_string(),
                    problem: "it follows another head than the one before it",
                });
            }
            let is_start = after.epoch() > before.epoch() && after.head().is_ok();
            if !is_start {
                return Ok(Behind::Tells(after));
            }
            before = after;
        }
        Ok(Behind::Silent)
    }

    /// Whether the moment is of a time of which the clock does not tell; and what was written then
    /// behind the entry that was found.
    async fn clock_at(&self, at_ms: i64, found: u64) -> Result<Option<WrongClock>> {
        let head = self.head();
        let mut times = head.gaps.clone();
        let tells = |time: &Gap| time.to_ms == head.as_of_ms && time.from_ms <= head.written_ms;
        let is_told = times.iter().any(tells);
        // Of a version that did not name it.
        if head.is_behind() && !is_told {
            times.push(Gap {
                from_ms: at_ms.min(head.written_ms),
                to_ms: head.as_of_ms,
            });
        }
        // Records say nothing of it: the next head does.
        let begins = |time: &Gap| time.from_ms.saturating_sub(CLOCK_TOLD_WITHIN_MS);
        times.retain(|time| begins(time) <= at_ms && at_ms < time.to_ms);
        for time in times {
            let mut damaged = BTreeSet::new();
            let entry = self.copy.behind(time.to_ms, at_ms, &mut damaged).await?;
            if let Some(entry) = entry.filter(|entry| entry.number() > found) {
                let written_ms = entry.written_ms();
                let head = entry.known;
                let from_ms = time.from_ms.min(written_ms);
                return Ok(Some(WrongClock {
                    time: Gap { from_ms, ..time },
                    head,
                    written_ms,
                }));
            }
        }
        Ok(None)
    }

    /// Why there is nothing of a moment, where this head is damaged, if one is.
    async fn nothing_of(&self, at_ms: i64, damaged: Option<u64>) -> Result<ReplicaError> {
        if let Some(number) = damaged {
            let (heads, gap) = self.copy.damage_around(number).await?;
            return Ok(ReplicaError::Unreadable {
                first: *heads.start(),
                last: *heads.end(),
                from: rfc3339(gap.to_ms),
                newest: rfc3339(self.head().as_of_ms),
            });
        }
        if let Some(clock) = self.clock_at(at_ms, 0).await? {
            return Ok(ReplicaError::WrongClock {
                from: rfc3339(clock.time.from_ms),
                to: rfc3339(clock.time.to_ms),
                head: clock.head.number,
                written: rfc3339(clock.written_ms),
            });
        }
        Ok(ReplicaError::TooEarly {
            first: rfc3339(self.head().first_ms),
            kept: stretch_exactly(self.head().keep_ms.unsigned_abs() / 1_000),
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
