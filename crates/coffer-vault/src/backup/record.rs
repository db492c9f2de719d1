//! What a copy says of itself: the file `backup.json`, which is made first and completed last.
//!
//! It is not sealed. Whether a copy is whole is told by what is sealed in it; this tells that it is
//! a copy, and of when.

use std::collections::HashSet;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use coffer_durable::{Folder, from_rfc3339, remove_durably};
use coffer_seal::{BucketId, KeystoreId};
use serde::{Deserialize, Serialize};

use crate::data_folder::{ENGINE_FILE, STANDBY, failed, write_private};
use crate::error::{BackupError, Result, Rollback, RollbackOf, VaultError};

/// The file in a copy.
pub(crate) const BACKUP_FILE: &str = "backup.json";

/// The only format there is.
const FORMAT: u32 = 1;

/// What a copy says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct BackupRecord {
    pub(super) format: u32,
    /// The id of the keystore.
    pub(super) keystore: String,
    /// When the copy was begun: RFC 3339.
    pub(super) began: String,
    /// When it was complete: RFC 3339; absent before that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ended: Option<String>,
    /// The generation of the keystore that it has.
    #[serde(default)]
    pub(super) generation: u64,
    /// Ids of buckets that a restore of others left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) left_out: Vec<String>,
    /// What the audit log is to say of the promotion of a standby, sealed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) promotion: Option<String>,
}

impl BackupRecord {
    pub(crate) fn begun(keystore_id: KeystoreId, now: String) -> Self {
        Self {
            format: FORMAT,
            keystore: keystore_id.to_string(),
            began: now,
            ended: None,
            generation: 0,
            left_out: Vec::new(),
            promotion: None,
        }
    }

    /// Of a standby that is promoted.
    pub(crate) fn promoted(self, promotion: String) -> Self {
        Self {
            promotion: Some(promotion),
            ..self
        }
    }

    /// What the audit log is to say of the promotion of a standby, sealed.
    pub(crate) fn promotion(&self) -> Option<&str> {
        self.promotion.as_deref()
    }

    pub(crate) fn write(&self, copy: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|_| VaultError::Damaged)?;
        write_private(&copy.join(BACKUP_FILE), &format!("{text}\n"))
    }

    /// Says that the copy is complete, with the keystore of this generation.
    pub(crate) fn complete(&self, copy: &Path, generation: u64) -> Result<()> {
        self.complete_without(copy, generation, &[])
    }

    /// The same, where buckets were left out that were not asked for.
    pub(crate) fn complete_without(
        &self,
        copy: &Path,
        generation: u64,
        left_out: &[BucketId],
    ) -> Result<()> {
        let record = Self {
            ended: Some(self.began.clone()),
            generation,
            left_out: left_out.iter().map(BucketId::to_string).collect(),
            ..self.clone()
        };
        record.write(copy)
    }

    /// Buckets that were left out.
    pub(crate) fn left_out(&self) -> HashSet<BucketId> {
        let ids = self.left_out.iter();
        ids.filter_map(|id| BucketId::from_hex(id)).collect()
    }

    /// Whether a copy is begun in a folder and not complete.
    pub(crate) fn is_begun(folder: &Path) -> bool {
        let text = fs::read(folder.join(BACKUP_FILE)).unwrap_or_default();
        let record = serde_json::from_slice::<Self>(&text).ok();
        record.is_some_and(|record| record.ended.is_none())
    }

    /// The record of a complete copy; none of a folder that is no copy.
    ///
    /// # Errors
    /// [`BackupError::IncompleteBackup`], [`BackupError::OfStandby`], [`BackupError::OfGateway`].
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>> {
        let path = folder.join(BACKUP_FILE);
        let text = match fs::read(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            text => text.map_err(failed("read", &path))?,
        };
        let record = serde_json::from_slice::<Self>(&text).ok();
        let record = record.filter(|record| record.format == FORMAT && record.ended.is_some());
        let incomplete = || {
            let path = folder.display().to_string();
            if folder.join(ENGINE_FILE).exists() {
                BackupError::OfGateway { path }
            } else if folder.join(STANDBY).exists() {
                BackupError::OfStandby { path }
            } else {
                BackupError::IncompleteBackup { path }
            }
        };
        Ok(Some(record.ok_or_else(incomplete)?))
    }

    /// As what a start finds a copy that is to be served.
    pub(crate) fn as_rollback(&self) -> Rollback {
        Rollback {
            of: RollbackOf::Backup,
            found: self.generation,
            held: self.generation,
            held_ms: from_rfc3339(&self.began).unwrap_or(0),
        }
    }
}

/// From now on the folder is no copy: it is served.
pub(crate) fn forget(folder: &Path) -> Result<()> {
    let removed = remove_durably(&Folder::new(folder), BACKUP_FILE);
    let removed = removed.map_err(std::io::Error::from);
    removed.map_err(failed("remove", &folder.join(BACKUP_FILE)))
}
