//! Bare SQLCipher: rows of the shape of a small object, committed in groups of 32, durably.
//!
//! The database is opened by the store's own function, so it has the same cipher, page size, log
//! and sync as a catalog. One thread does nothing else, on the core that a server would have.

use std::path::Path;
use std::time::Instant;

use coffer_seal::SecretKey;
use coffer_store::Database;
use rusqlite::{Connection, params};

use crate::error::{BenchError, Result};
use crate::load_client::content::Content;
use crate::machine::pinning;
use crate::report::figures::{Quantity, Sample};
use coffer_measure::cpu_time::thread_cpu_seconds;

/// Rows in a transaction: as many as there are connections that wait for one.
const GROUP_ROWS: usize = 32;

/// A database of the bench's own kind.
const DATABASE: Database = Database {
    application_id: 0x636f_6265,
    format_version: 1,
};

/// As a catalog keeps its objects: by name, with a record of what is told about them and the
/// bytes themselves.
const SCHEMA: &str = "CREATE TABLE object (
    name BLOB NOT NULL PRIMARY KEY,
    modified_ms INTEGER NOT NULL,
    size_bytes INTEGER NOT NULL,
    details BLOB NOT NULL,
    data BLOB
) WITHOUT ROWID;";

/// Bytes of a row besides its name and data: ETag, content type, checksum and the like.
const DETAILS_BYTES: usize = 100;

/// Commits `count` rows of `row_bytes` each to a new database in `folder`.
pub fn measure(folder: &Path, pinned: bool, count: usize, row_bytes: usize) -> Result<Sample> {
    pinning::on_server_core(pinned, || {
        let key = SecretKey::generate();
        let mut connection = DATABASE.create(&folder.join("commits.db"), &key, SCHEMA)?;
        let cpu_before = thread_cpu_seconds();
        let start = Instant::now();
        for first in (0..count).step_by(GROUP_ROWS) {
            commit(
                &mut connection,
                first..(first + GROUP_ROWS).min(count),
                row_bytes,
            )
            .map_err(|source| BenchError::Database { source })?;
        }
        let seconds = start.elapsed().as_secs_f64();
        let cpu_seconds = thread_cpu_seconds() - cpu_before;
        Ok(Sample::from([
            (Quantity::PerSecond, count as f64 / seconds),
            (
                Quantity::ServerCpuMicrosecondsPerRequest,
                cpu_seconds * 1e6 / count as f64,
            ),
        ]))
    })
}

fn commit(
    connection: &mut Connection,
    rows: std::ops::Range<usize>,
    row_bytes: usize,
) -> rusqlite::Result<()> {
    let details = [0x64_u8; DETAILS_BYTES];
    let transaction = connection.transaction()?;
    {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO object (name, modified_ms, size_bytes, details, data)
             VALUES (?1, ?2, ?3, ?4, ?5)",
        )?;
        for number in rows {
            let name = format!("small-put-0-{number}");
            let data = Content::new(row_bytes as u64, number as u64).piece(0, row_bytes);
            let now_ms = 1_700_000_000_000_i64 + number as i64;
            insert.execute(params![
                name.as_bytes(),
                now_ms,
                row_bytes as i64,
                details,
                data
            ])?;
        }
    }
    transaction.commit()
}
