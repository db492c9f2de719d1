//! Verifying every page of `system.db`, also those that no statement needs.

use std::path::Path;

use coffer_seal::SecretKey;
use coffer_store::{Database, StoreError};
use rusqlite::Connection;

use super::{DATABASE, System};
use crate::error::Result;

/// So many places are told; more say nothing more.
const PLACES_MAX: usize = 100;

impl System {
    /// Which pages are damaged of a database that could not be read at its opening.
    pub(crate) fn damaged_pages(path: &Path, key: &SecretKey) -> Result<Vec<String>> {
        let connection = DATABASE.open_read_only(path, key)?;
        lines(&connection, "PRAGMA cipher_integrity_check")
    }

    /// What is damaged, place by place. No other request reads or changes anything meanwhile; it is
    /// small.
    pub(crate) fn find_damage(&self) -> Result<Vec<String>> {
        let mut held = self.held();
        // What is in the log alone is not in the pages that are verified next.
        let copied = held.read(|connection| {
            let checkpoint = "PRAGMA wal_checkpoint(TRUNCATE)";
            let is_busy: bool = connection
                .query_row(checkpoint, (), |row| row.get(0))
                .map_err(StoreError::from)?;
            Ok(!is_busy)
        });
        let mut damage =
            held.read(|connection| lines(connection, "PRAGMA cipher_integrity_check"))?;
        if !matches!(copied, Ok(true)) {
            damage.push("its log could not be copied into it".to_owned());
        }
        if damage.is_empty() {
            // How the pages hang together: told only where their seals are sound.
            damage = held.read(|connection| {
                let found = lines(connection, "PRAGMA integrity_check(20)")?;
                Database::assure(connection)?;
                Ok(found)
            })?;
            damage.retain(|line| line != "ok");
        }
        damage.truncate(PLACES_MAX);
        Ok(damage)
    }
}

fn lines(connection: &Connection, pragma: &str) -> Result<Vec<String>> {
    let mut statement = connection.prepare(pragma).map_err(StoreError::from)?;
    let rows = statement
        .query_map((), |row| row.get(0))
        .map_err(StoreError::from)?;
    rows.map(|line| Ok(line.map_err(StoreError::from)?))
        .collect()
}
