//! Comparing what is found with what is held of it. Nothing is changed.

use coffer_audit::{Recency, Recorded, recency};
use coffer_keys::{Anchor, AnchorFile, Keystore};

use super::{ANCHOR_FILE, Freshness, recorded};
use crate::audit::audit_key;
use crate::data_folder::Folder;
use crate::error::{AdministrationError, Result, Rollback, RollbackOf};
use crate::system::System;

/// A data folder, and what holds the versions in it.
pub(crate) struct Comparison<'a> {
    pub(crate) folder: &'a Folder,
    pub(crate) keystore: &'a Keystore,
    pub(crate) anchor: &'a AnchorFile,
}

impl Freshness {
    /// What of system database, audit log and anchor is older than it is held, and the keystore,
    /// where that was accepted.
    pub(crate) fn look(&self, folder: &Folder, system: &System) -> Result<Vec<Rollback>> {
        let state = self.state.lock();
        let looking = Comparison {
            folder,
            keystore: &self.keystore,
            anchor: &state.anchor,
        };
        let mut found = looking.look(Some(system))?;
        let accepted = self.keystore.accepted().map(Rollback::of_keystore);
        found.extend(accepted);
        Ok(found)
    }
}

impl Comparison<'_> {
    /// The anchor of a data folder that is only read.
    pub(crate) fn read_anchor(folder: &Folder, keystore: &Keystore) -> Result<AnchorFile> {
        let path = folder.path().join(ANCHOR_FILE);
        Ok(AnchorFile::open_read_only(&path, keystore)?)
    }

    /// What is older than it is held, of all but catalogs and the keystore itself.
    pub(crate) fn look(&self, system: Option<&System>) -> Result<Vec<Rollback>> {
        let mut found = Vec::new();
        found.extend(self.anchor());
        let mut known = None;
        if let Some(system) = system {
            found.extend(self.system(system.commit_count()?));
            known = system.audit_anchor()?;
        }
        found.extend(self.audit(known)?);
        Ok(found)
    }

    fn anchor(&self) -> Option<Rollback> {
        let held = self.keystore.held();
        let found = self.anchor.number();
        (found < held.anchor_number).then_some(Rollback {
            of: RollbackOf::Anchor,
            found,
            held: held.anchor_number,
            held_ms: held.held_ms,
        })
    }

    fn system(&self, found: u64) -> Option<Rollback> {
        let held = self.keystore.held();
        let anchor = self.anchor.newest();
        let by_anchor = anchor.map_or((0, 0), |anchor| (anchor.system_commits, anchor.held_ms));
        let (held, held_ms) = by_anchor.max((held.system_commits, held.held_ms));
        (found < held).then_some(Rollback {
            of: RollbackOf::System,
            found,
            held,
            held_ms,
        })
    }

    fn audit(&self, of_system: Option<Recorded>) -> Result<Option<Rollback>> {
        let known = known_record(self.keystore, self.anchor.newest(), of_system);
        let Some((known, held_ms)) = known else {
            return Ok(None);
        };
        let key = audit_key(self.keystore);
        let recency = recency(&self.folder.audit(), &key, &known);
        let found = match recency.map_err(AdministrationError::of_reading)? {
            Recency::Current => return Ok(None),
            Recency::Older(last) => last,
            Recency::Other => known.sequence,
        };
        Ok(Some(Rollback {
            of: RollbackOf::Audit,
            found,
            held: known.sequence,
            held_ms,
        }))
    }
}

/// The highest record that the audit log is known to have held, and when that was held.
pub(crate) fn known_record(
    keystore: &Keystore,
    anchor: Option<&Anchor>,
    of_system: Option<Recorded>,
) -> Option<(Recorded, i64)> {
    let held = keystore.held();
    let of_keystore = recorded(held.audit_record, held.audit_hash);
    let of_anchor = anchor.and_then(|anchor| {
        let record = recorded(anchor.audit_record, anchor.audit_hash)?;
        Some((record, anchor.held_ms))
    });
    let last_ms = of_anchor.map_or(held.held_ms, |(_, held_ms)| held_ms.max(held.held_ms));
    let known = [
        of_keystore.map(|record| (record, held.held_ms)),
        of_anchor,
        // It doesn't say when, but it is seconds late at most.
        of_system.map(|record| (record, last_ms)),
    ];
    let known = known.into_iter().flatten();
    known.max_by_key(|(record, _)| record.sequence)
}
