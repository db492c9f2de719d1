//! Whether a bucket keeps versions, as its catalog says and as it is known without asking that.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rusqlite::{Connection, OptionalExtension};

use crate::error::{Result, StoreError};
use crate::version::Versioning;

/// A bucket's state as it was last read: asking it costs nothing.
#[derive(Clone, Debug)]
pub(crate) struct KnownVersioning(Arc<AtomicU8>);

impl KnownVersioning {
    pub(crate) fn new(state: Versioning) -> Self {
        Self(Arc::new(AtomicU8::new(state.number())))
    }

    pub(crate) fn state(&self) -> Versioning {
        Versioning::of_number(self.0.load(Ordering::Acquire))
    }

    pub(crate) fn note(&self, state: Versioning) {
        self.0.store(state.number(), Ordering::Release);
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
