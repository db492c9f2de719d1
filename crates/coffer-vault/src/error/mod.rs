//! What can go wrong at the only door to data.

use coffer_audit::AuditError;
use coffer_keys::KeysError;
use coffer_seal::BucketId;
use coffer_store::StoreError;
use coffer_store::version::Absent;

mod administration;
mod backup;
mod body;
mod checksum;
mod from_store;
mod reason;
mod rollback;
mod subject_limit;

pub use self::administration::{AdministrationError, EraseLocked, SharingError};
pub use self::backup::{BackupError, CopyError};
pub use self::body::{BodyError, CustomerKeyError};
pub use self::checksum::ChecksumError;
pub use self::from_store::files_run_out;
pub(crate) use self::from_store::is_out_of_files;
pub(crate) use self::rollback::listed;
pub use self::rollback::{Rollback, RollbackOf};
pub use self::subject_limit::SubjectLimit;

/// Why the vault did not do what was asked.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VaultError {
    /// No bucket of this name, or none that the subject may know of.
    #[error("the bucket does not exist")]
    NoSuchBucket,
    /// No object of this name.
    #[error("the object does not exist")]
    NoSuchObject,
    /// None of this version, or it was deleted and has versions.
    #[error("there is no such version of the object, or it is a delete marker")]
    NoVersion(Absent),
    /// No multipart upload of this id for this name.
    #[error("the multipart upload does not exist; it may have been completed or aborted")]
    NoSuchUpload,
    /// No level of this name.
    #[error("there is no level of this name")]
    NoSuchLevel,
    /// The bucket is there already.
    #[error("the bucket exists already")]
    BucketAlreadyOwnedByYou,
    /// A bucket of another, or one that the subject may not know of, has the name.
    #[error("the name is taken: choose another")]
    BucketAlreadyExists,
    /// No subject of this name, or none that the actor may know of.
    #[error("there is no subject of this name")]
    NoSuchSubject,
    /// Another subject has this name.
    #[error("there is a subject of this name already")]
    SubjectExists,
    /// The server holds as many subjects as it can.
    #[error("the server holds {limit} subjects, as many as it can")]
    TooManySubjects {
        /// How many it can hold.
        limit: usize,
    },
    /// A bucket must be empty to be deleted.
    #[error("the bucket is not empty: delete objects, versions, markers and uploads first")]
    BucketNotEmpty,
    /// The server holds as many buckets as it can.
    #[error("the server holds {limit} buckets, as many as it can")]
    TooManyBuckets {
        /// How many it can hold.
        limit: usize,
    },
    /// A subject has as much as one may have.
    #[error(transparent)]
    SubjectLimit(#[from] SubjectLimit),
    /// It is about a key that a client brings along.
    #[error(transparent)]
    CustomerKey(#[from] CustomerKeyError),
    /// No access key of this id, or not its secret.
    #[error("the access key or its secret is not right")]
    SignInFailed,
    /// The subject's clearance does not allow it.
    #[error("access denied")]
    AccessDenied,
    /// The subject may write there, but not what it has read.
    #[error(
        "access denied: the subject has read at {read}, so it writes nothing below that until a \
         key custodian has settled it (coffer subject settle NAME)"
    )]
    ReadAbove {
        /// The levels that it has read at, or their label.
        read: String,
    },
    /// A subject that floats is settled by others.
    #[error("no subject settles itself: another key custodian must")]
    SettlesItself,
    /// A condition of the request does not hold.
    #[error("a condition of the request does not hold")]
    PreconditionFailed,
    /// The condition of a write asks for an object, and there is none.
    #[error("the object that the request's condition asks for does not exist")]
    NothingToMatch,
    /// The object has not changed, by the conditions of the request.
    #[error("not modified")]
    NotModified {
        /// Its entity tag.
        etag: String,
        /// When it was made, in milliseconds since 1970.
        modified_ms: i64,
    },
    /// The range begins behind the object's end.
    #[error("the range is not within the object's {size_bytes} bytes")]
    InvalidRange {
        /// How long the object is.
        size_bytes: u64,
    },
    /// The object has no part of this number.
    #[error("the object has no part of this number")]
    NoSuchPart,
    /// A part that was named is missing or has another entity tag or checksum.
    #[error("part {number} is missing, or its entity tag or checksum is not the one stored")]
    InvalidPart {
        /// Its number.
        number: u32,
    },
    /// Parts must be named in ascending order, each once.
    #[error("the parts are not in ascending order")]
    InvalidPartOrder,
    /// No part but the last may be this small.
    #[error("part {number} has {size_bytes} bytes; all but the last need at least 5 MiB")]
    PartTooSmall {
        /// Its number.
        number: u32,
        /// Its length.
        size_bytes: u64,
    },
    /// Larger than what is allowed.
    #[error("larger than the {limit_bytes} bytes that are allowed")]
    TooLarge {
        /// The limit.
        limit_bytes: u64,
    },
    /// The request breaks a rule of the vault.
    #[error("{what}")]
    Invalid {
        /// Which, in a sentence.
        what: &'static str,
    },
    /// The bytes received are not those that were announced.
    #[error("the {what} of the bytes received is not the one that was sent with them")]
    BadDigest {
        /// Which digest.
        what: &'static str,
    },
    /// Bytes, parts and uploads have other checksums than fit together.
    #[error(transparent)]
    Checksum(#[from] ChecksumError),
    /// The body ended before its announced length, or went on after it.
    #[error("the body does not have the announced length")]
    IncompleteBody,
    /// The body could not be received.
    #[error("the body could not be received: {0}")]
    Body(#[source] BodyError),
    /// The disk is full.
    #[error("the storage is full")]
    StorageFull,
    /// The file system takes no writes.
    #[error("the file system is read-only")]
    StorageReadOnly,
    /// What a killed server left can't be made durable, and is not used before it is.
    #[error(
        "no room to make the log of {of} durable, which was left by a server that ended: \
         {needed_bytes} bytes must be free; nothing was changed"
    )]
    NoRoomForLog {
        /// Of which database.
        of: String,
        /// How long the copy is.
        needed_bytes: u64,
    },
    /// A commit failed half-way.
    #[error(
        "the storage failed while this was committed: whether it was stored is in doubt until it \
         is read back"
    )]
    InDoubt,
    /// As many files are open as may be.
    #[error("as many files and connections are open as the system allows; try again")]
    OutOfFiles,
    /// What is stored did not open: it was altered or damaged.
    #[error("stored data is damaged")]
    Damaged,
    /// The act must be recorded, and can't be: it was not done.
    #[error("this must be recorded, and the audit log can't be written: {0}")]
    AuditUnavailable(#[source] AuditError),
    /// The act was done, but that it was could not be recorded.
    #[error(
        "this was done, but the audit log, which has that it began, can't be written any more: {0}"
    )]
    EndNotRecorded(#[source] AuditError),
    /// The vault has been closed.
    #[error("the server is shutting down")]
    ShuttingDown,
    /// Another process holds the data folder.
    #[error("{path} is in use by another coffer server; stop it first, or choose another folder")]
    FolderInUse {
        /// The folder.
        path: String,
    },
    /// It is about a backup, or another copy of a data folder.
    #[error(transparent)]
    Backup(#[from] BackupError),
    /// The folder holds something that is not coffer's.
    #[error("{path} is not empty and holds no coffer data: choose an empty folder")]
    ForeignFolder {
        /// The folder.
        path: String,
    },
    /// The folder holds data, but the keystore that opens it is gone.
    #[error(
        "{path} holds sealed data but no keystore: put the file `keystore` back; \
         nothing was changed"
    )]
    KeystoreMissing {
        /// The folder.
        path: String,
    },
    /// The folder has a keystore in use, but the database of buckets and access keys is gone.
    #[error(
        "{path} holds a keystore but no system.db: put the file `system.db` back; \
         `coffer offline` reads the data without it; nothing was changed"
    )]
    SystemMissing {
        /// The folder.
        path: String,
    },
    /// A change of the database of buckets and access keys may have happened, or not.
    #[error(
        "system.db can't be written: whether the last change of it has happened is in doubt, and \
         what it was about is out of use until that is known. Look whether the disk fails or is \
         full, then whether it has happened, before asking for it again"
    )]
    SystemInDoubt,
    /// Whether the bucket is there, or what is set of it or of what it holds, is not known.
    #[error(
        "it is in doubt whether this bucket is there, or what is set of it or of what it holds: it \
         is just being erased, or the disk failed or was full when that was changed; what is in \
         doubt is not used until it is known; try again"
    )]
    BucketInDoubt,
    /// The database of buckets and access keys was written by a newer version.
    #[error(
        "{path} is in format {found}, and this version of coffer understands formats up to \
         {known}: start the version of coffer that wrote it, or a newer one; nothing was changed"
    )]
    NewerSystem {
        /// The file.
        path: String,
        /// The format found.
        found: i32,
        /// The newest that is understood.
        known: i32,
    },
    /// The database of buckets and access keys does not open.
    #[error(
        "{path} is damaged, or sealed under another keystore's key{places}: put a copy of it back; \
         `coffer offline` reads the data without it; nothing was changed"
    )]
    SystemDamaged {
        /// The file.
        path: String,
        /// Which of its pages, in brackets, where that is known.
        places: String,
    },
    /// The log of the database of buckets and access keys is damaged before its end.
    #[error(
        "{path}-wal is damaged, and acts that were acknowledged lie behind the damage: put copies \
         of {path} and {path}-wal back that were made together; or move {path}-wal out of the \
         folder, which loses the acts in it, and start with `coffer serve --accept-rollback …`; \
         nothing was changed"
    )]
    SystemLogDamaged {
        /// The database's file.
        path: String,
    },
    /// A bucket's catalog was written by a newer version.
    #[error(
        "the catalog buckets/{id}/catalog.db is in format {found}, and this version of \
         coffer understands formats up to {known}: start the version of coffer that wrote it, or a \
         newer one; nothing was changed"
    )]
    NewerCatalog {
        /// The bucket's name.
        bucket: String,
        /// Its id, which is its folder's name.
        id: BucketId,
        /// The format found.
        found: i32,
        /// The newest that is understood.
        known: i32,
    },
    /// Older copies were put back.
    #[error(
        "ROLLBACK: {}. Put the newest copies back; or go on from the older ones on purpose, which \
         is recorded: `coffer serve --accept-rollback …`",
        listed(found)
    )]
    RolledBack {
        /// What is older than it is held.
        found: Vec<Rollback>,
    },
    /// An older copy of a bucket's catalog was put back: by how much.
    #[error(
        "ROLLBACK: {0}. The bucket is not served. Put the newest copy back; or go on from \
         the older one on purpose, which is recorded: `coffer serve --accept-rollback …`"
    )]
    CatalogRolledBack(Rollback),
    /// The file of a bucket's catalog was replaced while the server ran.
    #[error(
        "ROLLBACK: the catalog of this bucket was replaced while the server had it open, and the \
         log says which: the bucket is not served. Stop the server, put the newest copy back, and \
         start it again; or go on from an older one on purpose, which is recorded: `coffer serve \
         --accept-rollback …`"
    )]
    CatalogReplaced,
    /// An older copy of the server's database was put back while the server ran.
    #[error(
        "ROLLBACK: system.db is an older copy: it has had {found} commits, and had {held}. Nothing \
         is changed any more. Stop the server, and put the newest copy back; or go on from the \
         older one on purpose, which is recorded: `coffer serve --accept-rollback …`"
    )]
    SystemRolledBack {
        /// How many commits the copy has had.
        found: u64,
        /// How many there were.
        held: u64,
    },
    /// The act was done, but a rollback of it might not be found.
    #[error(
        "this was done, but how new the data is could not be written down, so that an older copy \
         which is put back might not be found: {0}"
    )]
    EndNotHeld(#[source] Box<VaultError>),
    /// A file or folder of the data folder could not be used.
    #[error("cannot {action} {path}: {source}")]
    Folder {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// An erase has begun and could not be completed yet.
    #[error(
        "the keys can't be destroyed everywhere yet: {source}; they can't be used any more. Put \
         that right and ask for the erase again, or restart the server: it completes it"
    )]
    EraseUnsettled {
        /// What failed.
        source: KeysError,
    },
    /// Acts of this kind failed again and again.
    #[error("this failed too often within a minute: wait until that is over")]
    TooManyFailures,
    /// The keys are destroyed, but the receipt that says so could not be kept yet.
    #[error(
        "it is erased, but its receipt can't be kept yet: {source}. Put that right and ask for the \
         erase again, or restart the server: it completes it"
    )]
    ReceiptUnsettled {
        /// What failed.
        source: Box<Self>,
    },
    /// No request of this id waits for an approval.
    #[error("no such request waits for an approval; it may be done, withdrawn or expired")]
    NoSuchRequest,
    /// A second person is needed.
    #[error("who asked for it or has approved it can't approve it: another custodian must")]
    AnotherPersonNeeded,
    /// Who asked is no key custodian any more.
    #[error("who asked for it is no key custodian any more: withdraw the request and ask anew")]
    RequesterGone,
    /// No receipt of this id.
    #[error("there is no receipt of this id")]
    NoSuchReceipt,
    /// Something of administration is not done.
    #[error(transparent)]
    Administration(#[from] AdministrationError),
    /// The keystore refused.
    #[error(transparent)]
    Keys(#[from] KeysError),
    /// The store failed in a way that no other variant tells.
    #[error(transparent)]
    Store(StoreError),
}

/// Short for results of the vault.
pub type Result<T, E = VaultError> = std::result::Result<T, E>;
