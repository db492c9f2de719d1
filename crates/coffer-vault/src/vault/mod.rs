//! The vault itself: opening, closing, and what every call needs.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use coffer_durable::now_ms;
use coffer_keys::{KeyFolder, Keystore, SourceSpec};
use coffer_label::Label;
use coffer_policy::{AccountId, ObjectOwnership};
use coffer_seal::{BucketId, SecretKey};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use zeroize::Zeroizing;

use crate::access::{Act, BucketName, Role, Subject, may_know};
use crate::audit::Audit;
use crate::copies::Copies;
use crate::counters::{Counters, Tally, add};
use crate::data_folder::Folder;
use crate::error::{Result, VaultError};
use crate::fence::{ChangeGate, StandbyLink};
use crate::freshness::Freshness;
use crate::gateways::Followers;
use crate::lifecycle::Day;
use crate::open_buckets::{OpenBuckets, UsedBucket};
use crate::system::{BucketRow, LevelTag, LockTime, System};
use crate::transfers::{DataPort, Transfers};

mod counted;

mod key_releases;

mod out_of_use;

mod options;

mod rotation_progress;

mod judge;
mod judged_object;

mod sharing;

mod before_requests;

pub(crate) mod owners;

mod writability;

pub(crate) use self::judged_object::{Found, JudgedObject};
pub use self::options::{EtagStyle, SubjectLimits, VaultOptions};
pub use self::rotation_progress::Rotation;
pub(crate) use self::rotation_progress::Rotations;
pub(crate) use self::writability::Writability;

/// The level that every keystore begins with.
pub(crate) const DEFAULT_LEVEL: &str = "default";

/// The reference monitor over one data folder. Cheap to clone: all clones are the same vault.
#[derive(Clone)]
pub struct Vault {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) keys: KeyFolder,
    pub(crate) keystore: Arc<Keystore>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) system: System,
    pub(crate) freshness: Freshness,
    pub(crate) lock_time: LockTime,
    pub(crate) lock_max_days: u32,
    pub(crate) open_buckets: OpenBuckets,
    pub(crate) transfers: Transfers,
    pub(crate) tally: Arc<Tally>,
    pub(crate) account: AccountId,
    /// Who signs nothing; all of them are cut off, and bounded, together.
    pub(crate) anonymous: Arc<Subject>,
    pub(crate) etag: EtagStyle,
    pub(crate) object_ownership: ObjectOwnership,
    pub(crate) settle_after: Option<Duration>,
    pub(crate) subject_limits: SubjectLimits,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) copies: Copies,
    /// Whether anything may be changed.
    pub(crate) gate: Arc<ChangeGate>,
    pub(crate) standby: Option<StandbyLink>,
    /// The gateways that follow, and may answer reads.
    pub(crate) followers: Followers,
    pub(crate) started: Instant,
    /// Held while buckets are made and deleted, which takes several durable steps.
    pub(crate) changing_buckets: tokio::sync::Mutex<()>,
    /// Told when the times at which access keys expire may have changed.
    pub(crate) expiries_changed: Arc<Notify>,
    pub(crate) closed: AtomicBool,
    /// What puts things in order after the start.
    pub(crate) recovery: Mutex<Option<JoinHandle<()>>>,
    /// What holds every few seconds how far everything has come.
    pub(crate) holding: Mutex<Option<JoinHandle<()>>>,
    /// Rotations rewrap and destroy keys one after the other, and beside no backup.
    pub(crate) one_rotation: tokio::sync::Mutex<()>,
    pub(crate) rotations: Mutex<Rotations>,
    pub(crate) rotation_tasks: Mutex<Vec<JoinHandle<()>>>,
    pub(crate) first_start: bool,
    pub(crate) writability: Writability,
    /// The last to go: the process that gets its lock next finds all files closed.
    pub(crate) folder: Folder,
    /// Told of the steps of a rotation, so that a test can look at the disk between them.
    #[cfg(test)]
    pub(crate) probe: Mutex<Option<Probe>>,
}

/// What runs by lifecycle rules.
pub(crate) struct Lifecycle {
    pub(crate) day: Day,
    pub(crate) abort_uploads_days: Option<NonZeroU32>,
    /// Held while a batch is ended by rules, and while rules are changed.
    pub(crate) step: tokio::sync::Mutex<()>,
    pub(crate) task: Mutex<Option<JoinHandle<()>>>,
    /// What the last run of each bucket could not end, by the rules' ids: what stays so is not
    /// recorded again.
    pub(crate) kept: Mutex<BTreeMap<BucketId, BTreeMap<String, Kept>>>,
}

/// How many versions that are due locks keep, and how many delete markers a quota did not allow.
pub(crate) type Kept = (u64, u64);

impl Lifecycle {
    pub(crate) fn new(options: &VaultOptions) -> Self {
        Self {
            day: options.lifecycle_day,
            abort_uploads_days: options.abort_uploads_days,
            step: tokio::sync::Mutex::default(),
            task: Mutex::default(),
            kept: Mutex::default(),
        }
    }
}

/// A bucket that is open.
pub(crate) struct Granted {
    pub(crate) bucket: UsedBucket,
    pub(crate) level: String,
}

impl Vault {
    /// Whether the data folder was made by this opening.
    pub fn first_start(&self) -> bool {
        self.inner.first_start
    }

    /// Whether another folder has the data folder's name now. Whatever is opened from then on is
    /// that one's: the process is to end at once.
    pub fn folder_is_another(&self) -> bool {
        self.inner.folder.is_another()
    }

    /// Has `end` called by whatever is about to open, write or make something by path and finds
    /// that, before it does.
    pub fn when_folder_is_another(&self, end: impl Fn() + Send + Sync + 'static) {
        self.inner.folder.when_another(end);
    }

    /// Where the root key is.
    pub fn root_source(&self) -> Option<SourceSpec> {
        self.inner.keys.source()
    }

    /// The id of the account that the server is: 12 digits, the same for ever.
    pub fn account_id(&self) -> &AccountId {
        &self.inner.account
    }

    /// Refuses changes, where none may be made: on a standby, and where a copy fences the server
    /// off.
    ///
    /// # Errors
    /// [`CopyError`](crate::CopyError): `Standby`, `FencedOff`.
    pub fn check_changes(&self) -> Result<()> {
        self.inner.gate.check()
    }

    /// Refuses reads as well, where another gateway of an engine may serve.
    ///
    /// # Errors
    /// [`CopyError::LeaseEnded`](crate::CopyError).
    pub fn check_serves(&self) -> Result<()> {
        self.inner.gate.check_right()
    }

    /// By which gateways of one engine know each other.
    pub fn gateway_key(&self) -> SecretKey {
        let key = self.inner.keystore.system_key();
        key.derive(b"coffer gateways v1\0")
    }

    /// What the key of the authority follows from that signs the certificates of all gateways.
    pub fn gateway_authority_key(&self) -> SecretKey {
        self.gateway_key().derive(b"coffer gateway authority v1\0")
    }

    /// The data folder.
    pub fn data(&self) -> &Path {
        self.inner.folder.path()
    }

    /// Refuses further calls and closes all catalogs. Calls under way end with an error.
    pub async fn close(&self) {
        self.inner.closed.store(true, Ordering::Release);
        if self.inner.gate.is_standby() {
            // Nothing of it is kept.
            self.inner.open_buckets.close_all().await;
            self.close_audit().await;
            return;
        }
        self.inner.transfers.close();
        self.stop_recovery().await;
        self.stop_lifecycle().await;
        self.stop_rotations().await;
        self.stop_copies().await;
        self.stop_holding().await;
        self.inner.open_buckets.close_all().await;
        self.settle_key_releases().await;
        self.close_audit().await;
        self.hold_last().await;
        self.inner.folder.end_serving();
    }

    /// The secret that belongs to an access key, to check a signature with.
    pub fn secret_access_key(&self, access_key_id: &str) -> Option<Zeroizing<String>> {
        self.inner.system.secret_access_key(access_key_id, now_ms)
    }

    /// The id of the bucket of this name, if there is one.
    pub fn bucket_id(&self, name: &str) -> Option<BucketId> {
        Some(self.inner.system.bucket_named(name)?.id)
    }

    /// The holder of an access key that is neither disabled nor expired.
    pub fn subject(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        self.inner.system.subject(access_key_id, now_ms)
    }

    /// Whether an access key counts is not known: its last change is in doubt.
    pub fn is_access_key_in_doubt(&self, access_key_id: &str) -> bool {
        self.inner.system.is_key_in_doubt(access_key_id)
    }

    /// Whether there is this access key, be it that it may not be used.
    pub fn has_access_key(&self, access_key_id: &str) -> bool {
        self.inner.system.subject_of_key(access_key_id).is_some()
    }

    /// What has been counted since the vault was opened.
    pub fn counters(&self) -> Counters {
        let Inner {
            tally,
            open_buckets,
            transfers,
            ..
        } = &*self.inner;
        let uploads = open_buckets.uploads.count();
        tally.snapshot(open_buckets.count(), uploads, transfers.count())
    }

    /// Says where clients find the data port; until then there is no sealed transfer.
    pub fn offer_transfers(&self, port: DataPort) {
        self.inner.transfers.offer(port);
    }

    /// Has what comes to the data port be stored without being opened, and verified later.
    pub fn verify_transfers_later(&self) {
        self.inner.transfers.open_later();
    }

    /// Where clients find the data port, if there is one.
    pub fn data_port(&self) -> Option<&DataPort> {
        self.inner.transfers.offered()
    }

    /// Counts and notes what the monitor refuses.
    pub(crate) fn refused(&self, subject: &Subject, act: Act, bucket: &BucketName) {
        add(&self.inner.tally.denied_count, 1);
        self.inner.audit.note_denied(act, subject, bucket.as_str());
    }

    /// A bucket that the subject may know of. One who uses no data knows of none: that is said
    /// before the bucket is looked for, so it tells nothing of the bucket.
    pub(crate) fn known(&self, subject: &Subject, name: &BucketName) -> Result<Arc<BucketRow>> {
        if self.inner.closed.load(Ordering::Acquire) {
            return Err(VaultError::ShuttingDown);
        }
        self.inner.gate.check_right()?;
        subject.cutoff.note_caller()?;
        if !subject.roles.has(Role::DataUser) {
            self.refused(subject, Act::UseBucket, name);
            return Err(VaultError::AccessDenied);
        }
        let Some(row) = self.inner.system.bucket_or_doubt(name) else {
            // All may watch the counter: it tells a hidden bucket from none no more than the
            // answer does.
            add(&self.inner.tally.denied_count, 1);
            let audit = &self.inner.audit;
            audit.pass_over(Act::UseBucket, subject, name.as_str());
            return Err(VaultError::NoSuchBucket);
        };
        self.check_level(subject, &row)?;
        if !may_know(subject, row.id, self.inner.label(&row)?)
            && !self.is_shared_with(subject, &row)?
        {
            self.refused(subject, Act::UseBucket, name);
            return Err(VaultError::NoSuchBucket);
        }
        if self.inner.system.is_in_doubt(&row) {
            return Err(VaultError::BucketInDoubt);
        }
        Ok(row)
    }

    /// Refuses a bucket of a level that is gone: by no label is told who may know of it, so those
    /// are told who look after the server.
    fn check_level(&self, subject: &Subject, row: &BucketRow) -> Result<()> {
        if subject.roles.look_after() && self.inner.is_level_gone(row) {
            return Err(self.inner.without_key(row));
        }
        Ok(())
    }

    pub(crate) async fn grant(&self, row: &BucketRow) -> Result<Granted> {
        let Inner {
            folder,
            keystore,
            open_buckets,
            ..
        } = &*self.inner;
        let opened = open_buckets.open(folder, keystore, row.id).await;
        // An erase or a deletion may have begun since the row was looked up: what they had not met
        // was not opened, or is not given out.
        if row.is_out_of_use() {
            return Err(self.inner.out_of_use(row, None).await);
        }
        if opened.is_err() {
            self.inner.check_key(row)?;
        }
        let bucket = opened.map_err(|error| error.of_bucket(row.name.as_str(), row.id))?;
        bucket.note_caller()?;
        Ok(Granted {
            bucket,
            level: self.inner.tag(row)?.name.clone(),
        })
    }
}

#[cfg(test)]
pub(crate) type Probe = Box<dyn Fn(&'static str) + Send>;

impl Inner {
    /// What never changes of a bucket's level: looked up in the keystore once, for the keystore
    /// may be busy with a change that takes a while.
    pub(crate) fn tag<'a>(&self, row: &'a BucketRow) -> Result<&'a LevelTag> {
        if let Some(tag) = row.level.get() {
            return Ok(tag);
        }
        let level = self.keystore.level(row.level_id);
        let level = level.ok_or(VaultError::NoSuchBucket)?;
        Ok(row.level.get_or_init(|| LevelTag::of(level)))
    }

    /// A label as people are told it: by the names of the levels that have it, if any have.
    pub(crate) fn label_told(&self, label: &Label) -> String {
        let levels = self.keystore.levels().into_iter();
        let named = levels.filter(|level| level.label == *label);
        let names: Vec<String> = named.map(|level| level.name).collect();
        if names.is_empty() {
            label.to_string()
        } else {
            names.join(" or ")
        }
    }

    /// The label of a bucket's level.
    pub(crate) fn label<'a>(&self, row: &'a BucketRow) -> Result<&'a Label> {
        Ok(&self.tag(row)?.label)
    }

    #[cfg(test)]
    pub(crate) fn at(&self, step: &'static str) {
        if let Some(probe) = &*self.probe.lock() {
            probe(step);
        }
    }

    #[cfg(not(test))]
    pub(crate) fn at(&self, _: &'static str) {}
}
