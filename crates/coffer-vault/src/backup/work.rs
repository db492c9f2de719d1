//! The steps of a backup.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use coffer_durable::now_ms;
use coffer_keys::Anchor;
use coffer_seal::BucketId;
use zeroize::Zeroizing;

use super::buckets::BucketCopied;
use super::run::Run;
use super::{BackupCounts, BackupEvent};
use crate::blocking::blocking;
use crate::data_folder::{failed, write_private};
use crate::error::{AdministrationError, BackupError, Result, VaultError};
use crate::freshness::ANCHOR_FILE;
use crate::limits::{BACKUP_ATTEMPTS, TLS_FILE_MAX_BYTES};

/// How far that had come which was copied last.
struct Copied {
    generation: u64,
    system_commits: u64,
    catalogs: BTreeMap<BucketId, u64>,
}

impl Run {
    /// Does all of it, and gives out where the copy is.
    pub(super) async fn work(mut self) -> Result<(PathBuf, BackupCounts)> {
        for row in self.vault.inner.system.buckets() {
            self.copy_blobs_ahead(&row).await?;
        }
        for _ in 0..BACKUP_ATTEMPTS {
            self.counts.bucket_count = 0;
            self.counts.blob_count = 0;
            self.missing_count = 0;
            let copied = self.copy_all().await?;
            if self.missing_count > 0 {
                let missing = self.missing_count;
                return Err(BackupError::DamagedSource { missing }.into());
            }
            let generation = copied.generation;
            self.finish(copied).await?;
            let (inner, folder) = (self.vault.inner.clone(), self.folder.clone());
            let opens =
                blocking(move || Ok(inner.keystore.opens_copy(&folder.join("keystore"))?));
            if opens.await? {
                let destination = self.destination.clone();
                let copy = blocking(move || destination.complete(generation)).await?;
                for bucket in self.left_out {
                    let _ = self.events.send(BackupEvent::LeftOut { bucket }).await;
                }
                return Ok((copy, self.counts));
            }
        }
        Err(BackupError::RootKeyChanging.into())
    }

    /// Copies every bucket, and then what holds them.
    async fn copy_all(&mut self) -> Result<Copied> {
        let inner = self.vault.inner.clone();
        let mut catalogs = BTreeMap::new();
        // Or catalogs and keystore would be of different generations of keys.
        let _no_rotation = inner.one_rotation.lock().await;
        for row in inner.system.buckets() {
            if let BucketCopied::Whole(commits) = self.copy_bucket(&row).await? {
                catalogs.insert(row.id, commits);
            }
        }
        let _no_change = inner.changing_buckets.lock().await;
        if inner.system.is_an_erase_in_doubt() {
            // What it is of is out of sight, and may not be gone.
            return Err(VaultError::SystemInDoubt);
        }
        let rows = inner.system.buckets();
        for row in &rows {
            if !catalogs.contains_key(&row.id)
                && let BucketCopied::Whole(commits) = self.copy_bucket(row).await?
            {
                catalogs.insert(row.id, commits);
            }
        }
        let left_to_erase = rows.iter().filter(|row| inner.is_left_to_erase(row));
        self.counts.left_to_erase_count = left_to_erase.count() as u64;
        let left_out = rows.iter().filter(|row| {
            let is_copied = catalogs.contains_key(&row.id);
            !is_copied && !inner.is_left_to_erase(row) && !inner.folder.has_catalog(row.id)
        });
        self.left_out = left_out.map(|row| row.name.clone()).collect();
        self.counts.left_out_count = self.left_out.len() as u64;
        catalogs.retain(|id, _| rows.iter().any(|row| row.id == *id));
        let folder = self.folder.clone();
        let copied = {
            let inner = inner.clone();
            blocking(move || {
                clear_sources(&folder)?;
                let generation = inner.keys.copy_into(&inner.keystore, &folder)?;
                let to = folder.join("system.db");
                let system_commits = inner.system.copy_into(&inner.folder.system_db(), &to)?;
                Ok((generation, system_commits))
            })
        };
        let (generation, system_commits) = copied.await?;
        Ok(Copied {
            generation,
            system_commits,
            catalogs,
        })
    }

    /// Copies the rest, holds how far all has come, and removes what an earlier attempt left.
    async fn finish(&mut self, copied: Copied) -> Result<()> {
        let (inner, folder) = (self.vault.inner.clone(), self.folder.clone());
        self.counts.bucket_count = copied.catalogs.len() as u64;
        blocking(move || {
            keep_buckets(&folder.join("buckets"), &copied.catalogs)?;
            copy_tls(inner.folder.path(), &folder)?;
            let log = inner.audit.log_or_open()?;
            let last = log.copy_into(&folder.join("audit"));
            let last = last.map_err(AdministrationError::of_copying)?;
            let anchor = Anchor {
                system_commits: copied.system_commits,
                audit_record: last.sequence,
                audit_hash: last.hash.0,
                held_ms: now_ms(),
                commits: copied.catalogs,
            };
            inner
                .freshness
                .anchor_copy(&folder.join(ANCHOR_FILE), anchor)
                .map(drop)
        })
        .await
    }
}

/// What another root-key source left there in an earlier attempt.
fn clear_sources(folder: &Path) -> Result<()> {
    for entry in fs::read_dir(folder).map_err(failed("read", folder))? {
        let entry = entry.map_err(failed("read", folder))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name.starts_with("root") || name.starts_with("keystore") || name.starts_with("system") {
            fs::remove_file(entry.path()).map_err(failed("remove", &entry.path()))?;
        }
    }
    Ok(())
}

/// Removes the folders of all buckets but these.
fn keep_buckets(buckets: &Path, wanted: &BTreeMap<BucketId, u64>) -> Result<()> {
    let entries = match fs::read_dir(buckets) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("read", buckets))?,
    };
    for entry in entries {
        let entry = entry.map_err(failed("read", buckets))?;
        let id = entry.file_name().to_str().and_then(BucketId::from_hex);
        if !id.is_some_and(|id| wanted.contains_key(&id)) {
            let path = entry.path();
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}

/// The certificates by which clients know the server, where they lie in the data folder.
fn copy_tls(data: &Path, folder: &Path) -> Result<()> {
    let (from, to) = (data.join("tls"), folder.join("tls"));
    let entries = match fs::read_dir(&from) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(failed("read", &from))?,
    };
    fs::create_dir_all(&to).map_err(failed("make", &to))?;
    for entry in entries {
        let entry = entry.map_err(failed("read", &from))?;
        let path = entry.path();
        let metadata = entry.metadata().map_err(failed("read", &path))?;
        if metadata.is_file() && metadata.len() <= TLS_FILE_MAX_BYTES {
            let text = fs::read_to_string(&path).map_err(failed("read", &path))?;
            write_private(&to.join(entry.file_name()), &Zeroizing::new(text))?;
        }
    }
    Ok(())
}
