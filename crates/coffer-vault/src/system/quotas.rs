//! Quotas as they are kept: a document each.

use coffer_seal::SubjectId;
use coffer_store::StoreError;
use rusqlite::{Transaction, params};

use super::{BucketRow, System};
use crate::error::{Result, VaultError};
use crate::quotas::{Quota, QuotaOf};

impl System {
    /// All quotas that are kept, also of what is gone.
    pub(crate) fn quotas(&self) -> Result<Vec<(QuotaOf, Quota)>> {
        let rows = self.held().read(|connection| {
            let read = || -> rusqlite::Result<Vec<(String, [u8; 16], String)>> {
                let mut statement =
                    connection.prepare("SELECT kind, id, document FROM quota ORDER BY kind, id")?;
                let rows = statement.query_map((), |row| row.try_into())?;
                rows.collect()
            };
            Ok(read().map_err(StoreError::from)?)
        })?;
        let decode = |(kind, id, document): (String, [u8; 16], String)| {
            let of = QuotaOf::new(&kind, id).ok_or(VaultError::Damaged)?;
            let quota = serde_json::from_str(&document).map_err(|_| VaultError::Damaged)?;
            Ok((of, quota))
        };
        rows.into_iter().map(decode).collect()
    }

    /// Keeps a quota in place of the one that is there, or removes it. Durable when this returns.
    /// `settled` is told whether it happened; while that is in doubt, the buckets that it counts
    /// are out of use.
    pub(crate) fn keep_quota(
        &self,
        of: QuotaOf,
        quota: Option<Quota>,
        settled: impl FnOnce(bool) + Send + 'static,
    ) -> Result<()> {
        let document = quota.map(|quota| serde_json::to_string(&quota)).transpose();
        let document = document.map_err(|_| VaultError::Damaged)?;
        let change = |transaction: &Transaction<'_>| {
            let run = || {
                let (kind, id) = (of.kind(), of.id());
                let Some(document) = document else {
                    let sql = "DELETE FROM quota WHERE kind = ? AND id = ?";
                    return transaction.execute(sql, params![kind, id]);
                };
                let sql = "INSERT OR REPLACE INTO quota(kind, id, document) VALUES(?, ?, ?)";
                transaction.execute(sql, params![kind, id, document])
            };
            run().map_err(StoreError::from)?;
            Ok(())
        };
        let mut held = self.held();
        let mut rows = self.buckets();
        rows.retain(|row| counts(of, row));
        held.change_of(rows, change, move |_, has_happened| settled(has_happened))
    }
}

/// Whether what is in a bucket counts there.
fn counts(of: QuotaOf, row: &BucketRow) -> bool {
    match of {
        QuotaOf::Bucket(id) => row.id == id,
        QuotaOf::Level(id) => row.level_id == id,
        QuotaOf::Subject(id) => row.made_by.as_deref().and_then(SubjectId::from_hex) == Some(id),
    }
}

#[cfg(test)]
mod tests {
    use coffer_seal::{LevelId, SecretKey};

    use super::*;

    #[test]
    fn quotas_stay_until_they_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, key) = (folder.path().join("system.db"), SecretKey::generate());
        let of = QuotaOf::Level(LevelId([7; 16]));
        let quota = Quota {
            bytes: Some(5),
            ..Quota::default()
        };
        System::open(&path, &key)
            .unwrap()
            .keep_quota(of, Some(quota), |_| ())
            .unwrap();
        let system = System::open(&path, &key).unwrap();
        assert_eq!(system.quotas().unwrap(), [(of, quota)]);
        let more = Quota {
            objects: Some(2),
            ..quota
        };
        system.keep_quota(of, Some(more), |_| ()).unwrap();
        assert_eq!(system.quotas().unwrap(), [(of, more)]);
        system.keep_quota(of, None, |_| ()).unwrap();
        assert!(system.quotas().unwrap().is_empty());
    }
}
