//! What administrators, custodians and owners of buckets are refused.

use coffer_audit::AuditError;

mod erase_locked;

mod sharing;

pub use self::erase_locked::EraseLocked;
pub use self::sharing::SharingError;

/// Why something of administration is not done.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AdministrationError {
    /// Another level has the label: whatever may be read of one may be read of both.
    #[error(
        "level {level} has the label {label} already, so the same subjects would use both: choose \
         another rank or category, or say that it is meant with --same-label"
    )]
    SameLabel {
        /// The other level.
        level: String,
        /// The label.
        label: String,
    },
    /// Who asked has not the role for it. That is said before anything is looked up, and tells of
    /// nothing that is stored.
    #[error("access denied: who has the role {role} may do this")]
    RoleMissing {
        /// The role.
        role: &'static str,
    },
    /// The subject has no access key of this id.
    #[error("the subject has no such access key: coffer subject key list NAME shows those it has")]
    NoSuchAccessKey,
    /// The audit log was to be read or copied.
    #[error("the audit log can't be {done}: {why}")]
    AuditUnreadable {
        /// What was to be done with it.
        done: &'static str,
        /// What failed, at which of its files.
        why: String,
    },
    /// No subject would be left that administers as well as this one.
    #[error(
        "this would leave no system administrator whose access key counts for a day to come, and \
         then only the owner of the data folder and root make and change subjects, at the socket \
         there: make another one first (coffer subject create), or say that it is meant with --yes"
    )]
    LastAdministrator,
    /// There is no quota to be removed.
    #[error("this {kind} has no quota: coffer quota list shows those there are")]
    NoQuota {
        /// Of what: a bucket, a level or a subject.
        kind: &'static str,
    },
    /// The subject has as many access keys as it may, and none of them has expired.
    #[error("the subject has {limit} access keys, as many as there may be: delete one first")]
    TooManyAccessKeys {
        /// How many it may have.
        limit: usize,
    },
    /// What is told to those who may not read the bucket is set above the lowest label.
    #[error(
        "the bucket's level is above the lowest label, and there this takes the role of a system \
         administrator beside the rights to read and write, for those who may not read the bucket \
         are told of it"
    )]
    ToldToAll,
    /// The configuration of all buckets of a level is as long as it may be.
    #[error(
        "the configuration of all buckets of this level together is as long as it may be, \
         {limit_bytes} bytes: remove some first"
    )]
    ConfigurationsFull {
        /// How long.
        limit_bytes: usize,
    },
    /// Objects can be locked only where versions are kept, and versions are kept as long as objects
    /// can be locked.
    #[error(
        "objects can be locked only while the bucket keeps versions: enable versioning first; \
         where objects can be locked, it can't be suspended"
    )]
    LockNeedsVersions,
    /// Objects of the bucket can't be locked.
    #[error("Bucket is missing Object Lock Configuration")]
    NoObjectLock,
    /// A retention or a hold stands against it.
    #[error("the object is locked: its retention has not ended, or it is held")]
    Locked,
    /// Its lock would have ended already.
    #[error("The retain until date must be in the future!")]
    LockInPast,
    /// A client's token stands for another request than it stood for before.
    #[error(
        "Parameters on this idempotent request are inconsistent with parameters used in previous \
         request(s) of this client token"
    )]
    TokenOfAnother,
    /// It would be locked for too long.
    #[error(
        "an object may be locked for {limit_days} days at most (lock-max-days in the server's \
         configuration)"
    )]
    LockTooLong {
        /// For how many days it may be.
        limit_days: u32,
    },
    /// That the bucket may hold such a lock could not be recorded, so it was not made.
    #[error(
        "nothing was done: before an object is locked, it is recorded that its bucket may hold \
         such a lock, and the server's disk fails or is full. Please try again"
    )]
    LockNotRecorded,
    /// Locks stand against an erase.
    #[error(transparent)]
    EraseLocked(EraseLocked),
    /// The bucket's key was destroyed before an older copy brought the bucket back.
    #[error(
        "the key of bucket {bucket} was destroyed when the bucket was erased or deleted, and an \
         older copy of the server's database brought its name back: nothing in it opens any more, \
         now or later. A key custodian can remove it: `coffer bucket erase {bucket}`"
    )]
    BucketKeyDestroyed {
        /// Its name.
        bucket: String,
    },
    /// The keystore has neither a key for the bucket nor its level, and is of after the older copy
    /// that brought the bucket back.
    #[error(
        "this keystore has neither a key for bucket {bucket} nor its level, and an older copy of \
         the server's database brought the bucket's name back: nothing in it opens here. Where \
         the level was erased, a key custodian can remove it: `coffer bucket erase {bucket}`. \
         Where the keystore came from a sealed copy that leaves the level out, put the whole \
         keystore in place"
    )]
    BucketLevelGone {
        /// Its name.
        bucket: String,
    },
    /// The keystore has no key for the bucket, and it is not known that it was destroyed.
    #[error(
        "this keystore has no key for bucket {bucket}, and is not known to be of after the bucket \
         was made: the operator must put the newest keystore back. Until then it is neither served \
         nor erased"
    )]
    BucketKeyMissing {
        /// Its name.
        bucket: String,
    },
    /// A bucket of a level that is to be erased is not in use here, and locked for all that is
    /// known.
    #[error(
        "a bucket of this level that is not in use here, {bucket}, counts as locked: {why}. \
         Nothing is erased, for the level was not made with --erase-breaks-locks; see that the \
         bucket's folder is here, and adopt it (`coffer key adopt`); where it is lost for good, \
         erase the level's other buckets, one by one"
    )]
    StrayLocked {
        /// Its id.
        bucket: String,
        /// Why it counts as locked.
        why: String,
    },
    /// The erase of a level is ordered and not complete: neither does it come back meanwhile, nor
    /// does another have its name.
    #[error(
        "level {level} is being erased, and that is not complete yet: ask for its erase again, or \
         restart the server, and then ask for this"
    )]
    LevelGoing {
        /// Its name.
        level: String,
    },
    /// What says who may use a bucket was refused, or changed meanwhile.
    #[error(transparent)]
    Sharing(SharingError),
    /// Too many requests wait.
    #[error("{limit} requests wait for an approval, as many as there may be; withdraw one first")]
    TooManyRequests {
        /// How many there may be.
        limit: usize,
    },
    /// The files of the server's database were written over while the server ran.
    #[error(
        "ROLLBACK: system.db is not as this server left it: {how}. Nothing is changed any more. \
         Stop the server; then go on from what is there, or from the newest copy, on purpose, \
         which is recorded: `coffer serve --accept-rollback …`"
    )]
    SystemWrittenOver {
        /// What was done to them.
        how: &'static str,
    },
}

impl AdministrationError {
    /// For `map_err` where the audit log is read.
    pub fn of_reading(error: AuditError) -> Self {
        let why = match error {
            AuditError::Io { .. } => format!(
                "{error}; it lies in the folder `audit` of the data folder: see that it can be \
                 read there, and that the disk is whole"
            ),
            error => error.to_string(),
        };
        Self::AuditUnreadable { done: "read", why }
    }

    /// For `map_err` where the audit log is copied.
    pub(crate) fn of_copying(error: AuditError) -> Self {
        let why = error.to_string();
        Self::AuditUnreadable {
            done: "copied",
            why,
        }
    }
}
