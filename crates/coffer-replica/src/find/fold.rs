//! What a log says as of one of its entries: the newest head, and what the records behind it add.
//!
//! Records say of a catalog from which commit to which their pages lead, so their order with a head
//! that was put together meanwhile does not matter: of each catalog the newest commit counts, and a
//! record that does not lead further is passed over.

use std::sync::Arc;

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::head::entry::{Body, Entry};
use crate::head::record::{Record, RecordedFiles};
use crate::head::{Covers, Head, KnownHead, Piece};
use crate::limits::HEADS_READ_AT_ONCE;
use crate::names::{self, Number};
use crate::store::Copy;

/// What a log holds as of an entry.
#[derive(Clone)]
pub(crate) struct State {
    /// All of it. What it says of chains of segments is what `base` says.
    pub(crate) head: Head,
    /// Which entry that is.
    pub(crate) known: KnownHead,
    /// The newest head.
    pub(crate) base: Arc<Head>,
    /// The records that it does not have in it for sure, in their order.
    pub(crate) records: Vec<Arc<Record>>,
}

impl Copy {
    /// What the log holds as of its newest entry; none of a copy that has none yet.
    pub(crate) async fn newest_state(&self) -> Result<Option<State>> {
        match self.newest_number().await? {
            Some(number) => Ok(Some(self.state_of(self.entry(number).await?).await?)),
            None => Ok(None),
        }
    }

    /// The newest head of up to an entry; none where it is out of the window.
    pub(crate) async fn base_of(&self, entry: &Entry) -> Result<Option<Arc<Head>>> {
        match entry.head() {
            Ok(head) => Ok(Some(head.clone())),
            Err(number) => match self.head(number).await {
                Ok((head, _)) => Ok(Some(Arc::new(head))),
                Err(ReplicaError::Missing { .. }) => Ok(None),
                Err(error) => Err(error),
            },
        }
    }

    /// What the log holds as of an entry.
    pub(crate) async fn state_of(&self, last: Entry) -> Result<State> {
        let base = match last.head() {
            Ok(head) => head.clone(),
            Err(number) => Arc::new(self.head(number).await?.0),
        };
        let from = base.covered() + 1;
        let numbers = (from..last.number()).collect::<Vec<_>>();
        let read = stream::iter(numbers).map(|number| self.recent_entry(number));
        let read = read.buffered(HEADS_READ_AT_ONCE);
        let mut entries: Vec<Entry> = read.try_collect().await?;
        let known = last.known.clone();
        entries.push(last);
        self.recent.lock().retain(|number, _| *number >= from);
        for pair in entries.windows(2) {
            if pair[1].previous() != pair[0].known.sha256 {
                return Err(ReplicaError::Altered {
                    object: names::head(pair[1].number()).to_string(),
                    problem: "it follows another entry than the one before it",
                });
            }
        }
        let records = entries.iter().filter_map(|entry| match &entry.body {
            Body::Head(_) => None,
            Body::Record(record) => Some(record.clone()),
        });
        let records = records.collect();
        State::fold(base, records, known)
    }

    /// Read once, and kept for as long as it is behind the newest head.
    async fn recent_entry(&self, number: u64) -> Result<Entry> {
        if let Some(entry) = self.recent.lock().get(&number) {
            return Ok(entry.clone());
        }
        let entry = self.entry(number).await?;
        self.recent.lock().insert(number, entry.clone());
        Ok(entry)
    }
}

impl State {
    /// Adds records to a head, which are behind what it covers. `known`: the last of all of them.
    pub(crate) fn fold(
        base: Arc<Head>,
        records: Vec<Arc<Record>>,
        known: KnownHead,
    ) -> Result<Self> {
        let mut head = (*base).clone();
        for record in &records {
            add(&mut head, record)?;
        }
        Ok(Self {
            head,
            known,
            base,
            records,
        })
    }
}

fn altered(number: u64, problem: &'static str) -> ReplicaError {
    ReplicaError::Altered {
        object: names::head(number).to_string(),
        problem,
    }
}

fn add(head: &mut Head, record: &Record) -> Result<()> {
    let (place, holds) = (&record.place, &record.holds);
    for of in &holds.buckets {
        // One that the head does not have was deleted while the record was written.
        let Some(state) = head.buckets.get_mut(&of.bucket.to_string()) else {
            continue;
        };
        if of.commits <= state.commits {
            continue;
        }
        if of.since > state.commits {
            return Err(altered(
                place.number,
                "pages of a catalog are missing before it",
            ));
        }
        (state.commits, state.page_count) = (of.commits, of.page_count);
    }
    if let Some(files) = &holds.files {
        add_files(head, place.number, files)?;
    }
    if place.number > head.number {
        head.number = place.number;
        head.epoch = place.epoch;
        head.writer.clone_from(&place.writer);
        head.previous.clone_from(&place.previous);
        head.written_ms = place.written_ms;
        head.after_ms = holds.after_ms;
    }
    head.as_of_ms = head.as_of_ms.max(holds.as_of_ms);
    Ok(())
}

fn add_files(head: &mut Head, number: u64, files: &RecordedFiles) -> Result<()> {
    let covered = head.covered();
    let covers = head.covers.get_or_insert(Covers {
        number: covered,
        files: 0,
    });
    if files.number <= covers.files {
        return Ok(());
    }
    covers.files = files.number;
    for (name, from_bytes, bytes) in &files.parts {
        let pieces = head.files.entry(name.clone()).or_default();
        let Some(from_bytes) = *from_bytes else {
            *pieces = vec![carried(bytes.clone())];
            continue;
        };
        let there_bytes: u64 = pieces.iter().map(|piece| piece.bytes).sum();
        let Some(known_bytes) = there_bytes.checked_sub(from_bytes) else {
            return Err(altered(number, "a part of a file is missing before it"));
        };
        let known_bytes = usize::try_from(known_bytes).unwrap_or(usize::MAX);
        if known_bytes < bytes.len() {
            pieces.push(carried(bytes.slice(known_bytes..)));
        }
    }
    Ok(())
}

/// A piece that has no object of its own.
fn carried(bytes: Bytes) -> Piece {
    Piece {
        at: Number {
            epoch: 0,
            number: 0,
        },
        bytes: bytes.len() as u64,
        sha256: sha256_hex(&bytes),
        carried: Some(bytes),
    }
}
