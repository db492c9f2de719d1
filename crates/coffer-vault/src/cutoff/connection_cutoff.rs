//! How connections that carry plaintext are cut off at once.
//!
//! A front door gives each connection a [`ConnectionCutoff`] and serves its requests within
//! [`ConnectionCutoff::scope`]. Every bucket that such a request is granted notes the connection.
//! When the bucket's key is destroyed, all connections that it has noted are cut: the front door
//! then drops the connection with whatever waits to be sent. So nothing that was opened leaves
//! after the erase was acknowledged, not even what lay in a buffer of the kernel's. A subject notes
//! the connections that it asks by in the same way, and they are cut when its access key is
//! disabled.
//!
//! A connection that once was granted the bucket is cut as well when it is idle by then: its
//! client connects anew.
//!
//! A subject asks by so many connections at once as its front door says of each. One more takes the
//! place of the oldest that is idle; where none is, it is refused.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::task::futures::TaskLocalFuture;
use tokio_util::sync::CancellationToken;

use crate::error::{Result, SubjectLimit};
use crate::limits::CONNECTIONS_NOTED_MIN;

tokio::task_local! {
    static CURRENT: ConnectionCutoff;
}

/// Numbers for connections and for what notes them, none twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// A connection as its front door sees it.
pub trait Seat: fmt::Debug + Send + Sync {
    /// Has the connection end if nothing is under way on it. Says whether it will.
    fn leave_if_idle(&self) -> bool;
}

/// By what a connection is cut off. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct ConnectionCutoff(Arc<Line>);

#[derive(Debug)]
struct Line {
    number: u64,
    cut: CancellationToken,
    /// The number of what noted it last, which then need not note it again, for each [`Holder`].
    noted_by: [AtomicU64; 3],
    /// Of how many connections of its subject this may be one.
    per_subject: usize,
    seat: Option<Arc<dyn Seat>>,
}

impl Default for ConnectionCutoff {
    fn default() -> Self {
        Self::with(usize::MAX, None)
    }
}

impl ConnectionCutoff {
    /// A connection that counts: a subject asks by `per_subject` of them at once, and `seat` makes
    /// room for the next.
    pub fn counted(per_subject: usize, seat: Arc<dyn Seat>) -> Self {
        Self::with(per_subject, Some(seat))
    }

    fn with(per_subject: usize, seat: Option<Arc<dyn Seat>>) -> Self {
        Self(Arc::new(Line {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            cut: CancellationToken::new(),
            noted_by: Default::default(),
            per_subject,
            seat,
        }))
    }

    /// Serves a request of the connection: what it is granted notes the connection.
    pub fn scope<F: Future>(&self, work: F) -> TaskLocalFuture<Self, F> {
        CURRENT.scope(self.clone(), work)
    }

    /// Whether it has been cut.
    pub fn is_cut(&self) -> bool {
        self.0.cut.is_cancelled()
    }

    /// Whether a subject has asked by it: whether a request of the connection was signed rightly.
    pub fn is_signed_in(&self) -> bool {
        self.0.noted_by[Holder::Subject as usize].load(Ordering::Relaxed) != 0
    }

    /// Waits until it is cut. The connection must be dropped then, without sending anything more.
    pub async fn cut_off(&self) {
        self.0.cut.cancelled().await;
    }

    /// That of the request that is being served, if it has one.
    pub(crate) fn current() -> Option<Self> {
        CURRENT.try_with(Self::clone).ok()
    }

    pub(crate) fn cut(&self) {
        self.0.cut.cancel();
    }
}

/// What notes connections.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Holder {
    /// A bucket, of all that it was granted to.
    Bucket,
    /// A subject, of all that it asked by.
    Subject,
    /// An access key of a subject, of all that it asked by with that.
    AccessKey,
}

/// The connections that one bucket or one subject has noted.
#[derive(Debug)]
pub(crate) struct Connections {
    holder: Holder,
    number: u64,
    noted: Mutex<Noted>,
}

#[derive(Debug)]
struct Noted {
    /// By their numbers: the oldest first.
    lines: BTreeMap<u64, NotedLine>,
    /// How many there may be before those of ended connections are sorted out.
    sort_out_at: usize,
}

#[derive(Debug)]
struct NotedLine {
    line: Weak<Line>,
    /// Whether it was told to leave: it counts no more, but is cut like the others.
    is_leaving: bool,
}

impl NotedLine {
    fn is_open(&self) -> bool {
        self.line.strong_count() > 0
    }

    fn is_counted(&self) -> bool {
        self.is_open() && !self.is_leaving
    }

    /// Tells it to leave if it is idle. Says whether it will.
    fn makes_room(&mut self) -> bool {
        let line = self.line.upgrade().filter(|_| !self.is_leaving);
        let seat = line.as_ref().and_then(|line| line.seat.as_ref());
        self.is_leaving |= seat.is_some_and(|seat| seat.leave_if_idle());
        self.is_leaving && line.is_some()
    }
}

impl Connections {
    /// None noted yet.
    pub(crate) fn new(holder: Holder) -> Self {
        Self {
            holder,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            noted: Mutex::new(Noted {
                lines: BTreeMap::new(),
                sort_out_at: CONNECTIONS_NOTED_MIN,
            }),
        }
    }

    /// Notes the connection of the request that is being served, if it has one.
    ///
    /// # Errors
    /// [`SubjectLimit::Connections`]: of a subject that has as many as it may, and none idle.
    pub(crate) fn note(&self) -> Result<()> {
        // Most connections ask for the same bucket, as the same subject, again and again.
        let noted = CURRENT.try_with(|ConnectionCutoff(line)| {
            let noted_by = &line.noted_by[self.holder as usize];
            if noted_by.load(Ordering::Relaxed) == self.number {
                return Ok(());
            }
            let limit = match self.holder {
                Holder::Bucket | Holder::AccessKey => usize::MAX,
                Holder::Subject => line.per_subject,
            };
            self.noted.lock().add(line, limit)?;
            noted_by.store(self.number, Ordering::Relaxed);
            Ok(())
        });
        noted.unwrap_or(Ok(()))
    }

    /// Cuts all that were noted. Their front doors drop them soon after.
    pub(crate) fn cut(&self) {
        self.cut_but(None);
    }

    /// Cuts all that were noted but this one.
    pub(crate) fn cut_but(&self, spared: Option<&ConnectionCutoff>) {
        let spared = spared.map(|ConnectionCutoff(line)| line.number);
        let noted = self.noted.lock();
        let lines = noted.lines.values();
        for line in lines.filter_map(|noted| noted.line.upgrade()) {
            if Some(line.number) != spared {
                ConnectionCutoff(line).cut();
            }
        }
    }

    /// How many of them there are.
    pub(crate) fn count(&self) -> usize {
        let noted = self.noted.lock();
        let lines = noted.lines.values();
        lines.filter(|line| line.is_open()).count()
    }
}

impl Noted {
    fn add(&mut self, line: &Arc<Line>, limit: usize) -> Result<()> {
        if self.lines.contains_key(&line.number) {
            return Ok(());
        }
        if self.lines.len() >= self.sort_out_at.min(limit) {
            self.lines.retain(|_, line| line.is_open());
            self.sort_out_at = CONNECTIONS_NOTED_MIN.max(2 * self.lines.len());
        }
        if self.lines.len() >= limit && !self.has_room(limit) {
            return Err(SubjectLimit::Connections { limit }.into());
        }
        let noted = NotedLine {
            line: Arc::downgrade(line),
            is_leaving: false,
        };
        self.lines.insert(line.number, noted);
        Ok(())
    }

    /// Whether one more may come; the oldest that is idle may go for it.
    fn has_room(&mut self, limit: usize) -> bool {
        let counted = self.lines.values().filter(|line| line.is_counted());
        counted.count() < limit || self.lines.values_mut().any(NotedLine::makes_room)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;
    use crate::error::VaultError;

    #[tokio::test]
    async fn who_asked_is_known_of_a_connection() {
        let line = ConnectionCutoff::default();
        line.scope(async { Connections::new(Holder::Bucket).note() })
            .await
            .unwrap();
        assert!(!line.is_signed_in());
        line.scope(async { Connections::new(Holder::Subject).note() })
            .await
            .unwrap();
        assert!(line.is_signed_in());
    }

    #[tokio::test]
    async fn what_was_noted_is_cut_and_nothing_else() {
        let [bucket, other] = [Holder::Bucket; 2].map(Connections::new);
        let (reader, stranger) = (ConnectionCutoff::default(), ConnectionCutoff::default());
        reader
            .scope(async {
                bucket.note().unwrap();
                other.note().unwrap();
                bucket.note().unwrap();
            })
            .await;
        stranger.scope(async { other.note() }).await.unwrap();
        bucket.note().unwrap(); // outside of any connection
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
    fn ended_connections_are_sorted_out() {
        let bucket = Connections::new(Holder::Bucket);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        for _ in 0..10 * CONNECTIONS_NOTED_MIN {
            let line = ConnectionCutoff::default();
            runtime.block_on(line.scope(async { bucket.note().unwrap() }));
        }
        assert!(bucket.noted.lock().lines.len() <= CONNECTIONS_NOTED_MIN + 1);
    }

    #[derive(Debug, Default)]
    struct Chair {
        is_idle: AtomicBool,
        is_leaving: AtomicBool,
    }

    impl Seat for Chair {
        fn leave_if_idle(&self) -> bool {
            let is_idle = self.is_idle.load(Ordering::SeqCst);
            self.is_leaving.fetch_or(is_idle, Ordering::SeqCst);
            is_idle
        }
    }

    async fn asks(connection: &ConnectionCutoff, subject: &Connections) -> Result<()> {
        connection.scope(async { subject.note() }).await
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_of_a_subject_makes_room_and_is_still_cut() {
        let subject = Connections::new(Holder::Subject);
        let chairs: [Arc<Chair>; 4] = Default::default();
        let counted = |chair: &Arc<Chair>| ConnectionCutoff::counted(2, chair.clone());
        let [one, two, three, four] = chairs.each_ref().map(counted);
        for connection in [&one, &two, &one, &two] {
            asks(connection, &subject).await.unwrap();
        }
        let refused = asks(&three, &subject).await;
        assert!(matches!(
            refused,
            Err(VaultError::SubjectLimit(SubjectLimit::Connections {
                limit: 2
            }))
        ));
        assert!(!three.is_signed_in());
        // Another subject has as many of its own, and buckets count none.
        let [other, bucket] = [Holder::Subject, Holder::Bucket].map(Connections::new);
        for connection in [&three, &one] {
            asks(connection, &other).await.unwrap();
        }
        for connection in [&one, &two, &three, &four] {
            asks(connection, &bucket).await.unwrap();
        }
        for chair in &chairs[..2] {
            chair.is_idle.store(true, Ordering::SeqCst);
        }
        asks(&three, &subject).await.unwrap();
        let left = chairs
            .each_ref()
            .map(|chair| chair.is_leaving.load(Ordering::SeqCst));
        assert_eq!(left, [true, false, false, false]);
        subject.cut();
        assert!(one.is_cut() && two.is_cut() && three.is_cut() && !four.is_cut());
        // Those that have ended count no more.
        drop((one, two));
        asks(&four, &subject).await.unwrap();
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_hundred_at_once_never_pass_the_limit() {
        let subject = Arc::new(Connections::new(Holder::Subject));
        let tasks = (0..100).map(|_| {
            let subject = subject.clone();
            tokio::spawn(async move {
                let connection = ConnectionCutoff::counted(7, Arc::<Chair>::default());
                let outcome = asks(&connection, &subject).await;
                (connection, outcome.is_ok())
            })
        });
        let done = futures::future::join_all(tasks).await;
        let done: Vec<_> = done.into_iter().map(|task| task.unwrap()).collect();
        assert_eq!(done.iter().filter(|(_, is_let)| *is_let).count(), 7);
        assert_eq!(subject.count(), 7);
    }
}
