//! Tags of objects and of the bucket.

use rusqlite::OptionalExtension;

use crate::catalog::open::Catalog;
use crate::catalog::read::{select, with_row};
use crate::catalog::tables::columns::{decode_tags, encode_tags};
use crate::catalog::tables::rows::{tag_count, text_or_null};
use crate::catalog::versions::place::update_row;
use crate::error::Result;
use crate::record::{ObjectName, Tags};
use crate::version::{Absent, VersionId, Which};

impl Catalog {
    /// An object's tags, and what the version is called that has them.
    ///
    /// # Errors
    /// Those of the catalog; that there is no object is the inner result.
    pub async fn object_tags(
        &self,
        name: &ObjectName,
        which: Which,
    ) -> Result<Result<(Tags, VersionId), Absent>> {
        self.point(|connection| {
            let statements = select!(["tags, id, version_tag"] "");
            with_row(connection, name, which, statements, |row| {
                let version = VersionId::of(row.get(1)?, row.get(2)?);
                Ok((decode_tags(text_or_null(row, 0)?)?, version))
            })
        })
        .await
    }

    /// Sets an object's tags. Tells what the version is called.
    ///
    /// # Errors
    /// Those of the catalog; that there is no object is the inner result.
    pub async fn set_object_tags(
        &self,
        name: &ObjectName,
        which: Which,
        tags: Tags,
    ) -> Result<Result<VersionId, Absent>> {
        let name = name.clone();
        self.write(move |session| {
            let (tags, count) = (encode_tags(&tags), tag_count(&tags));
            let columns = "tags = ?2, tag_count = ?3";
            update_row(session, &name, which, columns, &[&tags, &count])
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
