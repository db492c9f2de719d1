//! A write that waits in the queue of a catalog's writer.

use tokio::sync::oneshot;

use crate::database::write_session::Session;
use crate::error::{Result, StoreError};

/// A queued write, and who waits for its outcome.
pub(crate) trait Write: Send {
    /// Whether it adds data, and is to be refused on a disk that is nearly full.
    fn adds(&self) -> bool;
    /// Does the work, within a transaction.
    fn run(&mut self, session: &Session) -> Ran;
    /// Tells the outcome: what `run` came to, unless the transaction failed.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

#[derive(PartialEq, Eq)]
pub(crate) enum Ran {
    /// It has done what it should.
    Done,
    /// For a reason of its own, which says nothing about the transaction.
    Refused,
    /// The transaction can't be committed.
    Failed,
}

pub(crate) struct Queued<T, F> {
    pub(crate) adds: bool,
    pub(crate) work: F,
    pub(crate) outcome: Option<Result<T>>,
    pub(crate) waiting: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&Session) -> Result<T> + Send> Write for Queued<T, F> {
    fn adds(&self) -> bool {
        self.adds
    }

    fn run(&mut self, session: &Session) -> Ran {
        let outcome = (self.work)(session).map_err(|error| session.of_system(error));
        match self.outcome.insert(outcome) {
            Ok(_) => Ran::Done,
            Err(
                StoreError::PreconditionFailed
                | StoreError::NoSuchUpload
                | StoreError::PartChanged { .. }
                | StoreError::OutOfRange,
            ) => Ran::Refused,
            Err(_) => Ran::Failed,
        }
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let outcome = match (failed, self.outcome) {
            // Its own failure tells more than that of the transaction that it broke. A refusal
            // counts only when the transaction in which it was found stands.
            (Some(StoreError::Broken), Some(Err(own))) => Err(own),
            (Some(error), _) => Err(error),
            (None, Some(outcome)) => outcome,
            (None, None) => Err(StoreError::Closed),
        };
        // The caller may have gone: what was committed stays committed.
        let _ = self.waiting.send(outcome);
    }
}

/// Runs all in the order in which they came; one that fails breaks the transaction.
pub(crate) fn run_all(session: &Session, batch: &mut [Box<dyn Write>]) -> Result<()> {
    for write in batch {
        let changes = session.total_changes();
        let ran = write.run(session);
        let has_changed = session.total_changes() != changes;
        if ran == Ran::Failed || (ran == Ran::Refused && has_changed) {
            return Err(StoreError::Broken);
        }
    }
    Ok(())
}
