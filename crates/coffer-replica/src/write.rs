//! Writing a copy: one writer at a time, which each start of one proves by an epoch of its own.

use std::sync::Arc;

use bytes::Bytes;
use coffer_seal::BucketId;
use object_store::path::Path;

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::find::fold::State;
use crate::head::entry::Entry;
use crate::head::record::Record;
use crate::head::{BucketState, Head, KnownHead, Piece, SegmentRef};
use crate::limits::{
    CHAIN_SEGMENTS_MAX, CHAIN_SPARE_BYTES, HEAD_MAX_BYTES, PIECE_MAX_BYTES, SEGMENT_PAGES_MAX,
};
use crate::names::{self, Number, RECORD};
use crate::segment::{self, Description};
use crate::store::{Copy, CopyRecord, create, get, remove};

mod blobs;

mod end;

mod records;

mod turns;

mod again;

pub use self::blobs::{BlobCheck, BlobPut};
pub use self::end::WrittenEnd;
use self::end::{Last, LogEnd, Settled, Term};
pub use self::records::RecordWriter;
use self::turns::Turn;
pub(crate) use self::turns::check_known;

/// The writer of a copy.
pub struct CopyWriter {
    pub(crate) copy: Copy,
    pub(crate) head: Head,
    end: Arc<LogEnd>,
    next: u64,
    /// The records that the log had behind its newest head when it was taken over.
    behind: Vec<Arc<Record>>,
}

/// Pages that make a segment.
pub struct NewSegment {
    /// How many commits the catalog had.
    pub commits: u64,
    /// How many pages it had.
    pub page_count: u32,
    /// Pages, with their numbers.
    pub pages: Vec<(u32, Vec<u8>)>,
    /// Whether the catalog is whole with them.
    pub is_last: bool,
}

/// A chain of segments that grows: what the next head says of a catalog.
impl BucketState {
    /// Whether the next segment should begin a new base.
    pub fn is_long(&self) -> bool {
        let whole_bytes = u64::from(self.page_count) * crate::limits::PAGE_BYTES as u64;
        let base_segments = 2 * (self.page_count / SEGMENT_PAGES_MAX as u32);
        self.segment_count >= base_segments + CHAIN_SEGMENTS_MAX
            || self.bytes > 2 * whole_bytes + CHAIN_SPARE_BYTES
    }
}

impl CopyWriter {
    /// Begins a copy in a place that has none, after it was tried whether the place is fit. One
    /// that is refused stays as it was.
    ///
    /// # Errors
    /// [`ReplicaError::Occupied`], [`ReplicaError::NoConditions`].
    pub async fn begin(copy: Copy, record: &CopyRecord) -> Result<Self> {
        let store = &*copy.store;
        let path = Path::from(RECORD);
        copy.check_free().await?;
        let text = record.bytes();
        // An answer that was lost makes this refuse a place that is fit: it can be asked again
        // under another URL.
        if !create(store, &path, text.clone()).await? {
            return Err(ReplicaError::Occupied);
        }
        if create(store, &path, text).await? {
            remove(store, &path).await?;
            return Err(ReplicaError::NoConditions);
        }
        let turn = if record.is_of_engine {
            Turn::Engine
        } else {
            Turn::Same
        };
        Self::take_over(copy, None, turn).await
    }

    /// What the copy holds.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The head, or record, that was written last.
    pub fn known(&self) -> KnownHead {
        self.end.last().known
    }

    /// Whether nothing stands behind what this wrote last. A head of which no answer came may.
    ///
    /// # Errors
    /// [`ReplicaError::Store`](crate::ReplicaError::Store), of a store that does not answer.
    pub async fn is_newest(&self) -> Result<bool> {
        Ok(self.copy.newest_number().await?.unwrap_or(0) <= self.known().number)
    }

    /// What the copy holds as of now, of which nothing is read again.
    pub(crate) fn state(&self) -> Result<State> {
        let base = Arc::new(self.head.clone());
        State::fold(base, self.behind.clone(), self.known())
    }

    /// The copy.
    pub fn copy(&self) -> &Copy {
        &self.copy
    }

    pub(crate) fn next_number(&mut self) -> Number {
        let number = self.next;
        self.next += 1;
        Number {
            epoch: self.head.epoch,
            number,
        }
    }

    /// Puts a segment behind another, or as the first of a base. It counts when a head names it.
    ///
    /// # Errors
    /// Of the store. The number is not used again then, whether it was put or not.
    pub async fn put_segment(
        &mut self,
        bucket: BucketId,
        before: Option<&BucketState>,
        new: NewSegment,
    ) -> Result<BucketState> {
        let number = self.next_number();
        let description = Description {
            previous: before.map(|before| before.last.clone()),
            commits: new.commits,
            page_count: new.page_count,
            is_last: new.is_last,
        };
        let place = (self.copy.id, bucket, number);
        let (bytes, last) = segment::write(&self.copy.key, place, &description, &new.pages)?;
        let length_bytes = bytes.len() as u64;
        self.create_new(&names::segment(bucket, number), bytes)
            .await?;
        Ok(next_state(before, last, number, length_bytes, &new))
    }

    /// Puts a piece of a file.
    ///
    /// # Errors
    /// As [`CopyWriter::put_segment`].
    pub async fn put_piece(&mut self, bytes: Vec<u8>) -> Result<Piece> {
        if bytes.len() > PIECE_MAX_BYTES {
            return Err(ReplicaError::TooLarge { what: "a piece" });
        }
        let piece = Piece {
            at: self.next_number(),
            bytes: bytes.len() as u64,
            sha256: sha256_hex(&bytes),
            carried: None,
        };
        self.create_new(&names::piece(piece.at), bytes).await?;
        Ok(piece)
    }

    pub(crate) async fn create_new(&self, path: &Path, bytes: Vec<u8>) -> Result<()> {
        if create(&*self.copy.store, path, bytes.into()).await? {
            return Ok(());
        }
        // Our own, of which the answer was lost, or not: it is not told apart, and not used.
        Err(ReplicaError::NotDone(
            "the store says that what was put is there already, as after an attempt of which the \
             answer was lost: it is put again under another name",
        ))
    }

    /// Writes the next head. With it, what `next` says is what the copy holds.
    ///
    /// # Errors
    /// [`ReplicaError::Fenced`]: this writer is to stop. After any other error the same can be
    /// tried again, but for those that say that the copy is not what this writer left.
    pub async fn commit(&mut self, next: Head) -> Result<()> {
        self.check_end().await?;
        self.append(next).await?;
        // Where there are records, no number is free for a day that was taken once.
        if self.head.covers.is_some() {
            return Ok(());
        }
        // Its number may have been free because it was collected: then others went on.
        match self.copy.newest_number().await? {
            Some(number) if number > self.known().number => Err(self.fenced_by(number).await),
            _ => Ok(()),
        }
    }

    /// Creates the next head, in its turn among records.
    async fn append(&mut self, next: Head) -> Result<()> {
        let end = self.end.clone();
        let _turn = end.turn().await;
        loop {
            let last = end.last();
            let number = last.known.number + 1;
            let mut head = Head {
                number,
                epoch: self.head.epoch,
                writer: self.head.writer.clone(),
                previous: last.known.sha256.clone(),
                written_ms: (self.copy.clock)(),
                next: self.next,
                ..next.clone()
            };
            head.follow(&self.head, last.as_of_ms);
            let (sealed, known) = head.seal(&self.copy.key, self.copy.id);
            if sealed.len() as u64 > HEAD_MAX_BYTES {
                return Err(ReplicaError::TooLarge { what: "a head" });
            }
            let created = create(&*self.copy.store, &names::head(number), sealed.into()).await;
            let settled = match created {
                Ok(true) => Settled::Ours,
                // In doubt, or there: it is read what lies there.
                created => end.settle(&self.copy, created, &known).await?,
            };
            match settled {
                Settled::Ours => {
                    end.went_on(known, head.as_of_ms, true);
                    self.head = head;
                    return Ok(());
                }
                Settled::Earlier(entry) => {
                    end.found(&entry);
                    if let Ok(head) = entry.head() {
                        self.head = Head::clone(head);
                    }
                }
            }
        }
    }

    /// Whether the copy is still there with the head that was written last: a disk that is not
    /// mounted any more leaves an empty folder, in which a head would name what is not there.
    /// False, of a log that has records: something that does not open lies in the place of what was
    /// written last, which who serves has, and is to say again in a head.
    ///
    /// # Errors
    /// What became of it.
    pub async fn check_end(&self) -> Result<bool> {
        let (store, known) = (&*self.copy.store, self.known());
        if known.number == 0 {
            return Ok(true);
        }
        self.copy.check_record().await?;
        let path = names::head(known.number);
        match get(store, &path, HEAD_MAX_BYTES).await {
            Ok(found) if sha256_hex(&found) == known.sha256 => Ok(true),
            // What opens is another writer's.
            Ok(found) if self.head.covers.is_some() && !self.opens(known.number, &found) => {
                Ok(false)
            }
            Ok(_) => Err(ReplicaError::Altered {
                object: path.to_string(),
                problem: "its hash is not the one that is known",
            }),
            Err(ReplicaError::Missing { .. }) => {
                let found = self.copy.newest_number().await?.unwrap_or(0);
                if found > known.number {
                    // Others went on, and collected it.
                    return Err(ReplicaError::Fenced { number: found });
                }
                let known = known.number;
                Err(ReplicaError::RolledBack { found, known })
            }
            Err(error) => Err(error),
        }
    }

    fn opens(&self, number: u64, found: &Bytes) -> bool {
        Entry::open(&self.copy.key, self.copy.id, number, found).is_ok()
    }
}

fn next_state(
    before: Option<&BucketState>,
    last: SegmentRef,
    number: Number,
    length_bytes: u64,
    new: &NewSegment,
) -> BucketState {
    BucketState {
        last,
        first: before.map_or(number, |before| before.first),
        commits: new.commits,
        page_count: new.page_count,
        segment_count: before.map_or(0, |before| before.segment_count) + 1,
        bytes: before.map_or(0, |before| before.bytes) + length_bytes,
    }
}
