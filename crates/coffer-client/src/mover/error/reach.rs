//! For how much an error holds, and what of what was begun is worth keeping then.

use super::MoverError;
use crate::s3::S3Error;

impl MoverError {
    /// What an answer says, or that none came.
    pub(crate) fn s3(&self) -> Option<&S3Error> {
        match self {
            Self::S3(error) => Some(error),
            Self::Kept { error, .. } | Self::Ended { error, .. } => error.s3(),
            _ => None,
        }
    }

    /// Whether the service as a whole says so, and would say it of all that it is asked. While
    /// nothing was moved, the address or the authority may be wrong; a service that was reached
    /// before may come back. `is_accepted` is whether it took any signature.
    pub(crate) fn is_of_service(&self, has_moved: bool, is_accepted: bool) -> bool {
        let Some(error) = self.s3() else {
            return false;
        };
        match error.code() {
            _ if error.is_refused_for_good() => true,
            Some("InvalidAccessKeyId" | "InvalidClientTokenId" | "ExpiredToken") => true,
            Some(_) => self.is_of_signature() && !is_accepted,
            None => !has_moved && matches!(error, S3Error::Client(_)),
        }
    }

    /// Whether the service as a whole may say so, which shows when it is asked for what it would
    /// give at any time.
    pub(in crate::mover) fn may_be_of_service(&self) -> bool {
        match self.s3() {
            Some(S3Error::Broken { .. } | S3Error::Unreadable { .. } | S3Error::Client(_)) => true,
            Some(S3Error::Refused { status, .. }) => matches!(status, 401 | 429 | 500..=504),
            _ => false,
        }
    }

    /// Whether there is no room at the server. Something smaller may find some.
    pub(in crate::mover) fn is_of_room(&self) -> bool {
        match self.s3() {
            Some(S3Error::Refused { status, code, .. }) => {
                *status == 507 || code == "QuotaExceeded"
            }
            _ => false,
        }
    }

    /// Whether it ended many, as it would end others.
    pub(in crate::mover) fn has_ended_many(&self) -> bool {
        match self {
            Self::Ended { .. } => true,
            Self::Kept { error, .. } => error.has_ended_many(),
            _ => false,
        }
    }

    /// The same of a command that moved so many before, and failed to move so many.
    pub fn with_counts(self, before: u64, failed_before: u64) -> Self {
        match self {
            Self::Ended {
                error,
                moved,
                failed,
            } => Self::Ended {
                error,
                moved: moved + before,
                failed: failed + failed_before,
            },
            Self::Kept { error, kept } => Self::Kept {
                error: Box::new(error.with_counts(before, failed_before)),
                kept,
            },
            error => error,
        }
    }

    /// Whether a signature was not taken: the secret or a clock is wrong, or a name is one that
    /// something on the way writes in another way.
    pub(in crate::mover) fn is_of_signature(&self) -> bool {
        let code = self.s3().and_then(S3Error::code);
        matches!(code, Some("SignatureDoesNotMatch" | "RequestTimeTooSkewed"))
    }

    /// Whether the bucket is not there.
    pub fn is_of_bucket(&self) -> bool {
        match self {
            Self::Absent { has_bucket, .. } => !has_bucket,
            error => error.s3().and_then(S3Error::code) == Some("NoSuchBucket"),
        }
    }

    /// Whether what was begun is worth keeping: the same may go well later.
    pub(in crate::mover) fn may_go_on(&self) -> bool {
        match self {
            Self::S3(error) => error.is_passing() || error.is_used_up() || error.is_of_access(),
            Self::Kept { .. } => true,
            Self::Unverified { is_open, .. } => *is_open,
            // What went another way before is what would go now.
            Self::Sealed(_) | Self::NotSealed { .. } => true,
            Self::Local { .. } | Self::Busy { .. } | Self::Lost => true,
            _ => false,
        }
    }

    /// Whether who asks is not let in, or not any more: what was moved by then is not worth less.
    pub(in crate::mover) fn is_of_access(&self) -> bool {
        self.s3().is_some_and(S3Error::is_of_access)
    }

    /// The same, which says that what was moved stays, where it is of access and does not say so.
    pub(in crate::mover) fn with_kept(self, kept: &'static str) -> Self {
        match self {
            error @ (Self::S3(_) | Self::Ended { .. }) if error.is_of_access() => Self::Kept {
                error: Box::new(error),
                kept,
            },
            error => error,
        }
    }
}
