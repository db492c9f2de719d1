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

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use tokio::task::futures::TaskLocalFuture;
use tokio_util::sync::CancellationToken;

use crate::limits::CONNECTIONS_NOTED_MIN;

tokio::task_local! {
    static CURRENT: ConnectionCutoff;
}

/// Numbers for connections and for what notes them, none twice.
static NEXT: AtomicU64 = AtomicU64::new(1);

/// By what a connection is cut off. Clones are of the same connection.
#[derive(Clone, Debug)]
pub struct ConnectionCutoff(Arc<Line>);

#[derive(Debug)]
struct Line {
    number: u64,
    cut: CancellationToken,
    /// The number of what noted it last, which then need not note it again, for each [`Holder`].
    noted_by: [AtomicU64; 2],
}

impl Default for ConnectionCutoff {
    fn default() -> Self {
        Self(Arc::new(Line {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            cut: CancellationToken::new(),
            noted_by: Default::default(),
        }))
    }
}

impl ConnectionCutoff {
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

    fn cut(&self) {
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
    lines: HashMap<u64, Weak<Line>>,
    /// How many there may be before those of ended connections are sorted out.
    sort_out_at: usize,
}

impl Connections {
    /// None noted yet.
    pub(crate) fn new(holder: Holder) -> Self {
        Self {
            holder,
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            noted: Mutex::new(Noted {
                lines: HashMap::new(),
                sort_out_at: CONNECTIONS_NOTED_MIN,
            }),
        }
    }

    /// Notes the connection of the request that is being served, if it has one.
    pub(crate) fn note(&self) {
        // Most connections ask for the same bucket, as the same subject, again and again.
        let _ = CURRENT.try_with(|ConnectionCutoff(line)| {
            let noted_by = &line.noted_by[self.holder as usize];
            if noted_by.load(Ordering::Relaxed) != self.number {
                noted_by.store(self.number, Ordering::Relaxed);
                self.noted.lock().add(line);
            }
        });
    }

    /// Cuts all that were noted. Their front doors drop them soon after.
    pub(crate) fn cut(&self) {
        self.cut_but(None);
    }

    /// Cuts all that were noted but this one.
    pub(crate) fn cut_but(&self, spared: Option<&ConnectionCutoff>) {
        let spared = spared.map(|ConnectionCutoff(line)| line.number);
        for line in self.noted.lock().lines.values().filter_map(Weak::upgrade) {
            if Some(line.number) != spared {
                ConnectionCutoff(line).cut();
            }
        }
    }

    /// How many of them there are.
    pub(crate) fn count(&self) -> usize {
        let noted = self.noted.lock();
        let lines = noted.lines.values();
        lines.filter(|line| line.strong_count() > 0).count()
    }
}

impl Noted {
    fn add(&mut self, line: &Arc<Line>) {
        if self.lines.len() >= self.sort_out_at {
            self.lines.retain(|_, line| line.strong_count() > 0);
            self.sort_out_at = CONNECTIONS_NOTED_MIN.max(2 * self.lines.len());
        }
        self.lines.insert(line.number, Arc::downgrade(line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn who_asked_is_known_of_a_connection() {
        let line = ConnectionCutoff::default();
        line.scope(async { Connections::new(Holder::Bucket).note() })
            .await;
        assert!(!line.is_signed_in());
        line.scope(async { Connections::new(Holder::Subject).note() })
            .await;
        assert!(line.is_signed_in());
    }

    #[tokio::test]
    async fn what_was_noted_is_cut_and_nothing_else() {
        let [bucket, other] = [Holder::Bucket; 2].map(Connections::new);
        let (reader, stranger) = (ConnectionCutoff::default(), ConnectionCutoff::default());
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
    fn ended_connections_are_sorted_out() {
        let bucket = Connections::new(Holder::Bucket);
        let runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = { runtime }.build().unwrap();
        for _ in 0..10 * CONNECTIONS_NOTED_MIN {
            runtime.block_on(ConnectionCutoff::default().scope(async { bucket.note() }));
        }
        assert!(bucket.noted.lock().lines.len() <= CONNECTIONS_NOTED_MIN + 1);
    }
}
