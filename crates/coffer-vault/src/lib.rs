//! The reference monitor: the only door to data.
//!
//! Front doors translate a protocol into calls on a [`Vault`] and hold no policy. Every call names
//! a [`Subject`]; the vault decides by the subject's clearance and the label of the bucket's level
//! (`access`), then acts: keys come from the keystore, bytes are sealed and opened on their way
//! to and from the store.
//!
//! A bucket that a subject may not read does not exist for it.

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod blocking;

mod cutoff;

mod fence;

mod gateways;

mod access;

mod transfer_counters;

mod counters;

mod digest;

mod data_folder;

mod quotas;

mod lifecycle;

mod system;

mod audit;

mod freshness;

mod open_buckets;

mod transfers;

mod copies;

mod vault;

mod acts;

mod locks;

mod objects;

mod buckets;

mod erase;

mod rotation;

mod admin;

mod upkeep;

mod verify;

mod backup;

mod replica;

mod approvals;

pub mod offline;

mod engine;

mod start;

mod standby;

#[cfg(test)]
mod tests;

pub use coffer_keys::is_region;
/// The language of policies.
pub use coffer_policy as policy;
pub use coffer_seal::{BucketId, KeyMemory, SubjectId, UploadId, locked_memory};
pub use coffer_store::{
    BlobCache, CacheStatus, ListedVersion, OpenUploads, OverQuota, SealedSegment, SegmentFile,
    Totals, VersionContent, VersionsPage, VersionsQuery, lock, record, version,
};

pub use crate::access::{
    AccessKey, Actor, Asked, AskedAcl, AskedAction, AskedGrant, AskedGrantee, AskedOf, Asks,
    BucketName, ListAsSent, NewAccessKey, Right, Rights, Role, Roles, Subject,
    looks_like_access_key_id,
};
pub use crate::admin::{
    AccessKeyChange, Adoption, AuditItem, AuditQuery, Imported, KeystoreStatus, LEFT_BEHIND,
    LevelInfo, NewLevel, NewSubject, QuotaInfo, SignInFailure, SignInFailures, SubjectChange,
    SubjectInfo, neighbourhood,
};
pub use crate::approvals::{ApprovalRequest, GuardedAct, GuardedOutcome};
pub use crate::audit::{AuditFilter, Facts, check_act};
pub use crate::backup::{BackupCounts, BackupEvent};
pub use crate::buckets::{
    BucketInfo, BucketSettings, BucketSummary, DueEnd, LevelUsage, NewBucket, UploadsEnded,
};
pub use crate::copies::{CarriedStatus, CopyState, CopyStatus, EngineSeat, SyncStatus, TakenLog};
pub use crate::counters::Counters;
pub use crate::cutoff::{ConnectionCutoff, Seat};
pub use crate::data_folder::{ENGINE_FILE, STANDBY as STANDBY_FOLDER};
pub use crate::digest::{DigestPlan, Digester, Digests};
pub use crate::engine::{
    EngineIdentity, FoundLog, Hesitation, LeaseKeeper, Turn, blob_cache, check_own_log, has_log,
    prepare_cache, put_back_cache, take_over_begun,
};
pub use crate::error::{
    AdministrationError, BackupError, BodyError, ChecksumError, CopyError, CustomerKeyError,
    EraseLocked, Result, Rollback, RollbackOf, SharingError, SubjectLimit, VaultError,
    files_run_out,
};
pub use crate::fence::{
    FenceState, FenceStatus, FencedBy, PromotedStandby, ServingRight, StandbyLink, StandbyProblem,
    StandbyState, StandbyStatus,
};
pub use crate::gateways::{
    AskedAt, FollowerReads, Position, ReadAnswer, ReadLease, ReadQuestion, Settling,
};
pub use crate::lifecycle::{
    Day, Ending, Expiration, FilterForm, LifecycleFilter, LifecycleRule, LifecycleRules,
    Noncurrent, RuleFault,
};
pub use crate::locks::{AskedLock, DefaultRetention, LockClock, ObjectLock};
pub use crate::objects::{
    Announcement, ArrivedBytes, AskedEncryption, Body, CheckDigests, CompleteUpload, CompletedPart,
    Conditions, CopyPart, CopySource, CopyTarget, DeleteObject, Deleted, EtagMatch, Incoming,
    NewUpload, ObjectAcl, ObjectBody, ObjectInfo, ObjectParts, ObjectRead, PartsPage, PutObject,
    PutPart, RangeRequest, ReadOptions, Released, ReleasedSegment, RenameObject, SealedObject,
    SealedUpload, StartedUpload, Stored, check_customer_key,
};
pub use crate::offline::{CommitmentsChecked, WrongBlob};
pub use crate::open_buckets::CustomerKey;
pub use crate::quotas::{Quota, QuotaOf, QuotaUsage};
pub use crate::replica::{CopyCheckEvent, NewCopy, Restore, RestoreEvent, Restored, restore};

pub use crate::standby::{FollowOptions, FormerStates, ServedState, Standby, StandbyTurn};
pub use crate::system::{BucketConfiguration, BucketEncryption, MD5_ETAGS, ReceiptSummary};
pub use crate::transfer_counters::{TransferCounters, TransferEnds};
pub use crate::transfers::{Arrival, DataPort, NoSuchTransfer, NotTaken, Sending, Ticket};
pub use crate::vault::{EtagStyle, Rotation, SubjectLimits, Vault, VaultOptions};
pub use crate::verify::{VerifyDepth, VerifyEvent};
pub use coffer_replica::{Gap, WrittenEnd};
