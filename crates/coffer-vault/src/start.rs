//! What a start finds in the data folder, what it refuses, and what it makes where there is nothing
//! yet.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use coffer_durable::now_ms;
use coffer_keys::{KeyFolder, Keystore, Repair};
use coffer_label::Clearance;
use coffer_seal::SubjectId;
use coffer_store::StoreError;
use parking_lot::Mutex;
use zeroize::Zeroizing;

use crate::access::{NewAccessKey, Roles, Subject, account_id};
use crate::audit::Audit;
use crate::backup::{BackupRecord, forget, note_origin, refuse_gaps, unrecorded_promotion};
use crate::copies::{Copies, EngineSeat};
use crate::counters::Tally;
use crate::data_folder::{Folder, write_private};
use crate::engine::refuse_cache;
use crate::erase::{complete_interrupted, hide_ordered, ordered_to_erase};
use crate::error::{BackupError, Result, Rollback, RollbackOf, VaultError, listed};
use crate::fence::ChangeGate;
use crate::freshness::Freshness;
use crate::gateways::Followers;
use crate::limits::READS_LAST;
use crate::open_buckets::{OpenBuckets, open_buckets_max};
use crate::quotas::QuotaOf;
use crate::system::{FenceNote, LockTime, System};
use crate::transfers::Transfers;
use crate::vault::{DEFAULT_LEVEL, Inner, Lifecycle, Vault, VaultOptions};

mod look;

use self::look::look;

/// The name of the subject that the first start makes; it has every role.
const FIRST_SUBJECT: &str = "first";

impl Vault {
    /// Opens a data folder, or makes one where there is none or an empty one: root key, keystore,
    /// level `default`, system database and the first access key, which is written to
    /// `credentials` there. What an interrupted start or a killed server left is put in order in
    /// the background.
    ///
    /// # Errors
    /// When the folder is in use, foreign, of a newer format or damaged, or can't be written.
    pub async fn open(options: VaultOptions) -> Result<Self> {
        let engine = options.engine.clone();
        let inner = tokio::task::spawn_blocking(move || Inner::open(&options))
            .await
            .map_err(|_| VaultError::ShuttingDown)??;
        let vault = Self {
            inner: Arc::new(inner),
        };
        if vault.inner.gate.is_standby() {
            vault.watch_expiries();
            return Ok(vault);
        }
        vault.start_recovery();
        vault.watch_expiries();
        vault.watch_marks();
        vault.start_audit_clock();
        vault.start_holding();
        vault.resume_rotations();
        let writer = engine.as_ref().and_then(EngineSeat::writer);
        vault.start_copies(writer).await;
        vault.found_engine(engine.as_ref()).await?;
        Ok(vault)
    }
}

impl Inner {
    fn open(options: &VaultOptions) -> Result<Self> {
        let copy = BackupRecord::read(&options.data)?.map(|copy| copy.as_rollback());
        if let Some(copy) = copy.clone().filter(|_| !options.accept_rollback) {
            return Err(VaultError::RolledBack { found: vec![copy] });
        }
        if options.engine.is_none() && options.standby.is_none() {
            refuse_cache(&options.data)?;
        }
        let folder = Folder::open(&options.data)?;
        let is_copied_live = folder.was_copied_live() && !options.accept_rollback;
        let path = folder.path().to_owned();
        let opened = Self::open_folder(folder, copy, options);
        opened.map_err(|error| {
            if is_copied_live {
                live_copy_told(error, &path)
            } else {
                error
            }
        })
    }

    fn open_folder(folder: Folder, copy: Option<Rollback>, options: &VaultOptions) -> Result<Self> {
        let keys = KeyFolder::new(folder.path()).accepting_rollback(options.accept_rollback);
        let is_standby = options.standby.is_some();
        let keystore = Arc::new(open_keystore(&keys, options)?);
        let system = open_system(&folder, &keystore)?;
        let first_start = !system.has_subjects();
        Copies::warn_of_unknown(copy.as_ref());
        let copies = Copies::open(&folder, &keystore, options.engine.as_ref())?;
        let put_in_order = if is_standby {
            open_state(&folder, &keystore, &system)
        } else {
            put_in_order((&folder, &copies), &keystore, &system, copy, options)
        };
        let (freshness, audit) =
            put_in_order.map_err(|error| damage_told(error, &folder, &system))?;
        if !is_standby && let Err(error) = freshness.begin(&system, &audit) {
            tracing::error!(%error, "how new the data is can't be written down for now");
        }
        let lock_time = LockTime::open(&system, now_ms());
        let (lock_time, jump) = lock_time.map_err(|error| damage_told(error, &folder, &system))?;
        if let Some(jump) = jump {
            audit.note_lock_time(jump);
        }
        let tally = Arc::<Tally>::default();
        let commits = freshness.commits.clone();
        let gate = Arc::new(gate_of(options, &copies, &system)?);
        let open_buckets = OpenBuckets::new(open_buckets_max(), tally.clone(), commits);
        let open_buckets = open_buckets.gated_by(gate.clone(), options.cache.clone());
        let placed = place_buckets(&open_buckets, &system);
        placed.map_err(|error| damage_told(error, &folder, &system))?;
        folder.begin_serving();
        Ok(Self {
            account: account_id(keystore.id()),
            audit: Arc::new(audit),
            folder,
            keys,
            keystore,
            system,
            open_buckets,
            transfers: Transfers::default(),
            freshness,
            lock_time,
            lock_max_days: options.lock_max_days,
            tally,
            anonymous: Arc::new(Subject::anonymous()),
            etag: options.etag,
            object_ownership: options.object_ownership,
            settle_after: options.settle_after,
            subject_limits: options.subject_limits,
            lifecycle: Lifecycle::new(options),
            copies,
            gate,
            standby: options.standby.clone(),
            followers: Followers::new(options.engine.is_some()),
            started: Instant::now(),
            changing_buckets: tokio::sync::Mutex::default(),
            expiries_changed: Arc::default(),
            closed: AtomicBool::new(false),
            recovery: Mutex::default(),
            holding: Mutex::default(),
            one_rotation: tokio::sync::Mutex::default(),
            rotations: Mutex::default(),
            rotation_tasks: Mutex::default(),
            first_start,
            writability: Default::default(),
            #[cfg(test)]
            probe: Mutex::default(),
        })
    }
}

/// Says before any bucket is opened which are out of use, and in which sums each counts.
fn place_buckets(open_buckets: &OpenBuckets, system: &System) -> Result<()> {
    hide_ordered(system, open_buckets)?;
    count_by_quotas(open_buckets, system)
}

/// What each bucket holds is read when it is opened; here is said in which sums it counts.
fn count_by_quotas(open_buckets: &OpenBuckets, system: &System) -> Result<()> {
    let ledger = &open_buckets.quotas;
    for row in system.buckets() {
        ledger.place(row.id, row.level_id, row.made_by.as_deref());
    }
    for (of, quota) in system.quotas()? {
        // Earlier versions kept the quota of a subject that was deleted.
        let is_gone = |id| system.subject_of_id(id).is_none();
        if !matches!(of, QuotaOf::Subject(id) if is_gone(id)) {
            ledger.set(of, Some(quota));
        }
    }
    Ok(())
}

/// Opens a state of a standby, of which the head of the copy tells that it is whole and of one
/// moment: what the keystore holds may be newer, for it comes first.
fn open_state(
    folder: &Folder,
    keystore: &Arc<Keystore>,
    system: &System,
) -> Result<(Freshness, Audit)> {
    let freshness = Freshness::open(folder, keystore.clone())?;
    let audit = Audit::open(folder.audit(), keystore.clone(), system, (None, false))?;
    Ok((freshness, audit))
}

/// What keeps this server from changing anything, as it is started, and as was noted before.
fn gate_of(options: &VaultOptions, copies: &Copies, system: &System) -> Result<ChangeGate> {
    let gate = ChangeGate::new(options.standby.as_ref(), options.fenced_by.clone());
    if let Some(FenceNote { copy, why }) = copies.fenced_off(system)? {
        gate.ended(&copy, why);
    }
    Ok(gate.by_right(options.engine.as_ref().map(EngineSeat::right)))
}

/// Looks at what there is, makes the first subject where there is none, and completes what was
/// interrupted.
fn put_in_order(
    (folder, copies): (&Folder, &Copies),
    keystore: &Arc<Keystore>,
    system: &System,
    copy: Option<Rollback>,
    options: &VaultOptions,
) -> Result<(Freshness, Audit)> {
    let fenced_by = options.fenced_by.as_ref();
    if copy.is_some() || options.engine.is_some() {
        // It is of the server that this was copied from.
        system.forget_fence()?;
    }
    copies.check_fenced_off(system, fenced_by, options.ends_fence)?;
    copies.check_fence(system, fenced_by)?;
    let accepts_rollback = options.accept_rollback;
    let freshness = Freshness::open(folder, keystore.clone())?;
    if options.engine.is_some() {
        freshness.follow_log();
    }
    let mut found = look(folder, keystore, system, &freshness, accepts_rollback)?;
    if folder.was_copied_live() && !accepts_rollback && !folder.is_cache() {
        refuse_gaps(folder, keystore, system)?;
    }
    let is_copy = copy.is_some();
    found.extend(copy);
    // Where the last subject was deleted, it stays deleted: the local socket makes others.
    if !system.has_subjects() && system.commit_count()? == 0 {
        make_first_subject(folder, keystore, system)?;
    }
    let known = freshness.known_record(system)?;
    let record = BackupRecord::read(folder.path())?.filter(|_| is_copy);
    let promotion = record.as_ref();
    let promotion = promotion.and_then(|record| unrecorded_promotion(record, folder, keystore));
    let is_rolled_back = found.iter().any(|one| one.of == RollbackOf::Audit);
    let known = (known, is_rolled_back);
    let audit = Audit::open(folder.audit(), keystore.clone(), system, known)?;
    if let Some(event) = promotion {
        let log = audit.log_or_open()?;
        log.append(event).map_err(VaultError::AuditUnavailable)?;
    }
    if !found.is_empty() {
        let ordered = ordered_to_erase(system)?;
        freshness.accept(&found, folder, system, &audit, ordered)?;
    }
    system.doubt_found(|id| folder.has_catalog(id))?;
    note_origin(record.as_ref(), folder, (system, keystore))?;
    if is_copy {
        // What a standby had beside, if it is one that was promoted.
        let _ = std::fs::remove_dir_all(folder.standby());
        forget(folder.path())?;
    }
    let has_erased = complete_interrupted(system, keystore, copies, &audit)?;
    if has_erased && options.engine.is_some() {
        // Before anyone is told of it: what the gateway that served before has let others answer
        // by what was erased is over then.
        std::thread::sleep(READS_LAST);
    }
    Ok((freshness, audit))
}

fn open_keystore(keys: &KeyFolder, options: &VaultOptions) -> Result<Keystore> {
    let (source, secrets) = (options.source.as_ref(), &options.secrets);
    if options.standby.is_some() {
        // What the source holds is the original's to change.
        return Ok(keys.open_read_only(source, secrets)?);
    }
    if !keys.keystore().exists() {
        return Ok(keys.create(source, secrets)?);
    }
    let (keystore, repair) = keys.open(source, secrets)?;
    if repair != Repair::None {
        tracing::warn!(
            ?repair,
            "a copy in the keystore was damaged and has been repaired"
        );
    }
    Ok(keystore)
}

/// Opens `system.db`, or makes it for a keystore that is not in use yet. A first start that was
/// interrupted has neither buckets nor credentials yet. With either of them, a missing `system.db`
/// has been lost, and a new one would hide what is there.
fn open_system(folder: &Folder, keystore: &Keystore) -> Result<System> {
    let path = folder.system_db();
    let is_used = folder.credentials().exists() || !keystore.buckets().is_empty();
    if is_used && !path.exists() {
        let path = folder.path().display().to_string();
        return Err(VaultError::SystemMissing { path });
    }
    let unreadable = |error| match error {
        VaultError::Store(StoreError::NewerFormat { found, known }) => VaultError::NewerSystem {
            path: path.display().to_string(),
            found,
            known,
        },
        VaultError::Store(StoreError::Foreign) => system_damaged(folder, Vec::new()),
        VaultError::Damaged => {
            let places = System::damaged_pages(&path, &keystore.system_key());
            system_damaged(folder, places.unwrap_or_default())
        }
        VaultError::NoRoomForLog { needed_bytes, .. } => VaultError::NoRoomForLog {
            of: path.display().to_string(),
            needed_bytes,
        },
        other => other,
    };
    System::open(&path, &keystore.system_key()).map_err(unreadable)
}

fn system_damaged(folder: &Folder, places: Vec<String>) -> VaultError {
    let path = folder.system_db().display().to_string();
    let places = if places.is_empty() {
        String::new()
    } else {
        format!(" ({})", places.join("; "))
    };
    VaultError::SystemDamaged { path, places }
}

/// Says of a folder that was copied while a server ran on it why it does not fit together.
fn live_copy_told(error: VaultError, path: &Path) -> VaultError {
    let problem = match error {
        VaultError::RolledBack { found } => listed(&found),
        VaultError::SystemLogDamaged { .. } => "the log of system.db is not whole".to_owned(),
        VaultError::SystemDamaged { .. } | VaultError::Damaged => {
            "system.db is not of one moment".to_owned()
        }
        VaultError::SystemMissing { .. } => "system.db is missing".to_owned(),
        other => return other,
    };
    let path = path.display().to_string();
    BackupError::NoConsistentCopy { path, problem }.into()
}

/// Says that it is `system.db` where a start met damage there.
fn damage_told(error: VaultError, folder: &Folder, system: &System) -> VaultError {
    match error {
        VaultError::Damaged => match system.find_damage() {
            Ok(places) if places.is_empty() => VaultError::Damaged,
            places => system_damaged(folder, places.unwrap_or_default()),
        },
        other => other,
    }
}

/// Makes the first access key. Its file is written before it counts: a start that is interrupted
/// in between makes another one next time.
fn make_first_subject(folder: &Folder, keystore: &Keystore, system: &System) -> Result<()> {
    let created_ms = now_ms();
    let first = NewAccessKey::random(None, created_ms);
    let text = Zeroizing::new(format!(
        "[default]\naws_access_key_id = {}\naws_secret_access_key = {}\n",
        first.key.id, *first.secret
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
        id: SubjectId::random(),
        name: FIRST_SUBJECT.into(),
        access_key: None,
        clearance,
        is_trusted: false,
        mark: Arc::default(),
        roles: Roles::all(),
        grants: None,
        is_disabled: false,
        expires_ms: None,
        created_ms,
        cutoff: Arc::default(),
        asked: None,
    };
    system.add_subject(subject, first).map(drop)
}

#[cfg(test)]
mod tests;
