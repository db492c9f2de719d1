//! The side of rounds in synchronous copies: what waits has them begin, and their ends answer it.

use std::time::Duration;

use coffer_durable::now_ms;

use super::Round;
use crate::blocking::blocking;
use crate::error::{Result, VaultError};
use crate::limits::COPY_SYNC_RETRY_MAX;

impl Round {
    /// Up to which ticket a round that begins now will have all.
    pub(in super::super) fn asked(&self) -> u64 {
        self.synchronous.as_ref().map_or(0, |copy| copy.asked())
    }

    /// A head has all up to this ticket. From the first on, acknowledgements wait.
    ///
    /// # Errors
    /// Where another may serve by now: then none is answered.
    pub(in super::super) async fn reach(&mut self, ticket: u64) -> Result<()> {
        let (Some(copy), Some(sync)) = (&self.synchronous, &mut self.entry.sync) else {
            return Ok(());
        };
        if sync.since_ms.is_none() {
            let inner = self.inner.upgrade().ok_or(VaultError::ShuttingDown)?;
            let (id, at_ms, noted) = (self.entry.id, now_ms(), inner.clone());
            blocking(move || noted.copies.registry.note_whole(id, at_ms)).await?;
            sync.since_ms = Some(at_ms);
            inner.copies.waited_for.add(copy.clone());
        }
        copy.reach(ticket)
    }

    /// Returns when an acknowledgement waits for a round.
    pub(in super::super) async fn one_waits(&self) {
        if let Some(records) = self.records().filter(|_| self.is_recording()) {
            return records.head_wanted().await;
        }
        match &self.synchronous {
            Some(copy) => copy.one_waits().await,
            None => std::future::pending().await,
        }
    }

    /// Whether it is the log of an engine.
    pub(in super::super) fn is_of_engine(&self) -> bool {
        let copy = self.synchronous.as_ref();
        copy.is_some_and(|copy| copy.is_of_engine())
    }

    /// Nothing more is acknowledged.
    pub(in super::super) fn give_up(&self) {
        if let Some(copy) = &self.synchronous {
            copy.give_up();
        }
    }

    /// How soon a round that failed is tried again.
    pub(in super::super) fn retry_after(&self, wait: Duration) -> Duration {
        match &self.synchronous {
            Some(_) => wait.min(COPY_SYNC_RETRY_MAX),
            None => wait,
        }
    }
}
