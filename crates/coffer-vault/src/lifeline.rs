//! Lifelines: how whatever carries plaintext is cut off at once.
//!
//! A front door gives each connection a [`Lifeline`] and serves its requests within
//! [`Lifeline::scope`]. Every bucket that such a request is granted notes the lifeline. When the
//! bucket's key is destroyed, all lifelines that it has noted are cut: the front door then drops
//! the connection with whatever waits to be sent. So nothing that was opened leaves after the
//! erase was acknowledged, not even what lay in a buffer of the kernel's. A subject notes the
//! lifelines that it asks by in the same way, and they are cut when its access key is disabled.
//!
//! A connection that once was granted the bucket is cut as well when it is idle by then: its
//! client connects anew.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::Notify;
use tokio::task::futures::TaskLocalFuture;

use crate::limits::LIFELINES_KEPT_MIN;

tokio::task_local! {
    static CURRENT: Lifeline;
}

/// Numbers for lifelines and for what notes them, none twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// What a connection hangs on. Clones are the same lifeline.
#[derive(Clone, Debug)]
pub struct Lifeline(Arc<Line>);

#[derive(Debug)]
struct Line {
    number: u64,
    cut: Signal,
    /// The number of what noted it last, which then need not note it again, for each [`Holder`].
    noted_by: [AtomicU64; 2],
}

/// Something that happens once.
#[derive(Debug, Default)]
pub(crate) struct Signal {
    is_given: AtomicBool,
    waiting: Notify,
}

impl Signal {
    pub(crate) fn give(&self) {
        self.is_given.store(true, Ordering::SeqCst);
        self.waiting.notify_waiters();
    }

    pub(crate) fn is_given(&self) -> bool {
        self.is_given.load(Ordering::SeqCst)
    }

    pub(crate) async fn given(&self) {
        let waiting = self.waiting.notified();
        tokio::pin!(waiting);
        // First the place in the queue, then the look: so it can't be missed.
        waiting.as_mut().enable();
        if !self.is_given() {
            waiting.await;
        }
    }
}

impl Default for Lifeline {
    fn default() -> Self {
        Self(Arc::new(Line {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            cut: Signal::default(),
            noted_by: Default::default(),
        }))
    }
}

impl Lifeline {
    /// Serves a request of the connection: what it is granted notes the lifeline.
    pub fn scope<F: Future>(&self, work: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), work)
    }

    /// Whether it has been cut.
    pub fn is_cut(&self) -> bool {
        self.0.cut.is_given()
    }

    /// Whether a subject has asked by it: whether a request of the connection was signed rightly.
    pub fn is_signed_in(&self) -> bool {
        self.0.noted_by[Holder::Subject as usize].load(Ordering::Relaxed) != 0
    }

    /// Waits until it is cut. The connection must be dropped then, without sending anything more.
    pub async fn cut_off(&self) {
        self.0.cut.given().await;
    }

    /// That of the request that is being served, if it has one.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    fn cut(&self) {
        self.0.cut.give();
    }
}

/// What notes lifelines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    /// A bucket, of all that it was granted to.
    Bucket,
    /// A subject, of all that it asked by.
    Subject,
}

/// The lifelines that one bucket or one subject has noted.
#[derive(Debug)]
pub(crate) struct Lifelines {
    holder: Holder,
    number: u64,
    noted: Mutex<Noted>,
}

#[derive(Debug)]
struct Noted {
    lines: HashMap<u64, Weak<Line>>,
    /// How many there may be before those of ended connections are sorted out.
    sort_out_at: usize,
}

impl Lifelines {
    /// None noted yet.
    pub(crate) fn new(holder: Holder) -> Self {
        Self {
            holder,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            noted: Mutex::new(Noted {
                lines: HashMap::new(),
                sort_out_at: LIFELINES_KEPT_MIN,
            }),
        }
    }

    /// Notes the lifeline of the request that is being served, if it has one.
    pub(crate) fn note(&self) {
        // Most connections ask for the same bucket, as the same subject, again and again.
        let _ = CURRENT.try_with(|Lifeline(line)| {
            let noted_by = &line.noted_by[self.holder as usize];
            if noted_by.load(Ordering::Relaxed) != self.number {
                noted_by.store(self.number, Ordering::Relaxed);
                self.noted().add(line);
            }
        });
    }

    /// Cuts all that were noted. Whoever holds them drops them soon after.
    pub(crate) fn cut(&self) {
        self.cut_but(None);
    }

    /// Cuts all that were noted but this one.
    pub(crate) fn cut_but(&self, spared: Option<&Lifeline>) {
        let spared = spared.map(|Lifeline(line)| line.number);
        for line in self.noted().lines.values().filter_map(Weak::upgrade) {
            if Some(line.number) != spared {
                Lifeline(line).cut();
            }
        }
    }

    /// How many of them there are.
    pub(crate) fn count(&self) -> usize {
        let noted = self.noted();
        let lines = noted.lines.values();
        lines.filter(|line| line.strong_count() > 0).count()
    }

    fn noted(&self) -> MutexGuard<'_, Noted> {
        self.noted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Noted {
    fn add(&mut self, line: &Arc<Line>) {
        if self.lines.len() >= self.sort_out_at {
            self.lines.retain(|_, line| line.strong_count() > 0);
            self.sort_out_at = LIFELINES_KEPT_MIN.max(2 * self.lines.len());
        }
        self.lines.insert(line.number, Arc::downgrade(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_asked_is_known_of_a_connection() {
        let line = Lifeline::default();
        line.scope(async { Lifelines::new(Holder::Bucket).note() })
            .await;
        assert!(!line.is_signed_in());
        line.scope(async { Lifelines::new(Holder::Subject).note() })
            .await;
        assert!(line.is_signed_in());
    }

    #[tokio::test]
    async fn what_was_noted_is_cut_and_nothing_else() {
        let [bucket, other] = [Holder::Bucket; 2].map(Lifelines::new);
        let (reader, stranger) = (Lifeline::default(), Lifeline::default());
        reader
            .scope(async {
                bucket.note();
                other.note();
                bucket.note();
            })
            .await;
        stranger.scope(async { other.note() }).await;
        bucket.note(); // outside of any connection
        let waits = tokio::spawn({
            let reader = reader.clone();
            async move { reader.cut_off().await }
        });
        tokio::task::yield_now().await;
        bucket.cut_but(Some(&reader));
        assert!(!reader.is_cut());
        bucket.cut();
        waits.await.unwrap();
        reader.cut_off().await;
        assert!(reader.is_cut() && !stranger.is_cut());
        assert_eq!(bucket.count(), 1);
        drop(reader);
        assert_eq!(bucket.count(), 0);
    }

    #[test]
    fn lifelines_of_ended_connections_are_sorted_out() {
        let bucket = Lifelines::new(Holder::Bucket);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        for _ in 0..10 * LIFELINES_KEPT_MIN {
            runtime.block_on(Lifeline::default().scope(async { bucket.note() }));
        }
        assert!(bucket.noted().lines.len() <= LIFELINES_KEPT_MIN + 1);
    }
}
