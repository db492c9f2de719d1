//! The room that documents of buckets have: each level its own, so that what others have set at
//! theirs is not told by a refusal.

use coffer_seal::LevelId;
use coffer_store::StoreError;
use rusqlite::{Transaction, params};

use crate::error::{AdministrationError, Result};
use crate::limits::CONFIGURATIONS_MAX_BYTES;
use crate::system::BucketConfiguration;
use crate::system::configuration::OWN_KINDS;

/// What a level's documents took before a change.
pub(super) struct Room {
    level: LevelId,
    before_bytes: i64,
}

impl Room {
    /// To be looked at first.
    pub(super) fn look(transaction: &Transaction<'_>, level: LevelId) -> Result<Self> {
        let before_bytes = taken(transaction, level)?;
        Ok(Self {
            level,
            before_bytes,
        })
    }

    /// Refuses a change after which they take more than there is room for, unless it has made them
    /// no longer than they were.
    ///
    /// # Errors
    /// [`AdministrationError::ConfigurationsFull`].
    pub(super) fn refuse_above(self, transaction: &Transaction<'_>) -> Result<()> {
        let limit_bytes = CONFIGURATIONS_MAX_BYTES;
        let all_bytes = taken(transaction, self.level)?;
        let is_above = usize::try_from(all_bytes).unwrap_or(0) > limit_bytes;
        if is_above && all_bytes > self.before_bytes {
            return Err(AdministrationError::ConfigurationsFull { limit_bytes }.into());
        }
        Ok(())
    }
}

/// How many bytes the documents of all buckets of a level take, but for the server's own.
fn taken(transaction: &Transaction<'_>, level: LevelId) -> Result<i64> {
    // The length of a text is one of characters.
    let sql = "SELECT ifnull(sum(length(CAST(document AS BLOB))), 0) FROM bucket_configuration
               JOIN bucket ON bucket.id = bucket_id
               WHERE level_id = ? AND kind NOT IN (?, ?)";
    let [bound, releases] = OWN_KINDS.map(BucketConfiguration::name);
    let params = params![level.0, bound, releases];
    let taken = transaction.query_row(sql, params, |row| row.get(0));
    Ok(taken.map_err(StoreError::from)?)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;

    use super::*;

    const LEVEL: LevelId = LevelId([7; 16]);

    #[test]
    fn room_is_counted_in_bytes_and_what_gets_shorter_is_taken() {
        let mut connection = Connection::open_in_memory().unwrap();
        let tables = "CREATE TABLE bucket(id BLOB, level_id BLOB);
                      CREATE TABLE bucket_configuration(bucket_id BLOB, kind TEXT, document TEXT);";
        connection.execute_batch(tables).unwrap();
        let transaction = connection.transaction().unwrap();
        let sql = "INSERT INTO bucket(id, level_id) VALUES(?, ?)";
        transaction
            .execute(sql, params![[1_u8; 16], LEVEL.0])
            .unwrap();
        let keep = |kind: &str, document: &str| {
            let sql = "INSERT INTO bucket_configuration(bucket_id, kind, document) VALUES(?, ?, ?)";
            let params = params![[1_u8; 16], kind, document];
            transaction.execute(sql, params).unwrap();
        };
        keep("cors", "éé");
        keep(BucketConfiguration::LockBound.name(), "the server's own");
        let room = Room::look(&transaction, LEVEL).unwrap();
        assert_eq!(room.before_bytes, 4);
        keep("policy", &"é".repeat(CONFIGURATIONS_MAX_BYTES / 2));
        assert!(room.refuse_above(&transaction).is_err());
        let full = Room::look(&transaction, LEVEL).unwrap();
        let sql = "DELETE FROM bucket_configuration WHERE kind = 'cors'";
        transaction.execute(sql, ()).unwrap();
        keep("cors", "abc");
        keep("tail", "é");
        let longer = full.refuse_above(&transaction);
        assert!(longer.is_err(), "a byte more than before");
        let full = Room::look(&transaction, LEVEL).unwrap();
        transaction.execute(sql, ()).unwrap();
        keep("cors", "ab");
        assert!(full.refuse_above(&transaction).is_ok());
    }
}
