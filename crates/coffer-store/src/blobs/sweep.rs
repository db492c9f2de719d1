//! Reclaiming what a crash left: files of blobs that no catalog row refers to.

use std::fs;
use std::io;
use std::path::Path;

use coffer_seal::BlobId;

use crate::blobs::folder::{BlobStore, Inner};
use crate::blobs::path::id_of;
use crate::catalog::open::Catalog;
use crate::database::readers::blocking;
use crate::error::{Result, StoreError};

/// What a sweep found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Files that were reclaimed.
    pub files: u64,
    /// Their length together, in bytes.
    pub bytes: u64,
    /// Files that nothing refers to and that were kept, for the catalog is in doubt.
    pub kept_files: u64,
}

impl BlobStore {
    /// Removes every file of a blob that neither `catalog` refers to nor a writer is at.
    /// Others may write, read and remove meanwhile. Where the catalog is in doubt, they are counted
    /// and stay: it may be the rows that are missing.
    ///
    /// # Errors
    /// Those of the catalog and of listing the folders; what can't be removed is left.
    pub async fn sweep(&self, catalog: &Catalog) -> Result<Swept> {
        let mut swept = Swept::default();
        for first_byte in 0..=255u8 {
            let store = self.inner.clone();
            let found = blocking(move || files_in(&store, first_byte)).await?;
            // First who writes or removes it, then the catalog. A blob that was being written when
            // its file was listed and is not any more is by now in the catalog, or its file gone.
            let idle: Vec<_> = found
                .iter()
                .map(|file| file.id)
                .filter(|id| self.is_idle(*id))
                .collect();
            if idle.is_empty() {
                continue;
            }
            let orphans = catalog.without_blob(idle).await?;
            if catalog.is_in_doubt() {
                swept.kept_files += orphans.len() as u64;
                continue;
            }
            for file in &found {
                if orphans.contains(&file.id) {
                    swept.files += 1;
                    swept.bytes += file.bytes;
                }
            }
            if !orphans.is_empty() {
                // Not unlinked here: its object may have been deleted a moment ago while another
                // reads it.
                self.remove(orphans).await;
            }
        }
        Ok(swept)
    }
}

struct Found {
    id: BlobId,
    bytes: u64,
}

/// The files of blobs whose ids begin with this byte.
fn files_in(store: &Inner, first_byte: u8) -> Result<Vec<Found>> {
    let folder = format!("{first_byte:02x}");
    let mut found = Vec::new();
    let dir = store.dir.join(Path::new(&folder));
    let failed = |error| StoreError::io("list blobs", &dir, error);
    let entries = match fs::read_dir(&dir) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        let Some(id) = entry
            .file_name()
            .to_str()
            .and_then(|name| id_of(&folder, name))
        else {
            tracing::warn!(bucket = %store.bucket, folder, "a file that is no blob; it is left");
            continue;
        };
        match entry.metadata() {
            Ok(metadata) => found.push(Found {
                id,
                bytes: metadata.len(),
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failed(error)),
        }
    }
    Ok(found)
}
