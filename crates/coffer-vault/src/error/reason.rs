//! What an error is told as: of which bucket, and in a word for the audit log.

use coffer_keys::KeysError;
use coffer_seal::BucketId;
use coffer_store::StoreError;

use super::{AdministrationError, VaultError};

impl VaultError {
    /// Says of which bucket a catalog is that could not be opened.
    pub(crate) fn of_bucket(self, bucket: &str, id: BucketId) -> Self {
        match self {
            Self::Store(StoreError::NewerFormat { found, known }) => Self::NewerCatalog {
                bucket: bucket.to_owned(),
                id,
                found,
                known,
            },
            other => other,
        }
    }

    /// Whether what was approved was refused, and certainly nothing of it done, for a reason that
    /// may pass: then it still waits for an approval.
    pub(crate) fn leaves_request(&self) -> bool {
        matches!(
            self,
            Self::AccessDenied
                | Self::TooManyFailures
                | Self::AuditUnavailable(_)
                | Self::Invalid { .. }
                | Self::Administration(
                    AdministrationError::EraseLocked(_)
                        | AdministrationError::StrayLocked { .. }
                        | AdministrationError::RoleMissing { .. }
                )
        )
    }

    /// Whether it is a denial, which the audit log calls so.
    pub(crate) fn is_denial(&self) -> bool {
        matches!(
            self,
            Self::AccessDenied | Self::Administration(AdministrationError::RoleMissing { .. })
        )
    }

    /// Why an act was not begun, in a word for the audit log, where what repeats is counted by it.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::BucketAlreadyOwnedByYou
            | Self::BucketAlreadyExists
            | Self::SubjectExists
            | Self::Keys(KeysError::SameLabel { .. })
            | Self::Administration(
                AdministrationError::SameLabel { .. } | AdministrationError::LevelGoing { .. },
            )
            | Self::Keys(KeysError::LevelExists { .. }) => "exists",
            Self::BucketInDoubt => "in doubt",
            Self::NoSuchBucket
            | Self::NoSuchLevel
            | Self::NoSuchSubject
            | Self::Administration(
                AdministrationError::NoSuchAccessKey | AdministrationError::NoQuota { .. },
            ) => "does not exist",
            Self::BucketNotEmpty => "not empty",
            Self::Administration(AdministrationError::Sharing(_)) => "refused",
            Self::TooManyBuckets { .. }
            | Self::TooManySubjects { .. }
            | Self::SubjectLimit(_)
            | Self::Administration(AdministrationError::ConfigurationsFull { .. })
            | Self::Administration(AdministrationError::TooManyAccessKeys { .. }) => "too many",
            Self::TooManyFailures => "failed too often",
            Self::Invalid { .. } => "invalid",
            _ => "can't be done",
        }
    }
}
