//! A write that waits in the queue of a catalog's writer.

use std::sync::Arc;

use tokio::sync::oneshot;

use crate::admission::{Admission, Admitted, Change, OverQuota, Settled};
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
    /// For it adds too much, and has done so.
    OverQuota(Box<OverQuota>),
    /// The transaction can't be committed.
    Failed,
}

pub(crate) struct Queued<T, F> {
    adds: bool,
    work: F,
    outcome: Option<Result<T>>,
    /// Who counts what it adds, and that it does.
    admission: Option<Arc<dyn Admission>>,
    admitted: Option<Admitted>,
    waiting: oneshot::Sender<Result<T>>,
}

impl<T, F> Queued<T, F> {
    pub(crate) fn new(
        adds: bool,
        work: F,
        admission: Option<Arc<dyn Admission>>,
        waiting: oneshot::Sender<Result<T>>,
    ) -> Self {
        Self {
            adds,
            work,
            outcome: None,
            admission,
            admitted: None,
            waiting,
        }
    }
}

impl<T: Send, F: FnMut(&Session) -> Result<T> + Send> Write for Queued<T, F> {
    fn adds(&self) -> bool {
        self.adds
    }

    fn run(&mut self, session: &Session) -> Ran {
        // What was admitted of it before was undone with its transaction.
        if let Some(admitted) = self.admitted.take() {
            admitted.settle(Settled::Undone);
        }
        let before = session.change();
        let mut outcome = (self.work)(session).map_err(|error| session.of_system(error));
        let change = session.change().since(before);
        if let (Ok(_), Some(admission)) = (&outcome, &self.admission)
            && change != Change::default()
        {
            match Admitted::admit(admission, change) {
                Ok(admitted) => self.admitted = Some(admitted),
                Err(over) => outcome = Err(StoreError::OverQuota(Box::new(over))),
            }
        }
        match self.outcome.insert(outcome) {
            Ok(_) => Ran::Done,
            Err(
                StoreError::PreconditionFailed
                | StoreError::NothingToMatch
                | StoreError::NoSuchUpload
                | StoreError::PartChanged { .. }
                | StoreError::OutOfRange,
            ) => Ran::Refused,
            Err(StoreError::OverQuota(over)) => Ran::OverQuota(over.clone()),
            Err(_) => Ran::Failed,
        }
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let settled = match failed {
            None => Settled::Done,
            Some(StoreError::InDoubt) => Settled::InDoubt,
            Some(_) => Settled::Undone,
        };
        match (self.admitted, self.admission) {
            (Some(admitted), _) => admitted.settle(settled),
            (None, Some(admission)) if settled == Settled::InDoubt => admission.doubted(),
            (None, _) => {}
        }
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
        if let Ran::OverQuota(over) = ran {
            return Err(StoreError::OverQuota(over));
        }
        if ran == Ran::Failed || (ran == Ran::Refused && has_changed) {
            return Err(StoreError::Broken);
        }
    }
    Ok(())
}
