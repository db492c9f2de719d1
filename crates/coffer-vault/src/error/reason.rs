//! What an error is told as: of which bucket, and in a word for the audit log; and what it means
//! for what asked.

use coffer_keys::KeysError;
use coffer_replica::ReplicaError;
use coffer_seal::BucketId;
use coffer_store::StoreError;

use super::{AdministrationError, BackupError, CopyError, VaultError};

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

    /// Whether a gateway that can't take part in its engine by it never can, by itself: the log is
    /// another's, or what opens it opens another. What was lost in the store may be put back, and a
    /// disk be mended.
    pub fn is_lasting(&self) -> bool {
        match self {
            Self::Backup(BackupError::Copy(error)) => matches!(
                error,
                CopyError::OtherIdentity
                    | CopyError::Replica(
                        ReplicaError::OtherCopy { .. }
                            | ReplicaError::ForeignCopy { .. }
                            | ReplicaError::NewerFormat { .. }
                            | ReplicaError::NoConditions
                            | ReplicaError::NoSwap { .. }
                    )
            ),
            Self::Keys(error) => matches!(
                error,
                KeysError::WrongRoot
                    | KeysError::StaleRoot(_)
                    | KeysError::Damaged { .. }
                    | KeysError::Malformed { .. }
                    | KeysError::NewerFormat { .. }
            ),
            Self::NewerSystem { .. } | Self::NewerCatalog { .. } => true,
            _ => false,
        }
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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn of_copy(error: impl Into<CopyError>) -> VaultError {
        BackupError::from(error.into()).into()
    }

    #[test]
    fn what_no_time_mends_is_told_from_what_may_pass() {
        let path = PathBuf::from("keystore");
        let object = "files/1".to_owned();
        for lasting in [
            VaultError::Keys(KeysError::WrongRoot),
            VaultError::Keys(KeysError::Damaged { path: path.clone() }),
            of_copy(CopyError::OtherIdentity),
            of_copy(ReplicaError::NoConditions),
            of_copy(ReplicaError::NewerFormat { found: 9, known: 1 }),
        ] {
            assert!(lasting.is_lasting(), "{lasting}");
        }
        for passing in [
            VaultError::StorageFull,
            VaultError::Damaged,
            VaultError::FolderInUse {
                path: "data".to_owned(),
            },
            VaultError::Keys(KeysError::Missing { path }),
            of_copy(ReplicaError::NoAnswer { seconds: 5 }),
            of_copy(ReplicaError::Missing { object }),
            of_copy(ReplicaError::RecordLost),
            of_copy(CopyError::LeaseEnded),
            of_copy(CopyError::EngineNeverComplete),
        ] {
            assert!(!passing.is_lasting(), "{passing}");
        }
    }
}
