//! Whether a bucket keeps versions, as its catalog says and as it is known without asking that.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use parking_lot::Mutex;
use rusqlite::{Connection, OptionalExtension};

use crate::error::{Result, StoreError};
use crate::version::Versioning;

/// A bucket's state as it was last known to stand: asking it costs nothing. From the beginning of a
/// change until what stands was read, writes ask the catalog.
#[derive(Clone, Debug)]
pub(crate) struct KnownVersioning(Arc<Known>);

#[derive(Debug)]
struct Known {
    state: AtomicU8,
    /// Whether that is what stands.
    is_sure: AtomicBool,
    changes: Mutex<Changes>,
}

#[derive(Debug, Default)]
struct Changes {
    begun: u64,
    ended: u64,
}

impl KnownVersioning {
    pub(crate) fn new(state: Versioning) -> Self {
        Self(Arc::new(Known {
            state: AtomicU8::new(state.number()),
            is_sure: AtomicBool::new(true),
            changes: Mutex::default(),
        }))
    }

    /// As it was last known.
    pub(crate) fn state(&self) -> Versioning {
        Versioning::of_number(self.0.state.load(Ordering::Acquire))
    }

    /// As it is for a write, in its transaction.
    pub(crate) fn state_in(&self, connection: &Connection) -> Result<Versioning> {
        if self.0.is_sure.load(Ordering::Acquire) {
            return Ok(self.state());
        }
        state_of(connection)
    }

    pub(crate) fn begin_change(&self) {
        let mut changes = self.0.changes.lock();
        changes.begun += 1;
        self.0.is_sure.store(false, Ordering::Release);
    }

    /// It is done, failed, or in doubt. One that is given up before may be done yet, and never
    /// ends.
    pub(crate) fn end_change(&self) {
        self.0.changes.lock().ended += 1;
    }

    /// How many changes there were, where all have ended: what is read from here on can be noted.
    pub(crate) fn changes_ended(&self) -> Option<u64> {
        let changes = self.0.changes.lock();
        (changes.begun == changes.ended).then_some(changes.ended)
    }

    /// What was read to stand after so many changes, unless another was begun since.
    pub(crate) fn note(&self, after_changes: u64, state: Versioning) {
        let changes = self.0.changes.lock();
        if changes.begun == after_changes {
            self.0.state.store(state.number(), Ordering::Release);
            self.0.is_sure.store(true, Ordering::Release);
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
