//! Pieces of one whole, many at once, begun in order: the first failure ends the others.

use std::future::Future;
use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinError, JoinSet};

use crate::mover::error::MoverError;

/// Work on pieces.
pub(crate) struct Together<T> {
    permits: Arc<Semaphore>,
    tasks: JoinSet<Result<T, MoverError>>,
    done: Vec<T>,
    failure: Option<MoverError>,
}

impl<T: Send + 'static> Together<T> {
    /// As many at once as there are permits, which others may share.
    pub(crate) fn new(permits: &Arc<Semaphore>) -> Self {
        Self {
            permits: Arc::clone(permits),
            tasks: JoinSet::new(),
            done: Vec::new(),
            failure: None,
        }
    }

    /// Begins a piece that takes so many permits, as soon as it has them. False when one has
    /// failed: then no other is to be begun.
    pub(crate) async fn add<W>(
        &mut self,
        permits: u32,
        work: impl FnOnce(OwnedSemaphorePermit) -> W,
    ) -> bool
    where
        W: Future<Output = Result<T, MoverError>> + Send + 'static,
    {
        let waiting = Arc::clone(&self.permits).acquire_many_owned(permits);
        let mut waiting = std::pin::pin!(waiting);
        let permit = loop {
            tokio::select! {
                permit = &mut waiting => break permit,
                Some(done) = self.tasks.join_next() => self.take(done),
            }
            if self.failure.is_some() {
                return false;
            }
        };
        if let Ok(permit) = permit {
            self.tasks.spawn(work(permit));
        }
        true
    }

    fn take(&mut self, done: Result<Result<T, MoverError>, JoinError>) {
        match done.unwrap_or(Err(MoverError::Lost)) {
            Ok(piece) => self.done.push(piece),
            Err(error) if self.failure.is_none() => {
                self.failure = Some(error);
                self.tasks.abort_all();
            }
            Err(_) => {}
        }
    }

    /// Waits for all that were begun, so that none works any more, and gives what they gave, in any
    /// order.
    pub(crate) async fn all(mut self) -> Result<Vec<T>, MoverError> {
        while let Some(done) = self.tasks.join_next().await {
            self.take(done);
        }
        self.failure.map_or(Ok(self.done), Err)
    }
}
