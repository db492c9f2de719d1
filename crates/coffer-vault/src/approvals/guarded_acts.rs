//! What takes away what an approval guards: erases and exports; rotations, which destroy keys that
//! copies and exports are opened with; and a move of the root key, which puts all of them where
//! perhaps one person gets at them; pruning the audit log; and the time by which locks end, which
//! takes away what they keep from.

use std::sync::Arc;

use coffer_audit::limits::PRUNE_MIN_AGE;
use coffer_durable::now_ms;
use coffer_keys::limits::LEVEL_NAME_MAX_BYTES;
use coffer_keys::{ExportRecipient, KeysError, LevelEntry, SourceSecrets, SourceSpec};

use super::request::{GuardedAct, GuardedOutcome};
use crate::access::{Act, Actor, BucketName};
use crate::audit::Facts;
use crate::error::{Result, VaultError};
use crate::limits::EXPORT_RECIPIENTS_MAX;
use crate::replica::NewCopy;
use crate::system::BucketRow;
use crate::vault::Vault;

impl Vault {
    /// Erases a level with all of its buckets: when this returns a receipt, nothing of it can be
    /// opened any more by this server. Or asks for it, where that takes an approval.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`]; [`VaultError::EraseUnsettled`] when keys can't be destroyed
    /// everywhere yet.
    pub async fn erase_level(&self, actor: &Actor, name: &str) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::EraseLevel, &on_level(name))?;
        let level = self.level_or_draft(|level| level.name == name)?;
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        if let Err(error) = Box::pin(self.check_locks_of_level(&level)).await {
            return Err(self.failed(Act::EraseLevel, actor, &on_level(name), error));
        }
        let wanted = GuardedAct::LevelErase {
            level: level.name,
            level_id: level.id,
        };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Erases a bucket with all that it holds, as [`Vault::erase_level`] does a level.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`]; as [`Vault::erase_level`].
    pub async fn erase_bucket(&self, actor: &Actor, name: &BucketName) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::EraseBucket, &on_bucket(name))?;
        let (row, is_going) = self.looked_after_or_going(actor, name)?;
        let level = self.level_or_draft(|level| level.id == row.level_id)?;
        let level = level.or_else(|| self.inner.level_to_erase(&row));
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        // Of one whose erase has begun they were looked at when it did.
        let rows: &[Arc<BucketRow>] = if is_going {
            &[]
        } else {
            std::slice::from_ref(&row)
        };
        let with_key = rows
            .iter()
            .try_for_each(|row| self.inner.refuse_missing_key(row));
        let checked = match with_key {
            Ok(()) => Box::pin(self.check_locks(&level, rows)).await,
            refused => refused,
        };
        if let Err(error) = checked {
            return Err(self.failed(Act::EraseBucket, actor, &on_bucket(name), error));
        }
        let wanted = GuardedAct::BucketErase {
            bucket: name.as_str().to_owned(),
            bucket_id: row.id,
            level: level.name,
        };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Exports a level's key, and those of its buckets, for these recipients. The export is counted
    /// before it is given out. Or asks for it, where that takes an approval.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`]; those of
    /// [`Keystore::export_level`](coffer_keys::Keystore::export_level).
    pub async fn export_level(
        &self,
        actor: &Actor,
        name: &str,
        recipients: &[ExportRecipient],
    ) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::ExportKey, &on_level(name))?;
        check_count(recipients)?;
        let level = self.inner.keystore.level_named(name);
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        if !level.options.exportable {
            // What can't be done needs no approval.
            let name = level.name;
            return Err(KeysError::NotExportable { name }.into());
        }
        let wanted = GuardedAct::KeyExport {
            level: level.name,
            level_id: level.id,
            recipients: recipients.iter().map(ToString::to_string).collect(),
        };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Seals the root key for these recipients, which counts as an export of every level. Or asks
    /// for it, where any level takes approvals.
    ///
    /// # Errors
    /// Those of [`Keystore::back_up_root`](coffer_keys::Keystore::back_up_root).
    pub async fn back_up_keystore(
        &self,
        actor: &Actor,
        recipients: &[ExportRecipient],
    ) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::BackUpKeystore, &Facts::new())?;
        check_count(recipients)?;
        let levels = self.inner.keystore.levels();
        if let Some(level) = levels.into_iter().find(|level| !level.options.exportable) {
            // What can't be done needs no approval.
            let name = level.name;
            let what = "a backup of the root key";
            return Err(KeysError::NoBackup { what, name }.into());
        }
        let recipients = recipients.iter().map(ToString::to_string).collect();
        let wanted = GuardedAct::KeystoreBackup { recipients };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Makes a sealed copy that the keystore goes along with, which counts as an export of every
    /// level: for these recipients, or, where there are none, for who has the root key. The asker
    /// is a system administrator and a key custodian. Or asks for it, where any level takes
    /// approvals.
    ///
    /// # Errors
    /// As [`Vault::add_copy`]; [`KeysError::NoBackup`].
    pub async fn add_copy_with_keystore(
        &self,
        actor: &Actor,
        new: &NewCopy,
        recipients: &[ExportRecipient],
    ) -> Result<GuardedOutcome> {
        let wanted = GuardedAct::CopyWithKeystore {
            name: new.name.clone(),
            url: new.url.clone(),
            keep_ms: new.keep_ms(),
            sync: new.sync,
            recipients: recipients.iter().map(ToString::to_string).collect(),
        };
        self.refuse_but_custodians(actor, wanted.recorded_as(), &wanted.facts())?;
        self.check_new_copy_with_keystore(actor, new, recipients)?;
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Rotates a level's key and those of all of its buckets: returns when that has begun and is
    /// sure to go on; [`Vault::rotations`] tells how far it is. Or asks for it, where that takes an
    /// approval.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`]; [`VaultError::Invalid`] while it is being rotated.
    pub async fn rotate_level(&self, actor: &Actor, name: &str) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::RotateLevel, &on_level(name))?;
        let level = self.inner.keystore.level_named(name);
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        let wanted = GuardedAct::LevelRotate {
            level: level.name,
            level_id: level.id,
        };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Rotates a bucket's key, as [`Vault::rotate_level`] does a level's.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`]; as [`Vault::rotate_level`].
    pub async fn rotate_bucket(&self, actor: &Actor, name: &BucketName) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::RotateBucket, &on_bucket(name))?;
        let row = self.looked_after(actor, name)?;
        let level = self.inner.keystore.level(row.level_id);
        let wanted = GuardedAct::BucketRotate {
            bucket: name.as_str().to_owned(),
            bucket_id: row.id,
            level: level.ok_or(VaultError::NoSuchLevel)?.name,
        };
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Puts the keystore under a new root key, and destroys the old one. Or asks for it, where any
    /// level takes approvals.
    pub async fn rotate_root(&self, actor: &Actor) -> Result<GuardedOutcome> {
        self.refuse_but_custodians(actor, Act::RotateKeystore, &Facts::new())?;
        let secrets = SourceSecrets::default();
        self.ask(actor, GuardedAct::KeystoreRotate, secrets).await
    }

    /// Moves the root key into another source. Where any level takes approvals, that is asked for
    /// first: `secrets` are not kept, and who asked asks again, with them, once it is approved.
    ///
    /// # Errors
    /// Those of [`KeyFolder::move_root`](coffer_keys::KeyFolder::move_root).
    pub async fn move_keystore(
        &self,
        actor: &Actor,
        to: SourceSpec,
        secrets: SourceSecrets,
    ) -> Result<GuardedOutcome> {
        let facts = Facts::from([("to", to.to_string())]);
        self.refuse_but_custodians(actor, Act::MoveKeystore, &facts)?;
        // Who signs in from elsewhere may be no user of this machine.
        if to.names_files() && !matches!(actor, Actor::Local { .. }) {
            return Err(VaultError::Invalid {
                what: "a source that names files of the server's machine (file:/PATH, pkcs11:) \
                       can only be chosen there, at the socket in its data folder",
            });
        }
        let kept = "its root key goes with its cache, and what opens the engine's keystore for all \
                    gateways is the identity";
        let kept = self.refuse_in_engine(kept);
        kept.map_err(|error| self.failed(Act::MoveKeystore, actor, &facts, error))?;
        let to = to.to_string();
        self.ask(actor, GuardedAct::KeystoreMove { to }, secrets)
            .await
    }

    /// Removes old segments of the audit log: those all of whose records are from before this time.
    /// An auditor's. Or asks for it, where any level takes approvals.
    ///
    /// # Errors
    /// [`VaultError::Invalid`]: that is too young. [`VaultError::AuditUnavailable`], also when what
    /// is old does not verify.
    pub async fn prune_audit(&self, actor: &Actor, before_ms: i64) -> Result<GuardedOutcome> {
        let wanted = GuardedAct::AuditPrune { before_ms };
        self.refuse_without(actor, wanted.role(), wanted.recorded_as(), &wanted.facts())?;
        let min_age_ms = i64::try_from(PRUNE_MIN_AGE.as_millis()).unwrap_or(i64::MAX);
        if before_ms > now_ms().saturating_sub(min_age_ms) {
            return Err(VaultError::Invalid {
                what: "records of the last 24 hours can't be pruned: give an earlier time",
            });
        }
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// Sets the time by which locks end forward to a time that has passed, on a custodian's word.
    /// Or asks for it, where any level takes approvals.
    ///
    /// # Errors
    /// [`VaultError::Invalid`]: that time has not come, or lock time has.
    pub async fn confirm_lock_time(&self, actor: &Actor, to_ms: i64) -> Result<GuardedOutcome> {
        let wanted = GuardedAct::LockTimeConfirm { to_ms };
        self.refuse_but_custodians(actor, wanted.recorded_as(), &wanted.facts())?;
        self.check_lock_time(to_ms)
            .map_err(|error| self.failed(wanted.recorded_as(), actor, &wanted.facts(), error))?;
        self.ask(actor, wanted, SourceSecrets::default()).await
    }

    /// A bucket that the actor may know of, also one whose erase has begun and is not complete.
    /// Whether it has.
    fn looked_after_or_going(
        &self,
        actor: &Actor,
        name: &BucketName,
    ) -> Result<(Arc<BucketRow>, bool)> {
        let going = self.inner.system.going_named(name);
        match going.filter(|row| self.may_look_after(actor, row)) {
            Some(row) => Ok((row, true)),
            None => self.looked_after(actor, name).map(|row| (row, false)),
        }
    }

    /// The level that is like this, also one whose erase, or that of a bucket of it, has begun and
    /// is not complete.
    fn level_or_draft(&self, is_like: impl Fn(&LevelEntry) -> bool) -> Result<Option<LevelEntry>> {
        let mut levels = self.inner.keystore.levels().into_iter();
        match levels.find(&is_like) {
            Some(level) => Ok(Some(level)),
            None => self.inner.level_ordered(is_like),
        }
    }
}

fn check_count(recipients: &[ExportRecipient]) -> Result<()> {
    if (1..=EXPORT_RECIPIENTS_MAX).contains(&recipients.len()) {
        Ok(())
    } else {
        Err(VaultError::Invalid {
            what: "an export is for 1 to 20 recipients",
        })
    }
}

/// As it is told of who may not do it: what they name may be no level at all.
fn on_level(name: &str) -> Facts {
    let name = name.chars().take(LEVEL_NAME_MAX_BYTES).collect();
    Facts::from([("level", name)])
}

fn on_bucket(name: &BucketName) -> Facts {
    Facts::from([("bucket", name.as_str().to_owned())])
}
