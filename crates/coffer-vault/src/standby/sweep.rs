//! Removing blobs that no object has any more, some time after they were deleted at the original.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::time::Instant;

use coffer_replica::CopyReader;
use coffer_seal::{BlobId, BucketId};
use coffer_store::Catalog;

use super::Standby;
use crate::blocking::blocking;
use crate::data_folder::failed;
use crate::error::Result;
use crate::limits::STANDBY_SWEEPS_EVERY;

impl Standby {
    /// Removes them, where that is due and nothing is to be fetched. `reader` is of what is held.
    pub(super) async fn sweep(&mut self, reader: &CopyReader) -> Result<()> {
        let began = self.swept.get_or_insert_with(Instant::now);
        // A cache removes what is not asked for by itself.
        if began.elapsed() < STANDBY_SWEEPS_EVERY || self.vault.cache.is_some() {
            return Ok(());
        }
        for id in self.wanted(reader).into_keys() {
            self.sweep_bucket(id).await?;
        }
        self.swept = Some(Instant::now());
        Ok(())
    }

    async fn sweep_bucket(&self, id: BucketId) -> Result<()> {
        let Some(reached) = &self.reached else {
            return Ok(());
        };
        let folder = self.data().join("buckets").join(id.to_string());
        let key = reached.keystore.bucket_key(id)?;
        let catalog = Catalog::open_read_only(&folder, &key.catalog_key()).await?;
        let swept = self.sweep_by(&catalog, folder.join("blobs")).await;
        catalog.close().await;
        swept
    }

    /// A folder of blobs at a time, so that memory holds the names of one.
    async fn sweep_by(&self, catalog: &Catalog, blobs: PathBuf) -> Result<()> {
        for first in 0..=u8::MAX {
            let folder = blobs.join(format!("{first:02x}"));
            let mut files = blocking(move || files_in(&folder, first)).await?;
            if files.is_empty() {
                continue;
            }
            let mut after = BlobId([0; 16]);
            after.0[0] = first;
            // The lowest id there can be is none that is given.
            let mut after = Some(after);
            'pages: loop {
                let page = catalog.blobs_after(after).await?;
                if page.is_empty() {
                    break;
                }
                for (id, _) in page {
                    if id.0[0] != first {
                        break 'pages;
                    }
                    files.retain(|(of, _)| *of != id);
                    after = Some(id);
                }
            }
            blocking(move || {
                for (_, path) in files {
                    fs::remove_file(&path).map_err(failed("remove", &path))?;
                }
                Ok(())
            })
            .await?;
        }
        Ok(())
    }
}

/// The blobs in a folder, with their files.
fn files_in(folder: &std::path::Path, first: u8) -> Result<BTreeSet<(BlobId, PathBuf)>> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Ok(BTreeSet::new());
    };
    let blob = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let id = BlobId::from_hex(&format!("{first:02x}{name}"));
        Some((id.or_else(|| BlobId::from_hex(name))?, path))
    };
    Ok(entries
        .flatten()
        .filter_map(|entry| blob(entry.path()))
        .collect())
}
