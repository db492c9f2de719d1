//! The one writer of a catalog: it commits what is queued in one transaction.
//!
//! A durable commit costs one wait for the disk, however many writes are in it. So writes queue;
//! the first to come starts a job on the blocking pool, which takes what is queued, commits it and
//! answers, until the queue is empty. While one group waits for the disk the next one gathers. No
//! thread is held while nothing is written.
//!
//! Each write stands in a savepoint of its own: one that fails (a precondition, a missing upload)
//! leaves no trace and does not touch the others. When the transaction itself fails, its writes are
//! tried once more one by one, so that one that can't succeed does not fail its neighbours.

use std::cell::Cell;
use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, ffi};
use tokio::sync::oneshot;

use crate::cipher;
use crate::error::{Result, StoreError};
use crate::limits::{BATCH_MAX, CHECKPOINT_FORCED_PAGES, CHECKPOINT_PAGES};

/// A cheap handle to the writer of one catalog.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Shared>);

struct Shared {
    queue: Mutex<Queue>,
    /// `None` once closed.
    session: Mutex<Option<Session>>,
}

/// What a write works with: the connection, within a transaction, and the next free id.
pub(crate) struct Session {
    connection: Connection,
    next_object_id: Cell<Option<i64>>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Write>>,
    /// A job is at work, or about to be, and will look here again before it ends.
    draining: bool,
    closed: bool,
}

/// A queued write, and who waits for its outcome.
trait Write: Send {
    /// Does the work within a savepoint. Returns whether to keep it.
    fn run(&mut self, session: &Session) -> bool;
    /// Tells the outcome: what `run` came to, unless the transaction failed.
    fn answer(self: Box<Self>, failed: Option<StoreError>);
}

struct Queued<T, F> {
    work: F,
    outcome: Option<Result<T>>,
    waiting: oneshot::Sender<Result<T>>,
}

impl<T: Send, F: FnMut(&Session) -> Result<T> + Send> Write for Queued<T, F> {
    fn run(&mut self, session: &Session) -> bool {
        let outcome = (self.work)(session).map_err(|error| of_system(session, error));
        self.outcome.insert(outcome).is_ok()
    }

    fn answer(self: Box<Self>, failed: Option<StoreError>) {
        let outcome = match (failed, self.outcome) {
            (_, Some(Err(own))) => Err(own),
            (Some(error), _) => Err(error),
            (None, Some(done)) => done,
            (None, None) => Err(StoreError::Closed),
        };
        // Whoever asked may have gone: what was committed stays committed.
        let _ = self.waiting.send(outcome);
    }
}

impl Writer {
    /// Takes a connection that may write.
    pub(crate) fn new(connection: Connection) -> Result<Self> {
        connection.execute_batch("PRAGMA wal_autocheckpoint = 0")?;
        connection.wal_hook(Some(|_, pages| {
            LOG_PAGES.set(u32::try_from(pages).unwrap_or(0));
            Ok(())
        }));
        let session = Session {
            connection,
            next_object_id: Cell::new(None),
        };
        let queue = Mutex::new(Queue::default());
        Ok(Self(Arc::new(Shared {
            queue,
            session: Mutex::new(Some(session)),
        })))
    }

    /// Queues `work` and waits until it is durable. `work` may run twice: the first time is then
    /// undone.
    pub(crate) async fn write<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Session) -> Result<T> + Send + 'static,
    {
        let (waiting, answer) = oneshot::channel();
        self.enqueue(Box::new(Queued {
            work,
            outcome: None,
            waiting,
        }))?;
        // No answer: the runtime is shutting down, or the job broke off.
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn enqueue(&self, write: Box<dyn Write>) -> Result<()> {
        let start = {
            let mut queue = self.0.queue();
            if queue.closed {
                return Err(StoreError::Closed);
            }
            queue.waiting.push_back(write);
            !std::mem::replace(&mut queue.draining, true)
        };
        if start {
            let shared = self.0.clone();
            tokio::task::spawn_blocking(move || shared.drain());
        }
        Ok(())
    }

    /// Takes no more writes, ends those queued, copies the log into the database and lets go of
    /// the connection. Blocks.
    pub(crate) fn close(&self) {
        self.0.queue().closed = true;
        self.0.drain();
        if let Some(session) = self.0.session().take() {
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            if let Err(error) = session.query_row(checkpoint, (), |_| Ok(())) {
                // Nothing is lost: the next opening reads the log.
                tracing::warn!(%error, "a catalog's log was not copied on closing");
            }
        }
    }
}

impl Shared {
    /// Commits group after group until nothing is queued.
    fn drain(&self) {
        let session = self.session();
        let broken = OnPanic(self);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            {
                let mut queue = self.queue();
                let count = queue.waiting.len().min(BATCH_MAX);
                batch.extend(queue.waiting.drain(..count));
                queue.draining = count > 0;
            }
            match &*session {
                _ if batch.is_empty() => break,
                Some(session) => {
                    commit_group(session, &mut batch);
                    checkpoint_when_due(session);
                }
                None => {
                    for write in batch.drain(..) {
                        write.answer(Some(StoreError::Closed));
                    }
                }
            }
        }
        std::mem::forget(broken);
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        // Only whole steps are made under this lock.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn session(&self) -> MutexGuard<'_, Option<Session>> {
        // After a panic the queue is closed; see `OnPanic`.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Session {
    /// An id that no object has yet. Ids rise, so that new rows go to the end of their tables; one
    /// whose write is undone is skipped.
    pub(crate) fn next_object_id(&self) -> Result<i64> {
        let id = match self.next_object_id.get() {
            Some(id) => id,
            None => self.query_row(
                "SELECT 1 + max(ifnull((SELECT max(object_id) FROM inline), 0),
                                ifnull((SELECT max(object_id) FROM blob), 0))",
                (),
                |row| row.get(0),
            )?,
        };
        self.next_object_id.set(Some(id + 1));
        Ok(id)
    }
}

impl Deref for Session {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

/// Closes the queue when a write panics, for the state of the transaction is then unknown. What
/// waits learns it by its sender going away.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue();
        queue.closed = true;
        queue.waiting.clear();
    }
}

/// Commits the writes in one transaction and answers them; leaves `batch` empty.
fn commit_group(session: &Session, batch: &mut Vec<Box<dyn Write>>) {
    let failed = match commit(session, batch) {
        Ok(()) => None,
        Err(_) if batch.len() > 1 => return commit_one_by_one(session, batch),
        Err(error) => Some(error),
    };
    answer(batch, failed);
}

fn commit_one_by_one(session: &Session, batch: &mut Vec<Box<dyn Write>>) {
    for write in batch.drain(..) {
        let mut alone = vec![write];
        let failed = commit(session, &mut alone).err();
        answer(&mut alone, failed);
    }
}

fn answer(batch: &mut Vec<Box<dyn Write>>, mut failed: Option<StoreError>) {
    // More than one write is only answered here when all went well.
    for write in batch.drain(..) {
        write.answer(failed.take());
    }
}

fn commit(session: &Session, batch: &mut [Box<dyn Write>]) -> Result<()> {
    let done = try_commit(session, batch);
    if done.is_err() && !session.is_autocommit() {
        // Fails only when SQLite has rolled back by itself.
        let _ = session.execute_batch("ROLLBACK");
    }
    done
}

fn try_commit(session: &Session, batch: &mut [Box<dyn Write>]) -> Result<()> {
    step(session, "BEGIN IMMEDIATE")?;
    for write in batch {
        step(session, "SAVEPOINT one")?;
        let keep = write.run(session);
        if session.is_autocommit() {
            // The error was such that SQLite rolled back the whole transaction. The write keeps
            // that error; this one is for the others.
            return Err(StoreError::Database {
                code: ffi::SQLITE_ABORT_ROLLBACK,
            });
        }
        if !keep {
            step(session, "ROLLBACK TO one")?;
        }
        step(session, "RELEASE one")?;
    }
    step(session, "COMMIT")
}

fn step(session: &Session, sql: &str) -> Result<()> {
    let done = session
        .prepare_cached(sql)
        .and_then(|mut statement| statement.execute(()));
    done.map(drop)
        .map_err(|error| of_system(session, error.into()))
}

/// A full disk does not always come as SQLite's own "full": a quota or the shared-memory file say
/// so through the system's error only. Except when syncing: then the commit may stand after a
/// crash, and "full" would promise that it does not.
fn of_system(session: &Session, error: StoreError) -> StoreError {
    match error {
        StoreError::Database { code } if code != ffi::SQLITE_IOERR_FSYNC => {
            let errno = rustix::io::Errno::from_raw_os_error(cipher::system_errno(session));
            if matches!(errno, rustix::io::Errno::NOSPC | rustix::io::Errno::DQUOT) {
                StoreError::Full
            } else {
                error
            }
        }
        other => other,
    }
}

thread_local! {
    /// How long the log was after this thread's last commit, in pages.
    static LOG_PAGES: Cell<u32> = const { Cell::new(0) };
}

/// Copies the log into the database when it has grown. After the answers: nobody waits for it but
/// the writes that come next.
fn checkpoint_when_due(session: &Session) {
    let pages = LOG_PAGES.take();
    let checkpoint = if pages >= CHECKPOINT_FORCED_PAGES {
        // Waits for the readers there are. Those that begin meanwhile find all pages in the
        // database and don't hold the log.
        "PRAGMA wal_checkpoint(RESTART)"
    } else if pages >= CHECKPOINT_PAGES {
        "PRAGMA wal_checkpoint(PASSIVE)"
    } else {
        return;
    };
    let done = session
        .prepare_cached(checkpoint)
        .and_then(|mut statement| statement.query_row((), |_| Ok(())));
    if let Err(error) = done {
        // The commits stand. It is tried again after the next one.
        tracing::warn!(%error, "a catalog's log could not be copied");
    }
}
