//! Where a log ends, for all that write it in this process: heads, and records between them.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::MutexGuard;

use super::CopyWriter;
use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::head::KnownHead;
use crate::head::entry::Entry;
use crate::limits::HEAD_MAX_BYTES;
use crate::names::{self, CopyId};
use crate::store::{Copy, get};

/// What was written last.
#[derive(Clone)]
pub(crate) struct Last {
    pub(crate) known: KnownHead,
    /// As of when that is.
    pub(crate) as_of_ms: i64,
    /// The newest head.
    pub(crate) head: u64,
}

/// The start of a writer that writes here.
pub(crate) struct Term {
    pub(crate) epoch: u32,
    pub(crate) writer: String,
    pub(crate) promotions: u32,
    pub(crate) is_of_engine: bool,
}

impl Term {
    /// What it means that another wrote this entry.
    pub(crate) fn ended_by(&self, entry: &Entry) -> ReplicaError {
        let number = entry.number();
        match entry.head() {
            // As often: that of another standby, which was faster than this one.
            Ok(head) if head.promotions > 0 && head.promotions >= self.promotions => {
                ReplicaError::Promoted { number }
            }
            Ok(head) if head.is_of_engine && !self.is_of_engine => {
                ReplicaError::OfEngine { number }
            }
            _ => ReplicaError::Fenced { number },
        }
    }
}

/// The end of a log. One thing is created there at a time, and the next when it is known what
/// became of that.
pub(crate) struct LogEnd {
    pub(crate) term: Term,
    turn: tokio::sync::Mutex<()>,
    last: Mutex<Last>,
}

/// What a writer wrote last, as far as it knows, also when it is gone. Clones are the same.
#[derive(Clone)]
pub struct WrittenEnd {
    copy: CopyId,
    end: Arc<LogEnd>,
}

impl WrittenEnd {
    /// Of a log that was whole, what was written last: what no answer came for does not count.
    pub(crate) fn known_in(&self, copy: CopyId) -> Option<KnownHead> {
        let last = self.end.last();
        (self.copy == copy && last.as_of_ms > 0).then_some(last.known)
    }
}

impl fmt::Debug for WrittenEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("WrittenEnd");
        told.field("known", &self.end.last().known)
            .finish_non_exhaustive()
    }
}

impl CopyWriter {
    /// What tells what this writes last.
    pub fn end(&self) -> WrittenEnd {
        WrittenEnd {
            copy: self.copy.id(),
            end: self.end.clone(),
        }
    }
}

/// What lies under a number whose creation was not acknowledged.
pub(crate) enum Settled {
    /// It is there, as it was to be created.
    Ours,
    /// An earlier attempt of this writer, which was answered as failed and came late: it is as
    /// good, and the next follows it.
    Earlier(Entry),
}

impl LogEnd {
    /// Behind an entry.
    pub(crate) fn behind(last: Last, term: Term) -> Arc<Self> {
        Arc::new(Self {
            term,
            turn: tokio::sync::Mutex::default(),
            last: Mutex::new(last),
        })
    }

    /// Waits until nothing else is being created.
    pub(crate) async fn turn(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().await
    }

    pub(crate) fn last(&self) -> Last {
        self.last.lock().clone()
    }

    /// This is the last now.
    pub(crate) fn went_on(&self, known: KnownHead, as_of_ms: i64, is_head: bool) {
        let mut last = self.last.lock();
        if is_head {
            last.head = known.number;
        }
        (last.known, last.as_of_ms) = (known, as_of_ms);
    }

    /// As [`LogEnd::went_on`], with what was found.
    pub(crate) fn found(&self, entry: &Entry) {
        let is_head = entry.head().is_ok();
        self.went_on(entry.known.clone(), entry.as_of_ms(), is_head);
    }

    /// What became of a creation that was not acknowledged.
    pub(crate) async fn settle(
        &self,
        copy: &Copy,
        created: Result<bool>,
        ours: &KnownHead,
    ) -> Result<Settled> {
        let number = ours.number;
        let found = match get(&*copy.store, &names::head(number), HEAD_MAX_BYTES).await {
            Err(ReplicaError::Missing { .. }) => {
                // It may still come: then the next attempt finds it.
                return created.and(Err(ReplicaError::NotDone(
                    "the store said that the next head is there already, and then that it is not",
                )));
            }
            found => found?,
        };
        if sha256_hex(&found) == ours.sha256 {
            return Ok(Settled::Ours);
        }
        let found = Entry::open(&copy.key, copy.id, number, &found)?;
        let is_own = found.writer() == self.term.writer;
        if is_own && found.previous() == self.last().known.sha256 {
            return Ok(Settled::Earlier(found));
        }
        Err(self.term.ended_by(&found))
    }
}
