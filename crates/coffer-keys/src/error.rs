//! What can go wrong with keys.

use std::io;
use std::path::{Path, PathBuf};

use coffer_seal::{BucketId, LevelId};
use thiserror::Error;

use crate::freshness::KeystoreRollback;
use crate::stale_root::StaleRoot;
use crate::token_setup::TokenSetupError;
use coffer_durable::DurableError;

/// What can go wrong with root keys, the keystore and the keys in it.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum KeysError {
    /// There is no root key where one was expected.
    #[error(
        "there is no root key in {place}: put it back, or make it anew from a backup of it \
         (`coffer keystore backup --help`); for a copy of a folder, say where it is with \
         --root-key SOURCE"
    )]
    RootMissing {
        /// The source.
        place: String,
    },
    /// The source holds a key besides the one that the keystore opens with: a change of the root
    /// key was interrupted. Opening the keystore completes it.
    #[error("a change of the root key in {place} is not complete")]
    RootUnsettled {
        /// The source.
        place: String,
    },
    /// Others than the owner may use the root-key file.
    #[error(
        "the root key {path} has mode {mode:04o}, so others than its owner can use it: \
         run chmod 600 on it, and think about who may have read it"
    )]
    RootExposed {
        /// The root-key file.
        path: PathBuf,
        /// Its permission bits.
        mode: u32,
    },
    /// That is no root-key source.
    #[error("that is no root-key source: {problem}")]
    SourceSpec {
        /// What is wrong with it, and what would be right.
        problem: &'static str,
    },
    /// The file that says where the root key is says something else.
    #[error(
        "{path} does not say where the root key is: restore it from a backup, or remove it and \
         name the source at the next start (--root-key)"
    )]
    SourceRecord {
        /// The file.
        path: PathBuf,
    },
    /// The keystore's root key is in another source than the one that was asked for.
    #[error(
        "the keystore's root key is in the source {recorded}: start without another one, and move \
         the root key with `coffer keystore move --to SOURCE`"
    )]
    OtherSource {
        /// The source that is recorded.
        recorded: String,
    },
    /// The root key would have been moved into the data folder, under a name of its own.
    #[error(
        "{path} is in the data folder, and goes where that goes: write `file` for root.key there, \
         or give a path elsewhere"
    )]
    SourceWithin {
        /// The path.
        path: PathBuf,
    },
    /// The root key would have been moved to where it is.
    #[error("the root key is there already: {place}")]
    SameSource {
        /// The source.
        place: String,
    },
    /// The source holds a root key of something else.
    #[error(
        "there is a root key already, which may be that of another keystore: {place}; choose \
         another name, or remove it"
    )]
    RootTaken {
        /// The source.
        place: String,
    },
    /// A passphrase is needed, and none was given.
    #[error(
        "a passphrase opens the root key, and none was given: give it at the terminal, by \
         --passphrase-fd N, or as the systemd credential coffer-passphrase"
    )]
    PassphraseMissing,
    /// A PIN is needed, and none was given.
    #[error(
        "a token's PIN is needed, and none was given: give it at the terminal, as the systemd \
         credential coffer-pin, or in a file that pin-source names"
    )]
    PinMissing,
    /// A token is not set up for use.
    #[error(transparent)]
    TokenSetup(#[from] TokenSetupError),
    /// The root-key file is not one.
    #[error(
        "{path} holds no root key that can be used: it is not a file of this kind, or the key that \
         it needs was destroyed"
    )]
    RootMalformed {
        /// The root-key file.
        path: PathBuf,
    },
    /// The passphrase is another one.
    #[error("the passphrase does not open {path}")]
    WrongPassphrase {
        /// The root-key file.
        path: PathBuf,
    },
    /// Argon2 refused, such as for want of memory.
    #[error("could not derive a key from the passphrase: {source}")]
    Derivation {
        /// Argon2's answer.
        source: argon2::Error,
    },
    /// The kernel refused.
    #[error("could not {op} in the kernel keyring: {source}")]
    Keyring {
        /// What was attempted: a verb.
        op: &'static str,
        /// The kernel's answer.
        source: linux_keyutils::KeyError,
    },
    /// The token, or its module, refused.
    #[error("could not {op} in the token: {source}")]
    Token {
        /// What was attempted: a verb.
        op: &'static str,
        /// The module's answer.
        source: cryptoki::error::Error,
    },
    /// The token did not take the PIN.
    #[error("the token {label} does not take the PIN: it is wrong, or locked after wrong ones")]
    WrongPin {
        /// The token's label.
        label: String,
    },
    /// A key that was destroyed in the token is still there.
    #[error("the token still holds a key that was destroyed")]
    TokenKeepsKey,
    /// There is no keystore where one was expected.
    #[error("there is no keystore at {path}")]
    Missing {
        /// The keystore file.
        path: PathBuf,
    },
    /// A keystore would have been overwritten.
    #[error("there is a keystore at {path} already")]
    Exists {
        /// The keystore file.
        path: PathBuf,
    },
    /// Neither copy is intact.
    #[error(
        "both copies in {path} are damaged, or it is not a keystore: restore it from a backup, \
         with the root key of then; without one, a level whose key was exported comes back in a \
         new data folder, by `coffer key import` and the folders of its buckets"
    )]
    Damaged {
        /// The keystore file.
        path: PathBuf,
    },
    /// The keystore was written by a newer version of coffer.
    #[error("the keystore has format {found}; this version of coffer knows formats up to {known}")]
    NewerFormat {
        /// The file's format.
        found: u32,
        /// The newest that is known here.
        known: u32,
    },
    /// The keystore is an older copy than its source holds.
    #[error("{rollback}")]
    RolledBack {
        /// By how much.
        rollback: KeystoreRollback,
    },
    /// A copy of the keystore doesn't open with this root key.
    #[error("the keystore does not open with this root key: it belongs to another one")]
    WrongRoot,
    /// The newest intact copy opens with none of the root keys that its source holds.
    #[error("{0}")]
    StaleRoot(StaleRoot),
    /// A change was made, and a restart finds it; but old keys aren't destroyed everywhere yet.
    /// [`Keystore::settle`](crate::Keystore::settle) or opening the keystore completes it.
    #[error("the keys are out of use, but not yet destroyed everywhere: {source}")]
    Unsettled {
        /// What went wrong.
        source: Box<KeysError>,
    },
    /// The body opened, but doesn't say what a body says.
    #[error("the keystore opened, but its contents are malformed at its {what}")]
    Malformed {
        /// Which part is malformed.
        what: &'static str,
    },
    /// A copy reads back differently from what was written.
    #[error(
        "{path} reads back differently from what was written: the disk or its driver is faulty"
    )]
    NotReadBack {
        /// The keystore file.
        path: PathBuf,
    },
    /// The keystore was opened for reading only.
    #[error("the keystore was opened for reading only")]
    ReadOnly,
    /// That is no name of a level.
    #[error("a level's name is 1 to 63 of the characters a to z, 0 to 9 and -")]
    LevelName,
    /// A level can't have this name, for clients send it as their region.
    #[error(
        "S3 clients send {name} as their region without being asked, and it would mean this level: \
         choose another name"
    )]
    LevelNameIsRegion {
        /// The name.
        name: String,
    },
    /// Another level has this name.
    #[error("there is a level {name} already")]
    LevelExists {
        /// The name.
        name: String,
    },
    /// A level can't take this many custodians for an act.
    #[error(
        "a level takes 1 to {} approvals, not {count}",
        crate::limits::APPROVALS_MAX
    )]
    Approvals {
        /// How many were asked for.
        count: u8,
    },
    /// The keystore holds as many levels as it may.
    #[error("the keystore holds {count} levels, the most it may")]
    TooManyLevels {
        /// How many it holds.
        count: usize,
    },
    /// The keystore holds as many buckets as it may.
    #[error("the keystore holds {count} buckets, the most it may")]
    TooManyBuckets {
        /// How many it holds.
        count: usize,
    },
    /// The bucket has a key already.
    #[error("bucket {bucket_id} has a key already")]
    BucketExists {
        /// The bucket.
        bucket_id: BucketId,
    },
    /// The bucket has no key, or has none any more.
    #[error("there is no key for bucket {bucket_id}")]
    NoSuchBucket {
        /// The bucket.
        bucket_id: BucketId,
    },
    /// There is no such level.
    #[error("there is no level {level_id}")]
    NoSuchLevel {
        /// The level.
        level_id: LevelId,
    },
    /// The bucket has no such older generation of its key, or has none any more.
    #[error("there is no older generation {generation} of the key of bucket {bucket_id}")]
    NoSuchGeneration {
        /// The bucket.
        bucket_id: BucketId,
        /// The generation.
        generation: u32,
    },
    /// An older generation of the bucket's key is still in use.
    #[error("a rotation of the key of bucket {bucket_id} is under way")]
    RotationUnderWay {
        /// The bucket.
        bucket_id: BucketId,
    },
    /// The key has had as many generations as can be counted.
    #[error("the key has had as many generations as can be counted")]
    GenerationsExhausted,
    /// A wrapped key doesn't open: it was changed, or belongs elsewhere.
    #[error("a wrapped key did not open")]
    KeyDidNotOpen,
    /// A data key was wrapped by another generation of its bucket's key.
    #[error("the key was wrapped by generation {wrapped}; this is generation {own}")]
    OtherGeneration {
        /// The generation that wrapped it.
        wrapped: u32,
        /// The generation of the key at hand.
        own: u32,
    },
    /// That is no receipt, or one of a later version of coffer.
    #[error("that is not a receipt of coffer: {reason}")]
    ReceiptMalformed {
        /// What was found: a place in the text, and what was expected.
        reason: String,
    },
    /// That is no key that verifies receipts.
    #[error("a key that verifies receipts is 64 hexadecimal digits")]
    ReceiptKey,
    /// The receipt was changed, or signed by another server.
    #[error("the receipt was changed, or was signed by another key")]
    ReceiptForged,
    /// The level was made so that its key is never exported.
    #[error("the key of level {name} is not to be exported: it was made so, for good")]
    NotExportable {
        /// The level.
        name: String,
    },
    /// A level forbids the export that a backup would be.
    #[error("{what} would be an export of every level, which level {name} forbids for good")]
    NoBackup {
        /// What is asked for.
        what: &'static str,
        /// The level.
        name: String,
    },
    /// That is not a recipient of age, or not one that this version knows.
    #[error(
        "that is no recipient of age (`--recipient`, and `--to` of a level's export): it begins \
         with age1, and `age-keygen -o FILE` makes one: it prints the recipient, and FILE is the \
         identity, which opens what is sealed for it and stays apart"
    )]
    ExportRecipient,
    /// That is not an identity of age, or not one that this version knows.
    #[error("an export is opened by an identity of age, beginning with AGE-SECRET-KEY-1")]
    ExportIdentity,
    /// The export couldn't be sealed for its recipients.
    #[error("could not seal the export for its recipients: {source}")]
    ExportNotSealed {
        /// What age says.
        source: age::EncryptError,
    },
    /// The export is for others, was changed, or is none.
    #[error("the export did not open")]
    ExportDidNotOpen,
    /// Another level has the label of the one that is to be taken in.
    #[error(
        "level {level} has its label already, and the same subjects would use both: if that is \
         meant, say --same-label"
    )]
    SameLabel {
        /// The other level.
        level: String,
    },
    /// The keystore has this level already, by id.
    #[error("level {level_id} is in this keystore already")]
    LevelPresent {
        /// The level.
        level_id: LevelId,
    },
    /// The operating system refused.
    #[error("could not {op} {path}: {source}")]
    Io {
        /// What was attempted: a verb.
        op: &'static str,
        /// On which file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
}

impl KeysError {
    /// For `map_err` on durable operations.
    pub(crate) fn durable(path: &Path) -> impl FnOnce(DurableError) -> Self {
        move |error| match error {
            DurableError::Io { op, source } => Self::io(op, path)(source),
            _ => Self::NotReadBack {
                path: path.to_path_buf(),
            },
        }
    }

    /// For `map_err` on file operations.
    pub(crate) fn io(op: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        move |source| Self::Io {
            op,
            path: path.to_path_buf(),
            source,
        }
    }
}
