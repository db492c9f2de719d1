//! Opening catalogs of the vault's own: what is damaged in them is counted, and told in the log.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use coffer_keys::{BucketKey, Keystore};
use coffer_store::record::Id;
use coffer_store::{Catalog, StoreError};

use crate::counters::Tally;

/// Opens a bucket's catalog. The keystore knows the bucket, so a catalog that its key does not
/// open, or that is not there, is damaged.
pub(crate) async fn open_catalog(
    dir: &Path,
    id: Id,
    key: &BucketKey,
    keystore: &Keystore,
    tally: &Arc<Tally>,
) -> Result<Catalog, StoreError> {
    let damaged = |what| StoreError::Damaged {
        what,
        bucket: id,
        blob: None,
    };
    let opened = Catalog::open(dir, &key.catalog_key()).await;
    match opened {
        Ok(catalog) => {
            count_damage_of(&catalog, tally);
            Ok(catalog)
        }
        Err(error) => {
            let error = match error {
                StoreError::Foreign => damaged("catalog: its first page does not open"),
                // Deleted and erased buckets lose their key before their folder.
                StoreError::Io { ref source, .. }
                    if source.kind() == ErrorKind::NotFound && keystore.holds_bucket(&id.0) =>
                {
                    damaged("catalog: its file is missing")
                }
                error => error,
            };
            tally.met(&error);
            Err(error)
        }
    }
}

/// Has the damage counted that reads and writes of a catalog meet.
pub(crate) fn count_damage_of(catalog: &Catalog, tally: &Arc<Tally>) {
    let tally = tally.clone();
    catalog.on_damage(move |error| tally.met(error));
}
