//! Copies that acknowledgements wait for (`docs/decisions/0058-synchronous-copies.md`).
//!
//! What is durable here takes a ticket, a number that only rises, and waits until a head covers it.
//! A round asks up to which ticket it will have all before it reads anything; so one round answers
//! all who waited when it began. No lock is held by those who wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use coffer_seal::BucketId;
use futures::future::join_all;
use parking_lot::RwLock;
use tokio::sync::{Notify, watch};
use tokio::time::{sleep, timeout};

use super::unacknowledged::{Unacknowledged, UnderWay};
use crate::error::{CopyError, Result, VaultError};
use crate::fence::ServingRight;

/// How a copy stands that acknowledgements wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SyncStatus {
    /// How long a write waits before it is in doubt.
    pub wait: Duration,
    /// Since when all writes wait, in milliseconds since 1970; none as long as the copy has not
    /// been whole.
    pub since_ms: Option<i64>,
    /// How many wait.
    pub waiting_count: usize,
    /// How many waited in vain since the server started.
    pub in_doubt_count: u64,
}

/// Up to which ticket a copy has all.
#[derive(Clone, Copy, Debug)]
struct Reached {
    ticket: u64,
    /// No other ticket is reached any more.
    is_given_up: bool,
}

/// What those who wait and the task of one copy tell each other.
pub(crate) struct Synchronous {
    name: String,
    wait: Duration,
    /// Of the log of an engine: nothing is acknowledged when it has ended.
    right: Option<ServingRight>,
    /// The last ticket.
    asked: AtomicU64,
    /// Told when one waits.
    wakes: Notify,
    reached: watch::Sender<Reached>,
    waiting_count: AtomicUsize,
    in_doubt_count: AtomicU64,
}

impl Synchronous {
    pub(crate) fn new(name: &str, wait: Duration, right: Option<ServingRight>) -> Arc<Self> {
        let reached = Reached {
            ticket: 0,
            is_given_up: false,
        };
        Arc::new(Self {
            name: name.to_owned(),
            wait,
            right,
            asked: AtomicU64::new(0),
            wakes: Notify::new(),
            reached: watch::Sender::new(reached),
            waiting_count: AtomicUsize::new(0),
            in_doubt_count: AtomicU64::new(0),
        })
    }

    /// The last ticket: what has it or an earlier one is durable here.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::SeqCst)
    }

    /// A head has all up to this ticket: those who wait for it are answered.
    ///
    /// # Errors
    /// [`CopyError::LeaseEnded`], where another gateway may serve by now: then none is. What is
    /// known to be in the log later than the lease lasts acknowledges nothing, for others may have
    /// gone on, and its number have been free again.
    pub(crate) fn reach(&self, ticket: u64) -> Result<()> {
        self.right.as_ref().map_or(Ok(()), ServingRight::check)?;
        self.answer(ticket);
        Ok(())
    }

    fn answer(&self, ticket: u64) {
        self.reached
            .send_modify(|reached| reached.ticket = reached.ticket.max(ticket));
    }

    /// Another gateway writes the log of the engine by now: it may acknowledge what is not known
    /// here, so from now on nothing is answered here, reads neither.
    pub(crate) fn end_right(&self) {
        if let Some(right) = &self.right {
            right.end();
        }
    }

    /// Whether it is the log of an engine.
    pub(crate) fn is_of_engine(&self) -> bool {
        self.right.is_some()
    }

    /// Nothing more comes there.
    pub(crate) fn give_up(&self) {
        self.reached
            .send_modify(|reached| reached.is_given_up = true);
    }

    /// It is waited for no more.
    pub(crate) fn release(&self) {
        self.answer(u64::MAX);
    }

    /// Returns as soon as one waits for what no head has.
    pub(crate) async fn one_waits(&self) {
        while self.asked() <= self.reached.borrow().ticket {
            self.wakes.notified().await;
        }
    }

    /// How many wait for what no head has.
    pub(crate) fn waiting(&self) -> u64 {
        self.asked().saturating_sub(self.reached.borrow().ticket)
    }

    /// Returns when one more may wait.
    pub(crate) async fn one_more(&self) {
        self.wakes.notified().await;
    }

    fn is_given_up(&self) -> bool {
        let reached = *self.reached.borrow();
        reached.is_given_up && reached.ticket < u64::MAX
    }

    fn ticket(&self) -> u64 {
        let ticket = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.wakes.notify_one();
        ticket
    }

    /// Waits until a head covers the ticket.
    async fn covered(&self, ticket: u64) -> Result<()> {
        let mut watched = self.reached.subscribe();
        let is_known = |reached: &Reached| reached.ticket >= ticket || reached.is_given_up;
        let reached = timeout(self.wait, watched.wait_for(is_known)).await;
        let name = self.name.clone();
        let error = match reached {
            Ok(Ok(reached)) if reached.ticket >= ticket => return Ok(()),
            _ if self.is_of_engine() => CopyError::NotInLog,
            Ok(_) => CopyError::NotAnyMore { name },
            Err(_) => CopyError::NotYet {
                name,
                seconds: self.wait.as_secs_f64(),
            },
        };
        self.in_doubt_count.fetch_add(1, Ordering::Relaxed);
        Err(error.into())
    }

    pub(crate) fn status(&self, since_ms: Option<i64>) -> SyncStatus {
        SyncStatus {
            wait: self.wait,
            since_ms,
            waiting_count: self.waiting_count.load(Ordering::Relaxed),
            in_doubt_count: self.in_doubt_count.load(Ordering::Relaxed),
        }
    }
}

/// One who waits is counted for as long as it does.
struct Waiting<'a>(&'a AtomicUsize);

impl<'a> Waiting<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All copies that acknowledgements wait for.
#[derive(Default)]
pub(crate) struct WaitedFor {
    copies: RwLock<Vec<Arc<Synchronous>>>,
    unacknowledged: Arc<Unacknowledged>,
}

impl WaitedFor {
    /// From now on all that is acknowledged is in this copy.
    pub(crate) fn add(&self, copy: Arc<Synchronous>) {
        let mut all = self.copies.write();
        if !all.iter().any(|known| Arc::ptr_eq(known, &copy)) {
            all.push(copy);
        }
    }

    /// This one is waited for no more.
    pub(crate) fn remove(&self, copy: &Arc<Synchronous>) {
        self.copies
            .write()
            .retain(|known| !Arc::ptr_eq(known, copy));
        copy.release();
    }

    /// Refuses what is not begun yet where it could not be acknowledged.
    ///
    /// # Errors
    /// [`CopyError::GivenUp`]; where that is the log of an engine, [`CopyError::LeaseEnded`]:
    /// another gateway serves, or this one does again.
    pub(crate) fn assure_reachable(&self) -> Result<()> {
        let all = self.copies.read();
        match all.iter().find(|copy| copy.is_given_up()) {
            None => Ok(()),
            Some(copy) if copy.is_of_engine() => Err(CopyError::LeaseEnded.into()),
            Some(copy) => Err(CopyError::GivenUp {
                name: copy.name.clone(),
            }
            .into()),
        }
    }

    /// Has readers wait as well for what they may have seen: of an engine.
    pub(crate) fn hold_readers(&self) {
        self.unacknowledged.hold_readers();
    }

    /// To be called before a change of this bucket, or of what is in none, may show, and held until
    /// it was acknowledged; none, where readers don't wait.
    pub(crate) fn begin_change(&self, of: Option<BucketId>) -> Option<UnderWay> {
        self.unacknowledged.begin(of)
    }

    /// As [`WaitedFor::acknowledge`], of a change that was begun so.
    pub(crate) async fn acknowledge_change(&self, under_way: Option<&UnderWay>) -> Result<()> {
        let of = under_way.and_then(|under_way| under_way.of);
        let acknowledged = self.acknowledge(of).await;
        if let (Err(_), Some(under_way)) = (&acknowledged, under_way) {
            under_way.is_in_doubt();
        }
        acknowledged
    }

    /// After a change of the server's own, begun by [`WaitedFor::begin_change`]: in an engine it is
    /// done once a head has it, as one that a client asked for. Elsewhere none waits.
    ///
    /// # Errors
    /// Of the change; as [`WaitedFor::acknowledge`].
    pub(crate) async fn settle_own<T, E: Into<VaultError>>(
        &self,
        under_way: Option<UnderWay>,
        changed: std::result::Result<T, E>,
    ) -> Result<T> {
        let changed: Result<T> = changed.map_err(Into::into);
        let Some(under_way) = under_way else {
            return changed;
        };
        // Of what failed some may show.
        let changed = changed.inspect_err(|_| under_way.is_in_doubt())?;
        self.acknowledge_change(Some(&under_way)).await?;
        Ok(changed)
    }

    /// After a read of this bucket, or of more, before it is answered: waits until a head has what
    /// it may have seen.
    ///
    /// # Errors
    /// As [`WaitedFor::acknowledge`]: it is in doubt whether what was read stays.
    pub(crate) async fn settle_read(&self, of: Option<BucketId>) -> Result<()> {
        let Some(seen) = self.unacknowledged.seen() else {
            return Ok(());
        };
        // What is in doubt is settled for readers of all buckets.
        let of = of.filter(|_| !self.unacknowledged.is_any_in_doubt());
        self.acknowledge(of).await?;
        self.unacknowledged.settle(seen);
        Ok(())
    }

    /// Whether a read has nothing to wait for.
    pub(crate) fn is_settled(&self) -> bool {
        self.unacknowledged.seen().is_none()
    }

    /// After a read that left something behind, a mark or a record: in an engine that is in a head
    /// before the answer, for another gateway may go on.
    ///
    /// # Errors
    /// As [`WaitedFor::acknowledge`].
    pub(crate) async fn settle_what_a_read_left(&self, of: Option<BucketId>) -> Result<()> {
        if self.unacknowledged.holds_readers() {
            self.acknowledge(of).await?;
        }
        Ok(())
    }

    /// Of these buckets, those of which what a gateway that follows is told stands for a moment, as
    /// it was looked at after this time; none, where nothing does.
    pub(crate) fn stand(
        &self,
        asked: impl Iterator<Item = BucketId>,
        looked_at: Duration,
    ) -> Option<Vec<BucketId>> {
        self.unacknowledged.stand(asked, looked_at)
    }

    /// Whether this bucket, or what is in none, is being changed, and gateways that follow may
    /// answer by what was before: none is told of it yet.
    pub(crate) fn is_bridled(&self, part: Option<BucketId>) -> bool {
        self.unacknowledged.is_bridled(part)
    }

    /// Whether something is in doubt that no read has settled yet, and nothing is under way.
    pub(crate) fn is_to_be_settled(&self) -> bool {
        self.unacknowledged.is_to_be_settled()
    }

    /// Waits until all that is durable here is in all of these copies, and no gateway answers by
    /// what was before it: in this bucket and in none, or in all. No lock is to be held.
    ///
    /// # Errors
    /// [`CopyError::NotYet`], [`CopyError::NotAnyMore`], [`CopyError::NotInLog`]: it is in doubt.
    pub(crate) async fn acknowledge(&self, of: Option<BucketId>) -> Result<()> {
        self.reach_copies().await?;
        self.outlast(of).await;
        Ok(())
    }

    /// Waits until no gateway answers by what was before what is changed: in this bucket and in
    /// none, or in all.
    pub(crate) async fn outlast(&self, of: Option<BucketId>) {
        let stands = self.unacknowledged.stands_for(of);
        if !stands.is_zero() {
            sleep(stands).await;
        }
    }

    async fn reach_copies(&self) -> Result<()> {
        let all: Vec<Arc<Synchronous>> = {
            let all = self.copies.read();
            if all.is_empty() {
                return Ok(());
            }
            all.clone()
        };
        let waiting = all.iter().map(|copy| async move {
            let _counted = Waiting::new(&copy.waiting_count);
            copy.covered(copy.ticket()).await
        });
        join_all(waiting).await.into_iter().collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests;
