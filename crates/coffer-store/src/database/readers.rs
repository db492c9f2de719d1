//! The read connections of a catalog.
//!
//! A read transaction costs some locks of files, which is a good part of what a point read costs.
//! So an idle connection keeps its transaction open for the next read, as long as nothing has been
//! committed since: a commit ends those transactions before it is acknowledged, so that no one
//! reads what is past, and no idle reader holds the log.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, InterruptHandle};
use tokio::runtime::Handle;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::database::cipher;
use crate::database::connections::Connections;
use crate::database::sealed::Database;
use crate::error::{Result, StoreError};
use crate::limits::{IDLE_READERS_MAX, INTERRUPT_EVERY, LONG_READERS_MAX, POINT_READERS_MAX};

/// A cheap handle to the read connections of one catalog.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Shared>);

struct Shared {
    /// They go before what holds the folder.
    idle: Mutex<Vec<Reader>>,
    connections: Arc<Connections>,
    /// How many groups have been committed.
    commit_count: AtomicU64,
    /// The long reads under way.
    long_reads: Mutex<Vec<Arc<InterruptHandle>>>,
    /// Point reads and long ones have places of their own, so that listings can't hold up GETs.
    points: Semaphore,
    longs: Semaphore,
}

/// No one reads as long as it is there.
pub(crate) struct Paused<'a> {
    _points: Option<SemaphorePermit<'a>>,
    _longs: Option<SemaphorePermit<'a>>,
}

/// A connection, and the transaction that it has open.
struct Reader {
    connection: Connection,
    /// How many commits the transaction is sure to see. `None` when there is no transaction.
    sees: Option<u64>,
}

impl Readers {
    /// Opens nothing yet.
    pub(crate) fn new(connections: Arc<Connections>) -> Self {
        Self(Arc::new(Shared {
            connections,
            commit_count: AtomicU64::new(0),
            idle: Mutex::default(),
            long_reads: Mutex::default(),
            points: Semaphore::new(POINT_READERS_MAX),
            longs: Semaphore::new(LONG_READERS_MAX),
        }))
    }

    /// Runs a read of a few rows on this very thread: it takes some microseconds, which is less
    /// than handing it to another thread and back. Only when a connection has to be opened first
    /// does the blocking pool help.
    pub(crate) async fn point<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _place = place(self.0.points.acquire().await)?;
        let mut reader = match self.0.take_idle() {
            Some(reader) => reader,
            None => {
                let shared = self.0.clone();
                blocking(move || shared.open()).await?
            }
        };
        self.0.begin(&mut reader)?;
        self.0.run(reader, read)
    }

    /// Runs a read of many rows on the blocking pool, in one transaction: all of its statements see
    /// one state.
    pub(crate) async fn long<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let _place = place(self.0.longs.acquire().await)?;
        let shared = self.0.clone();
        blocking(move || {
            let mut reader = match shared.take_idle() {
                Some(reader) => reader,
                None => shared.open()?,
            };
            shared.begin(&mut reader)?;
            let _under_way = LongRead::begin(&shared, &reader)?;
            shared.run(reader, read)
        })
        .await
    }

    /// Runs, on the blocking pool and in the place of a long read, what reads the database's file
    /// itself. It must end soon when the connections are closed: nothing else cuts it off.
    pub(crate) async fn past<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connections) -> Result<T> + Send + 'static,
    {
        let _place = place(self.0.longs.acquire().await)?;
        let shared = self.0.clone();
        blocking(move || read(&shared.connections)).await
    }

    /// Something has been committed: from now on, every read sees it. To be called before the
    /// commit is acknowledged.
    pub(crate) fn committed(&self) {
        self.0.commit_count.fetch_add(1, Ordering::AcqRel);
        // One whose transaction does not end is of no use any more.
        self.0.idle.lock().retain_mut(|reader| reader.end().is_ok());
    }

    /// Waits for those who read and lets go of all connections. Others read again when what is
    /// returned is dropped. Blocks, so not on a thread of the runtime.
    pub(crate) fn pause(&self) -> Result<Paused<'_>> {
        let Ok(runtime) = Handle::try_current() else {
            return Err(StoreError::Closed);
        };
        runtime.block_on(async {
            let points = self.0.points.acquire_many(POINT_READERS_MAX as u32).await;
            let longs = self.0.longs.acquire_many(LONG_READERS_MAX as u32).await;
            self.0.idle.lock().clear();
            // When they are closed, no one reads any more either.
            Ok(Paused {
                _points: points.ok(),
                _longs: longs.ok(),
            })
        })
    }

    /// Lets no one in any more, waits for those who read and lets go of all connections.
    pub(crate) async fn close(&self) {
        self.0.connections.close();
        let points = self.0.points.acquire_many(POINT_READERS_MAX as u32).await;
        let longs = self.0.longs.acquire_many(LONG_READERS_MAX as u32).await;
        self.0.points.close();
        self.0.longs.close();
        drop((points, longs));
        self.0.idle.lock().clear();
    }

    /// As [`close`](Self::close), but cuts long reads off.
    pub(crate) async fn abandon(&self) {
        let mut closing = pin!(self.close());
        loop {
            tokio::select! {
                biased;
                () = &mut closing => return,
                () = tokio::time::sleep(INTERRUPT_EVERY) => {}
            }
            // Again and again, for it does nothing to a read that is just between two statements.
            for read in &*self.0.long_reads.lock() {
                read.interrupt();
            }
        }
    }
}

/// Makes a long read one that can be cut off, as long as it lasts.
struct LongRead<'a> {
    shared: &'a Shared,
    handle: Arc<InterruptHandle>,
}

impl<'a> LongRead<'a> {
    fn begin(shared: &'a Shared, reader: &Reader) -> Result<Self> {
        let handle = Arc::new(reader.connection.get_interrupt_handle());
        shared.long_reads.lock().push(handle.clone());
        let begun = Self { shared, handle };
        // After it can be cut off: who closes meanwhile has met it, or is seen here.
        if shared.connections.is_closed() {
            Err(StoreError::Closed)
        } else {
            Ok(begun)
        }
    }
}

impl Drop for LongRead<'_> {
    fn drop(&mut self) {
        let is_other = |read: &Arc<InterruptHandle>| !Arc::ptr_eq(read, &self.handle);
        self.shared.long_reads.lock().retain(is_other);
    }
}

impl Reader {
    /// Ends the transaction if there is one.
    fn end(&mut self) -> Result<()> {
        match self.sees.take() {
            Some(_) => self.step("COMMIT"),
            None => Ok(()),
        }
    }

    fn step(&self, sql: &str) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(())?;
        Ok(())
    }
}

impl Shared {
    fn open(&self) -> Result<Reader> {
        Ok(Reader {
            connection: self.connections.open_read_only()?,
            sees: None,
        })
    }

    fn take_idle(&self) -> Option<Reader> {
        self.idle.lock().pop()
    }

    /// Sees to it that a transaction is open that sees all that has been committed.
    fn begin(&self, reader: &mut Reader) -> Result<()> {
        // Counted before the transaction begins, which then sees at least so many.
        let commit_count = self.commit_count.load(Ordering::Acquire);
        if reader.sees != Some(commit_count) {
            reader.end()?;
            reader.step("BEGIN")?;
            reader.sees = Some(commit_count);
        }
        Ok(())
    }

    fn run<T>(&self, mut reader: Reader, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let opened = cipher::pages_opened(&reader.connection);
        let outcome = read(&reader.connection)?;
        if cipher::pages_opened(&reader.connection) != opened {
            Database::assure(&reader.connection)?;
        }
        // After a failure a fresh connection is the safer one: those go with the `?`.
        let mut idle = self.idle.lock();
        // One of a file system that takes no writes would not see that it does again.
        let is_lasting =
            self.connections.is_still() || !reader.connection.is_readonly(rusqlite::MAIN_DB)?;
        if is_lasting && idle.len() < IDLE_READERS_MAX && !self.connections.is_closed() {
            // Under the lock that `committed` takes too: what it did not find there ends here.
            if reader.sees != Some(self.commit_count.load(Ordering::Acquire)) {
                reader.end()?;
            }
            idle.push(reader);
        }
        Ok(outcome)
    }
}

fn place(acquired: Result<SemaphorePermit<'_>, AcquireError>) -> Result<SemaphorePermit<'_>> {
    acquired.map_err(|_| StoreError::Closed)
}

/// Runs `work` on the blocking pool; a runtime that shuts down answers `Closed`.
pub(crate) async fn blocking<T, F>(work: F) -> Result<T>
where
    T: Send + 'static,
    F: FnOnce() -> Result<T> + Send + 'static,
{
    tokio::task::spawn_blocking(work)
        .await
        .unwrap_or(Err(StoreError::Closed))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use coffer_seal::SecretKey;

    use super::*;
    use crate::database::held::Held;

    const DATABASE: Database = Database {
        application_id: 1,
        format_version: 1,
    };

    /// The readers of a new database, and who writes to it.
    fn readers(dir: &std::path::Path) -> (Readers, Connection) {
        let (path, key) = (dir.join("t.db"), SecretKey::generate());
        let writer = DATABASE.create(&path, &key, "CREATE TABLE t(x);");
        let held = Held::take(dir).unwrap();
        let connections = Connections::new(DATABASE, path, key, Some(held));
        (Readers::new(Arc::new(connections)), writer.unwrap())
    }

    const ENDLESS: &str = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)
        SELECT count(*) FROM n";
    const SHORT: &str = "SELECT count(*) FROM t";

    fn count(connection: &Connection) -> Result<i64> {
        Ok(connection.query_row(SHORT, (), |row| row.get(0))?)
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn all_statements_of_a_read_see_one_state() {
        let dir = tempfile::tempdir().unwrap();
        let (readers, writer) = readers(dir.path());
        let found = readers.long(move |connection| {
            let before = count(connection)?;
            writer.execute("INSERT INTO t VALUES(1)", ())?;
            Ok((before, count(connection)?))
        });
        assert_eq!(found.await.unwrap(), (0, 0));
        readers.committed();
        let found = readers.long(count);
        let found = found.await.unwrap();
        assert_eq!(found, 1, "the next one sees what was committed");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn long_reads_are_cut_off_in_a_statement_and_between_two() {
        for statement in [ENDLESS, SHORT] {
            let dir = tempfile::tempdir().unwrap();
            let (readers, _) = readers(dir.path());
            let (began, begun) = tokio::sync::oneshot::channel();
            let reading = readers.clone();
            let read = tokio::spawn(async move {
                let again_and_again = move |connection: &Connection| {
                    began.send(()).unwrap();
                    loop {
                        connection.query_row(statement, (), |row| row.get::<_, i64>(0))?;
                    }
                };
                let read: Result<()> = reading.long(again_and_again).await;
                read
            });
            begun.await.unwrap();
            let cut = Instant::now();
            readers.abandon().await;
            assert!(cut.elapsed() < Duration::from_secs(1), "{statement}");
            assert!(matches!(read.await.unwrap(), Err(StoreError::Closed)));
            let late = readers.long(|_| Ok(())).await;
            assert!(matches!(late, Err(StoreError::Closed)));
        }
    }
}
