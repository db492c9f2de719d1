//! How a vault is opened.

use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use coffer_keys::{SourceSecrets, SourceSpec};
use coffer_policy::ObjectOwnership;
use coffer_store::BlobCache;

use crate::copies::EngineSeat;
use crate::fence::{FencedBy, StandbyLink};
use crate::lifecycle::Day;
use crate::limits::{ABORT_UPLOADS_DAYS, BUCKETS_PER_SUBJECT, LOCK_MAX_DAYS, UPLOADS_PER_SUBJECT};

/// How entity tags are formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EtagStyle {
    /// The MD5 of the content where the client sent it; otherwise 32 random hexadecimal digits and
    /// `-1`, which no client takes for an MD5.
    #[default]
    Random,
    /// The MD5 of the content always, at its cost.
    Md5,
}

/// What one subject may take at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubjectLimits {
    /// Multipart uploads under way that it has begun, in all buckets.
    pub uploads: usize,
    /// Buckets that it has made as a data user.
    pub buckets: usize,
}

impl Default for SubjectLimits {
    fn default() -> Self {
        Self {
            uploads: UPLOADS_PER_SUBJECT,
            buckets: BUCKETS_PER_SUBJECT,
        }
    }
}

/// How to open a vault.
#[derive(Clone, Debug)]
pub struct VaultOptions {
    /// The data folder.
    pub data: PathBuf,
    /// How entity tags are formed.
    pub etag: EtagStyle,
    /// Who owns the objects of new buckets that don't say so.
    pub object_ownership: ObjectOwnership,
    /// Where the root key of a new folder is to be, and where it is in one that lost its record.
    pub source: Option<SourceSpec>,
    /// What opens the source, as far as it needs anything.
    pub secrets: SourceSecrets,
    /// Whether to go on from older copies of files that were put back.
    pub accept_rollback: bool,
    /// What one subject may take.
    pub subject_limits: SubjectLimits,
    /// For how many days at most an object may be locked.
    pub lock_max_days: u32,
    /// What it is a state of, where a standby is served: then nothing is changed.
    pub standby: Option<StandbyLink>,
    /// The copy by which the server is fenced off, if one is to do that.
    pub fenced_by: Option<FencedBy>,
    /// Whether a server that was fenced off is to take changes again.
    pub ends_fence: bool,
    /// Of a gateway of an engine that has its lease: the log that it goes on with.
    pub engine: Option<EngineSeat>,
    /// Of a gateway: what of the engine's blobs is on this machine.
    pub cache: Option<BlobCache>,
    /// After which time without a read that counts a subject that floats is settled; none: a key
    /// custodian must do it.
    pub settle_after: Option<Duration>,
    /// How long a day of lifecycle rules is: a day, but for tests.
    pub lifecycle_day: Day,
    /// After how many such days an upload is aborted that was not completed, in buckets without a
    /// rule for uploads; none: never.
    pub abort_uploads_days: Option<NonZeroU32>,
}

impl VaultOptions {
    /// Options for this data folder: the root key in a file, or where the folder's record says.
    pub fn new(data: impl Into<PathBuf>) -> Self {
        Self {
            data: data.into(),
            etag: EtagStyle::Random,
            object_ownership: ObjectOwnership::default(),
            source: None,
            secrets: SourceSecrets::default(),
            accept_rollback: false,
            subject_limits: SubjectLimits::default(),
            lock_max_days: LOCK_MAX_DAYS,
            standby: None,
            fenced_by: None,
            ends_fence: false,
            engine: None,
            cache: None,
            settle_after: None,
            lifecycle_day: Day::default(),
            abort_uploads_days: Some(ABORT_UPLOADS_DAYS),
        }
    }
}
