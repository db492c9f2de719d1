//! What can go wrong with copies of a data folder.

mod copies;

pub use self::copies::CopyError;

/// Why a copy of a data folder was not made, or is not used.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// A backup can't be made in this folder.
    #[error("no backup can be made in {path}: {problem}; nothing was changed")]
    NoBackupFolder {
        /// The folder.
        path: String,
        /// Why not, and what to do.
        problem: &'static str,
    },
    /// A copy that a backup or a restore did not complete.
    #[error(
        "{path} is a copy that `coffer backup` did not complete: take the folder `copy` beside it, \
         or make the backup again; or a restored folder that is not complete: ask for the same \
         `coffer restore` again"
    )]
    IncompleteBackup {
        /// The folder.
        path: String,
    },
    /// The folder of a standby, which is no data folder until it is promoted.
    #[error(
        "{path} is the folder of a standby: `coffer serve --follow URL --data {path}`, with the \
         URL of the copy that it follows, serves it, and `coffer standby promote` makes it a data \
         folder"
    )]
    OfStandby {
        /// The folder.
        path: String,
    },
    /// The folder of a gateway, which is its cache.
    #[error(
        "{path} is the folder of a gateway of an engine: `coffer serve --engine URL --data \
         {path}`, with the engine's URL, serves it, and `coffer offline` reads what is in it \
         while no gateway does"
    )]
    OfGateway {
        /// The folder.
        path: String,
    },
    /// A bucket can't be copied, though there is something of it.
    #[error(
        "no backup is made, and the copy before stays: bucket {bucket:?} can't be read: \
         {problem}. Put back what is missing (`coffer verify` tells more), or the newest \
         keystore"
    )]
    BucketUnreadable {
        /// Its name.
        bucket: String,
        /// Why.
        problem: String,
    },
    /// The copy before has a bucket of which nothing is in the data folder any more.
    #[error(
        "no backup is made, and the copy before stays: nothing of bucket {bucket:?} is in the data \
         folder, and that copy has it, in {folder}. Put it back from there, or make the backup in \
         an empty folder"
    )]
    BucketLost {
        /// Its name.
        bucket: String,
        /// The folder of the bucket in the copy before.
        folder: String,
    },
    /// There is no room for the copy.
    #[error(
        "no room is left in {path} for the copy: free some, and ask for the backup again, which \
         goes on from there; the copy before stays"
    )]
    NoRoom {
        /// The folder of the backup.
        path: String,
    },
    /// Blobs are missing that were to be copied.
    #[error(
        "{missing} blobs that catalogs name are missing or cut off, so this would be no good copy: \
         the one before stays. `coffer verify` names the objects: put their files back, or delete \
         them, and ask for the backup again"
    )]
    DamagedSource {
        /// How many.
        missing: u64,
    },
    /// The root key was changed again and again while a copy was made.
    #[error("the root key was changed again and again meanwhile: ask for the backup again later")]
    RootKeyChanging,
    /// The one who asked for it has gone.
    #[error("it was broken off: the command that asked for it has ended")]
    ListenerGone,
    /// A sealed copy elsewhere.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// The folder was copied while a server wrote to it.
    #[error(
        "{path} was copied while a server ran on it, and is no consistent copy: {problem}. Copy it \
         with `coffer backup`, or while the server is stopped; to go on from what there is, start \
         it with `coffer serve --accept-rollback …`; nothing was changed"
    )]
    NoConsistentCopy {
        /// The folder.
        path: String,
        /// What shows it.
        problem: String,
    },
}
