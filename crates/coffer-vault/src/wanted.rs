//! What a custodian can ask for that may take the approval of others.

use coffer_keys::receipt::Receipt;
use coffer_store::record::Id;
use serde::{Deserialize, Serialize};

use crate::clock::now_ms;
use crate::error::{Result, VaultError};
use crate::recording::Facts;

/// What a custodian asked for, or what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Asked {
    /// It waits for approvals.
    Waits(ApprovalRequest),
    /// It was erased.
    Erased(Box<Receipt>),
    /// The export, an armored age file.
    Exported(Vec<u8>),
}

/// A request that waits for approvals.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// What is asked for.
    pub wanted: Wanted,
    /// Who asked.
    pub requested_by: String,
    /// When, in milliseconds since 1970.
    pub requested_ms: i64,
    /// Until when it can be approved, in milliseconds since 1970.
    pub expires_ms: i64,
    /// How many custodians it takes, the one who asked among them.
    pub approvals: u8,
    /// Who has approved so far.
    pub approved_by: Vec<String>,
}

/// What may take an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "act", rename_all = "kebab-case")]
pub enum Wanted {
    /// That a level be erased.
    LevelErase {
        /// Its name.
        level: String,
        /// Its id: another level of the same name is not meant.
        level_id: [u8; 16],
    },
    /// That a bucket be erased.
    BucketErase {
        /// Its name.
        bucket: String,
        /// Its id.
        bucket_id: [u8; 16],
        /// Its level's name.
        level: String,
    },
    /// That a level's key be exported.
    KeyExport {
        /// Its name.
        level: String,
        /// Its id.
        level_id: [u8; 16],
        /// For whom: recipients of age.
        recipients: Vec<String>,
    },
}

impl Wanted {
    /// Under which name it is recorded.
    pub fn act(&self) -> &'static str {
        match self {
            Self::LevelErase { .. } => "level.erase",
            Self::BucketErase { .. } => "bucket.erase",
            Self::KeyExport { .. } => "key.export",
        }
    }

    pub(crate) fn facts(&self) -> Facts {
        match self {
            Self::LevelErase { level, .. } => Facts::from([("level", level.clone())]),
            Self::BucketErase { bucket, level, .. } => {
                Facts::from([("bucket", bucket.clone()), ("level", level.clone())])
            }
            Self::KeyExport {
                level, recipients, ..
            } => Facts::from([("level", level.clone()), ("to", recipients.join(" "))]),
        }
    }
}

impl ApprovalRequest {
    pub(crate) fn key(&self) -> Result<[u8; 16]> {
        request_key(&self.id).ok_or(VaultError::Damaged)
    }

    /// Whether it can still be approved.
    pub(crate) fn is_alive(&self) -> bool {
        self.expires_ms > now_ms()
    }

    /// Whether all who must have approved, the one who asked among them.
    pub(crate) fn is_approved(&self) -> bool {
        self.approved_by.len() + 1 >= usize::from(self.approvals)
    }
}

/// A request's id as the ledger has it.
pub(crate) fn request_key(id: &str) -> Option<[u8; 16]> {
    Id::from_hex(id).map(|id| id.0)
}
