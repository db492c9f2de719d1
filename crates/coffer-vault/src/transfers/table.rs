//! The table of transfers that wait: for the data port, or, once their bytes have arrived, for the
//! commit.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use coffer_seal::SubjectId;
use coffer_store::Opening;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::sleep;

use super::offer::DataPort;
use super::seats::{Seat, Seats};
use super::ticket::{Ticket, TicketDigest};
use super::unverified::Unverified;
use super::waiting::Waiting;

/// All transfers. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Transfers(Arc<Shared>);

#[derive(Default)]
struct Shared {
    offered: OnceLock<DataPort>,
    opens_later: AtomicBool,
    unverified: Unverified,
    seats: Seats,
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    waiting: HashMap<TicketDigest, Entry>,
    /// How many have waited so far.
    waited: u64,
    is_closed: bool,
}

struct Entry {
    what: Waiting,
    /// Its number among all that have waited: a ticket waits for bytes first, then for a commit.
    number: u64,
    /// The task that waits for its end.
    _end: Watch,
}

/// A task that is needed no longer than this lives.
struct Watch(AbortHandle);

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Transfers {
    /// Says where the data port is; before that no transfer begins.
    pub(crate) fn offer(&self, port: DataPort) {
        let _ = self.0.offered.set(port);
    }

    /// Where the data port is, if there is one.
    pub(crate) fn offered(&self) -> Option<&DataPort> {
        self.0.offered.get()
    }

    /// Has what comes be stored without being opened, from now on.
    pub(crate) fn open_later(&self) {
        self.0.opens_later.store(true, Ordering::Relaxed);
    }

    /// When what comes is opened.
    pub(crate) fn opening(&self) -> Opening {
        if self.0.opens_later.load(Ordering::Relaxed) {
            Opening::Later
        } else {
            Opening::AsItComes
        }
    }

    /// Where what was stored so waits.
    pub(crate) fn unverified(&self) -> &Unverified {
        &self.0.unverified
    }

    /// Counts one more transfer of a subject; none where it has as many as it may, or all have.
    pub(crate) fn begin(&self, subject: SubjectId) -> Option<Seat> {
        self.0.seats.take(subject)
    }

    /// Has a transfer wait under a ticket, for so long, and for no longer than its subject and its
    /// bucket are let.
    pub(super) fn wait(&self, ticket: &Ticket, what: Waiting, patience: Duration) {
        let digest = ticket.digest();
        let cutoff = what.asker().subject.cutoff.clone();
        let bucket_cut = what.asker().bucket.cut_token();
        let shared = Arc::downgrade(&self.0);
        let mut table = self.0.table.lock();
        if table.is_closed {
            drop(table);
            return;
        }
        table.waited += 1;
        let number = table.waited;
        // It may end before it is in the table: it waits for the lock then.
        let end = tokio::spawn(async move {
            tokio::select! {
                () = sleep(patience) => {}
                () = cutoff.cut_off() => {}
                () = bucket_cut.cancelled() => {}
            }
            drop(remove(&shared, &digest, number));
        });
        let entry = Entry {
            what,
            number,
            _end: Watch(end.abort_handle()),
        };
        table.waiting.insert(digest, entry);
    }

    /// Takes a transfer that waits, if `pick` finds that it is the one that is meant; the other
    /// goes on waiting.
    pub(super) fn take<T>(
        &self,
        ticket: &Ticket,
        pick: impl FnOnce(Waiting) -> Result<T, Waiting>,
    ) -> Option<T> {
        let digest = ticket.digest();
        let mut table = self.0.table.lock();
        let entry = table.waiting.remove(&digest)?;
        match pick(entry.what) {
            Ok(taken) => Some(taken),
            Err(what) => {
                table.waiting.insert(digest, Entry { what, ..entry });
                None
            }
        }
    }

    /// Ends all that wait; none begins any more.
    pub(crate) fn close(&self) {
        let mut table = self.0.table.lock();
        table.is_closed = true;
        let waiting = std::mem::take(&mut table.waiting);
        drop(table);
        drop(waiting);
    }

    /// How many have begun and not ended.
    pub(crate) fn count(&self) -> u64 {
        self.0.seats.count() as u64
    }
}

/// Taken out under the lock, to be dropped without it. Nothing where another has come to wait under
/// the same ticket since.
fn remove(shared: &Weak<Shared>, digest: &TicketDigest, number: u64) -> Option<Entry> {
    let shared = shared.upgrade()?;
    let mut table = shared.table.lock();
    let is_it = table.waiting.get(digest)?.number == number;
    is_it.then(|| table.waiting.remove(digest)).flatten()
}
