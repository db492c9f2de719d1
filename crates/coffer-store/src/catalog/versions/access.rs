//! Whose versions are and who else may use them, as rows.

use rusqlite::{Connection, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::rows::read_access;
use crate::catalog::versions::find::{Table, table_of, why_absent};
use crate::catalog::versions::place::update_row;
use crate::error::Result;
use crate::record::{Access, ObjectName};
use crate::version::{Absent, VersionId, Which};

impl Catalog {
    /// Whose an object is and who else may use it, and what the version is called.
    ///
    /// # Errors
    /// Those of the catalog; that there is no object is the inner result.
    pub async fn object_access(
        &self,
        name: &ObjectName,
        which: Which,
    ) -> Result<Result<(Access, VersionId), Absent>> {
        self.point(|connection| find_access(connection, name, which))
            .await
    }

    /// Sets who else may use an object that belongs to `owner`; none where it belongs to another
    /// by now. Tells what the version is called. Durable when this returns.
    ///
    /// # Errors
    /// Those of the catalog; that there is no object is the inner result.
    pub async fn set_object_acl(
        &self,
        name: &ObjectName,
        which: Which,
        owner: Option<String>,
        acl: Option<String>,
    ) -> Result<Result<Option<VersionId>, Absent>> {
        let name = name.clone();
        self.write(move |session| match find_access(session, &name, which)? {
            Err(absent) => Ok(Err(absent)),
            Ok((found, _)) if found.owner != owner => Ok(Ok(None)),
            Ok(_) => {
                let updated = update_row(session, &name, which, "acl = ?2", &[&acl])?;
                Ok(updated.map(Some))
            }
        })
        .await
    }
}

fn find_access(
    connection: &Connection,
    name: &ObjectName,
    which: Which,
) -> Result<Result<(Access, VersionId), Absent>> {
    let bytes = name.expose().as_bytes();
    let (sql, id) = match table_of(connection, name, which)? {
        Ok(Table::Object) => (
            "SELECT owner, acl, id, version_tag FROM object WHERE name = ?1 AND ?2 IS NULL",
            None,
        ),
        Ok(Table::Version(id)) => (
            "SELECT owner, acl, id, version_tag FROM version WHERE name = ?1 AND id = ?2",
            Some(id),
        ),
        Err(absent) => return Ok(Err(absent)),
    };
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params![bytes, id])?;
    let Some(row) = rows.next()? else {
        drop(rows);
        return why_absent(connection, name).map(Err);
    };
    let version = VersionId::of(row.get(2)?, row.get(3)?);
    Ok(Ok((read_access(row, 0)?, version)))
}
