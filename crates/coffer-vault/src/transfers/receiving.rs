//! A transfer whose bytes are being received.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use coffer_seal::BlobId;
use coffer_store::record::BlobRef;
use coffer_store::{Opening, StoreError};

use super::allowed::{Allowed, HasRight};
use super::table::Transfers;
use super::ticket::Ticket;
use super::waiting::{Arrived, ArrivedAs, Asker, Waiting, WaitingArrival};
use crate::counters::{Tally, add};
use crate::digest::Digester;
use crate::error::VaultError;
use crate::limits::{ARRIVED_TIME, TICKET_TIME};
use crate::open_buckets::customer_key;
use crate::transfer_counters::TransferEnd;

/// Sealed bytes on their way in. Dropping it before its end leaves nothing behind.
pub struct Arrival {
    waiting: WaitingArrival,
    digester: Digester,
    ticket: Ticket,
    transfers: Transfers,
    allowed: Allowed,
    end: EndNote,
}

/// Counts how it ended, when that is known.
struct EndNote {
    tally: Arc<Tally>,
    end: TransferEnd,
}

impl Drop for EndNote {
    fn drop(&mut self) {
        self.tally.transfers.received(self.end);
    }
}

/// Why bytes were not taken. None of them is kept.
#[derive(Debug, thiserror::Error)]
pub enum NotTaken {
    /// They do not open under the key that they were to be sealed under.
    #[error("what was sent is not sealed as it was to be: a commitment, a tag or the length")]
    NotSealed,
    /// The subject may not send them any more.
    #[error("the transfer is over")]
    Over,
    /// The server could not store them.
    #[error(transparent)]
    Failed(VaultError),
}

impl From<StoreError> for NotTaken {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::NotSealed => Self::NotSealed,
            other => Self::Failed(other.into()),
        }
    }
}

impl Transfers {
    /// Has a transfer wait for its bytes, under a new ticket.
    pub(crate) fn wait_to_receive(&self, waiting: WaitingArrival) -> Ticket {
        let ticket = Ticket::random();
        let waiting = Waiting::Receive(Box::new(waiting));
        self.wait(&ticket, waiting, TICKET_TIME);
        ticket
    }

    /// Takes what is to come for a ticket.
    pub(crate) fn take_to_receive(&self, ticket: &Ticket) -> Option<WaitingArrival> {
        self.take(ticket, |waiting| match waiting {
            Waiting::Receive(waiting) => Ok(*waiting),
            other => Err(other),
        })
    }

    /// Takes bytes that have come, for what they were announced as, by the subject that did.
    pub(crate) fn take_arrived(
        &self,
        ticket: &Ticket,
        is_meant: impl FnOnce(&Asker, &ArrivedAs) -> bool,
    ) -> Option<Arrived> {
        self.take(ticket, |waiting| match waiting {
            Waiting::Arrived(arrived) if is_meant(&arrived.asker, &arrived.becomes) => Ok(*arrived),
            other => Err(other),
        })
    }
}

impl Arrival {
    /// `has_right` says whether its subject may still send the bytes, which come with `ticket`.
    pub(crate) fn new(
        waiting: WaitingArrival,
        (ticket, transfers): (Ticket, Transfers),
        has_right: HasRight,
    ) -> Self {
        let end = EndNote {
            tally: waiting.asker.tally.clone(),
            end: TransferEnd::Cut,
        };
        Self {
            allowed: Allowed::new(&waiting.asker, has_right),
            digester: Digester::new(waiting.digests),
            waiting,
            ticket,
            transfers,
            end,
        }
    }

    /// How many bytes are still to come.
    pub fn missing_bytes(&self) -> u64 {
        self.waiting.writer.missing_bytes()
    }

    /// Room for bytes that come next; empty once all have come.
    pub fn room(&mut self) -> &mut [u8] {
        self.waiting.writer.room()
    }

    /// Takes so many bytes that were put into [`room`](Self::room); what of them is whole is
    /// opened, and looked at.
    ///
    /// # Errors
    /// [`NotTaken`]; the transfer has failed then.
    pub async fn received(&mut self, count: usize) -> Result<(), NotTaken> {
        add(&self.end.tally.transfers.received_bytes, count as u64);
        let digester = &mut self.digester;
        let mut each = |bytes: &[u8]| digester.update(bytes);
        let taken = self.waiting.writer.received(count, &mut each).await;
        taken.map_err(|error| self.refused(error.into()))
    }

    /// Whether the bytes that come next may be [moved](Self::move_from) from a socket.
    pub fn may_be_moved(&self) -> bool {
        self.waiting.writer.may_be_moved()
    }

    /// Moves what a socket has, but no more than is missing; says how many bytes it was.
    /// To be called once there are some; with 0, they can't be moved, and are to be read.
    ///
    /// # Errors
    /// As [`received`](Self::received).
    pub async fn move_from(&mut self, socket: &Arc<OwnedFd>) -> Result<usize, NotTaken> {
        let moved = self.waiting.writer.move_from(socket).await?;
        add(&self.end.tally.transfers.received_bytes, moved as u64);
        Ok(moved)
    }

    /// Waits until the subject may send the bytes no more.
    pub fn over(&self) -> impl Future<Output = ()> + Send + use<> {
        self.allowed.clone().over()
    }

    /// Makes what has come durable, and has it wait for its commit.
    ///
    /// # Errors
    /// [`NotTaken`]; nothing is left behind.
    pub async fn finish(self) -> Result<(), NotTaken> {
        let Self {
            waiting,
            digester,
            ticket,
            transfers,
            mut end,
            ..
        } = self;
        let WaitingArrival {
            asker,
            becomes,
            writer,
            ..
        } = waiting;
        let is_opened = writer.opening() == Opening::AsItComes;
        let data_key = writer.data_key().clone();
        let blob = writer.finish().await.map_err(|error| {
            let error = NotTaken::from(error);
            if matches!(error, NotTaken::NotSealed) {
                end.end = TransferEnd::Damaged;
            }
            error
        })?;
        if asker.bucket.is_cut() || asker.subject.cutoff.is_cut() {
            return Err(NotTaken::Over);
        }
        let digests = is_opened.then(|| digester.finish());
        let wrapped_by = asker.bucket.key();
        let id: BlobId = blob.id();
        let reference = BlobRef {
            id,
            plaintext_bytes: blob.plaintext_bytes(),
            key_generation: wrapped_by.generation(),
            wrapped_key: customer_key::wrap(&wrapped_by, id, &data_key, None),
            checksum: None, // once it is known what it is to become
        };
        let arrived = Arrived {
            becomes,
            reference,
            blob,
            digests,
            wrapped_by,
            asker,
        };
        end.end = TransferEnd::Done;
        let waiting = Waiting::Arrived(Box::new(arrived));
        transfers.wait(&ticket, waiting, ARRIVED_TIME);
        Ok(())
    }

    fn refused(&mut self, error: NotTaken) -> NotTaken {
        if matches!(error, NotTaken::NotSealed) {
            self.end.end = TransferEnd::Damaged;
        }
        error
    }
}
