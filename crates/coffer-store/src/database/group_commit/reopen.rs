//! Beginning anew after a failure, and how far all has come then.

use std::sync::Arc;
use std::time::Instant;

use tokio::time::{self, timeout_at};

use super::{Shared, Writer};
use crate::database::readers::blocking;
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::limits::{SETTLE_WAIT, TIDY_AFTER};

impl Writer {
    /// Sees to it that those who read see what stands: what is in doubt is settled before.
    ///
    /// # Errors
    /// [`StoreError::InDoubt`] while that can't be done, [`StoreError::NoRoomForLog`].
    pub(crate) async fn settle(&self) -> Result<()> {
        if !self.0.connections.is_log_in_doubt() {
            return Ok(());
        }
        // Who waits for another holds no thread: many that wait for a disk would leave none for the
        // other buckets.
        let until = time::Instant::now() + SETTLE_WAIT;
        let turn = timeout_at(until, self.0.settler.clone().acquire_owned()).await;
        if !self.0.connections.is_log_in_doubt() {
            return Ok(());
        }
        let Ok(Ok(turn)) = turn else {
            return Err(StoreError::InDoubt);
        };
        let shared = self.0.clone();
        blocking(move || {
            let settled = shared.settle(until.into_std());
            drop(turn);
            settled
        })
        .await
    }
}

impl Shared {
    /// Another session, after the last one was let go of. A log in doubt is replaced by a durable
    /// copy first. Those who read use it until the copy is made, and wait while it takes its place.
    pub(super) fn reopen(&self) -> Result<Session> {
        let copy = self.connections.copy_log_in_doubt()?;
        let _paused = copy.is_some().then(|| self.readers.pause()).transpose()?;
        copy.map_or(Ok(()), |copy| self.connections.settle_log(copy))?;
        let (own_files, tapped) = (self.connections.own_files(), self.connections.tapped());
        let session = Session::new(self.connections.open()?, own_files, tapped)?;
        // What was in doubt may stand, and then readers see it. So it is in doubt until it is
        // counted, whatever fails before that.
        self.connections.believe_the_log();
        self.count(&session)?;
        Ok(session)
    }

    /// Finds out whether what is in doubt stands, as the next write would. Where a write, or who
    /// asked before, is at it for longer than `until`, it stays in doubt for who asks: who waits
    /// keeps a thread, which readers may need to end.
    pub(super) fn settle(self: &Arc<Self>, until: Instant) -> Result<()> {
        let session = self.session.try_lock_until(until);
        // A write may have done it meanwhile.
        if !self.connections.is_log_in_doubt() {
            return Ok(());
        }
        let mut session = session.ok_or(StoreError::InDoubt)?;
        // One that is closed may be opened anew by now: its log is that one's.
        self.connections.key()?;
        self.connections.assure_own_file()?;
        let _shows = self.connections.committing();
        match self.reopen() {
            Ok(reopened) => {
                // Old pages may be in the log.
                reopened.note_removed();
                *session = Some(reopened);
                self.tidy_after(TIDY_AFTER);
                Ok(())
            }
            // These tell of more than this commit, and don't pass.
            Err(
                error @ (StoreError::Closed
                | StoreError::NoRoomForLog { .. }
                | StoreError::Damaged { .. }),
            ) => Err(error),
            Err(error) => {
                tracing::error!(%error, "whether a commit to a catalog stands is not known yet");
                Err(StoreError::InDoubt)
            }
        }
    }

    /// Remembers how far all has come that is durable. Where that can't be told, the log is in
    /// doubt: readers may see more than is remembered.
    pub(super) fn count(&self, session: &Session) -> Result<()> {
        let count = session.commit_count();
        let count = count.inspect_err(|_| self.connections.doubt_the_log())?;
        self.newest.write(count);
        self.connections.committed(count);
        Ok(())
    }
}
