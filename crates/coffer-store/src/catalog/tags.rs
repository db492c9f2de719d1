//! Tags of objects and of the bucket.

use rusqlite::{OptionalExtension, params};

use crate::catalog::open::Catalog;
use crate::catalog::tables::columns::{decode_tags, encode_tags};
use crate::catalog::tables::rows::{tag_count, text_or_null};
use crate::error::Result;
use crate::record::{ObjectName, Tags};

impl Catalog {
    /// An object's tags; `None` when there is no object.
    pub async fn object_tags(&self, name: &ObjectName) -> Result<Option<Tags>> {
        self.point(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT tags FROM object WHERE name = ?")?;
            let mut rows = statement.query([name.expose().as_bytes()])?;
            let Some(row) = rows.next()? else {
                return Ok(None);
            };
            decode_tags(text_or_null(row, 0)?).map(Some)
        })
        .await
    }

    /// Sets an object's tags. Whether there is an object.
    pub async fn set_object_tags(&self, name: &ObjectName, tags: Tags) -> Result<bool> {
        let name = name.clone();
        self.write(move |session| {
            let mut statement = session
                .prepare_cached("UPDATE object SET tags = ?, tag_count = ? WHERE name = ?")?;
            let count = statement.execute(params![
                encode_tags(&tags),
                tag_count(&tags),
                name.expose().as_bytes()
            ])?;
            Ok(count > 0)
        })
        .await
    }

    /// The bucket's tags; `None` when it has none set.
    pub async fn bucket_tags(&self) -> Result<Option<Tags>> {
        self.point(|connection| {
            let json: Option<String> = connection
                .query_row("SELECT value FROM meta WHERE name = 'tags'", (), |row| {
                    row.get(0)
                })
                .optional()?;
            json.map(|json| decode_tags(Some(&json))).transpose()
        })
        .await
    }

    /// Sets the bucket's tags, or removes them.
    pub async fn set_bucket_tags(&self, tags: Option<Tags>) -> Result<()> {
        self.write(move |session| {
            match &tags {
                Some(tags) => session.execute(
                    "INSERT OR REPLACE INTO meta VALUES('tags', ?)",
                    [encode_tags(tags).unwrap_or_else(|| "[]".to_owned())],
                )?,
                None => session.execute("DELETE FROM meta WHERE name = 'tags'", ())?,
            };
            Ok(())
        })
        .await
    }
}
