//! A stopped server's audit log.

use std::path::{Path, PathBuf};

use coffer_audit::{AuditKey, Reader, Record, Recorded, Report, last, verify};
use coffer_keys::{KeyFolder, Keystore, SourceSecrets};

use crate::audit::audit_key;
use crate::error::{Result, VaultError};
use crate::folder::Folder;
use crate::system::System;
use crate::watch::show_name;

/// A stopped server's audit log. Nothing is changed. It blocks.
pub struct OfflineAudit {
    /// Held as long as the log is read.
    _folder: Folder,
    keystore: Keystore,
    path: PathBuf,
    key: AuditKey,
    public_key: [u8; 32],
    /// What `system.db` says that the log must hold, if it can be read.
    known: Option<Recorded>,
}

impl OfflineAudit {
    /// Opens the data folder of a server that is not running.
    ///
    /// # Errors
    /// [`VaultError::FolderInUse`] while it is running; and when the keystore can't be opened.
    pub fn open(data: &Path, secrets: &SourceSecrets) -> Result<Self> {
        let folder = Folder::open_existing(data)?;
        let keystore = KeyFolder::new(data).open_read_only(None, secrets)?;
        let system = System::open_read_only(&folder.system_db(), &keystore.system_key());
        Ok(Self {
            path: folder.audit(),
            key: audit_key(&keystore),
            public_key: keystore.receipt_public_key()?.to_bytes(),
            known: system
                .and_then(|system| system.audit_anchor())
                .ok()
                .flatten(),
            _folder: folder,
            keystore,
        })
    }

    /// Verifies all of it, and that it has the record `wanted`.
    ///
    /// # Errors
    /// When a file can't be read, or is of a later version.
    pub fn verify(&self, wanted: Option<Recorded>) -> Result<Report> {
        let wanted = wanted.or(self.known);
        verify(&self.path, &self.key, &self.public_key, wanted.as_ref())
            .map_err(VaultError::AuditUnavailable)
    }

    /// A record with the name of its object, where that is sealed and its key is there.
    pub fn shown(&self, mut record: Record) -> Record {
        show_name(&self.keystore, &mut record);
        record
    }

    /// Reads from a record on: from `from`, but only the `last` ones.
    ///
    /// # Errors
    /// As [`OfflineAudit::verify`].
    pub fn reader(&self, from: Option<u64>, last_count: Option<u64>) -> Result<Reader> {
        let mut from = from.unwrap_or(1).max(1);
        if let Some(count) = last_count {
            let last = last(&self.path, &self.key).map_err(VaultError::AuditUnavailable)?;
            let last = last.map_or(0, |last| last.sequence);
            from = from.max((last + 1).saturating_sub(count));
        }
        Ok(Reader::open(&self.path, self.key.clone(), from))
    }
}
