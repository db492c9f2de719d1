//! Listing versions: a scan over each of both tables, in the order of names, the newest version
//! first. They are merged here, which takes a little less than having SQLite do it; most of what a
//! page costs in there is the opening of sealed pages.

use std::cmp::Reverse;

use rusqlite::{CachedStatement, Connection, OptionalExtension, Row, Rows, params};

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

/// Rows from a place on: those of the first name with lower numbers than the third value only.
const NEWEST: &str = "
    SELECT name, id, version_tag, 0, size_bytes, etag, modified_ms, checksum, owner
    FROM object
    WHERE name >= ?1 AND name < ?2 AND (name > ?1 OR id < ?3)
    ORDER BY name";
const OTHERS: &str = "
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
    let mut is_prefix_last = false;

    let (mut begin, mut below) = first(connection, &delimiter, query.start_after.as_ref())?;
    // Of the page before, so that the first row of a name is known to be its newest.
    let listed_before = match below {
        i64::MAX => None,
        _ => newest_was_listed(connection, &begin, below)?,
    };
    let mut newest = connection.prepare_cached(NEWEST)?;
    let mut others = connection.prepare_cached(OTHERS)?;
    'seek: loop {
        let place = (&begin[..], &end[..], below);
        let mut scans = [
            Scan::begin(&mut newest, place)?,
            Scan::begin(&mut others, place)?,
        ];
        while let Some(mut listed) = next(&mut scans)? {
            if page.versions.len() + page.prefixes.len() == limit {
                page.next = last_of(&page, is_prefix_last);
                break 'seek;
            }
            if let Some(folded) = delimiter.fold(listed.name.expose()) {
                page.prefixes.push(folded.to_owned());
                is_prefix_last = true;
                (begin, below) = (end_of(folded), i64::MAX);
                continue 'seek;
            }
            let before = page.versions.last().map(|version| &version.name);
            listed.is_latest = before.or(listed_before.as_ref()) != Some(&listed.name);
            page.versions.push(listed);
            is_prefix_last = false;
        }
        break;
    }
    Ok(page)
}

/// A scan over one of the tables, which is a row ahead.
struct Scan<'a> {
    rows: Rows<'a>,
    ahead: Option<(i64, ListedVersion)>,
}

impl<'a> Scan<'a> {
    fn begin(
        statement: &'a mut CachedStatement<'_>,
        (begin, end, below): (&[u8], &[u8], i64),
    ) -> Result<Self> {
        let rows = statement.query(params![begin, end, below])?;
        let mut scan = Self { rows, ahead: None };
        scan.advance()?;
        Ok(scan)
    }

    /// Where in the list the row ahead stands.
    fn place(&self) -> Option<(&ObjectName, Reverse<i64>)> {
        let ahead = self.ahead.as_ref();
        ahead.map(|(id, listed)| (&listed.name, Reverse(*id)))
    }

    fn advance(&mut self) -> Result<Option<ListedVersion>> {
        let row = self.rows.next()?.map(read_listed).transpose()?;
        let before = std::mem::replace(&mut self.ahead, row);
        Ok(before.map(|(_, listed)| listed))
    }
}

/// The next row of both.
fn next([one, other]: &mut [Scan<'_>; 2]) -> Result<Option<ListedVersion>> {
    let is_other = match (one.place(), other.place()) {
        (Some(place), Some(others)) => others < place,
        (place, _) => place.is_none(),
    };
    if is_other {
        other.advance()
    } else {
        one.advance()
    }
}

/// What a page ends with, and the next one begins after.
fn last_of(page: &VersionsPage, is_prefix: bool) -> Option<(String, Option<VersionId>)> {
    if is_prefix {
        let prefix = page.prefixes.last();
        return prefix.map(|prefix| (prefix.clone(), None));
    }
    let version = page.versions.last();
    version.map(|listed| (listed.name.expose().to_owned(), Some(listed.version)))
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

/// Reads a row with its number. Whether it is the newest of its object is seen in the list.
fn read_listed(row: &Row<'_>) -> Result<(i64, ListedVersion)> {
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
    let id = row.get(1)?;
    let listed = ListedVersion {
        name: read_name(row)?,
        version: VersionId::of(id, row.get(2)?),
        is_latest: false,
        modified_ms: row.get(6)?,
        owner: row.get(8)?,
        content,
    };
    Ok((id, listed))
}
