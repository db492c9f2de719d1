//! How moving a file fails. A message says what happened, to what, and what to do.

mod reach;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::ClientError;
use crate::s3::{ObjectName, S3Error, without_bucket};
use crate::sealed::SealedError;

/// Why a file was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoverError {
    /// What the server said, or that it said nothing.
    #[error(transparent)]
    S3(S3Error),
    /// There is no such object.
    #[error("{}", absent(name, *has_bucket))]
    Absent {
        /// The object.
        name: Box<ObjectName>,
        /// Whether there is its bucket.
        has_bucket: bool,
    },
    /// There are no objects below a prefix.
    #[error("no name begins with {} (NoSuchKey)", prefix.escape_debug())]
    NoneBegins {
        /// The prefix.
        prefix: String,
    },
    /// What was deleted is listed all the same, or more is stored than is deleted.
    #[error(
        "as many names as before begin with {prefix}, after so many were deleted: others store \
         there, or the server does not do what it says; run this again once nothing is stored there"
    )]
    StillListed {
        /// The prefix.
        prefix: String,
    },
    /// The same of versions.
    #[error(
        "{}{left} versions are listed whose names begin with {prefix}, after all that was listed \
         was deleted {rounds} times: others store there, or the server does not do what it says; \
         run this again once nothing is stored there",
        if *has_more { "at least " } else { "" }
    )]
    VersionsStillListed {
        /// The prefix.
        prefix: String,
        /// How many.
        left: usize,
        /// Whether there may be more.
        has_more: bool,
        /// How often all that was listed was deleted.
        rounds: u32,
    },
    /// A sealed transfer failed.
    #[error(transparent)]
    Sealed(#[from] SealedError),
    /// That is no place in a bucket.
    #[error("{text}: {problem}")]
    Location {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A file of this machine could not be read or written.
    #[error("{path}: {doing} failed: {source}{advice}", path = path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
        /// What to do, where that is known.
        advice: &'static str,
    },
    /// The file is none that can be moved.
    #[error("{path} {problem}", path = path.display())]
    Unsuitable {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The file changed while it was uploaded.
    #[error(
        "{path} changed while it was uploaded: nothing was stored; run this again when it rests",
        path = path.display()
    )]
    SourceChanged {
        /// The file.
        path: PathBuf,
    },
    /// The object changed while it was fetched or copied.
    #[error(
        "the object was replaced while it was fetched or copied; run this again for what is there \
         now"
    )]
    ObjectChanged,
    /// What arrived is not what the server says that it stores.
    #[error(
        "what arrived does not have the object's checksum ({expected}, but {found}): nothing was \
         kept; run this again, and have the server verified if it happens again"
    )]
    Damaged {
        /// What the server says.
        expected: String,
        /// What was found.
        found: String,
    },
    /// The same of what went to standard output, and can't be taken back.
    #[error(
        "what was written to standard output does not have the object's checksum ({expected}, but \
         {found}): use nothing of it; run this again, and have the server verified if it happens \
         again"
    )]
    DamagedOutput {
        /// What the server says.
        expected: String,
        /// What was found.
        found: String,
    },
    /// What the server stored is not what was sent.
    #[error(
        "the server stored something else in {object} than was sent ({told}, but {sent} was sent): \
         what is there is not to be relied on; put it again"
    )]
    StoredOtherwise {
        /// The object.
        object: String,
        /// What it told.
        told: String,
        /// What was sent.
        sent: String,
    },
    /// What came sealed did not open, or is something else than was sent.
    #[error(
        "the server stored what came sealed, opened it afterwards, and found it damaged or not \
         what was sent: it gives nothing of it out; put it again"
    )]
    StoredDamaged,
    /// It is stored, and whether it is whole is not known.
    #[error(
        "it is stored, unverified: the server was to open and compare it, and {why}; HEAD tells \
         by x-coffer-stored how it stands, and --no-wait does not wait for that"
    )]
    Unverified {
        /// Why it is not known.
        why: String,
        /// Whether it may be known later.
        is_open: bool,
    },
    /// Sealed transfer was asked for, and the bucket has none.
    #[error(
        "the bucket {bucket} allows no sealed transfer (its level is made with \
         `coffer level create --sealed-transfer`, and the server needs a data port); \
         --transfer auto uses it only where it can"
    )]
    NotSealed {
        /// The bucket.
        bucket: String,
    },
    /// Another program works on the same.
    #[error("another coffer works on {path}: wait for it, or end it", path = path.display())]
    Busy {
        /// Its file.
        path: PathBuf,
    },
    /// Who asks is not let in any more, and what was moved by then stays.
    #[error("{error}; {kept}")]
    Kept {
        /// Why it did not go on.
        error: Box<MoverError>,
        /// What stays, and how to go on.
        kept: &'static str,
    },
    /// What would fail all that is left of many ended them.
    #[error(
        "{error}; that holds for all that is left, so no more of it was tried; of {} that were \
         tried, {moved} were moved",
        moved + failed
    )]
    Ended {
        /// It.
        error: Box<MoverError>,
        /// How many were moved by then.
        moved: u64,
        /// How many were not, and were tried.
        failed: u64,
    },
    /// A task ended without a result.
    #[error("a part of the work ended unexpectedly")]
    Lost,
}

impl From<S3Error> for MoverError {
    fn from(error: S3Error) -> Self {
        match error {
            S3Error::Replaced => Self::ObjectChanged,
            error => Self::S3(error),
        }
    }
}

impl MoverError {
    pub(crate) fn local(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| {
            let advice = match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
                    if path == Path::new("standard output") =>
                {
                    "; make room, and run this again from the beginning"
                }
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "; make room and run this again: it goes on with what is there"
                }
                io::ErrorKind::ReadOnlyFilesystem => "; name a target that can be written",
                io::ErrorKind::InvalidFilename => "; fetch it by itself, under another name",
                _ => "",
            };
            Self::Local {
                path,
                doing,
                source,
                advice,
            }
        }
    }

    /// The same, told of another file where this gives one for that which failed.
    pub(super) fn of_path(mut self, named: impl FnOnce(&Path) -> Option<PathBuf>) -> Self {
        if let Self::Local { path, .. } | Self::Unsuitable { path, .. } | Self::Busy { path } =
            &mut self
            && let Some(name) = named(path)
        {
            *path = name;
        }
        self
    }

    /// The same of what went to standard output.
    pub(super) fn of_output(self) -> Self {
        match self {
            Self::Damaged { expected, found } => Self::DamagedOutput { expected, found },
            error => error,
        }
    }

    /// For programs: a word that stays the same.
    pub fn code(&self) -> &str {
        match self {
            Self::S3(error) => match error {
                S3Error::Refused { code, .. } => code,
                S3Error::Client(ClientError::Unreachable { .. }) | S3Error::Broken { .. } => {
                    "unreachable"
                }
                _ => "failed",
            },
            Self::Absent { name, has_bucket } => code_of_absent(name, *has_bucket),
            Self::NoneBegins { .. } => "NoSuchKey",
            Self::StillListed { .. } | Self::VersionsStillListed { .. } => "still_listed",
            Self::Sealed(_) => "sealed_transfer_failed",
            Self::Location { .. } => "invalid_argument",
            Self::Local { .. } => "local_file_failed",
            Self::Unsuitable { .. } => "unsuitable_file",
            Self::SourceChanged { .. } => "source_changed",
            Self::ObjectChanged => "object_changed",
            Self::Damaged { .. } | Self::DamagedOutput { .. } | Self::StoredOtherwise { .. } => {
                "checksum_mismatch"
            }
            Self::StoredDamaged => "stored_damaged",
            Self::Unverified { .. } => "unverified",
            Self::NotSealed { .. } => "no_sealed_transfer",
            Self::Busy { .. } => "busy",
            Self::Kept { error, .. } | Self::Ended { error, .. } => error.code(),
            Self::Lost => "failed",
        }
    }
}

/// S3's code for what is missing, which an answer without a body can't tell.
fn code_of_absent(name: &ObjectName, has_bucket: bool) -> &'static str {
    match (has_bucket, &name.version_id) {
        (false, _) => "NoSuchBucket",
        (true, None) => "NoSuchKey",
        (true, Some(_)) => "NoSuchVersion",
    }
}

fn absent(name: &ObjectName, has_bucket: bool) -> String {
    let code = code_of_absent(name, has_bucket);
    let ObjectName { bucket, key, .. } = name;
    let key = key.escape_debug();
    match (has_bucket, &name.version_id) {
        (false, _) => {
            format!(
                "there is no bucket {bucket} ({code}); {}",
                without_bucket(bucket)
            )
        }
        (true, None) if name.key.ends_with('/') => format!(
            "there is no object {key} in the bucket {bucket} ({code}); with -r all objects are \
             meant whose names begin so"
        ),
        (true, None) => format!(
            "there is no object {key} in the bucket {bucket} ({code}); \
             `coffer ls s3://{bucket}` lists what there is"
        ),
        (true, Some(version_id)) => format!(
            "there is no version {} of the object {key} in the bucket {bucket} ({code})",
            version_id.escape_debug()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let mut name = ObjectName::new("b", "a\nk");
        let told = |name: &ObjectName, has_bucket| {
            let name = Box::new(name.clone());
            let error = MoverError::Absent { name, has_bucket };
            (error.code().to_owned(), error.to_string())
        };
        let (code, text) = told(&name, true);
        assert_eq!(code, "NoSuchKey");
        assert!(text.starts_with(r"there is no object a\nk in the bucket b (NoSuchKey)"));
        let folder = told(&ObjectName::new("b", "2026/"), true).1;
        assert!(
            folder.contains("no object 2026/ ") && folder.contains("with -r all"),
            "{folder}"
        );
        let (code, text) = told(&name, false);
        assert_eq!(code, "NoSuchBucket");
        assert!(text.starts_with("there is no bucket b (NoSuchBucket)"));
        name.version_id = Some("v".to_owned());
        let (code, text) = told(&name, true);
        assert_eq!(code, "NoSuchVersion");
        assert!(text.starts_with("there is no version v of the object"));
    }
}
