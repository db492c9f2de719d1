//! Uploads under way: their parts; as a whole how many, whose and how old, and the end of old ones.

use std::collections::BTreeMap;

use coffer_seal::{BlobId, UploadId};
use rusqlite::{Connection, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::decode_u64;
use crate::catalog::tables::rows::{blob_columns, row_limit};
use crate::catalog::uploads::{abort, find_upload, read_part};
use crate::database::write_session::Session;
use crate::error::Result;
use crate::limits::{END_UPLOADS_AT_ONCE, END_UPLOADS_BLOBS, LIST_MAX};
use crate::record::{Part, Upload};

/// The uploads under way in a bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenUploads {
    /// How many there are.
    pub count: u64,
    /// Bytes that their parts have together.
    pub bytes: u64,
    /// When the oldest of them was begun, in milliseconds since 1970.
    pub oldest_ms: Option<i64>,
    /// How many of them each began of whom that is known.
    pub by_maker: BTreeMap<String, u64>,
}

/// Uploads that were ended in one transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EndedUploads {
    /// How many of them.
    pub count: u64,
    /// Bytes that their parts had together.
    pub bytes: u64,
    /// The blobs of their parts, which no row refers to any more.
    pub freed: Vec<BlobId>,
    /// Who began them, as far as that is known.
    pub made_by: Vec<String>,
}

impl Catalog {
    /// Parts of an upload with numbers above `after`, ascending; at most [`LIST_MAX`] + 1, so that
    /// a page can tell whether there is more. None when there is no such upload.
    pub async fn parts(&self, upload_id: &UploadId, after: u32, limit: usize) -> Result<Vec<Part>> {
        let upload_id = *upload_id;
        self.long(move |connection| parts_of(connection, &upload_id, after, limit))
            .await
    }

    /// An upload under way, and parts of it as [`parts`](Self::parts) tells them, of one moment.
    pub async fn upload_and_parts(
        &self,
        upload_id: &UploadId,
        after: u32,
        limit: usize,
    ) -> Result<Option<(Upload, Vec<Part>)>> {
        let upload_id = *upload_id;
        self.long(move |connection| {
            let Some(upload) = find_upload(connection, &upload_id)? else {
                return Ok(None);
            };
            let parts = parts_of(connection, &upload_id, after, limit)?;
            Ok(Some((upload, parts)))
        })
        .await
    }

    /// The uploads that were begun before a time, in milliseconds since 1970; or all.
    pub async fn open_uploads(&self, before_ms: Option<i64>) -> Result<OpenUploads> {
        let before_ms = before_ms.unwrap_or(i64::MAX);
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT made_by, count(*), sum(size_bytes), min(started_ms) FROM upload
                 WHERE started_ms < ? GROUP BY made_by",
            )?;
            let mut rows = statement.query([before_ms])?;
            let mut uploads = OpenUploads::default();
            while let Some(row) = rows.next()? {
                let count = decode_u64(row.get(1)?)?;
                uploads.count += count;
                uploads.bytes += decode_u64(row.get(2)?)?;
                let oldest: i64 = row.get(3)?;
                uploads.oldest_ms = uploads.oldest_ms.map(|ms| ms.min(oldest)).or(Some(oldest));
                if let Some(made_by) = row.get(0)? {
                    uploads.by_maker.insert(made_by, count);
                }
            }
            Ok(uploads)
        })
        .await
    }

    /// Ends uploads that were begun before a time, in milliseconds since 1970, the oldest first: as
    /// many as fit into one transaction. None: there are no more of them.
    pub async fn end_uploads(&self, before_ms: i64) -> Result<EndedUploads> {
        self.write(move |session| {
            let mut ended = EndedUploads::default();
            for (id, bytes) in oldest(session, before_ms)? {
                if ended.freed.len() >= END_UPLOADS_BLOBS {
                    break;
                }
                let aborted = abort(session, &id)?;
                ended.count += 1;
                ended.bytes += bytes;
                ended.freed.extend(aborted.freed);
                ended.made_by.extend(aborted.made_by);
            }
            Ok(ended)
        })
        .await
    }
}

fn parts_of(
    connection: &Connection,
    upload_id: &UploadId,
    after: u32,
    limit: usize,
) -> Result<Vec<Part>> {
    let mut statement = connection.prepare_cached(concat!(
        "SELECT ",
        blob_columns!(),
        ", part_number, etag, modified_ms FROM part
         WHERE upload_id = ? AND part_number > ? ORDER BY part_number LIMIT ?"
    ))?;
    let limit = row_limit(limit, LIST_MAX + 1);
    let mut rows = statement.query(params![upload_id.0, after, limit])?;
    let mut parts = Vec::new();
    while let Some(row) = rows.next()? {
        parts.push(read_part(row)?);
    }
    Ok(parts)
}

fn oldest(session: &Session, before_ms: i64) -> Result<Vec<(UploadId, u64)>> {
    let mut statement = session.prepare_cached(
        "SELECT upload_id, size_bytes FROM upload WHERE started_ms < ?
         ORDER BY started_ms LIMIT ?",
    )?;
    let mut rows = statement.query([before_ms, END_UPLOADS_AT_ONCE])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push((UploadId(row.get(0)?), decode_u64(row.get(1)?)?));
    }
    Ok(found)
}
