//! A transfer whose bytes are being sent.

use coffer_store::{SegmentFile, StoreError};

use super::allowed::{Allowed, HasRight};
use super::table::Transfers;
use super::ticket::Ticket;
use super::waiting::{Waiting, WaitingSend};
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::limits::TICKET_TIME;
use crate::transfer_counters::TransferEnd;

/// Sealed bytes on their way to a client. Dropping it before its end counts it as cut.
pub struct Sending {
    waiting: WaitingSend,
    allowed: Allowed,
    end: TransferEnd,
}

impl Transfers {
    /// Has bytes wait to be sent, under a new ticket.
    pub(crate) fn wait_to_send(&self, waiting: WaitingSend) -> Ticket {
        let ticket = Ticket::random();
        self.wait(&ticket, Waiting::Send(Box::new(waiting)), TICKET_TIME);
        ticket
    }

    /// Takes what is to be sent for a ticket.
    pub(crate) fn take_to_send(&self, ticket: &Ticket) -> Option<WaitingSend> {
        self.take(ticket, |waiting| match waiting {
            Waiting::Send(waiting) => Ok(*waiting),
            other => Err(other),
        })
    }
}

impl Sending {
    /// `has_right` says whether its subject may still have the bytes.
    pub(crate) fn new(waiting: WaitingSend, has_right: HasRight) -> Self {
        Self {
            allowed: Allowed::new(&waiting.asker, has_right),
            waiting,
            end: TransferEnd::Cut,
        }
    }

    /// How many bytes all of it has.
    pub fn sealed_bytes(&self) -> u64 {
        self.waiting.sealed_bytes
    }

    /// Opens the next segment; none when all have been opened.
    ///
    /// # Errors
    /// [`VaultError::Damaged`], [`VaultError::NoSuchBucket`] after an erase.
    pub async fn next_segment(&mut self) -> Result<Option<SegmentFile>> {
        let asker = &self.waiting.asker;
        if asker.bucket.is_cut() {
            return Err(VaultError::NoSuchBucket);
        }
        let Some(segment) = self.waiting.segments.pop_front() else {
            return Ok(None);
        };
        let opened = asker.bucket.blobs.open_segment(&segment).await;
        opened.map(Some).map_err(|error| {
            if matches!(error, StoreError::Damaged { .. }) {
                self.end = TransferEnd::Damaged;
            }
            asker.tally.met(&error);
            error.into()
        })
    }

    /// Waits until the subject may have the bytes no more: the connection is to be ended then.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.allowed.clone().over()
    }

    /// Counts bytes that were sent.
    pub fn sent(&self, bytes: u64) {
        add(&self.waiting.asker.tally.transfers.sent_bytes, bytes);
    }

    /// Notes that a file holds less than it should.
    pub fn damaged(&mut self, error: &StoreError) {
        self.waiting.asker.tally.met(error);
        self.end = TransferEnd::Damaged;
    }

    /// All was sent.
    pub fn done(mut self) {
        self.end = TransferEnd::Done;
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        self.waiting.asker.tally.transfers.sent(self.end);
    }
}
