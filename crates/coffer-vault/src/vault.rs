//! The vault itself: opening, closing, and what every call needs.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use coffer_keys::{FileRoot, Keystore, LevelEntry, Repair};
use coffer_label::Clearance;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use crate::bucket::{OpenBucket, OpenBuckets};
use crate::counters::{Counters, Tally, add};
use crate::error::{Result, VaultError};
use crate::folder::{Folder, write_private};
use crate::limits::{ACCESS_KEY_ID_CHARS, SECRET_ACCESS_KEY_CHARS};
use crate::monitor::{may_read, may_write};
use crate::name::BucketName;
use crate::request::{BucketInfo, EtagStyle};
use crate::roles::Roles;
use crate::subject::Subject;
use crate::system::{BucketRow, System};

/// How to open a vault.
#[derive(Clone, Debug)]
pub struct VaultOptions {
    /// The data folder.
    pub data: PathBuf,
    /// How entity tags are formed.
    pub etag: EtagStyle,
}

/// The reference monitor over one data folder. Cheap to clone: all clones are the same vault.
#[derive(Clone)]
pub struct Vault {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) folder: Folder,
    pub(crate) keystore: Keystore,
    pub(crate) system: System,
    pub(crate) open_buckets: OpenBuckets,
    pub(crate) tally: Arc<Tally>,
    pub(crate) etag: EtagStyle,
    /// Held while buckets are made and deleted, which takes several durable steps.
    pub(crate) changing_buckets: tokio::sync::Mutex<()>,
    pub(crate) closed: AtomicBool,
    /// What puts things in order after the start.
    pub(crate) recovery: Mutex<Option<JoinHandle<()>>>,
    first_start: bool,
}

/// A bucket that the monitor lets a subject use.
pub(crate) struct Granted {
    pub(crate) bucket: Arc<OpenBucket>,
    pub(crate) level: String,
}

impl Vault {
    /// Opens a data folder, or makes one where there is none or an empty one: root key, keystore,
    /// level `default`, system database and the first access key, which is written to
    /// `credentials` there. What an interrupted start or a killed server left is put in order in
    /// the background.
    ///
    /// # Errors
    /// When the folder is in use, foreign, of a newer format or damaged, or can't be written.
    pub async fn open(options: VaultOptions) -> Result<Self> {
        let inner = tokio::task::spawn_blocking(move || Inner::open(&options))
            .await
            .map_err(|_| VaultError::ShuttingDown)??;
        let vault = Self {
            inner: Arc::new(inner),
        };
        vault.start_recovery();
        Ok(vault)
    }

    /// Whether the data folder was made by this opening.
    pub fn first_start(&self) -> bool {
        self.inner.first_start
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        self.inner.folder.path()
    }

    /// Refuses further calls and closes all catalogs. Calls under way end with an error.
    pub async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        self.stop_recovery().await;
        self.inner.open_buckets.close_all().await;
    }

    /// The secret that belongs to an access key, to check a signature with.
    pub fn secret_access_key(&self, access_key_id: &str) -> Option<Zeroizing<String>> {
        self.inner.system.secret_access_key(access_key_id)
    }

    /// Whoever holds an access key.
    pub fn subject(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        self.inner.system.subject(access_key_id)
    }

    /// What has been counted since the vault was opened.
    pub fn counters(&self) -> Counters {
        self.inner.tally.snapshot(self.inner.open_buckets.count())
    }

    /// The bucket, if the subject may read it.
    pub(crate) async fn readable(&self, subject: &Subject, name: &BucketName) -> Result<Granted> {
        let (row, level) = self.known(subject, name)?;
        self.grant(&row, level).await
    }

    /// The bucket, if the subject may write it. One that it may not even read does not exist.
    pub(crate) async fn writable(&self, subject: &Subject, name: &BucketName) -> Result<Granted> {
        let (row, level) = self.known(subject, name)?;
        if !may_write(subject, &level.label) {
            add(&self.inner.tally.denied_count, 1);
            return Err(VaultError::AccessDenied);
        }
        self.grant(&row, level).await
    }

    /// Row and level of a bucket that the subject may know of.
    pub(crate) fn known(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<(Arc<BucketRow>, LevelEntry)> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(VaultError::ShuttingDown);
        }
        let row = self
            .inner
            .system
            .bucket(name)
            .ok_or(VaultError::NoSuchBucket)?;
        let level = self
            .inner
            .keystore
            .level(&row.level_id)
            .ok_or(VaultError::NoSuchBucket)?;
        if !may_read(subject, &level.label) {
            add(&self.inner.tally.denied_count, 1);
            return Err(VaultError::NoSuchBucket);
        }
        Ok((row, level))
    }

    async fn grant(&self, row: &BucketRow, level: LevelEntry) -> Result<Granted> {
        let Inner {
            folder,
            keystore,
            open_buckets,
            ..
        } = &*self.inner;
        let bucket = open_buckets.open(folder, keystore, row.id).await?;
        Ok(Granted {
            bucket,
            level: level.name,
        })
    }
}

pub(crate) fn info(row: &BucketRow, level: LevelEntry) -> BucketInfo {
    let BucketRow {
        id,
        name,
        created_ms,
        ..
    } = row;
    BucketInfo {
        name: name.clone(),
        id: *id,
        level: level.name,
        created_ms: *created_ms,
    }
}

impl Inner {
    fn open(options: &VaultOptions) -> Result<Self> {
        let folder = Folder::open(&options.data)?;
        let keystore = open_keystore(&folder)?;
        refuse_lost_system(&folder, &keystore)?;
        let system = System::open(&folder.system_db(), &keystore.system_key())?;
        let first_start = !system.has_subjects();
        if first_start {
            make_first_subject(&folder, &keystore, &system)?;
        }
        Ok(Self {
            folder,
            keystore,
            system,
            open_buckets: OpenBuckets::default(),
            tally: Arc::default(),
            etag: options.etag,
            changing_buckets: tokio::sync::Mutex::default(),
            closed: AtomicBool::new(false),
            recovery: Mutex::default(),
            first_start,
        })
    }
}

fn open_keystore(folder: &Folder) -> Result<Keystore> {
    let root_source = Box::new(FileRoot::new(folder.root_key()));
    let path = folder.keystore();
    if !path.exists() {
        return Ok(Keystore::create(&path, root_source)?);
    }
    let (keystore, repair) = Keystore::open(&path, root_source)?;
    if repair != Repair::None {
        tracing::warn!(
            ?repair,
            "a copy in the keystore was damaged and has been repaired"
        );
    }
    Ok(keystore)
}

/// A first start that was interrupted has neither buckets nor credentials yet. With either of
/// them, a missing `system.db` has been lost, and a new one would hide what is there.
fn refuse_lost_system(folder: &Folder, keystore: &Keystore) -> Result<()> {
    let is_used = folder.credentials().exists() || !keystore.buckets().is_empty();
    if is_used && !folder.system_db().exists() {
        let path = folder.path().display().to_string();
        return Err(VaultError::SystemMissing { path });
    }
    Ok(())
}

/// Makes the first access key. Its file is written before it counts: a start that is interrupted
/// in between makes another one next time.
fn make_first_subject(folder: &Folder, keystore: &Keystore, system: &System) -> Result<()> {
    let access_key_id = random_access_key_id();
    let secret = random_secret_access_key();
    let text = Zeroizing::new(format!(
        "[default]\naws_access_key_id = {access_key_id}\naws_secret_access_key = {}\n",
        *secret
    ));
    write_private(&folder.credentials(), &text)?;
    let label = keystore
        .levels()
        .into_iter()
        .find(|level| level.name == DEFAULT_LEVEL)
        .ok_or(VaultError::NoSuchLevel)?
        .label;
    let clearance = Clearance::new(label, label).map_err(|_| VaultError::Damaged)?;
    let subject = Subject {
        access_key_id,
        clearance,
        roles: Roles::all(),
    };
    system.add_subject(subject, secret, now_ms())
}

/// The level that every keystore begins with.
pub(crate) const DEFAULT_LEVEL: &str = "default";

/// 20 characters as AWS forms them, of the Base32 alphabet (RFC 4648), beginning with `CF`.
fn random_access_key_id() -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let random: [u8; ACCESS_KEY_ID_CHARS] = coffer_seal::random_bytes();
    let tail = random[2..]
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]));
    "CF".chars().chain(tail).collect()
}

/// 40 characters of Base64 that hold 240 random bits.
fn random_secret_access_key() -> Zeroizing<String> {
    let random: Zeroizing<[u8; SECRET_ACCESS_KEY_CHARS / 4 * 3]> =
        Zeroizing::new(coffer_seal::random_bytes());
    Zeroizing::new(BASE64.encode(*random))
}

/// Now, in milliseconds since 1970.
pub(crate) fn now_ms() -> i64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}
