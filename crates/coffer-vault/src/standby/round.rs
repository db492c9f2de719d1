//! A round: from the newest head to a state that is served.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use coffer_keys::KeysError;
use coffer_replica::{BucketState, CopyReader};
use coffer_seal::BucketId;
use coffer_store::{BlobCache, StoreError};

use super::served::ServedState;
use super::states::{self, StateRecord};
use super::{Standby, standby_folder};
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::engine::remove_before;
use crate::error::{Result, VaultError};
use crate::gateways::Position;
use crate::system::System;
use crate::vault::{Vault, VaultOptions};

impl Standby {
    /// Looks for what is new, and opens a state of it; none, when nothing is.
    pub(super) async fn follow(&mut self) -> Result<Option<ServedState>> {
        let reader = self.reach_newest().await?;
        let Some(reached) = &self.reached else {
            return Ok(None);
        };
        let head = reader.head();
        self.ended_by = self.is_of_another(head).then_some(head.number);
        let ended_by = self.ended_by;
        self.link.change(|told| told.ended_by = ended_by);
        let now = (reader.known().clone(), reached.reference.clone());
        if self.served.as_ref() == Some(&now) && self.held.missing.is_empty() {
            self.sweep(&reader).await?;
            return Ok(None);
        }
        self.known = Some(reader.known().clone());
        self.note_record().await;
        self.fetch(&reader).await?;
        let record = StateRecord {
            head: reader.known().clone(),
            as_of_ms: reader.head().as_of_ms,
        };
        if self.served.as_ref() == Some(&now) {
            return Ok(None);
        }
        let position = self.position(&reader).await?;
        let state = self.open_next(record).await?;
        self.served = Some(now);
        Ok(Some(ServedState {
            position: Some(position),
            ..state
        }))
    }

    /// How far all has come that the folder holds, which nothing has opened to write there.
    async fn position(&self, reader: &CopyReader) -> Result<Position> {
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        let (data, key) = (self.data().to_owned(), reached.keystore.system_key());
        let system_commits = blocking(move || {
            let system = System::open_read_only(&data.join("system.db"), &key)?;
            system.commit_count()
        });
        let buckets = self.wanted(reader).into_iter();
        Ok(Position {
            system_commits: system_commits.await?,
            keystore_generation: reached.keystore.generation(),
            buckets: buckets.map(|(id, state)| (id, state.commits)).collect(),
        })
    }

    /// Brings the folder up to a head.
    pub(super) async fn fetch(&mut self, reader: &CopyReader) -> Result<()> {
        self.fetch_files(reader).await?;
        self.refuse_left_out(reader).await?;
        let buckets = self.wanted(reader);
        for (id, state) in &buckets {
            self.fetch_bucket(reader, *id, state).await?;
        }
        self.held.buckets.retain(|id, _| buckets.contains_key(id));
        self.held.missing.retain(|id, _| buckets.contains_key(id));
        let missing_count = self.held.missing.values().sum();
        self.link.change(|told| told.missing_count = missing_count);
        let (data, cache) = (self.data().to_owned(), self.vault.cache.clone());
        blocking(move || remove_others(&data, &buckets, cache.as_ref())).await
    }

    /// The buckets of a head that the keystore has keys of.
    pub(super) fn wanted(&self, reader: &CopyReader) -> BTreeMap<BucketId, BucketState> {
        let buckets = reader.head().buckets.iter();
        let buckets = buckets.filter_map(|(id, state)| Some((BucketId::from_hex(id)?, state)));
        let has_key = |id: &BucketId| {
            let keystore = self.reached.as_ref().map(|reached| &reached.keystore);
            keystore.is_some_and(|keystore| keystore.holds_bucket(*id))
        };
        buckets
            .filter(|(id, _)| has_key(id))
            .map(|(id, state)| (id, state.clone()))
            .collect()
    }

    /// Makes the next state of what the folder holds, and opens it.
    async fn open_next(&mut self, record: StateRecord) -> Result<ServedState> {
        self.number += 1;
        let (data, number, made) = (self.data().to_owned(), self.number, record.clone());
        let folder = blocking(move || states::make(&data, number, &made)).await?;
        match self.open_state(&folder, &record).await {
            Ok(state) => {
                let (data, is_first) = (self.data().to_owned(), !self.has_served);
                let remove = move || {
                    if is_first {
                        // One that did not open, and was kept.
                        states::clear(&data)?;
                    }
                    remove_before(&data)
                };
                if let Err(error) = blocking(remove).await {
                    state.vault.close().await;
                    return Err(error);
                }
                self.serving = Arc::downgrade(&state.vault.inner);
                Ok(state)
            }
            Err(error) => {
                // The one before goes on being served.
                let _ = fs::remove_dir_all(&folder);
                Err(error)
            }
        }
    }

    /// What an earlier run served last, if that opens.
    pub(super) async fn left(&mut self) -> Option<ServedState> {
        let (folder, record) = states::newest(self.data())?;
        match self.open_state(&folder, &record).await {
            Ok(state) => {
                self.known = Some(record.head);
                self.serving = Arc::downgrade(&state.vault.inner);
                Some(state)
            }
            Err(error) if is_of_damage(&error) => {
                tracing::warn!(
                    %error,
                    "the state that was served last does not open, and is removed"
                );
                let _ = fs::remove_dir_all(&folder);
                None
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "the state that was served last does not open now: it is kept until there is \
                     another, and tried again by the next start"
                );
                None
            }
        }
    }

    async fn open_state(&self, folder: &Path, record: &StateRecord) -> Result<ServedState> {
        let options = VaultOptions {
            data: folder.to_owned(),
            standby: Some(self.link.clone()),
            // What a state lacks, its head lacked.
            accept_rollback: true,
            ..self.vault.clone()
        };
        let vault = Vault::open(options).await?;
        if !vault.inner.system.has_subjects() && vault.inner.system.commit_count()? == 0 {
            vault.close().await;
            return Err(VaultError::Damaged);
        }
        self.link.change(|told| {
            told.head = Some(record.head.clone());
            told.as_of_ms = record.as_of_ms;
            told.state_count += 1;
        });
        Ok(ServedState {
            vault,
            lease: Arc::default(),
            position: None,
        })
    }
}

/// Whether what does not open never will: it is damaged, or of another server.
fn is_of_damage(error: &VaultError) -> bool {
    matches!(
        error,
        VaultError::Damaged
            | VaultError::SystemDamaged { .. }
            | VaultError::SystemLogDamaged { .. }
            | VaultError::Keys(
                KeysError::Damaged { .. } | KeysError::Malformed { .. } | KeysError::KeyDidNotOpen
            )
            | VaultError::Store(
                StoreError::Damaged { .. } | StoreError::Foreign | StoreError::NotSealed
            )
    )
}

/// Removes what is of buckets that are gone, or of which the key was destroyed.
fn remove_others(
    data: &Path,
    wanted: &BTreeMap<BucketId, BucketState>,
    cache: Option<&BlobCache>,
) -> Result<()> {
    Folder::assure_own(data)?;
    let standby = standby_folder(data);
    for folder in [
        data.join("buckets"),
        standby.join("segments"),
        standby.join("building"),
    ] {
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(failed("read", &folder))?,
        };
        for entry in entries {
            let path = entry.map_err(failed("read", &folder))?.path();
            let id = path.file_name().and_then(|name| name.to_str());
            let id = id.and_then(BucketId::from_hex);
            if id.is_none_or(|id| wanted.contains_key(&id)) {
                continue;
            }
            let removed = if path.is_dir() {
                fs::remove_dir_all(&path)
            } else {
                fs::remove_file(&path)
            };
            removed.map_err(failed("remove", &path))?;
            if let Some((cache, id)) = cache.zip(id) {
                cache.forget_bucket(id);
            }
        }
    }
    Ok(())
}
