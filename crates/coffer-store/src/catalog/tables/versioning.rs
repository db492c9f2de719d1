//! Whether a bucket keeps versions, as its catalog says and as it is known without asking that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use rusqlite::{Connection, OptionalExtension};

use crate::error::{Result, StoreError};
use crate::version::Versioning;

/// A bucket's state as it was last known to stand: asking it costs nothing. While it is being
/// changed, and after that has failed, writes ask the catalog.
#[derive(Clone, Debug)]
pub(crate) struct KnownVersioning(Arc<Known>);

#[derive(Debug)]
struct Known {
    state: AtomicU8,
    /// How many changes were begun.
    begun: AtomicU64,
    /// Which of them the state is of.
    noted: AtomicU64,
}

impl KnownVersioning {
    pub(crate) fn new(state: Versioning) -> Self {
        Self(Arc::new(Known {
            state: AtomicU8::new(state.number()),
            begun: AtomicU64::new(0),
            noted: AtomicU64::new(0),
        }))
    }

    /// As it was last known.
    pub(crate) fn state(&self) -> Versioning {
        Versioning::of_number(self.0.state.load(Ordering::Acquire))
    }

    /// As it is for a write, in its transaction.
    pub(crate) fn state_in(&self, connection: &Connection) -> Result<Versioning> {
        let noted = self.0.noted.load(Ordering::SeqCst);
        if noted == self.0.begun.load(Ordering::SeqCst) {
            return Ok(self.state());
        }
        state_of(connection)
    }

    /// From now on it may change. Gives the change's number.
    pub(crate) fn begin_change(&self) -> u64 {
        self.0.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// What stands after a change, unless another was begun since.
    pub(crate) fn note(&self, change: u64, state: Versioning) {
        if self.0.begun.load(Ordering::SeqCst) == change {
            self.0.state.store(state.number(), Ordering::SeqCst);
            self.0.noted.store(change, Ordering::SeqCst);
        }
    }
}

/// What the catalog says.
pub(crate) fn state_of(connection: &Connection) -> Result<Versioning> {
    let sql = "SELECT value FROM meta WHERE name = 'versioning'";
    let mut statement = connection.prepare_cached(sql)?;
    let word: Option<String> = statement.query_row((), |row| row.get(0)).optional()?;
    Versioning::of_word(word.as_deref()).ok_or_else(StoreError::damaged_catalog)
}

/// Whether it was ever said that versions are deleted without a second factor.
pub(crate) fn is_mfa_delete_off(connection: &Connection) -> Result<bool> {
    let sql = "SELECT EXISTS(SELECT 1 FROM meta WHERE name = 'mfa_delete')";
    let mut statement = connection.prepare_cached(sql)?;
    Ok(statement.query_row((), |row| row.get(0))?)
}
