//! Listing objects: a scan that jumps over what folds.

use rusqlite::{Connection, Row};

use crate::catalog::delimiter::{Delimiter, end_of};
use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_checksum_type, decode_u64};
use crate::catalog::tables::rows::{read_name, text_or_null};
use crate::error::Result;
use crate::limits::LIST_MAX;
use crate::record::{ListPage, ListQuery, ListedObject};

impl Catalog {
    /// A page of the bucket's objects, at most [`LIST_MAX`] rows.
    ///
    /// Its cost follows the page, not the bucket: a common prefix is one seek, however many names
    /// it stands for.
    pub async fn list(&self, query: ListQuery) -> Result<ListPage> {
        self.long(move |connection| list(connection, &query)).await
    }
}

fn list(connection: &Connection, query: &ListQuery) -> Result<ListPage> {
    let limit = query.limit.min(LIST_MAX);
    if limit == 0 {
        return Ok(Default::default());
    }
    let delimiter = Delimiter::new(&query.prefix, query.delimiter.as_deref());
    let end = delimiter.end();
    let mut begin = delimiter.begin(query.start_after.as_deref());
    let mut page = ListPage::default();
    let mut last = None;

    let mut statement = connection.prepare_cached(
        "SELECT name, size_bytes, etag, modified_ms, checksum, owner FROM object
         WHERE name >= ? AND name < ? ORDER BY name",
    )?;
    'seek: loop {
        let mut rows = statement.query([&begin, &end])?;
        while let Some(row) = rows.next()? {
            if page.objects.len() + page.prefixes.len() == limit {
                page.next = last;
                break 'seek;
            }
            let name = read_name(row)?;
            if let Some(folded) = delimiter.fold(name.expose()) {
                begin = end_of(folded);
                last = Some(folded.to_owned());
                page.prefixes.push(folded.to_owned());
                continue 'seek;
            }
            last = Some(name.expose().to_owned());
            page.objects.push(read_listed(row, name)?);
        }
        break;
    }
    Ok(page)
}

fn read_listed(row: &Row<'_>, name: crate::record::ObjectName) -> Result<ListedObject> {
    Ok(ListedObject {
        name,
        size_bytes: decode_u64(row.get(1)?)?,
        etag: row.get(2)?,
        modified_ms: row.get(3)?,
        checksum: text_or_null(row, 4)?
            .map(decode_checksum_type)
            .transpose()?,
        owner: row.get(5)?,
    })
}
