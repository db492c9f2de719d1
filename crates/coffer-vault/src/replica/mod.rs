//! Sealed copies of the data folder on other stores, kept up while it is served.
//!
//! A task for each copy looks every second whether anything is new, and puts it there in a round:
//! bucket by bucket what was changed in the catalog, and new blobs; then `system.db`, the audit log
//! and an anchor; and last the head that names all of it (`docs/decisions/0053-the-sealed-log.md`).
//! What is below is never older than what holds it, as in a backup. Nothing is opened for it.

use std::sync::Arc;
use std::time::Duration;

use coffer_durable::now_ms;
use coffer_replica::{CopyWriter, KeystoreWriter, ReplicaError};
use coffer_store::CacheStatus;
use tokio_util::sync::CancellationToken;

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::copies::{
    CarriedStatus, Carrier, CopyState, CopyStatus, Entry, Findings, Progress, Readers, Running,
    SyncStatus, Synchronous,
};
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::fence::FenceStatus;
use crate::vault::Vault;

mod blobs;

pub(crate) mod round;

mod catalogs;

mod files;

mod report;

mod missing;

mod fetch;

mod fetch_keystore;

mod restore;

mod removal;

mod renewal;

mod carried;

mod add;

mod task;

mod check;

pub use self::add::NewCopy;
pub use self::check::CopyCheckEvent;
pub use self::report::{RestoreEvent, Restored};
pub use self::restore::{Restore, restore};

pub(crate) use self::fetch::{Work, sync_folders};
pub(crate) use self::fetch_keystore::{KEY_FILES, OPENERS, check_files, read_carried, target};
pub(crate) use self::files::new_file;

use self::round::{Round, records_cursor};

impl Vault {
    /// How all copies stand.
    pub async fn copies(&self, actor: &Actor) -> Result<Vec<CopyStatus>> {
        self.refuse_without(
            actor,
            Role::SystemAdministrator,
            Act::ListCopies,
            &Facts::new(),
        )?;
        if !self.inner.copies.is_readable {
            return Err(CopyError::Registry.into());
        }
        Ok(self.copies_now())
    }

    /// How the cache of a gateway's blobs stands; none of a server that has all of them.
    pub fn cache_now(&self) -> Option<CacheStatus> {
        self.inner.open_buckets.cache_status()
    }

    /// Whether this server is a gateway of an engine, be it that it serves or that it follows.
    pub fn is_gateway(&self) -> bool {
        self.inner.gate.is_gateway()
    }

    /// How it stands, of a server that is fenced by a copy.
    pub fn fence_now(&self) -> Option<FenceStatus> {
        self.inner.gate.fence()
    }

    /// The same, for who watches the server.
    pub fn copies_now(&self) -> Vec<CopyStatus> {
        let copies = &self.inner.copies;
        let entries = copies.registry.current().into_iter();
        entries.map(|entry| self.status(entry)).collect()
    }

    fn status(&self, entry: Entry) -> CopyStatus {
        let cursor = records_cursor(&entry).unwrap_or(entry.cursor);
        let lag_bytes = self.inner.open_buckets.taps.waiting_bytes(cursor);
        let mut status = CopyStatus {
            name: entry.name,
            url: entry.url,
            made_ms: entry.made_ms,
            state: CopyState::Stopped,
            problem: Some("it has not begun".to_owned()),
            passed_count: 0,
            as_of_ms: None,
            // One of which no head was written can't have been.
            was_complete: entry.known.is_none().then_some(false),
            lag_seconds: 0.0,
            lag_bytes,
            put_bytes: 0,
            head: entry.known,
            keep_ms: entry.keep_ms,
            from_ms: None,
            gaps: Vec::new(),
            ahead_ms: 0,
            keystore: entry.keystore.map(|with| CarriedStatus {
                left_out: with.left_out(&self.inner.keystore),
                taken: with.taken.map(|taken| (taken.generation, taken.at_ms)),
                generation: self.inner.keystore.generation(),
                pending_count: with.pending.len(),
                recipients: with.recipients,
            }),
            sync: entry.sync.map(|sync| SyncStatus {
                wait: Duration::from_millis(sync.wait_ms),
                since_ms: sync.since_ms,
                waiting_count: 0,
                in_doubt_count: 0,
            }),
        };
        if let Some(running) = self.inner.copies.running.lock().get(&status.name) {
            running.progress.fill(&mut status, entry.as_of_ms);
            if status.problem.is_none() {
                status.problem = running.carrier.problem();
            }
            if let (Some(sync), Some(synchronous)) = (&mut status.sync, &running.synchronous) {
                *sync = synchronous.status(sync.since_ms);
            }
        }
        status
    }

    /// Keeps a copy up no more. What is there stays; it is remembered that it was made. A system
    /// administrator's act.
    pub async fn remove_copy(&self, actor: &Actor, name: &str) -> Result<()> {
        let (role, act) = (Role::SystemAdministrator, Act::RemoveCopy);
        let facts = Facts::from([("copy", name.to_owned())]);
        self.refuse_without(actor, role, act, &facts)?;
        let kept = "its log is all that it has, and can't be removed from it";
        let kept = self.refuse_in_engine(kept);
        kept.map_err(|error| self.failed(act, actor, &facts, error))?;
        let entry = self.inner.copies.registry.get(name);
        let entry = entry.map_err(|error| self.failed(act, actor, &facts, error))?;
        let this = self.clone();
        let work = async move {
            let copies = &this.inner.copies;
            let _alone = copies.changing.lock().await;
            copies.registry.get(&entry.name)?;
            let stopped = this.stop_copy(&entry.name).await;
            this.inner.open_buckets.taps.unfollow(entry.cursor);
            let removed = this.note_removed(&entry).await;
            // Only now: a start after a stop in between would wait for it again.
            if let (Ok(()), Some(synchronous)) = (&removed, stopped) {
                copies.waited_for.remove(&synchronous);
            }
            removed?;
            this.fence_is_removed(&entry.name);
            this.settle_left().await
        };
        self.act(actor, role, act, facts, work).await
    }

    /// Remembers that a copy is kept up no more, whose task has ended: what is made from now on was
    /// never in it.
    async fn note_removed(&self, entry: &Entry) -> Result<()> {
        // What is just being made or erased counts as there.
        let _changing = self.inner.changing_buckets.lock().await;
        let levels = self.inner.keystore.levels().into_iter();
        let buckets = self.inner.system.buckets_known().into_iter();
        let made = levels.map(|level| level.created_ms);
        let newest_ms = made.chain(buckets.map(|row| row.created_ms)).max();
        let (inner, id) = (self.inner.clone(), entry.id);
        blocking(move || {
            inner.copies.registry.change(|entries| {
                if let Some(found) = entries.iter_mut().find(|found| found.id == id) {
                    (found.removed_ms, found.newest_ms) = (Some(now_ms()), newest_ms);
                }
            })
        })
        .await
    }

    /// By a copy that is kept up no more none tells whether another serves.
    fn fence_is_removed(&self, name: &str) {
        if self.inner.gate.is_fenced_by(name) {
            let problem = "it was removed: start the server without --fenced-by";
            self.inner.gate.not_reached(name, problem.to_owned());
            tracing::warn!(
                copy = name,
                "the copy that fences this server is removed: nothing is changed any more once \
                 --fenced-after has passed. Start the server without --fenced-by"
            );
        }
    }

    /// Has receipts that waited for copies say that these were given up: what lies there then has
    /// the keys.
    async fn settle_left(&self) -> Result<()> {
        // A receipt that an erase has noted as waiting, and not kept yet, is not taken for gone.
        let _changing = self.inner.changing_buckets.lock().await;
        let inner = self.inner.clone();
        blocking(move || {
            let registry = &inner.copies.registry;
            let is_left = |entry: &Entry| {
                let with = entry.keystore.as_ref();
                entry.removed_ms.is_some() && with.is_some_and(|with| !with.pending.is_empty())
            };
            for entry in registry.all().into_iter().filter(is_left) {
                let settled = registry.settle_receipts(entry.id, &inner.system, &inner.keystore)?;
                for receipt in settled {
                    tracing::warn!(
                        copy = entry.name,
                        receipt,
                        "a copy was given up before it took the keystore of an erase: what lies \
                         there has the keys that were destroyed, until it is removed by hand"
                    );
                }
            }
            Ok(())
        })
        .await
    }

    /// Goes on with the copies that there are; with the log of an engine by what took it over.
    pub(crate) async fn start_copies(&self, log: Option<CopyWriter>) {
        let mut log = log;
        if let Err(error) = self.settle_left().await {
            tracing::error!(%error, "receipts of copies that were given up still say pending");
        }
        if log.is_some() {
            let inner = self.inner.clone();
            let found = blocking(move || inner.copies.find_pending(&inner.system)).await;
            if let Err(error) = found {
                tracing::error!(%error, "it is not known which receipts wait for the log");
            }
        }
        if let (false, Some(fence)) = (self.inner.copies.is_readable, self.fence_now()) {
            let problem = CopyError::Registry.to_string();
            self.inner.gate.not_reached(&fence.copy, problem);
        }
        for entry in self.inner.copies.registry.current() {
            self.follow(&entry, log.take()).await;
        }
    }

    /// Has what changes noted, and begins the task.
    async fn follow(&self, entry: &Entry, writer: Option<CopyWriter>) {
        let open = &self.inner.open_buckets;
        open.taps.follow(entry.cursor);
        if let Some(cursor) = records_cursor(entry) {
            open.taps.follow_behind(cursor, entry.cursor);
        }
        for bucket in open.all() {
            // One that is just being closed is opened again by the round.
            let _ = open
                .taps
                .attach(bucket.id, &bucket.catalog, &bucket.blobs)
                .await;
        }
        let progress = Arc::new(Progress::new());
        let readers = Arc::<Readers>::default();
        let findings = Arc::<Findings>::default();
        let carrier = Arc::new(Carrier::new(entry.id));
        let synchronous = entry.sync.map(|sync| {
            let wait = Duration::from_millis(sync.wait_ms);
            let right = self.inner.gate.right();
            let synchronous = Synchronous::new(&entry.name, wait, right);
            if sync.since_ms.is_some() {
                self.inner.copies.waited_for.add(synchronous.clone());
            }
            synchronous
        });
        if let Some(writer) = &writer {
            carrier.begin(KeystoreWriter::new(writer)).await;
        }
        let written = writer.as_ref().map(CopyWriter::end);
        let stop = CancellationToken::new();
        let mut round = Round::new(
            &self.inner,
            entry.clone(),
            progress.clone(),
            readers.clone(),
            findings.clone(),
            carrier.clone(),
            synchronous.clone(),
        );
        if let Some(writer) = &writer
            && let Err(error) = round.goes_on(writer)
        {
            // Nothing is acknowledged without it.
            tracing::error!(%error, copy = %entry.name, "what a log has is not known");
            return;
        }
        let task = tokio::spawn(task::run(round, writer, stop.clone()));
        let running = Running {
            progress,
            readers,
            findings,
            carrier,
            synchronous,
            written,
            stop,
            task,
        };
        self.inner
            .copies
            .running
            .lock()
            .insert(entry.name.clone(), running);
    }

    /// Ends its task; what acknowledgements go on to wait for in vain, if they did.
    async fn stop_copy(&self, name: &str) -> Option<Arc<Synchronous>> {
        let running = self.inner.copies.running.lock().remove(name)?;
        running.stop.cancel();
        let _ = running.task.await;
        running.synchronous
    }

    /// Ends the tasks, each with a last round if that is soon done.
    pub(crate) async fn stop_copies(&self) {
        let running = std::mem::take(&mut *self.inner.copies.running.lock());
        running.values().for_each(|running| running.stop.cancel());
        for running in running.into_values() {
            let _ = running.task.await;
            if let Some(synchronous) = running.synchronous {
                synchronous.give_up();
            }
        }
    }
}

/// What a copy's store, or what lies there, has to do with it.
fn of_copy(error: &VaultError) -> Option<&ReplicaError> {
    match error {
        VaultError::Backup(BackupError::Copy(CopyError::Replica(error))) => Some(error),
        _ => None,
    }
}

/// Whether the copy is not there: not even its record.
fn is_gone(error: &VaultError) -> bool {
    matches!(of_copy(error), Some(ReplicaError::NoCopy))
}

/// Whether its record is not there, or says nothing, and its heads are there.
fn lacks_record(error: &VaultError) -> bool {
    matches!(
        of_copy(error),
        Some(ReplicaError::RecordLost | ReplicaError::RecordUnreadable)
    )
}

/// Whether the store of the copy has no room for what was to be put there.
fn is_full(error: &VaultError) -> bool {
    of_copy(error).is_some_and(ReplicaError::is_full)
}

/// Whether it is this machine that fails, and not the store. A disk that is full still takes what
/// makes it less so.
fn is_of_here(error: &VaultError) -> bool {
    !matches!(
        error,
        VaultError::Backup(_)
            | VaultError::StorageFull
            | VaultError::NoRoomForLog { .. }
            | VaultError::OutOfFiles
            | VaultError::ShuttingDown
    )
}

/// What the vault's errors are to a round: whether it may pass by itself. A disk that is not
/// mounted may come back, and what lies in a copy's place may be put right.
pub(crate) fn is_passing(error: &VaultError) -> bool {
    let Some(of_copy) = of_copy(error) else {
        return true;
    };
    let may_come_back = matches!(of_copy, ReplicaError::NoCopy | ReplicaError::Url { .. });
    may_come_back || lacks_record(error) || of_copy.is_passing()
}
