//! Sealed copies of the data folder on other stores, kept up while it is served.
//!
//! A task for each copy looks every second whether anything is new, and puts it there in a round:
//! bucket by bucket what was changed in the catalog, and new blobs; then `system.db`, the audit log
//! and an anchor; and last the head that names all of it (`docs/decisions/0053-the-sealed-log.md`).
//! What is below is never older than what holds it, as in a backup. Nothing is opened for it.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;

use coffer_durable::now_ms;
use coffer_replica::limits::KEEP_MAX_MS;
use coffer_replica::{Copy, CopyRecord, CopyWriter, Place, ReplicaError};
use tokio_util::sync::CancellationToken;

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::copies::{CopyState, CopyStatus, Entry, Findings, Progress, Running};
use crate::data_folder::failed;
use crate::error::{CopyError, Result, VaultError};
use crate::limits::COPY_KEEP_MS;
use crate::vault::Vault;

mod round;

mod catalogs;

mod files;

mod removal;

mod renewal;

mod task;

mod blobs;

mod check;

mod report;

mod missing;

mod fetch;

mod restore;

pub use self::check::CopyCheckEvent;
pub use self::report::RestoreEvent;
pub use self::restore::{Restore, restore};

use self::round::Round;

impl Vault {
    /// Makes a copy at this URL, which is kept up from now on. A system administrator's act.
    ///
    /// # Errors
    /// [`CopyError`], when there is one of this name, or none can be made there.
    ///
    /// What was can be restored for `keep_ms`, or for as long as [`COPY_KEEP_MS`] says.
    pub async fn add_copy(
        &self,
        actor: &Actor,
        name: &str,
        url: &str,
        keep_ms: Option<i64>,
    ) -> Result<()> {
        let (role, act) = (Role::SystemAdministrator, Act::AddCopy);
        let keep_ms = keep_ms.unwrap_or(COPY_KEEP_MS);
        let facts = Facts::from([
            ("copy", name.to_owned()),
            ("url", url.to_owned()),
            ("keep_seconds", (keep_ms / 1_000).to_string()),
        ]);
        self.refuse_without(actor, role, act, &facts)?;
        let copies = &self.inner.copies;
        let prepared = copies.registry.cursor_for(name);
        let prepared = prepared.and_then(|cursor| Ok((cursor, Place::parse(url)?)));
        let prepared = prepared.and_then(|(cursor, place)| {
            check_place(&place, actor, self.inner.folder.path())?;
            if !(0..=KEEP_MAX_MS).contains(&keep_ms) {
                return Err(VaultError::Invalid {
                    what: "a copy keeps what was for ten years at most",
                });
            }
            Ok((cursor, place))
        });
        let (cursor, place) = prepared.map_err(|error| self.failed(act, actor, &facts, error))?;
        let (this, name) = (self.clone(), name.to_owned());
        let work = async move {
            let copies = &this.inner.copies;
            let _alone = copies.changing.lock().await;
            if copies.registry.cursor_for(&name)? != cursor {
                return Err(CopyError::Exists { name }.into());
            }
            let record = CopyRecord::new(this.inner.keystore.id());
            let url = place.url().to_owned();
            let store = blocking(move || Ok(place.open(true)?)).await?;
            let key = this.inner.keystore.system_key();
            let copy = Copy::new(store, record.copy, &key);
            let writer = CopyWriter::begin(copy, &record).await?;
            let entry = Entry {
                name,
                url,
                id: record.copy,
                cursor,
                made_ms: now_ms(),
                removed_ms: None,
                known: Some(writer.known().clone()),
                keep_ms,
                rested: None,
            };
            let (inner, added) = (this.inner.clone(), entry.clone());
            blocking(move || inner.copies.registry.change(|entries| entries.push(added))).await?;
            this.follow(&entry, Some(writer)).await;
            Ok(())
        };
        self.act(actor, role, act, facts, work).await
    }

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

    /// The same, for who watches the server.
    pub fn copies_now(&self) -> Vec<CopyStatus> {
        let copies = &self.inner.copies;
        let entries = copies.registry.current();
        entries
            .into_iter()
            .map(|entry| self.status(entry))
            .collect()
    }

    fn status(&self, entry: Entry) -> CopyStatus {
        let lag_bytes = self.inner.open_buckets.taps.waiting_bytes(entry.cursor);
        let mut status = CopyStatus {
            name: entry.name,
            url: entry.url,
            made_ms: entry.made_ms,
            state: CopyState::Stopped,
            problem: Some("it has not begun".to_owned()),
            as_of_ms: None,
            lag_seconds: 0.0,
            lag_bytes,
            put_bytes: 0,
            head: entry.known,
            keep_ms: entry.keep_ms,
            from_ms: None,
            gaps: Vec::new(),
        };
        if let Some(running) = self.inner.copies.running.lock().get(&status.name) {
            running.progress.fill(&mut status);
        }
        status
    }

    /// Keeps a copy up no more. What is there stays; it is remembered that it was made. A system
    /// administrator's act.
    pub async fn remove_copy(&self, actor: &Actor, name: &str) -> Result<()> {
        let (role, act) = (Role::SystemAdministrator, Act::RemoveCopy);
        let facts = Facts::from([("copy", name.to_owned())]);
        self.refuse_without(actor, role, act, &facts)?;
        let entry = self.inner.copies.registry.get(name);
        let entry = entry.map_err(|error| self.failed(act, actor, &facts, error))?;
        let this = self.clone();
        let work = async move {
            let copies = &this.inner.copies;
            let _alone = copies.changing.lock().await;
            copies.registry.get(&entry.name)?;
            this.stop_copy(&entry.name).await;
            this.inner.open_buckets.taps.unfollow(entry.cursor);
            let inner = this.inner.clone();
            blocking(move || {
                inner.copies.registry.change(|entries| {
                    let found = entries.iter_mut().find(|found| found.id == entry.id);
                    if let Some(found) = found {
                        found.removed_ms = Some(now_ms());
                    }
                })
            })
            .await
        };
        self.act(actor, role, act, facts, work).await
    }

    /// Goes on with the copies that there are.
    pub(crate) async fn start_copies(&self) {
        for entry in self.inner.copies.registry.current() {
            self.follow(&entry, None).await;
        }
    }

    /// Has what changes noted, and begins the task.
    async fn follow(&self, entry: &Entry, writer: Option<CopyWriter>) {
        let open = &self.inner.open_buckets;
        open.taps.follow(entry.cursor);
        for bucket in open.all() {
            // One that is just being closed is opened again by the round.
            let _ = open
                .taps
                .attach(bucket.id, &bucket.catalog, &bucket.blobs)
                .await;
        }
        let progress = Arc::new(Progress::new());
        let readers = Arc::<AtomicUsize>::default();
        let findings = Arc::<Findings>::default();
        let stop = CancellationToken::new();
        let round = Round::new(
            &self.inner,
            entry.clone(),
            progress.clone(),
            readers.clone(),
            findings.clone(),
        );
        let task = tokio::spawn(task::run(round, writer, stop.clone()));
        let running = Running {
            progress,
            readers,
            findings,
            stop,
            task,
        };
        self.inner
            .copies
            .running
            .lock()
            .insert(entry.name.clone(), running);
    }

    async fn stop_copy(&self, name: &str) {
        let running = self.inner.copies.running.lock().remove(name);
        if let Some(running) = running {
            running.stop.cancel();
            let _ = running.task.await;
        }
    }

    /// Ends the tasks, each with a last round if that is soon done.
    pub(crate) async fn stop_copies(&self) {
        let running = std::mem::take(&mut *self.inner.copies.running.lock());
        running.values().for_each(|running| running.stop.cancel());
        for running in running.into_values() {
            let _ = running.task.await;
        }
    }
}

/// Whether a copy may be made there by this one. Nothing is made for it.
fn check_place(place: &Place, actor: &Actor, data: &Path) -> Result<()> {
    // Who signs in from elsewhere may be no user of this machine.
    if place.names_files() && !matches!(actor, Actor::Local { .. }) {
        return Err(VaultError::Invalid {
            what: "a place that names files of the server's machine (file://, `ca`, \
                   `credentials`) can only be chosen there, at the socket in its data folder",
        });
    }
    let Some(folder) = place.folder() else {
        return Ok(());
    };
    let data = data.canonicalize().map_err(failed("find", data))?;
    // What is not there yet is made below the nearest that is.
    let is_inside = folder.ancestors().find_map(|above| {
        let found = above.canonicalize().ok()?;
        Some(found.starts_with(&data) || above == folder && data.starts_with(&found))
    });
    if is_inside == Some(true) {
        return Err(VaultError::Invalid {
            what: "a copy can't be made inside the data folder, nor in a folder that holds it: \
                   choose a folder of another disk",
        });
    }
    Ok(())
}

/// Whether the copy is not there: not even its record.
fn is_gone(error: &VaultError) -> bool {
    let replica = match error {
        VaultError::Backup(crate::error::BackupError::Copy(CopyError::Replica(error))) => error,
        _ => return false,
    };
    matches!(replica, ReplicaError::NoCopy)
}

/// What the vault's errors are to a round: whether it may pass by itself.
fn is_passing(error: &VaultError) -> bool {
    match error {
        VaultError::Backup(crate::error::BackupError::Copy(CopyError::Replica(error))) => {
            // A disk that is not mounted may come back.
            error.is_passing() || matches!(error, ReplicaError::NoCopy | ReplicaError::Url { .. })
        }
        _ => true,
    }
}
