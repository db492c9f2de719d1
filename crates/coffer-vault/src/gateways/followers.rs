//! The side of the gateway that serves: who may answer reads beside it, and until when.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use coffer_seal::random_bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::question::{ReadQuestion, Recall};
use crate::error::VaultError;
use crate::fence::ServingRight;
use crate::limits::{READS_FOLLOWERS_MAX, READS_LAST};

/// The gateways that follow, as the one that serves knows them.
pub(crate) struct Followers {
    /// None of a server that is no gateway.
    term: Option<Term>,
    table: Mutex<Table>,
    changed: Notify,
    /// Acts of administration that are under way.
    acting: AtomicUsize,
    /// How often something was taken away that a state of before has.
    taken_away: AtomicU64,
    /// Whether what is in doubt is being settled for them.
    is_settling: AtomicBool,
}

/// A time of serving.
struct Term {
    id: String,
    /// What was allowed by the one before is over by then.
    free_from: Duration,
}

#[derive(Default)]
struct Table {
    recall: u64,
    known: HashMap<String, Known>,
    /// When one asked last, whether it may answer reads or not.
    heard: Option<Duration>,
}

/// What is known of a gateway that may answer reads.
struct Known {
    /// Until when, by the clock of who serves.
    until: Duration,
    settled: u64,
}

/// An act of administration that is under way.
pub(crate) struct Acting<'a> {
    followers: &'a Followers,
    /// How often something had been taken away when it began.
    taken_away: u64,
    is_recalled: bool,
}

impl Drop for Acting<'_> {
    fn drop(&mut self) {
        // Taken away it is, or may be, though it is not acknowledged: none is waited for, and none
        // goes on with what was before.
        if self.has_taken_away() && !self.is_recalled {
            self.followers.begin_recall();
        }
        self.followers.acting.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Acting<'_> {
    fn has_taken_away(&self) -> bool {
        self.followers.taken_away.load(Ordering::SeqCst) != self.taken_away
    }

    /// It failed. Where it is not certain what is so, states of before are not to be answered by,
    /// until another gateway serves.
    pub(crate) fn failed(&self, error: &VaultError) {
        let is_uncertain = matches!(
            error,
            VaultError::EraseUnsettled { .. }
                | VaultError::ReceiptUnsettled { .. }
                | VaultError::SystemInDoubt
        );
        if is_uncertain {
            self.followers.warn_of_uncertainty(error);
            self.followers.acting.fetch_add(1, Ordering::SeqCst);
            self.followers.take_away();
        }
    }

    /// Before it is acknowledged that something was taken away, and after the log has it: waits
    /// until no gateway answers by what was before.
    pub(crate) async fn recall(mut self) {
        if self.has_taken_away() {
            self.is_recalled = true;
            self.followers.recall().await;
        }
    }
}

impl Followers {
    /// Those of a gateway that begins to serve, or of a server that is none.
    pub(crate) fn new(is_of_engine: bool) -> Self {
        let term = is_of_engine.then(|| Term {
            id: hex::encode(random_bytes::<16>()),
            free_from: ServingRight::now() + READS_LAST,
        });
        Self {
            term,
            table: Mutex::default(),
            changed: Notify::new(),
            acting: AtomicUsize::new(0),
            taken_away: AtomicU64::new(0),
            is_settling: AtomicBool::new(false),
        }
    }

    /// What is in doubt is to be settled: whether it is not being so already.
    pub(crate) fn begin_settling(&self) -> bool {
        !self.is_settling.swap(true, Ordering::SeqCst)
    }

    /// It was tried.
    pub(crate) fn end_settling(&self) {
        self.is_settling.store(false, Ordering::SeqCst);
    }

    /// An act of administration begins: what it does may show before it is committed.
    pub(crate) fn begin_act(&self) -> Acting<'_> {
        self.acting.fetch_add(1, Ordering::SeqCst);
        Acting {
            followers: self,
            taken_away: self.taken_away.load(Ordering::SeqCst),
            is_recalled: false,
        }
    }

    /// Whether none is under way.
    pub(crate) fn is_quiet(&self) -> bool {
        self.acting.load(Ordering::SeqCst) == 0
    }

    /// Waits until nothing is allowed any more that was by who served before: what that one had
    /// taken away is not told of before.
    pub(crate) async fn begun(&self) {
        if let Some(term) = &self.term {
            sleep(term.free_from.saturating_sub(ServingRight::now())).await;
        }
    }

    /// Of a gateway: what does not end by itself is not left to be found.
    fn warn_of_uncertainty(&self, error: &VaultError) {
        if self.term.is_some() {
            tracing::warn!(
                %error,
                "it is not certain what became of an act of administration: until another gateway \
                 serves, or this one is started again, those that follow answer no reads by \
                 themselves and forward all of them"
            );
        }
    }

    /// The act that is under way takes something away.
    pub(crate) fn take_away(&self) {
        self.taken_away.fetch_add(1, Ordering::SeqCst);
    }

    /// Hears what a gateway has settled, and allows it to answer reads for a while, if that is all.
    /// None, where this is no gateway.
    pub(crate) fn allow(&self, question: &ReadQuestion) -> Option<(Recall, Duration)> {
        let term = self.term.as_ref()?;
        let now = ServingRight::now();
        let mut table = self.table.lock();
        table.heard = Some(now);
        let recall = Recall {
            term: term.id.clone(),
            number: table.recall,
        };
        table.known.retain(|_, known| known.until > now);
        let settled = question.settled.as_ref();
        let Some(settled) = settled.filter(|settled| settled.term == term.id) else {
            return Some((recall, Duration::ZERO));
        };
        let has_room =
            table.known.len() < READS_FOLLOWERS_MAX || table.known.contains_key(&question.follower);
        let is_allowed = settled.number == recall.number && has_room;
        if is_allowed {
            let known = Known {
                until: now + READS_LAST,
                settled: settled.number,
            };
            table.known.insert(question.follower.clone(), known);
        } else if let Some(known) = table.known.get_mut(&question.follower) {
            known.settled = known.settled.max(settled.number);
        }
        drop(table);
        self.changed.notify_waiters();
        let lasts = if is_allowed {
            READS_LAST
        } else {
            Duration::ZERO
        };
        Some((recall, lasts))
    }

    /// Whether there are any, be it that they may answer reads or not: who serves may not be able
    /// to tell them what they wait for.
    pub(crate) fn are_any(&self) -> bool {
        let heard = self.table.lock().heard;
        heard.is_some_and(|at| at + READS_LAST > ServingRight::now())
    }

    /// Has all who may answer reads begin anew. The number of the recall.
    fn begin_recall(&self) -> u64 {
        let mut table = self.table.lock();
        table.recall += 1;
        table.recall
    }

    /// Has all who may answer reads begin anew, and waits until they have, or may no more.
    async fn recall(&self) {
        let Some(term) = &self.term else {
            return;
        };
        let number = self.begin_recall();
        loop {
            // Before it is looked, so that no change in between is missed.
            let changed = self.changed.notified();
            let left = self.until(term, number).saturating_sub(ServingRight::now());
            if left.is_zero() {
                return;
            }
            let _ = timeout(left, changed).await;
        }
    }

    /// Until when one may answer reads that has not settled this recall.
    fn until(&self, term: &Term, number: u64) -> Duration {
        let table = self.table.lock();
        let late = table.known.values().filter(|known| known.settled < number);
        let until = late.map(|known| known.until);
        until.max().unwrap_or_default().max(term.free_from)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn asks(follower: &str, settled: Option<Recall>) -> ReadQuestion {
        ReadQuestion {
            follower: follower.to_owned(),
            settled,
            buckets: Vec::new(),
        }
    }

    /// One that serves for long enough.
    fn serving() -> Arc<Followers> {
        let mut followers = Followers::new(true);
        followers.term.as_mut().unwrap().free_from = Duration::ZERO;
        Arc::new(followers)
    }

    fn recalled(followers: &Arc<Followers>) -> tokio::task::JoinHandle<()> {
        let followers = followers.clone();
        tokio::spawn(async move {
            let act = followers.begin_act();
            followers.take_away();
            act.recall().await;
        })
    }

    async fn settle() {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    #[test]
    fn one_that_can_not_settle_what_was_recalled_is_there_all_the_same() {
        let followers = serving();
        assert!(!followers.are_any());
        let (recall, _) = followers.allow(&asks("a", None)).unwrap();
        followers.table.lock().recall += 1;
        let (_, lasts) = followers.allow(&asks("a", Some(recall))).unwrap();
        assert!(lasts.is_zero() && followers.are_any());
    }

    #[test]
    fn only_who_has_settled_the_last_recall_may_answer() {
        let followers = serving();
        let (recall, lasts) = followers.allow(&asks("a", None)).unwrap();
        assert!(lasts.is_zero());
        let (_, lasts) = followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        assert_eq!(lasts, READS_LAST);
        followers.table.lock().recall += 1;
        let (next, lasts) = followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        assert!(lasts.is_zero() && next.number == recall.number + 1);
        let other = Followers::new(true);
        let (_, lasts) = other.allow(&asks("a", Some(next))).unwrap();
        assert!(lasts.is_zero(), "of another term");
        assert!(Followers::new(false).allow(&asks("a", None)).is_none());
    }

    #[tokio::test]
    async fn what_is_taken_away_waits_for_those_who_answer_by_it() {
        let followers = serving();
        let (recall, _) = followers.allow(&asks("a", None)).unwrap();
        followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        assert!(followers.is_quiet());
        let task = recalled(&followers);
        settle().await;
        assert!(!task.is_finished() && !followers.is_quiet());
        let (next, lasts) = followers.allow(&asks("a", Some(recall))).unwrap();
        assert!(lasts.is_zero(), "it is not renewed");
        settle().await;
        assert!(!task.is_finished());
        followers.allow(&asks("a", Some(next))).unwrap();
        task.await.unwrap();
        assert!(followers.is_quiet());
    }

    #[tokio::test]
    async fn one_that_says_nothing_is_waited_for_until_its_time_is_over() {
        let followers = serving();
        let (recall, _) = followers.allow(&asks("a", None)).unwrap();
        followers.allow(&asks("a", Some(recall))).unwrap();
        let soon = ServingRight::now() + Duration::from_millis(150);
        followers.table.lock().known.get_mut("a").unwrap().until = soon;
        recalled(&followers).await.unwrap();
        assert!(ServingRight::now() >= soon);
    }

    #[tokio::test]
    async fn who_begins_to_serve_waits_for_what_the_one_before_allowed() {
        let mut followers = Followers::new(true);
        let soon = ServingRight::now() + Duration::from_millis(150);
        followers.term.as_mut().unwrap().free_from = soon;
        recalled(&Arc::new(followers)).await.unwrap();
        assert!(ServingRight::now() >= soon);
    }

    #[tokio::test]
    async fn what_was_taken_away_by_the_one_before_is_told_when_nothing_is_allowed_by_it() {
        let mut followers = Followers::new(true);
        let soon = ServingRight::now() + Duration::from_millis(150);
        followers.term.as_mut().unwrap().free_from = soon;
        followers.begun().await;
        assert!(ServingRight::now() >= soon);
        Followers::new(false).begun().await;
    }

    #[test]
    fn what_was_taken_away_is_recalled_though_it_is_not_acknowledged() {
        let followers = serving();
        let (recall, _) = followers.allow(&asks("a", None)).unwrap();
        followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        drop(followers.begin_act());
        let (same, lasts) = followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        assert!(same == recall && !lasts.is_zero(), "it took nothing away");
        let act = followers.begin_act();
        followers.take_away();
        drop(act);
        let (next, lasts) = followers.allow(&asks("a", Some(recall.clone()))).unwrap();
        assert!(lasts.is_zero() && next.number == recall.number + 1);
        assert!(followers.is_quiet());
    }

    #[test]
    fn nothing_is_answered_by_states_once_it_is_uncertain_what_is_so() {
        let followers = serving();
        followers.begin_act().failed(&VaultError::NoSuchSubject);
        assert!(followers.is_quiet());
        let (recall, _) = followers.allow(&asks("a", None)).unwrap();
        followers.begin_act().failed(&VaultError::SystemInDoubt);
        assert!(!followers.is_quiet());
        let (next, _) = followers.allow(&asks("a", None)).unwrap();
        assert_eq!(next.number, recall.number + 1);
    }

    #[tokio::test]
    async fn an_act_that_takes_nothing_away_waits_for_none() {
        let followers = Arc::new(Followers::new(true));
        followers.begin_act().recall().await;
        // Of a server that is no gateway none does.
        let alone = Arc::new(Followers::new(false));
        recalled(&alone).await.unwrap();
    }
}
