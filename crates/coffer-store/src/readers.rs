//! The read connections of a catalog.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;
use tokio::sync::{AcquireError, Semaphore, SemaphorePermit};

use crate::cipher;
use crate::database::Database;
use crate::error::{Result, StoreError};
use crate::limits::{IDLE_READERS_MAX, LONG_READERS_MAX, POINT_READERS_MAX};
use crate::opener::Opener;

/// A cheap handle to the read connections of one catalog.
#[derive(Clone)]
pub(crate) struct Readers(Arc<Shared>);

struct Shared {
    opener: Arc<Opener>,
    idle: Mutex<Vec<Connection>>,
    /// Point reads and long ones have places of their own, so that listings can't hold up GETs.
    points: Semaphore,
    longs: Semaphore,
}

impl Readers {
    /// Opens nothing yet.
    pub(crate) fn new(opener: Arc<Opener>) -> Self {
        Self(Arc::new(Shared {
            opener,
            idle: Mutex::default(),
            points: Semaphore::new(POINT_READERS_MAX),
            longs: Semaphore::new(LONG_READERS_MAX),
        }))
    }

    /// Runs a read of a few rows on this very thread: it takes some microseconds, which is less
    /// than handing it to another thread and back. Only when a connection has to be opened first
    /// does the blocking pool help.
    pub(crate) async fn point<T>(&self, read: impl FnOnce(&Connection) -> Result<T>) -> Result<T> {
        let _place = place(self.0.points.acquire().await)?;
        let connection = match self.0.take_idle() {
            Some(connection) => connection,
            None => {
                let shared = self.0.clone();
                blocking(move || shared.opener.open_read_only()).await?
            }
        };
        self.0.run(connection, read)
    }

    /// Runs a read of many rows on the blocking pool.
    pub(crate) async fn long<T, F>(&self, read: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let _place = place(self.0.longs.acquire().await)?;
        let shared = self.0.clone();
        blocking(move || {
            let connection = match shared.take_idle() {
                Some(connection) => connection,
                None => shared.opener.open_read_only()?,
            };
            shared.run(connection, read)
        })
        .await
    }

    /// Lets nobody in any more, waits for those who read and lets go of all connections.
    pub(crate) async fn close(&self) {
        self.0.opener.close();
        let points = self.0.points.acquire_many(POINT_READERS_MAX as u32).await;
        let longs = self.0.longs.acquire_many(LONG_READERS_MAX as u32).await;
        self.0.points.close();
        self.0.longs.close();
        drop((points, longs));
        self.0.lock_idle().clear();
    }
}

impl Shared {
    fn take_idle(&self) -> Option<Connection> {
        self.lock_idle().pop()
    }

    fn run<T>(
        &self,
        connection: Connection,
        read: impl FnOnce(&Connection) -> Result<T>,
    ) -> Result<T> {
        let opened = cipher::pages_opened(&connection);
        let outcome = read(&connection)?;
        if cipher::pages_opened(&connection) != opened {
            Database::assure(&connection)?;
        }
        // After a failure a fresh connection is the safer one: those go with the `?`.
        let mut idle = self.lock_idle();
        if idle.len() < IDLE_READERS_MAX && !self.opener.is_closed() {
            idle.push(connection);
        }
        Ok(outcome)
    }

    fn lock_idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
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
