//! The one writer of a catalog: it commits what is queued in one transaction.
//!
//! A durable commit costs one wait for the disk, however many writes are in it. So writes queue;
//! the first to come starts a job on the blocking pool, which takes what is queued, commits it and
//! answers, until the queue is empty. While one group waits for the disk the next one gathers. No
//! thread is held while nothing is written.
//!
//! A write checks first and changes then, so one that fails for its own reasons (a precondition, a
//! missing upload) has left no trace and does not touch the others. Should one fail after it has
//! changed something, all is rolled back and the writes are tried once more one by one, so that one
//! that can't succeed does not fail its neighbours.
//!
//! Only what is certain not to stand is tried again. A commit that fails half-way may stand: its
//! writes are answered as in doubt, the connection is let go of without touching the log, and the
//! next one begins when a durable copy has taken the log's place (`log.rs`).
//!
//! Savepoints would do the same at a higher price: SQLite keeps a copy of every page that is
//! changed under one, and SQLCipher seals these copies.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use rusqlite::Connection;
use tokio::sync::{Semaphore, oneshot};

use crate::admission::Admission;
use crate::database::connections::Connections;
use crate::database::doubt::Newest;
use crate::database::queued_write::{Queued, Write, run_all};
use crate::database::readers::{Readers, blocking};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::free_space;
use crate::limits::{BATCH_MAX, LINGER_MAX, TIDY_AFTER, TIDY_AGAIN};

/// A cheap handle to the writer of one catalog.
#[derive(Clone)]
pub(crate) struct Writer(Arc<Shared>);

struct Shared {
    /// `None` after a failure, until the next write opens another one, and once closed. It goes
    /// before what holds the folder.
    session: Mutex<Option<Session>>,
    connections: Arc<Connections>,
    /// Who must see what is committed.
    readers: Readers,
    queue: Mutex<Queue>,
    gathered: Condvar,
    /// Told of each commit.
    newest: Newest,
    /// Who counts what writes add.
    admission: OnceLock<Arc<dyn Admission>>,
    /// Whether a job waits to empty the log.
    is_tidying: AtomicBool,
    /// Who finds out whether what is in doubt stands: one at a time, for each holds a thread.
    settler: Arc<Semaphore>,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Box<dyn Write>>,
    /// A job is at work, or about to be, and will look here again before it ends.
    draining: bool,
    /// How many must wait before a lingering job is worth waking.
    enough: usize,
    /// How many writes the transaction under way has.
    group_count: usize,
    closed: bool,
}

impl Writer {
    /// Takes a connection that may write; `connections` makes others like it.
    pub(crate) fn new(
        connections: Arc<Connections>,
        readers: Readers,
        connection: Connection,
        newest: Newest,
    ) -> Result<Self> {
        let session = Session::new(connection, connections.own_files(), connections.tapped())?;
        Ok(Self(Arc::new(Shared {
            session: Mutex::new(Some(session)),
            connections,
            readers,
            queue: Mutex::default(),
            gathered: Condvar::new(),
            newest,
            admission: OnceLock::new(),
            is_tidying: AtomicBool::new(false),
            settler: Arc::new(Semaphore::new(1)),
        })))
    }

    /// From now on writes are told to who counts what they add. Only the first is.
    pub(crate) fn admit_by(&self, admission: Arc<dyn Admission>) {
        let _ = self.0.admission.set(admission);
    }

    /// Empties the log soon, for what a killed process left in it may show what it removed.
    pub(crate) fn tidy_soon(&self) {
        if let Some(session) = &*self.0.session.lock() {
            session.note_removed();
        }
        self.0.tidy_after(TIDY_AFTER);
    }

    /// Copies into the database what the log has, as far as readers allow.
    pub(crate) async fn copy_log(&self) {
        let shared = self.0.clone();
        let copy = move || {
            if let Some(session) = &*shared.session.lock() {
                shared.readers.committed();
                session.make_space();
            }
        };
        // A runtime that shuts down copies when it closes.
        let _ = tokio::task::spawn_blocking(copy).await;
    }

    /// Looks whether the files are as the last write left them, between two writes.
    ///
    /// # Errors
    /// [`StoreError::Replaced`] when they are not.
    pub(crate) async fn look_at_files(&self) -> Result<()> {
        let shared = self.0.clone();
        let look = move || match &*shared.session.lock() {
            Some(_) => shared.connections.assure_untouched(),
            None => shared.connections.refuse_replaced(),
        };
        blocking(look).await
    }

    /// Queues `work` and waits until it is durable. `adds`: it is refused on a disk that is nearly
    /// full. It should fail before its first change, if at all, and may run twice: the first time
    /// is then undone.
    pub(crate) async fn write<T, F>(&self, adds: bool, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnMut(&Session) -> Result<T> + Send + 'static,
    {
        let (waiting, answer) = oneshot::channel();
        let admission = self.0.admission.get().cloned();
        self.enqueue(Box::new(Queued::new(adds, work, admission, waiting)))?;
        // No answer: the runtime is shutting down, or the job broke off.
        answer.await.unwrap_or(Err(StoreError::Closed))
    }

    fn enqueue(&self, write: Box<dyn Write>) -> Result<()> {
        let start = {
            let mut queue = self.0.queue.lock();
            if queue.closed {
                return Err(StoreError::Closed);
            }
            queue.waiting.push_back(write);
            if queue.waiting.len() == queue.enough {
                self.0.gathered.notify_one();
            }
            !std::mem::replace(&mut queue.draining, true)
        };
        if start {
            let shared = self.0.clone();
            tokio::task::spawn_blocking(move || shared.drain());
        }
        Ok(())
    }

    /// Within a write that takes long: leaves the processor to others for `time`. Not while anybody
    /// waits for the write to end. Blocks.
    pub(crate) fn rest(&self, time: Duration) {
        let mut queue = self.0.queue.lock();
        if queue.group_count > 1 {
            return;
        }
        queue.enough = 1;
        let is_alone = |queue: &mut Queue| queue.waiting.is_empty() && !queue.closed;
        let gathered = &self.0.gathered;
        gathered.wait_while_for(&mut queue, is_alone, time);
        queue.enough = 0;
    }

    /// Takes no more writes, ends those queued, copies the log into the database and lets go of
    /// the connection. Blocks.
    pub(crate) fn close(&self) {
        self.0.queue.lock().closed = true;
        self.0.gathered.notify_one();
        self.0.drain();
        if let Some(session) = self.0.session.lock().take() {
            session.finish();
        }
    }

    /// Refuses what is queued and lets go of the connection, after the commit under way. Blocks.
    pub(crate) fn abandon(&self) {
        let mut queue = self.0.queue.lock();
        queue.closed = true;
        queue.waiting.clear();
        drop(queue);
        self.0.gathered.notify_one();
        self.0.connections.close();
        if let Some(session) = self.0.session.lock().take() {
            session.abandon();
        }
    }
}

impl Shared {
    /// Commits group after group until nothing is queued.
    fn drain(self: &Arc<Self>) {
        let mut session = self.session.lock();
        let broken = OnPanic(self);
        let mut batch = Vec::with_capacity(BATCH_MAX);
        let mut last_count = 0;
        loop {
            {
                let mut queue = self.gather(last_count);
                last_count = queue.waiting.len().min(BATCH_MAX);
                batch.extend(queue.waiting.drain(..last_count));
                queue.draining = last_count > 0;
                queue.group_count = last_count;
            }
            if batch.is_empty() {
                break;
            }
            self.refuse_if_scarce(&session, &mut batch);
            self.commit_group(&mut session, &mut batch);
            if let Some(session) = &*session {
                // After the answers: only the writes that come next wait for it.
                session.checkpoint_when_due();
                if session.has_removed() {
                    self.tidy_after(TIDY_AFTER);
                }
            }
        }
        std::mem::forget(broken);
    }

    /// Empties the log after a while, once, however much is removed until then.
    fn tidy_after(self: &Arc<Self>, wait: Duration) {
        // Where there is no runtime, the catalog is being closed, which empties the log as well.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        if self.is_tidying.swap(true, Ordering::AcqRel) {
            return;
        }
        let shared = Arc::downgrade(self);
        runtime.spawn(async move {
            tokio::time::sleep(wait).await;
            let Some(shared) = shared.upgrade() else {
                return;
            };
            let _ = tokio::task::spawn_blocking(move || shared.tidy()).await;
        });
    }

    fn tidy(self: &Arc<Self>) {
        let session = self.session.lock();
        // Before the work: what is removed after it asks for the next time.
        self.is_tidying.store(false, Ordering::Release);
        // Idle readers let go, and those that begin then find all pages in the database.
        let is_left = |session: &Session| {
            self.readers.committed();
            session.make_space();
            self.readers.committed();
            session.has_removed() && !session.tidy()
        };
        if session.as_ref().is_some_and(is_left) {
            self.tidy_after(TIDY_AGAIN);
        }
    }

    /// Waits a moment for those who have just been answered: they are likely to write again, and
    /// one commit for all is cheaper than two for the halves that would otherwise take turns.
    fn gather(&self, last_count: usize) -> MutexGuard<'_, Queue> {
        let mut queue = self.queue.lock();
        if last_count > 1 {
            queue.enough = BATCH_MAX.min(queue.waiting.len() + last_count);
            let gathering = |queue: &mut Queue| queue.waiting.len() < queue.enough && !queue.closed;
            self.gathered
                .wait_while_for(&mut queue, gathering, LINGER_MAX);
            queue.enough = 0;
        }
        queue
    }

    /// Refuses what adds data when there is hardly room.
    fn refuse_if_scarce(&self, session: &Option<Session>, batch: &mut Vec<Box<dyn Write>>) {
        if !batch.iter().any(|write| write.adds()) {
            return;
        }
        let mut room_bytes = free_space::room_bytes_at(self.connections.path());
        if let Some(session) = session
            && room_bytes < session.log_bytes()
        {
            // What is in the log needs room in the database as well: now, while there is some.
            session.make_space();
            room_bytes = free_space::room_bytes_at(self.connections.path());
        }
        if room_bytes == 0 && !session.as_ref().is_some_and(Session::has_free_pages) {
            for write in batch.extract_if(.., |write| write.adds()) {
                write.answer(Some(StoreError::Full));
            }
        }
    }

    /// Commits the writes in one transaction, or else one by one, and answers them; leaves `batch`
    /// empty.
    fn commit_group(&self, session: &mut Option<Session>, batch: &mut Vec<Box<dyn Write>>) {
        if batch.is_empty() {
            return;
        }
        let mut failed = self.commit(session, batch).err();
        if let (Some(StoreError::Full), Some(session)) = (&failed, &*session) {
            // Often enough to delete something.
            session.make_space();
        }
        match failed {
            None => return batch.drain(..).for_each(|write| write.answer(None)),
            Some(StoreError::InDoubt) => {
                let doubt = |write: Box<dyn Write>| write.answer(Some(StoreError::InDoubt));
                return batch.drain(..).for_each(doubt);
            }
            Some(_) => {}
        }
        let is_alone = batch.len() == 1;
        for write in batch.drain(..) {
            let mut alone = [write];
            if !is_alone || matches!(failed, Some(StoreError::Full)) {
                failed = self.commit(session, &mut alone).err();
            }
            let [write] = alone;
            write.answer(failed.take());
        }
    }

    /// [`StoreError::InDoubt`] when it may stand; after every other error it certainly does not.
    fn commit(&self, session: &mut Option<Session>, batch: &mut [Box<dyn Write>]) -> Result<()> {
        self.connections.assure_own_file()?;
        let _shows = self.connections.committing();
        let current = match session {
            Some(session) => {
                self.connections.assure_untouched()?;
                session
            }
            None => session.insert(self.reopen()?),
        };
        let done = current.transact(|| run_all(current, batch));
        // Also after a failure, for it may stand.
        self.readers.committed();
        match &done {
            // The next write opens another one, which counts.
            Ok(()) if self.count(current).is_err() => *session = None,
            Ok(()) => {}
            Err(StoreError::InDoubt) => {
                self.connections.doubt_the_log();
                if let Some(session) = session.take() {
                    session.abandon();
                }
                // At once, so that no one reads what is not durable. Or else the next write tries.
                // Old pages may be in the log, which is emptied in time.
                *session = self.reopen().inspect(Session::note_removed).ok();
            }
            Err(StoreError::Full | StoreError::DiskReadOnly | StoreError::OverQuota(_))
                if current.is_autocommit() => {}
            // One that met a damaged page is of no use any more; else a fresh one is safer.
            Err(_) => *session = None,
        }
        done
    }
}

/// Closes the queue when a write panics, for it is not known what became of it. Who waits hears.
struct OnPanic<'a>(&'a Shared);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        let mut queue = self.0.queue.lock();
        queue.closed = true;
        queue.waiting.clear();
    }
}

mod reopen;
