//! The first start of an engine: the gateway that has the lease, and finds no log, makes one.

use std::time::Duration;

use coffer_replica::{CopyRecord, WrittenEnd};
use tokio::time::sleep;

use super::cache::note_log;
use crate::blocking::blocking;
use crate::copies::{CopyState, EngineSeat, LOG_NAME};
use crate::error::{CopyError, Result};
use crate::limits::{ANSWERS_STAND, ENGINE_FOUND_LOOKS_EVERY, ENGINE_KEEP_MS};
use crate::replica::NewCopy;
use crate::vault::Vault;

impl Vault {
    /// Whether the log of this engine is still kept up: if not, nothing is acknowledged any more.
    pub fn engine_goes_on(&self) -> bool {
        let copies = self.copies_now();
        let mut log = copies.iter().filter(|copy| copy.name == LOG_NAME);
        log.all(|copy| copy.state != CopyState::Stopped)
    }

    /// What this gateway writes last into the log, also when it serves no more.
    pub fn engine_end(&self) -> Option<WrittenEnd> {
        let running = self.inner.copies.running.lock();
        running.get(LOG_NAME)?.written.clone()
    }

    /// For how long it is this machine that keeps the log from being brought up, if it is: another
    /// gateway may be able to.
    pub fn engine_fails_here(&self) -> Option<Duration> {
        let running = self.inner.copies.running.lock();
        running.get(LOG_NAME)?.progress.has_failed_here()
    }

    /// Whether another gateway follows this one.
    pub fn has_followers(&self) -> bool {
        self.inner.followers.are_any()
    }

    /// Answers what waits for the log, where this gateway serves no more: it is in doubt.
    pub fn give_up_engine(&self) {
        for running in self.inner.copies.running.lock().values() {
            if let Some(synchronous) = &running.synchronous {
                synchronous.give_up();
            }
        }
    }

    /// Makes the log of this seat, and waits until it holds all that is here; one that was taken
    /// over is there, and that is recorded. Nothing is served before; where it fails, the vault is
    /// closed.
    ///
    /// # Errors
    /// [`CopyError`], where none can be made there.
    pub(crate) async fn found_engine(&self, seat: Option<&EngineSeat>) -> Result<()> {
        let Some(seat) = seat else {
            return Ok(());
        };
        if let Some(taken) = seat.taken_event() {
            // What the gateway before told those that follow may stand for so long: nothing is
            // shown here before.
            sleep(ANSWERS_STAND).await;
            if let Err(error) = self.inner.audit.record(taken).await {
                tracing::error!(%error, "the audit log can't say that this gateway took over");
            }
            return Ok(());
        }
        let made = self.make_log(seat).await;
        if made.is_err() {
            self.close().await;
        }
        made
    }

    async fn make_log(&self, seat: &EngineSeat) -> Result<()> {
        // One that was begun goes on.
        if seat.taken.is_none() {
            self.begin_log(seat).await?;
        }
        loop {
            let copies = self.copies_now();
            let log = copies.into_iter().find(|copy| copy.name == LOG_NAME);
            let log = log.ok_or(CopyError::NeverComplete)?;
            if log.sync.is_some_and(|sync| sync.since_ms.is_some()) {
                let (data, from) = (self.data().to_owned(), seat.from.clone());
                let id = self.inner.copies.registry.get(LOG_NAME)?.id;
                let record = CopyRecord::again(id, self.inner.keystore.id(), true);
                return blocking(move || note_log(&data, &from, record)).await;
            }
            seat.right.check()?;
            if log.state == CopyState::Stopped {
                return Err(CopyError::NeverComplete.into());
            }
            sleep(ENGINE_FOUND_LOOKS_EVERY).await;
        }
    }

    async fn begin_log(&self, seat: &EngineSeat) -> Result<()> {
        let sync = seat.sync();
        let new = NewCopy {
            name: LOG_NAME.to_owned(),
            url: seat.from.url().to_owned(),
            keep_ms: Some(ENGINE_KEEP_MS),
            sync: Some(Duration::from_millis(sync.wait_ms)),
        };
        let from = seat.from.clone();
        let store = blocking(move || Ok(from.open(true)?)).await?;
        // What a gateway left that was killed here before the log had a first head.
        CopyRecord::remove_begun(&*store).await?;
        seat.right.check()?;
        self.begin_copy(new, Some(seat.with_keystore())).await
    }
}
