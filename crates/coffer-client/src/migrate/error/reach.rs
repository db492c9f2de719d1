//! For how much an error holds.

use std::io::ErrorKind;

use super::MigrateError;
use crate::mover::MoverError;
use crate::s3::S3Error;

/// For how much of a migration an error may hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::migrate) enum Reach {
    /// For what met it.
    One,
    /// For what finds no room at the target. Something smaller may.
    Room,
    /// For all that the service is asked, which shows when it is asked something else.
    Asked,
    /// For the bucket, which shows in the same way.
    Bucket,
    /// For all that is left.
    All,
}

impl MigrateError {
    /// For how much of a migration it may hold.
    pub(in crate::migrate) fn reach(&self) -> Reach {
        match self {
            Self::Ended { error, .. } => error.reach(),
            Self::Local { source, .. } | Self::Mover(MoverError::Local { source, .. }) => {
                match source.kind() {
                    ErrorKind::StorageFull
                    | ErrorKind::QuotaExceeded
                    | ErrorKind::ReadOnlyFilesystem => Reach::All,
                    _ => Reach::One,
                }
            }
            Self::Mover(error) if error.is_of_bucket() => Reach::Bucket,
            Self::Mover(error) => match error.s3() {
                Some(answered) if answered.is_refused_for_good() => Reach::All,
                Some(S3Error::Broken { .. } | S3Error::Unreadable { .. }) => Reach::Asked,
                Some(S3Error::Refused { status: 507, .. }) => Reach::Room,
                Some(S3Error::Refused {
                    status: 401 | 500..=504,
                    ..
                }) => Reach::Asked,
                Some(S3Error::Refused { code, .. }) if code == "QuotaExceeded" => Reach::Room,
                _ if error.is_of_service(false, false) => Reach::Asked,
                _ => Reach::One,
            },
            _ => Reach::One,
        }
    }
}
