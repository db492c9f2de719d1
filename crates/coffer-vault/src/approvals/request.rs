//! What may take the approval of others: erases, exports, rotations, moves, and pruning the audit
//! log.

use std::collections::BTreeMap;
use std::time::Duration;

use coffer_audit::Pruned;
use coffer_durable::{now_ms, rfc3339};
use coffer_keys::receipt::Receipt;
use coffer_seal::{BucketId, LevelId, RequestId};
use serde::{Deserialize, Serialize};

use crate::access::{Act, Role};
use crate::audit::Facts;
use crate::error::{Result, VaultError};
use crate::locks::LockClock;
use crate::system::DocumentId;
use crate::vault::Rotation;

/// What was asked for, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GuardedOutcome {
    /// It waits for approvals.
    Waits(ApprovalRequest),
    /// All have approved it; who asked has to ask again, with what is kept nowhere.
    Approved(ApprovalRequest),
    /// It was erased.
    Erased(Box<Receipt>),
    /// The export, or the backup of the root key: an armored age file.
    Exported(Vec<u8>),
    /// A rotation has begun.
    Rotating(Rotation),
    /// The root key was rotated, or moved.
    Rerooted,
    /// What was pruned of the audit log, if anything was.
    Pruned(Option<Pruned>),
    /// The time by which locks end was set forward.
    LockTimeSet(LockClock),
    /// The copy of this name is begun.
    CopyAdded(String),
}

/// A request that waits for approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// What is asked for.
    pub wanted: GuardedAct,
    /// Who asked.
    pub requested_by: String,
    /// When, in milliseconds since 1970.
    pub requested_ms: i64,
    /// Until when it can be approved, in milliseconds since 1970.
    pub expires_ms: i64,
    /// How many people it takes, the one who asked among them.
    pub approvals: u8,
    /// Why it takes more people than the level asks for, in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<String>,
    /// Who has approved so far.
    pub approved_by: Vec<String>,
    /// The names of these people, by subject id, as they were when they spoke.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
}

/// What may take an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum GuardedAct {
    /// That a level be erased.
    LevelErase {
        /// Its name.
        level: String,
        /// Its id: another level of the same name is not meant.
        level_id: LevelId,
    },
    /// That a bucket be erased.
    BucketErase {
        /// Its name.
        bucket: String,
        /// Its id.
        bucket_id: BucketId,
        /// Its level's name.
        level: String,
    },
    /// That a level's key be exported.
    KeyExport {
        /// Its name.
        level: String,
        /// Its id.
        level_id: LevelId,
        /// For whom: recipients of age.
        recipients: Vec<String>,
    },
    /// That a level's key be rotated, and those of its buckets.
    LevelRotate {
        /// Its name.
        level: String,
        /// Its id.
        level_id: LevelId,
    },
    /// That a bucket's key be rotated.
    BucketRotate {
        /// Its name.
        bucket: String,
        /// Its id.
        bucket_id: BucketId,
        /// Its level's name.
        level: String,
    },
    /// That the root key be backed up.
    KeystoreBackup {
        /// For whom: recipients of age.
        recipients: Vec<String>,
    },
    /// That a sealed copy be made that the keystore goes along with.
    CopyWithKeystore {
        /// Its name.
        name: String,
        /// Where it is to be.
        url: String,
        /// How long what was can be restored, in milliseconds.
        keep_ms: i64,
        /// Of a copy that acknowledgements wait for: how long, before they are in doubt.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sync: Option<Duration>,
        /// For whom the keystore is sealed: recipients of age; for none: the root key opens it.
        recipients: Vec<String>,
    },
    /// That the root key be rotated.
    KeystoreRotate,
    /// That the root key be moved.
    KeystoreMove {
        /// The source, without what opens it.
        to: String,
    },
    /// That old segments of the audit log be removed.
    AuditPrune {
        /// The records that are from before this time, in milliseconds since 1970.
        before_ms: i64,
    },
    /// That the time by which locks end be set forward.
    LockTimeConfirm {
        /// To this time, in milliseconds since 1970.
        to_ms: i64,
    },
}

impl GuardedAct {
    /// Under which name it is recorded.
    pub fn act(&self) -> &'static str {
        self.recorded_as().name()
    }

    /// As what it is recorded.
    pub(crate) fn recorded_as(&self) -> Act {
        match self {
            Self::LevelErase { .. } => Act::EraseLevel,
            Self::BucketErase { .. } => Act::EraseBucket,
            Self::KeyExport { .. } => Act::ExportKey,
            Self::LevelRotate { .. } => Act::RotateLevel,
            Self::BucketRotate { .. } => Act::RotateBucket,
            Self::KeystoreBackup { .. } => Act::BackUpKeystore,
            Self::CopyWithKeystore { .. } => Act::AddCopyWithKeystore,
            Self::KeystoreRotate => Act::RotateKeystore,
            Self::KeystoreMove { .. } => Act::MoveKeystore,
            Self::AuditPrune { .. } => Act::PruneAudit,
            Self::LockTimeConfirm { .. } => Act::ConfirmLockTime,
        }
    }

    /// The level that it is about; none: it concerns all of them.
    pub fn level(&self) -> Option<&str> {
        match self {
            Self::LevelErase { level, .. }
            | Self::BucketErase { level, .. }
            | Self::KeyExport { level, .. }
            | Self::LevelRotate { level, .. }
            | Self::BucketRotate { level, .. } => Some(level),
            Self::KeystoreBackup { .. }
            | Self::CopyWithKeystore { .. }
            | Self::KeystoreRotate
            | Self::KeystoreMove { .. }
            | Self::AuditPrune { .. }
            | Self::LockTimeConfirm { .. } => None,
        }
    }

    /// The bucket that it is about.
    pub fn bucket(&self) -> Option<&str> {
        match self {
            Self::BucketErase { bucket, .. } | Self::BucketRotate { bucket, .. } => Some(bucket),
            _ => None,
        }
    }

    /// Where it brings something: the source of a move, or the place of a copy.
    pub fn to(&self) -> Option<&str> {
        match self {
            Self::KeystoreMove { to } | Self::CopyWithKeystore { url: to, .. } => Some(to),
            _ => None,
        }
    }

    /// For whom it gives something out: recipients of age.
    pub fn recipients(&self) -> &[String] {
        match self {
            Self::KeyExport { recipients, .. }
            | Self::KeystoreBackup { recipients }
            | Self::CopyWithKeystore { recipients, .. } => recipients,
            _ => &[],
        }
    }

    /// The name of the copy that it is about.
    pub fn copy(&self) -> Option<&str> {
        match self {
            Self::CopyWithKeystore { name, .. } => Some(name),
            _ => None,
        }
    }

    /// Up to when records of the audit log are to go, in milliseconds since 1970.
    pub fn before_ms(&self) -> Option<i64> {
        match self {
            Self::AuditPrune { before_ms } => Some(*before_ms),
            _ => None,
        }
    }

    /// The time to which lock time is to be set, in milliseconds since 1970.
    pub fn lock_time_ms(&self) -> Option<i64> {
        match self {
            Self::LockTimeConfirm { to_ms } => Some(*to_ms),
            _ => None,
        }
    }

    /// The role of who asks for it.
    pub(crate) fn role(&self) -> Role {
        match self {
            Self::AuditPrune { .. } => Role::Auditor,
            _ => Role::KeyCustodian,
        }
    }

    /// Whether it takes something that no request keeps, such as a passphrase: then who asked asks
    /// again once it is approved.
    pub(crate) fn is_done_by_asking_again(&self) -> bool {
        matches!(self, Self::KeystoreMove { .. })
    }

    pub(crate) fn facts(&self) -> Facts {
        let mut facts = Facts::new();
        if let Some(level) = self.level() {
            facts.insert("level", level.to_owned());
        }
        if let Some(bucket) = self.bucket() {
            facts.insert("bucket", bucket.to_owned());
        }
        if let Some(before_ms) = self.before_ms() {
            facts.insert("before", rfc3339(before_ms));
        }
        if let Some(to_ms) = self.lock_time_ms() {
            facts.insert("lock_time", rfc3339(to_ms));
        }
        let recipients = self.recipients().join(" ");
        match self.to() {
            Some(to) => {
                facts.insert("to", to.to_owned());
                if !recipients.is_empty() {
                    facts.insert("recipients", recipients);
                }
            }
            None if !recipients.is_empty() => {
                facts.insert("to", recipients);
            }
            None => {}
        }
        if let Self::CopyWithKeystore {
            name,
            keep_ms,
            sync,
            ..
        } = self
        {
            facts.insert("copy", name.clone());
            facts.insert("keep_seconds", (keep_ms / 1_000).to_string());
            let waits = sync.map(|wait| wait.as_secs().to_string());
            facts.extend(waits.map(|seconds| ("sync_wait_seconds", seconds)));
        }
        facts
    }
}

impl ApprovalRequest {
    pub(crate) fn key(&self) -> Result<DocumentId> {
        let id = RequestId::from_hex(&self.id).ok_or(VaultError::Damaged)?;
        Ok(id.into())
    }

    /// Whether it can still be approved, or done.
    pub(crate) fn is_alive(&self) -> bool {
        self.expires_ms > now_ms()
    }

    /// Whether all who must have approved, the one who asked among them.
    pub fn is_approved(&self) -> bool {
        self.approved_by.len() + 1 >= usize::from(self.approvals)
    }

    /// The name of who asked or approved, if it is a subject.
    pub fn name_of(&self, person: &str) -> Option<&str> {
        self.names.get(person).map(String::as_str)
    }

    /// What is recorded of those who spoke for it.
    pub(crate) fn people(&self) -> Facts {
        let mut facts = Facts::from([
            ("requested_by", self.requested_by.clone()),
            ("approved_by", self.approved_by.join(" ")),
        ]);
        if let Some(name) = self.name_of(&self.requested_by) {
            facts.insert("requested_by_name", name.to_owned());
        }
        let names: Vec<&str> = self
            .approved_by
            .iter()
            .filter_map(|person| self.name_of(person))
            .collect();
        if !names.is_empty() {
            facts.insert("approved_by_name", names.join(" "));
        }
        facts
    }
}
