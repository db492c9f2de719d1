//! Listing versions: one scan over both tables, in the order of names, the newest version first.

use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::catalog::delimiter::{Delimiter, end_of};
use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_checksum_type, decode_u64};
use crate::catalog::tables::rows::{read_name, text_or_null};
use crate::error::Result;
use crate::limits::LIST_MAX;
use crate::record::{ChecksumAlgorithm, ChecksumKind, ObjectName};
use crate::version::VersionId;

/// One row of a listing of versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedVersion {
    /// The object's name.
    pub name: ObjectName,
    /// What the version is called.
    pub version: VersionId,
    /// Whether it is the newest of its object.
    pub is_latest: bool,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Who owns it; none: who owns the bucket.
    pub owner: Option<String>,
    /// What it holds; none of a delete marker.
    pub content: Option<VersionContent>,
}

/// What a listing tells of a version that is no delete marker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VersionContent {
    /// Length of its content.
    pub size_bytes: u64,
    /// Its entity tag, without quotation marks.
    pub etag: String,
    /// Its checksum's algorithm and kind.
    pub checksum: Option<(ChecksumAlgorithm, ChecksumKind)>,
}

/// Which versions to list: in the order of their names, the newest first.
#[derive(Clone, Debug, Default)]
pub struct VersionsQuery {
    /// Only names that begin so.
    pub prefix: String,
    /// Names that share the text up to this delimiter, after the prefix, fold into one prefix.
    pub delimiter: Option<String>,
    /// Only after this name, or after this version of this name, whether it is there or not. After
    /// a null version that is not there, all of the name.
    pub start_after: Option<(String, Option<VersionId>)>,
    /// At most so many versions and prefixes together.
    pub limit: usize,
}

/// A page of versions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VersionsPage {
    /// Versions and delete markers.
    pub versions: Vec<ListedVersion>,
    /// Common prefixes.
    pub prefixes: Vec<String>,
    /// Where to go on (a `start_after`), when there is more.
    pub next: Option<(String, Option<VersionId>)>,
}

/// Rows of both tables from a place on: those of the first name with lower numbers than the second
/// value only.
const ROWS: &str = "
    SELECT name, id, version_tag, 0, size_bytes, etag, modified_ms, checksum, owner
    FROM object
    WHERE name >= ?1 AND name < ?2 AND (name > ?1 OR id < ?3)
    UNION ALL
    SELECT name, id, version_tag, is_marker, size_bytes, etag, modified_ms, checksum, owner
    FROM version
    WHERE name >= ?1 AND name < ?2 AND (name > ?1 OR id < ?3)
    ORDER BY name, id DESC";

impl Catalog {
    /// A page of the bucket's versions and delete markers, at most [`LIST_MAX`] rows.
    pub async fn versions(&self, query: VersionsQuery) -> Result<VersionsPage> {
        self.long(move |connection| list(connection, &query)).await
    }
}

fn list(connection: &Connection, query: &VersionsQuery) -> Result<VersionsPage> {
    let limit = query.limit.min(LIST_MAX);
    if limit == 0 {
        return Ok(Default::default());
    }
    let delimiter = Delimiter::new(&query.prefix, query.delimiter.as_deref());
    let end = delimiter.end();
    let mut page = VersionsPage::default();
    let mut last = None;

    let _snapshot = connection.unchecked_transaction()?;
    let (mut begin, mut below) = first(connection, &delimiter, query.start_after.as_ref())?;
    // Of the name of the row before, so that the first row of a name is known to be its newest.
    let mut name_before = match below {
        i64::MAX => None,
        _ => newest_was_listed(connection, &begin, below)?,
    };
    let mut statement = connection.prepare_cached(ROWS)?;
    'seek: loop {
        let mut rows = statement.query(params![begin, end, below])?;
        while let Some(row) = rows.next()? {
            if page.versions.len() + page.prefixes.len() == limit {
                page.next = last;
                break 'seek;
            }
            let name = read_name(row)?;
            if let Some(folded) = delimiter.fold(name.expose()) {
                (begin, below) = (end_of(folded), i64::MAX);
                last = Some((folded.to_owned(), None));
                page.prefixes.push(folded.to_owned());
                continue 'seek;
            }
            let is_latest = name_before.as_ref() != Some(&name);
            name_before = Some(name.clone());
            let listed = read_listed(row, name, is_latest)?;
            last = Some((listed.name.expose().to_owned(), Some(listed.version)));
            page.versions.push(listed);
        }
        break;
    }
    Ok(page)
}

/// The least name at which to begin, and the number below which its versions are to be listed.
fn first(
    connection: &Connection,
    delimiter: &Delimiter<'_>,
    after: Option<&(String, Option<VersionId>)>,
) -> Result<(Vec<u8>, i64)> {
    if let Some((name, Some(version))) = after
        && delimiter.fold(name).is_none()
    {
        let below = match version {
            VersionId::Numbered { id, .. } => *id,
            VersionId::Null => number_of_null(connection, name)?.unwrap_or(i64::MAX),
        };
        let from_prefix = delimiter.begin(None);
        // Before the prefix begins, versions don't matter.
        return Ok(if name.as_bytes() < &from_prefix[..] {
            (from_prefix, i64::MAX)
        } else {
            (name.as_bytes().to_vec(), below)
        });
    }
    let begin = delimiter.begin(after.map(|(name, _)| name.as_str()));
    Ok((begin, i64::MAX))
}

fn number_of_null(connection: &Connection, name: &str) -> Result<Option<i64>> {
    let sql = "SELECT id FROM object WHERE name = ?1 AND version_tag IS NULL
               UNION ALL SELECT id FROM version WHERE name = ?1 AND version_tag IS NULL";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row([name.as_bytes()], |row| row.get(0));
    Ok(found.optional()?)
}

/// The name that a page begins in, where its newest version has a higher number than the page
/// begins below.
fn newest_was_listed(
    connection: &Connection,
    name: &[u8],
    below: i64,
) -> Result<Option<ObjectName>> {
    let sql = "SELECT EXISTS(SELECT 1 FROM object WHERE name = ?1 AND id >= ?2)
                   OR EXISTS(SELECT 1 FROM version WHERE name = ?1 AND id >= ?2)";
    let mut statement = connection.prepare_cached(sql)?;
    let is_listed: bool = statement.query_row(params![name, below], |row| row.get(0))?;
    let name = String::from_utf8(name.to_vec()).ok();
    Ok(name.and_then(ObjectName::new).filter(|_| is_listed))
}

fn read_listed(row: &Row<'_>, name: ObjectName, is_latest: bool) -> Result<ListedVersion> {
    let is_marker: bool = row.get(3)?;
    let content = if is_marker {
        None
    } else {
        Some(VersionContent {
            size_bytes: decode_u64(row.get(4)?)?,
            etag: row.get(5)?,
            checksum: text_or_null(row, 7)?
                .map(decode_checksum_type)
                .transpose()?,
        })
    };
    Ok(ListedVersion {
        name,
        version: VersionId::of(row.get(1)?, row.get(2)?),
        is_latest,
        modified_ms: row.get(6)?,
        owner: row.get(8)?,
        content,
    })
}
