//! The keystore as custodians look after it: its state, its root key, and where that is.

use coffer_durable::now_ms;
use coffer_keys::{ExportRecipient, RootMark, SourceSecrets, SourceSpec};
use coffer_seal::{KeyMemory, locked_memory};
use serde::{Deserialize, Serialize};

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::Result;
use crate::rotation::settled;
use crate::system::{DocumentId, Kind};
use crate::vault::Vault;

/// What there is to know of the keystore. No secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KeystoreStatus {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// How often it was changed.
    pub generation: u64,
    /// Where the root key is, as one writes it: such as `file` or `keyring:NAME`. Of a server that
    /// follows, in a sentence.
    pub source: String,
    /// What holds the root key.
    pub holder: String,
    /// How the root key would be destroyed there.
    pub destruction: String,
    /// What NIST SP 800-88 calls that: `Clear` or `Purge`.
    pub category: coffer_keys::Sanitization,
    /// What old copies would still allow after an erase.
    pub remaining: String,
    /// Whether the source before a move may hold keys still.
    pub is_moving: bool,
    /// What has to be kept apart from the data, in a sentence.
    pub to_keep: Option<String>,
    /// The last backup of the root key, and whether it opens the keystore as it is.
    pub backup: Option<(BackupNote, bool)>,
    /// How the memory is that all keys lie in.
    #[serde(skip)]
    pub key_memory: KeyMemory,
    /// How many levels there are.
    pub level_count: usize,
    /// How many buckets.
    pub bucket_count: usize,
    /// How many buckets have an older generation of their key: they are being rotated.
    pub rotating_bucket_count: usize,
}

/// What is known of the last backup of the root key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupNote {
    /// When it was made, in milliseconds since 1970.
    pub made_ms: i64,
    /// For whom: recipients of age.
    pub recipients: Vec<String>,
    mark: RootMark,
}

/// What opens the keystore of an engine; the root key of a gateway comes with it.
const GATEWAYS_KEEP: &str = "keep what opens the engine's keystore, twice and apart from its \
                             store: the passphrase or the token that the gateways share, with a \
                             copy of the object `identity` there, or else the file of --identity: \
                             data is lost without it";

/// What a standby says in its place.
const STANDBYS_KEEP: &str = "nothing of a standby: keep what opens the original's keystore, as \
                             `coffer keystore status` says there, and the identity that this \
                             standby is started with";

/// Where the root key is of a server that follows. That is no place that a command takes.
const OF_STATE: &str = "a file of the state that is served: each state has one of its own, which \
                        opens nothing else and goes with it, and no command takes it";

/// What a new root key means to that.
const GATEWAYS_ARE_TOLD: &str = "the new root key goes along in the engine's log, and what opens \
                                 its keystore is what it was: nothing is to be copied anew";

impl Vault {
    /// What has to be kept apart from the data, in a sentence.
    pub fn to_keep(&self) -> Option<String> {
        if self.is_gateway() {
            return Some(GATEWAYS_KEEP.to_owned());
        }
        self.root_source().as_ref().map(SourceSpec::to_keep)
    }

    /// What a new root key means for copies that are kept apart, in a sentence.
    pub fn copies_are_stale(&self) -> Option<String> {
        if self.is_gateway() {
            return Some(GATEWAYS_ARE_TOLD.to_owned());
        }
        let source = self.root_source();
        source.as_ref().map(SourceSpec::copies_are_stale)
    }

    /// The state of the keystore.
    pub async fn keystore_status(&self, actor: &Actor) -> Result<KeystoreStatus> {
        if !actor.has(Role::Auditor) {
            self.refuse_but_custodians(actor, Act::KeystoreStatus, &Facts::new())?;
        }
        let (inner, mut to_keep) = (self.inner.clone(), self.to_keep());
        let follows = inner.gate.is_standby();
        if follows && !self.is_gateway() {
            to_keep = Some(STANDBYS_KEEP.to_owned());
        }
        blocking(move || {
            let keystore = &inner.keystore;
            let (source, buckets) = (keystore.source(), keystore.buckets());
            let medium = source.medium();
            let spec = inner.keys.source();
            let note: Option<BackupNote> = inner.system.document(Kind::Backup, DocumentId::ONLY)?;
            let is_rotating =
                |bucket: &&coffer_keys::BucketEntry| bucket.older_generation.is_some();
            Ok(KeystoreStatus {
                id: keystore.id().to_string(),
                generation: keystore.generation(),
                to_keep,
                source: match spec {
                    _ if follows => OF_STATE.to_owned(),
                    Some(spec) => spec.to_string(),
                    None => source.describe(),
                },
                backup: note.map(|note| {
                    let opens = keystore.opens_with(&note.mark);
                    (note, opens)
                }),
                holder: medium.holder,
                destruction: medium.destruction,
                category: medium.category,
                remaining: medium.remaining,
                is_moving: keystore.is_moving(),
                key_memory: locked_memory(),
                level_count: keystore.levels().len(),
                bucket_count: buckets.len(),
                rotating_bucket_count: buckets.iter().filter(is_rotating).count(),
            })
        })
        .await
    }

    /// Seals the root key, and notes when, for whom, and which one it was.
    pub(crate) async fn back_up_root(&self, recipients: Vec<String>) -> Result<Vec<u8>> {
        let sealed_for: Vec<ExportRecipient> = recipients
            .iter()
            .map(|recipient| recipient.parse())
            .collect::<Result<_, _>>()?;
        let inner = self.inner.clone();
        blocking(move || {
            let backup = inner.keystore.back_up_root(&sealed_for)?;
            let note = BackupNote {
                made_ms: now_ms(),
                recipients,
                mark: backup.mark,
            };
            inner.system.keep(Kind::Backup, DocumentId::ONLY, &note)?;
            Ok(backup.sealed)
        })
        .await
    }

    /// Puts the keystore under a new root key, and destroys the old one.
    pub(crate) async fn replace_root(&self) -> Result<()> {
        let inner = self.inner.clone();
        blocking(move || settled(&inner.keystore, inner.keystore.rotate_root())).await
    }

    /// Moves the root key into another source, while everything goes on: a new root key there, and
    /// the old one destroyed. `secrets` open the new source, and the present one.
    ///
    /// # Errors
    /// Those of [`KeyFolder::move_root`](coffer_keys::KeyFolder::move_root).
    pub(crate) async fn move_root(&self, to: &str, secrets: SourceSecrets) -> Result<()> {
        let to: SourceSpec = to.parse()?;
        let inner = self.inner.clone();
        blocking(move || {
            let moved = inner.keys.move_root(&inner.keystore, &to, &secrets);
            settled(&inner.keystore, moved)
        })
        .await
    }
}
