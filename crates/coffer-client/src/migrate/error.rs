//! Why something did not come. A message says what happened, to what, and what to do.

mod reach;

#[cfg(test)]
mod tests;

use std::io;
use std::path::{Path, PathBuf};

use crate::error::ClientError;
use crate::mover::MoverError;
use crate::s3::S3Error;

pub(super) use self::reach::Reach;

/// Why something did not come.
#[derive(Debug, thiserror::Error)]
pub enum MigrateError {
    /// What moving bytes met.
    #[error(transparent)]
    Mover(#[from] MoverError),
    /// The source is none that can be read.
    #[error("{text}: {problem}")]
    Source {
        /// What was written.
        text: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// The report can't be written there.
    #[error("--report {path}: {problem}", path = path.display())]
    Report {
        /// The file that was named, or a link on the way to it.
        path: PathBuf,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A bucket that was named is not there.
    #[error("the source has no bucket {bucket}")]
    NoBucket {
        /// Its name.
        bucket: String,
    },
    /// Source and target are the same bucket.
    #[error("a bucket can't be moved into itself: name another bucket as the target")]
    IntoItself,
    /// A file that lies in no bucket's folder.
    #[error(
        "{path} lies beside the folders that become buckets: move it into one, or name a bucket \
         as the target for the whole folder",
        path = path.display()
    )]
    Stray {
        /// The file.
        path: PathBuf,
    },
    /// A symbolic link.
    #[error(
        "is a symbolic link: --follow-links brings what it points to, --without links says that \
         this is known"
    )]
    Link,
    /// A file has the name of an unfinished download.
    #[error(
        "has the name that `coffer get` gives to what is unfinished: rename it, if it is a file of \
         yours"
    )]
    Unfinished,
    /// What is to become a bucket can't be one.
    #[error(
        "{bucket} can't be the name of a bucket: those are 3 to 63 small letters, digits, hyphens \
         and dots, and S3 keeps some for itself; rename it, or name another bucket as the target"
    )]
    BucketName {
        /// The name.
        bucket: String,
    },
    /// A service does not list names in order.
    #[error(
        "{side} does not list names in the order of their bytes, so nothing more of this bucket \
         can be compared"
    )]
    Disorder {
        /// Which.
        side: &'static str,
    },
    /// A service lists the versions of a name in an order that can't be told.
    #[error(
        "{side} {problem}: so their order can't be told, and nothing of this name is moved or \
         deleted; `coffer ls --versions` shows them, and `coffer get --version-id` and `coffer \
         put` move them one by one"
    )]
    NoOrder {
        /// Which.
        side: &'static str,
        /// What is wrong with its list.
        problem: &'static str,
    },
    /// A service keeps versions, and refuses to list them.
    #[error(
        "{side} keeps versions and does not list them now, so nothing more of this bucket was \
         compared, and nothing of it is deleted: run this again when it does ({error})"
    )]
    NoList {
        /// Which.
        side: &'static str,
        /// What it said.
        error: Box<S3Error>,
    },
    /// A source has versions, and does not say whether it keeps them.
    #[error(
        "the source has versions with ids, and does not say now what its versioning is, so \
         nothing more of this bucket was compared, and nothing of it is deleted: run this again \
         when it does"
    )]
    UnsaidVersioning,
    /// A name has more versions than are looked at.
    #[error("has more than {most} versions, which is more than is moved of one name")]
    TooMany {
        /// How many are looked at.
        most: usize,
    },
    /// Something of others is at the target.
    #[error(
        "the target has something else under this name, which this migration did not put \
         there{how}: it stays; --overwrite puts the source's before it"
    )]
    Occupied {
        /// In what it differs, where its length does not.
        how: String,
    },
    /// What others set or removed at the target stays.
    #[error("{what}, not by this migration: that stays; --overwrite brings the source's")]
    OthersSet {
        /// What it says.
        what: &'static str,
    },
    /// A legal hold at the target is not lifted.
    #[error(
        "the target holds it by a legal hold that {why}: the hold stays; where it is not meant, \
         lift it at the target (aws s3api put-object-legal-hold)"
    )]
    HeldThere {
        /// Why not.
        why: &'static str,
    },
    /// A retention at the target stays.
    #[error(
        "the target keeps it by a retention ({mode} until {until}) that this migration did not \
         set: that stays, and the source's does not come; where it is not meant, set another at \
         the target (aws s3api put-object-retention)"
    )]
    RetainedThere {
        /// Its mode.
        mode: String,
        /// When it ends.
        until: String,
    },
    /// Another wrote at the target while this ran.
    #[error(
        "was written or deleted at the target by another while this ran: that stays, and the next \
         run looks anew"
    )]
    ChangedThere,
    /// What was gone at the source is there again.
    #[error(
        "is at the source again, which got it while this ran: what came of it before stays; run \
         this again"
    )]
    Again,
    /// An older version can't be put behind newer ones.
    #[error(
        "newer versions of this name are at the target already, and older ones can't be put \
         behind them: delete them there, and run this again"
    )]
    Late,
    /// An older version of the same name did not come.
    #[error("waits for an older version of the same name, which did not come")]
    Waits,
    /// The target does not keep versions.
    #[error("the target's bucket keeps no versions")]
    NoVersions,
    /// It is not at the target.
    #[error("is not at the target")]
    Absent,
    /// The bucket itself is not at the target.
    #[error("the bucket is not at the target")]
    AbsentBucket,
    /// It is at the target, and other than at the source.
    #[error("is other at the target than at the source: {what}")]
    Differs {
        /// What differs.
        what: String,
    },
    /// It is at the target, and not in its place.
    #[error(
        "is at the target, but behind versions that are older at the source: see which it has \
         there (coffer ls --versions), delete them (coffer rm --version-id), and run this again"
    )]
    OtherOrder,
    /// It is at the target, but nothing proves that it is the same.
    #[error("the target tells no checksum of it, so nothing proves that it arrived")]
    Unproven,
    /// The source has nothing at all.
    #[error(
        "the source has no objects at all, and the target has what came from it: nothing is \
         deleted; is it the right source, and is it all there? If so, --delete-all deletes it"
    )]
    Emptied,
    /// A folder seems to be emptied.
    #[error(
        "the folder has nothing, or is not mounted as it was, and the target has what came from \
         it: nothing of that is deleted; is it all there? If so, --delete-all deletes it"
    )]
    EmptiedFolder,
    /// What came is gone at the source.
    #[error(
        "{} gone there: --delete removes that, and --delete-all also where nothing is left there",
        came(*count)
    )]
    Gone {
        /// How much.
        count: u64,
    },
    /// A folder of buckets has none.
    #[error("the source has no folder that could be a bucket; is it the right one, and mounted?")]
    NoFolders,
    /// A setting has no counterpart.
    #[error("{problem}")]
    Setting {
        /// Why.
        problem: String,
    },
    /// A file of this machine could not be read or written.
    #[error("{path}: {doing} failed: {source}", path = path.display())]
    Local {
        /// The file.
        path: PathBuf,
        /// What was tried.
        doing: &'static str,
        /// Why it failed.
        source: io::Error,
    },
    /// What holds for all that is left was met.
    #[error(
        "{of}{error}; that holds for all that is left, so no more of it was tried: what has \
         arrived is noted, and the same command goes on from there"
    )]
    Ended {
        /// Which side said so, and a colon, where that is to be told.
        of: &'static str,
        /// It.
        error: Box<MigrateError>,
    },
    /// The ledger is that of another bucket.
    #[error(
        "{path} notes what goes from {source_text} to {target}, which is something else: it was \
         put there in another's place; move it away, and what is there is compared",
        path = path.display()
    )]
    OtherLedger {
        /// The ledger.
        path: PathBuf,
        /// Its source.
        source_text: String,
        /// Its target.
        target: String,
    },
    /// Another one works on the same.
    #[error(
        "another coffer moves the same bucket (it holds {path}): wait for it, or end it",
        path = path.display()
    )]
    Busy {
        /// The ledger.
        path: PathBuf,
    },
}

fn came(count: u64) -> String {
    match count {
        1 => "1 object or version came from the source and is".to_owned(),
        count => format!("{count} objects or versions came from the source and are"),
    }
}

impl From<S3Error> for MigrateError {
    fn from(error: S3Error) -> Self {
        Self::Mover(error.into())
    }
}

impl From<ClientError> for MigrateError {
    fn from(error: ClientError) -> Self {
        Self::Mover(S3Error::from(error).into())
    }
}

impl MigrateError {
    pub(super) fn local(
        doing: &'static str,
        path: &Path,
    ) -> impl FnOnce(io::Error) -> Self + use<> {
        let path = path.to_owned();
        move |source| Self::Local {
            path,
            doing,
            source,
        }
    }

    /// For programs: a word that stays the same.
    pub fn code(&self) -> &str {
        match self {
            Self::Mover(error) => error.code(),
            Self::Source { .. } | Self::Report { .. } => "invalid_argument",
            Self::NoBucket { .. } => "NoSuchBucket",
            Self::BucketName { .. } => "InvalidBucketName",
            Self::IntoItself => "into_itself",
            Self::Stray { .. } => "in_no_bucket",
            Self::Link => "symbolic_link",
            Self::Unfinished => "unfinished",
            Self::NoFolders => "no_folders",
            Self::Disorder { .. } | Self::NoOrder { .. } => "disorder",
            Self::NoList { .. } => "versions_not_listed",
            Self::UnsaidVersioning => "versioning_not_told",
            Self::TooMany { .. } => "too_many_versions",
            Self::Occupied { .. } | Self::OthersSet { .. } => "occupied",
            Self::HeldThere { .. } => "held_at_target",
            Self::RetainedThere { .. } => "retained_at_target",
            Self::ChangedThere => "changed_at_target",
            Self::Again => "again_at_source",
            Self::Late => "newer_versions_there",
            Self::Waits => "older_version_missing",
            Self::NoVersions => "no_versions",
            Self::Absent | Self::AbsentBucket => "absent",
            Self::Differs { .. } | Self::OtherOrder => "differs",
            Self::Unproven => "unproven",
            Self::Emptied | Self::EmptiedFolder => "source_empty",
            Self::Gone { .. } => "gone",
            Self::Setting { .. } => "setting",
            Self::Local { .. } => "local_file_failed",
            Self::Busy { .. } => "busy",
            Self::OtherLedger { .. } => "other_ledger",
            Self::Ended { error, .. } => error.code(),
        }
    }

    /// The same as what ended a bucket, or all of it.
    pub(super) fn ending(self, of: &'static str) -> Self {
        match self {
            ended @ Self::Ended { .. } => ended,
            error => Self::Ended {
                of,
                error: Box::new(error),
            },
        }
    }

    /// Whether parts did not go together: what was noted of them, or what lies there of them, may
    /// be damaged, and would be in each run that goes on with them.
    pub(super) fn is_of_parts(&self) -> bool {
        match self {
            Self::Mover(MoverError::Damaged { .. }) => true,
            Self::Mover(error) => error.s3().is_some_and(S3Error::is_of_content),
            _ => false,
        }
    }

    /// Whether the version itself is there, though not in its place, or with something that others
    /// have set of it.
    pub(super) fn is_beside_content(&self) -> bool {
        matches!(
            self,
            Self::OthersSet { .. }
                | Self::HeldThere { .. }
                | Self::RetainedThere { .. }
                | Self::OtherOrder
        )
    }
}
