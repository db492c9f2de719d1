//! Data keys that another generation of the bucket's key is to wrap.
//!
//! Rows are met in the order in which they lie in their tables, a few dozen at a time, so that a
//! commit changes few pages for many keys. Between a few dozen and the next it pauses, and ends at
//! once when another write waits.

use coffer_seal::{BlobId, UploadId};
use rusqlite::{Connection, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_id, decode_u64, decode_wrapped_key};
use crate::catalog::tables::rows::row_limit;
use crate::database::write_session::Session;
use crate::error::Result;
use crate::limits::{REPLACE_REST, REWRAP_MAX};
use crate::record::WrappedKey;

/// Where in a catalog a wrapped data key is. Uploads' parts come first, then objects' blobs: a part
/// that becomes an object's meanwhile is met there, or has the new generation already.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum KeyPlace {
    /// A part of an upload under way.
    Part {
        /// Of which upload.
        upload_id: UploadId,
        /// Its number.
        number: u32,
    },
    /// A blob of an object.
    Blob {
        /// The object's number in the catalog.
        object_id: i64,
        /// Where in the object it begins.
        offset_bytes: i64,
        /// The number of its part.
        part_number: u32,
    },
}

impl KeyPlace {
    /// Before all others.
    pub const FIRST: Self = Self::Part {
        upload_id: UploadId([0; 16]),
        number: 0,
    };

    const FIRST_BLOB: Self = Self::Blob {
        object_id: i64::MIN,
        offset_bytes: 0,
        part_number: 0,
    };
}

/// A wrapped data key, and where it is.
#[derive(Clone, Debug)]
pub struct HeldKey {
    /// Where.
    pub place: KeyPlace,
    /// Whose.
    pub blob_id: BlobId,
    /// Of the bucket's key that wrapped it.
    pub generation: u32,
    /// The key, wrapped.
    pub wrapped_key: WrappedKey,
}

impl Catalog {
    /// The next keys that another generation than `generation` wrapped: at most [`REWRAP_MAX`],
    /// none only at the end.
    pub async fn keys_of_other_generations(
        &self,
        generation: u32,
        after: KeyPlace,
    ) -> Result<Vec<HeldKey>> {
        self.long(move |connection| {
            if let KeyPlace::Part { upload_id, number } = after {
                let parts = next_parts(connection, generation, &upload_id, number)?;
                if !parts.is_empty() {
                    return Ok(parts);
                }
                return next_blobs(connection, generation, KeyPlace::FIRST_BLOB);
            }
            next_blobs(connection, generation, after)
        })
        .await
    }

    /// How many keys another generation than `generation` wrapped: a walk over all of them, of
    /// what was committed when it began.
    pub async fn count_of_other_generations(&self, generation: u32) -> Result<u64> {
        self.long(move |connection| {
            let count = "SELECT (SELECT count(*) FROM blob WHERE key_generation <> ?1)
                             + (SELECT count(*) FROM part WHERE key_generation <> ?1)";
            decode_u64(connection.query_row(count, [generation], |row| row.get(0))?)
        })
        .await
    }

    /// How many keys neither of these generations wrapped: a walk over all of them.
    pub async fn count_of_neither_generation(&self, kept: [u32; 2]) -> Result<u64> {
        self.long(move |connection| {
            let count = "SELECT (SELECT count(*) FROM blob WHERE key_generation NOT IN (?1, ?2))
                             + (SELECT count(*) FROM part WHERE key_generation NOT IN (?1, ?2))";
            decode_u64(connection.query_row(count, kept, |row| row.get(0))?)
        })
        .await
    }

    /// Puts rewrapped keys of `generation` in place of those found before; what was replaced or
    /// removed in between is passed over. Durable when this returns. Takes its time while no other
    /// else writes.
    pub async fn replace_keys(&self, found: Vec<HeldKey>, generation: u32) -> Result<()> {
        let writer = self.writer()?.clone();
        self.write(move |session| {
            for (number, some) in found.chunks(REWRAP_MAX).enumerate() {
                if number > 0 {
                    writer.rest(REPLACE_REST);
                }
                for key in some {
                    replace(session, key, generation)?;
                }
            }
            session.note_removed();
            Ok(())
        })
        .await
    }
}

fn replace(session: &Session, key: &HeldKey, generation: u32) -> Result<()> {
    match key.place {
        KeyPlace::Part { upload_id, number } => session
            .prepare_cached(
                "UPDATE part SET key_generation = ?1, wrapped_key = ?2
                 WHERE upload_id = ?3 AND part_number = ?4 AND blob_id = ?5",
            )?
            .execute(params![
                generation,
                key.wrapped_key,
                upload_id.0,
                number,
                key.blob_id.0
            ])?,
        KeyPlace::Blob {
            object_id,
            offset_bytes,
            part_number,
        } => session
            .prepare_cached(
                "UPDATE blob SET key_generation = ?1, wrapped_key = ?2
                 WHERE object_id = ?3 AND offset_bytes = ?4 AND part_number = ?5 AND blob_id = ?6",
            )?
            .execute(params![
                generation,
                key.wrapped_key,
                object_id,
                offset_bytes,
                part_number,
                key.blob_id.0
            ])?,
    };
    Ok(())
}

fn next_parts(
    connection: &Connection,
    generation: u32,
    upload_id: &UploadId,
    number: u32,
) -> Result<Vec<HeldKey>> {
    let mut statement = connection.prepare_cached(
        "SELECT blob_id, key_generation, wrapped_key, upload_id, part_number FROM part
         WHERE (upload_id, part_number) > (?, ?) AND key_generation <> ?
         ORDER BY upload_id, part_number LIMIT ?",
    )?;
    let limit = row_limit(REWRAP_MAX, REWRAP_MAX);
    let mut rows = statement.query(params![upload_id.0, number, generation, limit])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let place = KeyPlace::Part {
            upload_id: UploadId(row.get(3)?),
            number: row.get(4)?,
        };
        found.push(held(row, place)?);
    }
    Ok(found)
}

fn next_blobs(connection: &Connection, generation: u32, after: KeyPlace) -> Result<Vec<HeldKey>> {
    let KeyPlace::Blob {
        object_id,
        offset_bytes,
        part_number,
    } = after
    else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "SELECT blob_id, key_generation, wrapped_key, object_id, offset_bytes, part_number
         FROM blob
         WHERE (object_id, offset_bytes, part_number) > (?, ?, ?) AND key_generation <> ?
         ORDER BY object_id, offset_bytes, part_number LIMIT ?",
    )?;
    let limit = row_limit(REWRAP_MAX, REWRAP_MAX);
    let after = params![object_id, offset_bytes, part_number, generation, limit];
    let mut rows = statement.query(after)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let place = KeyPlace::Blob {
            object_id: row.get(3)?,
            offset_bytes: row.get(4)?,
            part_number: row.get(5)?,
        };
        found.push(held(row, place)?);
    }
    Ok(found)
}

fn held(row: &rusqlite::Row<'_>, place: KeyPlace) -> Result<HeldKey> {
    let blob = |column| -> Result<&[u8]> {
        Ok(row
            .get_ref(column)?
            .as_blob()
            .map_err(rusqlite::Error::from)?)
    };
    Ok(HeldKey {
        place,
        blob_id: decode_id(blob(0)?, BlobId)?,
        generation: row.get(1)?,
        wrapped_key: decode_wrapped_key(blob(2)?)?,
    })
}
