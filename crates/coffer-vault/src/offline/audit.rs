//! A stopped server's audit log.

use std::path::{Path, PathBuf};

use coffer_audit::{AuditError, AuditKey, Reader, Record, Recorded, Report, last, verify};
use coffer_keys::{KeyFolder, Keystore, SourceSecrets, SourceSpec};

use crate::admin::AuditQuery;
use crate::audit::{Ready, audit_key, show_name};
use crate::data_folder::Folder;
use crate::error::{AdministrationError, Result};
use crate::freshness::{Comparison, known_record};
use crate::system::System;

/// A stopped server's audit log. Nothing is changed. It blocks.
pub struct OfflineAudit {
    /// Held as long as the log is read.
    _folder: Folder,
    keystore: Keystore,
    path: PathBuf,
    key: AuditKey,
    public_key: [u8; 32],
    /// The server's database, if it can be read.
    system: Option<System>,
    /// The highest record that the log must hold, by keystore, anchor and database, as far as they
    /// can be read.
    known: Option<Recorded>,
}

impl OfflineAudit {
    /// Opens the data folder of a server that is not running. `source`: where the root key is, for
    /// a copy that does not record it.
    ///
    /// # Errors
    /// [`VaultError::FolderInUse`](crate::VaultError::FolderInUse) while it is running; and when
    /// the keystore can't be opened.
    pub fn open(data: &Path, source: Option<&SourceSpec>, secrets: &SourceSecrets) -> Result<Self> {
        let folder = Folder::open_existing(data)?;
        let keystore = KeyFolder::new(data).open_read_only(source, secrets)?;
        let system = System::open_read_only(&folder.system_db(), &keystore.system_key()).ok();
        let of_system = system
            .as_ref()
            .and_then(|system| system.audit_anchor().ok().flatten());
        let anchor = Comparison::read_anchor(&folder, &keystore).ok();
        let anchor = anchor.as_ref().and_then(|anchor| anchor.newest());
        let known = known_record(&keystore, anchor, of_system);
        Ok(Self {
            path: folder.audit(),
            key: audit_key(&keystore),
            public_key: keystore.receipt_public_key()?.to_bytes(),
            known: known.map(|(recorded, _)| recorded),
            system,
            _folder: folder,
            keystore,
        })
    }

    /// Verifies all of it, and that it has the record `wanted`.
    ///
    /// # Errors
    /// [`AdministrationError::AuditUnreadable`] when a file can't be read, or is of a later
    /// version.
    pub fn verify(&self, wanted: Option<Recorded>) -> Result<Report> {
        let wanted = wanted.or(self.known);
        let report = verify(&self.path, &self.key, &self.public_key, wanted.as_ref());
        Ok(report.map_err(AdministrationError::of_reading)?)
    }

    /// A record with the name of its object, where that is sealed and its key is there.
    pub fn shown(&self, mut record: Record) -> Record {
        show_name(&self.keystore, &mut record);
        record
    }

    /// Reads what a query wants, without waiting for more.
    ///
    /// # Errors
    /// As [`OfflineAudit::verify`].
    pub fn records(&self, query: AuditQuery) -> Result<OfflineRecords> {
        let filter = query.filter.ready(self.system.as_ref());
        let mut from = query.from.unwrap_or(1).max(1);
        let mut skipped = 0;
        match query.last {
            Some(count) if filter.wants_all() => {
                let last = last(&self.path, &self.key).map_err(AdministrationError::of_reading)?;
                let last = last.map_or(0, |last| last.sequence);
                from = from.max((last + 1).saturating_sub(count));
            }
            Some(count) => {
                // What is wanted has to be counted before it is known which of it are the last.
                let mut reader = Reader::open(&self.path, self.key.clone(), from);
                let mut wanted: u64 = 0;
                loop {
                    match reader.next() {
                        Ok(Some(record)) => wanted += u64::from(filter.wants(&record)),
                        Ok(None) => break,
                        Err(AuditError::Unreadable { .. }) => {}
                        Err(error) => return Err(AdministrationError::of_reading(error).into()),
                    }
                }
                skipped = wanted.saturating_sub(count);
            }
            None => {}
        }
        Ok(OfflineRecords {
            reader: Reader::open(&self.path, self.key.clone(), from),
            filter,
            skipped,
        })
    }
}

/// Records of a stopped server's audit log.
pub struct OfflineRecords {
    reader: Reader,
    filter: Ready,
    /// How many that are wanted are not told.
    skipped: u64,
}

impl OfflineRecords {
    /// The next record; `None` at the end.
    ///
    /// # Errors
    /// As [`Reader::next`].
    #[expect(
        clippy::should_implement_trait,
        reason = "after an error it goes on, as readers do"
    )]
    pub fn next(&mut self) -> Result<Option<Record>, AuditError> {
        while let Some(record) = self.reader.next()? {
            if !self.filter.wants(&record) {
                continue;
            }
            if self.skipped == 0 {
                return Ok(Some(record));
            }
            self.skipped -= 1;
        }
        Ok(None)
    }
}
