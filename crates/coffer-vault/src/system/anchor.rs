//! The audit log's anchor: a late record of it, kept apart from it, so that a log that was removed
//! or put back to an older copy of itself is missed.

use coffer_audit::{Hash, Recorded};
use coffer_store::StoreError;
use rusqlite::{OptionalExtension, params};

use super::System;
use crate::error::{Result, VaultError};

impl System {
    /// A record that the audit log is known to hold; `None` before there was a log.
    pub(crate) fn audit_anchor(&self) -> Result<Option<Recorded>> {
        let sql = "SELECT sequence, hash FROM audit_anchor";
        let row: Option<(i64, [u8; 32])> = self.held().read(|connection| {
            let row = connection.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
            Ok(row.optional().map_err(StoreError::from)?)
        })?;
        let recorded = |(sequence, hash)| {
            Ok(Recorded {
                sequence: u64::try_from(sequence).map_err(|_| VaultError::Damaged)?,
                hash: Hash(hash),
            })
        };
        row.map(recorded).transpose()
    }

    /// Keeps a later record.
    pub(crate) fn set_audit_anchor(&self, recorded: &Recorded) -> Result<()> {
        let sequence = i64::try_from(recorded.sequence).map_err(|_| VaultError::Damaged)?;
        let sql = "INSERT INTO audit_anchor(only, sequence, hash) VALUES(1, ?1, ?2)
                   ON CONFLICT(only) DO UPDATE SET sequence = ?1, hash = ?2";
        self.held().anchoring(|held| {
            held.change(|transaction| {
                let done = transaction.execute(sql, params![sequence, recorded.hash.0]);
                done.map_err(StoreError::from)?;
                Ok(())
            })
        })
    }
}
