//! Opening catalogs of the vault's own: what is damaged in them is counted, and told in the log.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use coffer_keys::{BucketKey, Keystore};
use coffer_seal::BucketId;
use coffer_store::{CATALOG_FILE, Catalog, StoreError};
use rustix::process::{Resource, getrlimit};

use crate::counters::Tally;
use crate::error::{Result, VaultError};
use crate::freshness::{Commits, sync_if_there};
use crate::limits::{CATALOG_SHARE, FILES_A_BUCKET, OPEN_BUCKETS_MAX, OPEN_BUCKETS_MIN};

/// How many catalogs may stay open: as many as the limit of open files has room for beside
/// everything else. That it is low is told.
pub(crate) fn open_buckets_max() -> usize {
    let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let open_max = open_max_of(usize::try_from(limit).unwrap_or(usize::MAX));
    if open_max < OPEN_BUCKETS_MAX {
        tracing::warn!(
            limit,
            open_max,
            "fewer buckets stay open at once, for the limit of open files is low: raise it \
             (LimitNOFILE=65536 in the systemd unit, or `ulimit -n 65536`)"
        );
    }
    open_max
}

fn open_max_of(files: usize) -> usize {
    (files / CATALOG_SHARE / FILES_A_BUCKET).clamp(OPEN_BUCKETS_MIN, OPEN_BUCKETS_MAX)
}

/// What is told of a catalog that may lack commits that it had.
pub(crate) const IN_DOUBT: &str = "catalog: it is in doubt whether it is the newest, and the file \
    catalog.in-doubt says why; blobs that it knows no object of are kept";

/// Opens a bucket's catalog. The keystore knows the bucket, so a catalog that its key does not
/// open, or that is not there, is damaged.
pub(crate) async fn open_catalog(
    dir: &Path,
    id: BucketId,
    key: &BucketKey,
    keystore: &Keystore,
    tally: &Arc<Tally>,
    commits: &Commits,
) -> Result<Catalog> {
    let damaged = |what| StoreError::Damaged {
        what,
        bucket: id,
        blob: None,
    };
    let opened = Catalog::open(dir, &key.catalog_key()).await;
    match opened {
        Ok(catalog) => {
            count_damage_of(&catalog, tally);
            if catalog.is_in_doubt() {
                tally.met(&damaged(IN_DOUBT));
            }
            match judge(&catalog, dir, id, commits).await {
                Ok(()) => Ok(catalog),
                Err(error) => {
                    catalog.abandon().await;
                    Err(error)
                }
            }
        }
        Err(error) => {
            let error = match error {
                StoreError::Foreign => damaged("catalog: its first page does not open"),
                // Deleted and erased buckets lose their key before their folder.
                StoreError::Io { ref source, .. }
                    if source.kind() == ErrorKind::NotFound && keystore.holds_bucket(id) =>
                {
                    damaged("catalog: its file is missing")
                }
                error => error,
            };
            tally.met(&error);
            Err(error.into())
        }
    }
}

/// Remembers how far a catalog has come. One that was replaced by an older one is refused from
/// then on.
pub(crate) async fn see_commits(id: BucketId, catalog: &Catalog, commits: &Commits) {
    match catalog.look_at_file().await {
        Ok(Some(count)) if commits.rollback(id, count).is_some() => catalog.refuse_older(),
        // What it committed before counts: it is found to be missing by the next start.
        Err(StoreError::Replaced) => commits.seen(id, catalog.last_commit()),
        _ => {}
    }
    // What it committed counts whether it can be read or not.
    let count = catalog.commit_count().await;
    commits.seen(id, count.unwrap_or_else(|_| catalog.last_commit()));
}

/// Refuses an older copy. One that has come further than was known, as after a crash, is made
/// durable, for that it has will be held.
async fn judge(catalog: &Catalog, dir: &Path, id: BucketId, commits: &Commits) -> Result<()> {
    let count = catalog.commit_count().await?;
    let log = dir.join(format!("{CATALOG_FILE}-wal"));
    if commits.is_news(id, count) {
        let synced = tokio::task::spawn_blocking(move || sync_if_there(&log)).await;
        synced.map_err(|_| VaultError::ShuttingDown)??;
    }
    commits.opened(id, count)
}

/// Has the damage counted that reads and writes of a catalog meet.
pub(crate) fn count_damage_of(catalog: &Catalog, tally: &Arc<Tally>) {
    let tally = tally.clone();
    catalog.on_damage(move |error| tally.met(error));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn catalogs_leave_files_to_connections() {
        for (files, open_max) in [(64, 4), (1_024, 42), (4_096, 170), (1 << 20, 256)] {
            assert_eq!(open_max_of(files), open_max, "{files}");
        }
        assert_eq!(open_max_of(usize::MAX), OPEN_BUCKETS_MAX);
    }
}
