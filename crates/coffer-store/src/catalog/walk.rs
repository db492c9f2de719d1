//! Walks over all of a catalog, page by page, for verification and for reclaiming.

use coffer_seal::{BlobId, UploadId};
use rusqlite::{Connection, ToSql, params};

use crate::catalog::delimiter::just_after;
use crate::catalog::open::Catalog;
use crate::catalog::read::overlapping;
use crate::catalog::tables::columns::{decode_id, decode_u64};
use crate::catalog::tables::rows::{BLOB_COLUMNS, blob_columns, read_inline, read_name, row_limit};
use crate::catalog::uploads::read_part;
use crate::error::{Result, StoreError};
use crate::limits::{INLINE_MAX_BYTES, WALK_PAGE};
use crate::record::{Content, ObjectName, WalkPlace, WalkedObject, WalkedPart};

/// A walk over all that a catalog holds, page by page: objects, their older versions, and then the
/// parts of uploads under way, by the names of what those would make.
#[derive(Debug, Default)]
pub struct ContentWalk {
    object: Option<WalkPlace>,
    are_objects_over: bool,
    part: Option<(UploadId, u32)>,
}

impl ContentWalk {
    /// The next page, of at most `limit`; none at the end.
    pub async fn next(
        &mut self,
        catalog: &Catalog,
        limit: usize,
    ) -> Result<Option<Vec<(ObjectName, Content)>>> {
        if !self.are_objects_over {
            let page = catalog.objects_after(self.object.as_ref(), limit).await?;
            if let Some(last) = page.last() {
                self.object = Some(last.place.clone());
                let objects = page.into_iter();
                return Ok(Some(
                    objects.map(|it| (it.place.name, it.content)).collect(),
                ));
            }
            self.are_objects_over = true;
        }
        let page = catalog.parts_after(self.part, limit).await?;
        let Some(last) = page.last() else {
            return Ok(None);
        };
        self.part = Some((last.upload_id, last.part.number));
        let content = |blob| Content::Blobs {
            first_offset_bytes: 0,
            blobs: vec![blob],
        };
        let parts = page.into_iter();
        Ok(Some(
            parts.map(|it| (it.name, content(it.part.blob))).collect(),
        ))
    }
}

impl Catalog {
    /// The next objects in the order of their names, then their older versions likewise, each with
    /// all of its blobs, or its bytes. At most `limit`, fewer when they have many blobs or bytes,
    /// none only at the end.
    pub async fn objects_after(
        &self,
        after: Option<&WalkPlace>,
        limit: usize,
    ) -> Result<Vec<WalkedObject>> {
        let after = after.cloned();
        self.long(move |connection| {
            let limit = limit.min(WALK_PAGE);
            if !after.as_ref().is_some_and(|place| place.is_older) {
                let begin = after.map(|place| just_after(place.name.expose()));
                let newest = params![begin.unwrap_or_default()];
                let found = objects(connection, NEWEST, newest, limit)?;
                if !found.is_empty() {
                    return Ok(found);
                }
                return objects(connection, OLDER, params![Vec::new(), 0], limit);
            }
            let (name, id) = after.map_or((Vec::new(), 0), |place| {
                (place.name.expose().as_bytes().to_vec(), place.id)
            });
            objects(connection, OLDER, params![name, id], limit)
        })
        .await
    }

    /// The next parts of uploads under way, in the order of upload ids and numbers.
    pub async fn parts_after(
        &self,
        after: Option<(UploadId, u32)>,
        limit: usize,
    ) -> Result<Vec<WalkedPart>> {
        let (id, number) = after.map_or((Vec::new(), 0), |(id, number)| (id.0.to_vec(), number));
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(concat!(
                "SELECT ",
                blob_columns!(),
                ", part_number, etag, modified_ms, part.upload_id,
                     (SELECT name FROM upload WHERE upload.upload_id = part.upload_id)
                 FROM part WHERE (part.upload_id, part_number) > (?, ?)
                 ORDER BY part.upload_id, part_number LIMIT ?"
            ))?;
            let mut rows = statement.query(params![id, number, row_limit(limit, WALK_PAGE)])?;
            let mut parts = Vec::new();
            while let Some(row) = rows.next()? {
                let name: Vec<u8> = row.get(BLOB_COLUMNS + 4)?;
                let name = String::from_utf8(name).ok().and_then(ObjectName::new);
                parts.push(WalkedPart {
                    upload_id: UploadId(row.get(BLOB_COLUMNS + 3)?),
                    name: name.ok_or_else(StoreError::damaged_catalog)?,
                    part: read_part(row)?,
                });
            }
            Ok(parts)
        })
        .await
    }

    /// How many bytes all objects and parts have together: a walk over everything.
    pub async fn total_bytes(&self) -> Result<u64> {
        self.long(|connection| {
            let total = "SELECT (SELECT ifnull(sum(size_bytes), 0) FROM object)
                             + (SELECT ifnull(sum(size_bytes), 0) FROM version)
                             + (SELECT ifnull(sum(plaintext_bytes), 0) FROM part)";
            decode_u64(connection.query_row(total, (), |row| row.get(0))?)
        })
        .await
    }

    /// The next ids of blobs that objects or parts refer to, ascending.
    pub async fn blob_ids(&self, after: Option<BlobId>, limit: usize) -> Result<Vec<BlobId>> {
        let after = after.map_or(Vec::new(), |id| id.0.to_vec());
        self.long(move |connection| {
            let mut statement = connection.prepare_cached(
                "SELECT blob_id FROM blob WHERE blob_id > ?1
                 UNION ALL SELECT blob_id FROM part WHERE blob_id > ?1
                 ORDER BY blob_id LIMIT ?2",
            )?;
            let mut rows = statement.query(params![after, row_limit(limit, WALK_PAGE)])?;
            let mut ids = Vec::new();
            while let Some(row) = rows.next()? {
                ids.push(decode_id(
                    row.get_ref(0)?.as_blob().map_err(rusqlite::Error::from)?,
                    BlobId,
                )?);
            }
            Ok(ids)
        })
        .await
    }

    /// Whether an object or a part refers to this blob.
    pub async fn contains_blob(&self, id: &BlobId) -> Result<bool> {
        self.point(|connection| contains_blob(connection, id)).await
    }

    /// Those of `ids` that nothing refers to, all asked for at once: a page of a walk at most.
    pub async fn without_blob(&self, ids: Vec<BlobId>) -> Result<Vec<BlobId>> {
        self.long(move |connection| {
            let mut orphans = Vec::new();
            for id in ids {
                if !contains_blob(connection, &id)? {
                    orphans.push(id);
                }
            }
            Ok(orphans)
        })
        .await
    }
}

pub(crate) fn contains_blob(connection: &Connection, id: &BlobId) -> Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS(SELECT 1 FROM blob WHERE blob_id = ?1)
             OR EXISTS(SELECT 1 FROM part WHERE blob_id = ?1)",
    )?;
    Ok(statement.query_row([id.0], |row| row.get(0))?)
}

/// Rows of objects, as `objects` reads them.
const NEWEST: &str = "
    SELECT name, size_bytes, object.id, is_inline, data, 0
    FROM object LEFT JOIN inline ON object_id = object.id
    WHERE name >= ? ORDER BY name";

/// Rows of versions that are not the newest, and no delete markers.
const OLDER: &str = "
    SELECT name, size_bytes, version.id, is_inline, data, 1
    FROM version LEFT JOIN inline ON object_id = version.id
    WHERE is_marker = 0 AND (name > ?1 OR (name = ?1 AND version.id < ?2))
    ORDER BY name, version.id DESC";

fn objects(
    connection: &Connection,
    select: &str,
    begin: &[&dyn ToSql],
    limit: usize,
) -> Result<Vec<WalkedObject>> {
    let mut statement = connection.prepare_cached(select)?;
    let mut rows = statement.query(begin)?;
    let mut objects = Vec::new();
    // What one page may hold in memory: `limit` blobs, and 64 of the largest inline objects.
    let (mut blob_count, mut inline_bytes) = (0, 0);
    while blob_count + objects.len() < limit && inline_bytes < 64 * INLINE_MAX_BYTES {
        let Some(row) = rows.next()? else { break };
        let size_bytes = decode_u64(row.get(1)?)?;
        let content = if row.get(3)? {
            let data = read_inline(row, 4, size_bytes)?;
            inline_bytes += data.len();
            Content::Inline(data)
        } else {
            // One byte more than there is, so that an empty blob at the end is met, too.
            overlapping(connection, row.get(2)?, &(0..size_bytes + 1))?
        };
        blob_count += content.blobs().len();
        objects.push(WalkedObject {
            place: WalkPlace {
                name: read_name(row)?,
                id: row.get(2)?,
                is_older: row.get(5)?,
            },
            size_bytes,
            content,
        });
    }
    Ok(objects)
}
