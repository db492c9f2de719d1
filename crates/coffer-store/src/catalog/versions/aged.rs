//! Versions by their age: as lifecycle rules look at them, and the end of those that are due.

use coffer_seal::BlobId;
use rusqlite::{Connection, OptionalExtension, Row, ToSql, params};

use crate::catalog::delimiter::just_after;
use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_tags, decode_u64};
use crate::catalog::tables::rows::{read_name, row_limit, text_or_null};
use crate::catalog::versions::place::{find, mark, remove};
use crate::database::write_session::Session;
use crate::error::{Result, StoreError};
use crate::limits::{RETIRED_BLOBS, WALK_PAGE};
use crate::lock::{Lock, LockTest};
use crate::record::{Tags, WalkPlace};
use crate::version::{VersionId, Versioning};

/// A version or delete marker, as far as its age and what is around it matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AgedVersion {
    /// Where it stands.
    pub place: WalkPlace,
    /// What it is called.
    pub version: VersionId,
    /// Whether it is a delete marker.
    pub is_marker: bool,
    /// When it was made, in milliseconds since 1970.
    pub modified_ms: i64,
    /// Length of its content.
    pub size_bytes: u64,
    /// Its tags.
    pub tags: Tags,
    /// When the version before it was made, by which it stopped being the newest; none: it is that.
    pub successor_ms: Option<i64>,
    /// How many versions that are neither the newest nor markers are newer than it; 101 means at
    /// least so many.
    pub newer_noncurrent: u32,
    /// Whether it is the only version of its name.
    pub is_lone: bool,
    /// What keeps it from being removed.
    pub lock: Lock,
}

impl AgedVersion {
    /// Whether it is what it was, and is still due if it was: it may be behind more versions than
    /// it was, and behind others for longer.
    fn is_still(&self, now: &Self) -> bool {
        let is_same = self.place == now.place
            && self.version == now.version
            && self.is_marker == now.is_marker
            && self.modified_ms == now.modified_ms
            && self.size_bytes == now.size_bytes
            && self.tags == now.tags
            && self.lock == now.lock;
        let is_as_far_behind = match (self.successor_ms, now.successor_ms) {
            (Some(then), Some(now)) => now <= then,
            (None, None) => !self.is_marker || now.is_lone || !self.is_lone,
            _ => false,
        };
        is_same && is_as_far_behind && now.newer_noncurrent >= self.newer_noncurrent
    }
}

/// What became of versions that were due.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retirement {
    /// What became of each, in order. Fewer than there were: no more fit into the transaction.
    pub ends: Vec<Retired>,
    /// Blobs that nothing refers to any more: their files may go.
    pub freed: Vec<BlobId>,
}

/// What became of a version that was due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// It is not what it was, or is not there: nothing was done.
    Changed,
    /// A lock keeps it.
    Locked,
    /// A delete marker hides it, and it stays behind that.
    Hidden,
    /// It was removed.
    Removed,
}

/// Columns of the newest version, as `read` takes them.
macro_rules! newest {
    ($end:literal) => {
        concat!(
            "SELECT name, id, version_tag, 0, modified_ms, size_bytes, tags, NULL, 0,
                 NOT EXISTS(SELECT 1 FROM version AS v WHERE v.name = o.name),
                 lock, retain_until_ms
             FROM object AS o WHERE ",
            $end
        )
    };
}

/// The same of the others, and of delete markers.
macro_rules! older {
    ($end:literal) => {
        concat!(
            "SELECT name, id, version_tag, is_marker, modified_ms, size_bytes, tags,
                 ifnull(
                     (SELECT v.modified_ms FROM version AS v
                      WHERE v.name = o.name AND v.id > o.id ORDER BY v.id LIMIT 1),
                     (SELECT n.modified_ms FROM object AS n WHERE n.name = o.name)
                 ),
                 (SELECT count(*) FROM
                     (SELECT 1 FROM version AS v
                      WHERE v.name = o.name AND v.id > o.id AND v.is_marker = 0 LIMIT 101)),
                 NOT EXISTS(SELECT 1 FROM version AS v WHERE v.name = o.name AND v.id <> o.id)
                     AND NOT EXISTS(SELECT 1 FROM object AS n WHERE n.name = o.name),
                 lock, retain_until_ms
             FROM version AS o WHERE ",
            $end
        )
    };
}

impl Catalog {
    /// The next newest versions in the order of their names, then all others and markers likewise,
    /// the oldest of a name first. At most `limit`, none only at the end.
    pub async fn aged_after(
        &self,
        after: Option<&WalkPlace>,
        limit: usize,
    ) -> Result<Vec<AgedVersion>> {
        let after = after.cloned();
        self.long(move |connection| {
            let limit = row_limit(limit, WALK_PAGE);
            if !after.as_ref().is_some_and(|place| place.is_older) {
                let begin = after.map(|place| just_after(place.name.expose()));
                let from = params![begin.unwrap_or_default(), limit];
                let sql = newest!("name >= ? ORDER BY name LIMIT ?");
                let found = select(connection, sql, from)?;
                if !found.is_empty() {
                    return Ok(found);
                }
                return others(connection, (&[], 0), limit);
            }
            match &after {
                Some(place) => others(
                    connection,
                    (place.name.expose().as_bytes(), place.id),
                    limit,
                ),
                None => Ok(Vec::new()),
            }
        })
        .await
    }

    /// Ends versions that are due, in one transaction, each only if it still is what it was and as
    /// far behind others: the newest version is deleted, so that a delete marker hides it where the
    /// bucket keeps versions; any other, and a marker, is removed.
    ///
    /// What is due of one name comes in the order of [`aged_after`](Self::aged_after): the end of
    /// a version leaves those due that are newer than it.
    ///
    /// `now_ms`: when markers count as made, in milliseconds since 1970.
    ///
    /// # Errors
    /// As any write.
    pub async fn retire(
        &self,
        due: Vec<AgedVersion>,
        now_ms: i64,
        lock_now_ms: i64,
    ) -> Result<Retirement> {
        let known = self.known_versioning();
        self.write(move |session| {
            let state = known.state_in(session)?;
            let mut retirement = Retirement::default();
            for aged in &due {
                if retirement.freed.len() >= RETIRED_BLOBS {
                    break;
                }
                let (end, freed) = retire(session, aged, state, (now_ms, lock_now_ms))?;
                retirement.ends.push(end);
                retirement.freed.extend(freed);
            }
            Ok(retirement)
        })
        .await
    }
}

fn others(
    connection: &Connection,
    (name, id): (&[u8], i64),
    limit: i64,
) -> Result<Vec<AgedVersion>> {
    // What is left of this name, before other names: so no row is passed over twice.
    let sql = older!("name = ? AND id > ? ORDER BY id LIMIT ?");
    let found = select(connection, sql, params![name, id, limit])?;
    if !found.is_empty() {
        return Ok(found);
    }
    let sql = older!("name > ? ORDER BY name, id LIMIT ?");
    select(connection, sql, params![name, limit])
}

fn select(connection: &Connection, sql: &str, from: &[&dyn ToSql]) -> Result<Vec<AgedVersion>> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(from)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(read(row)?);
    }
    Ok(found)
}

fn read(row: &Row<'_>) -> Result<AgedVersion> {
    let id = row.get(1)?;
    let (is_marker, successor_ms): (bool, Option<i64>) = (row.get(3)?, row.get(7)?);
    Ok(AgedVersion {
        place: WalkPlace {
            name: read_name(row)?,
            id,
            // A marker that is the newest version stands among the others.
            is_older: is_marker || successor_ms.is_some(),
        },
        version: VersionId::of(id, row.get(2)?),
        is_marker,
        modified_ms: row.get(4)?,
        size_bytes: decode_u64(row.get(5)?)?,
        tags: decode_tags(text_or_null(row, 6)?)?,
        successor_ms,
        newer_noncurrent: row.get(8)?,
        is_lone: row.get(9)?,
        lock: Lock::of_columns(row.get(10)?, row.get(11)?)?,
    })
}

fn retire(
    session: &Session,
    aged: &AgedVersion,
    state: Versioning,
    (now_ms, lock_now_ms): (i64, i64),
) -> Result<(Retired, Vec<BlobId>)> {
    let name = &aged.place.name;
    let sql = if aged.place.is_older {
        older!("name = ? AND id = ?")
    } else {
        newest!("name = ? AND id = ?")
    };
    let one = params![name.expose().as_bytes(), aged.place.id];
    let found = session
        .prepare_cached(sql)?
        .query_row(one, |row| Ok(read(row)))
        .optional()?
        .transpose()?;
    if found.is_none_or(|found| !aged.is_still(&found)) {
        return Ok((Retired::Changed, Vec::new()));
    }
    if !aged.place.is_older && state != Versioning::Never {
        let there = find(session, name)?;
        return match mark(session, name, there.as_ref(), state, now_ms) {
            Err(StoreError::Locked) => Ok((Retired::Locked, Vec::new())),
            marked => Ok((Retired::Hidden, marked?.1)),
        };
    }
    let test = LockTest {
        now_ms: lock_now_ms,
        bypasses_governance: false,
    };
    let removed = match remove(session, name, aged.version, test) {
        Err(StoreError::Locked) => return Ok((Retired::Locked, Vec::new())),
        removed => removed?,
    };
    Ok(removed.map_or((Retired::Changed, Vec::new()), |removed| {
        (Retired::Removed, removed.freed)
    }))
}
