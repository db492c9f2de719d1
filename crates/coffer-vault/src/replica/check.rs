//! Reading a copy back: its chain, every page, every chunk. The original is not touched.

use std::fs;
use std::ops::RangeInclusive;
use std::path::PathBuf;
use std::sync::Arc;

use coffer_durable::{now_ms, rfc3339};
use coffer_keys::CarriedKeystore;
use coffer_replica::{Copy, CopyReader, FoundKeystore, KnownHead, Place};
use coffer_seal::{BucketId, KeystoreId};
use futures::Stream;
use futures::stream::poll_fn;
use tokio::sync::mpsc;

use super::files::SCRATCH;
use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::copies::{Findings, Progress, Reading, ahead_ms};
use crate::error::{BackupError, CopyError, Result};
use crate::limits::{BACKUP_EVENTS_WAITING, COPY_ROTATED_LOOKS};
use crate::vault::Vault;

mod bucket;

/// What a check of a copy tells as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyCheckEvent {
    /// So many blobs were opened, and bytes of them.
    Progress {
        /// Blobs.
        blob_count: u64,
        /// Bytes.
        blob_bytes: u64,
    },
    /// Something is wrong with it.
    Damage {
        /// What.
        what: String,
    },
    /// Something is to be known of it, and is no damage.
    Note {
        /// What.
        what: String,
    },
    /// All of it was read.
    Done {
        /// Which head was checked.
        head: KnownHead,
        /// As of when that is, in milliseconds since 1970.
        as_of_ms: i64,
        /// How many buckets it has.
        bucket_count: u64,
        /// How many pages of catalogs.
        page_count: u64,
        /// How many blobs.
        blob_count: u64,
        /// How many bytes those have.
        blob_bytes: u64,
        /// How many things are wrong.
        damage_count: u64,
        /// How many blobs can't be opened before the copy has taken up a rotation.
        behind_count: u64,
    },
    /// It could not be read.
    Failed {
        /// Why.
        problem: String,
    },
}

/// A check under way.
struct Check {
    vault: Vault,
    /// The copy's.
    name: String,
    reader: CopyReader,
    scratch: PathBuf,
    events: mpsc::Sender<CopyCheckEvent>,
    /// Where the task learns what to put again.
    findings: Arc<Findings>,
    /// Where the task tells of times without a state.
    progress: Option<Arc<Progress>>,
    page_count: u64,
    blob_count: u64,
    blob_bytes: u64,
    damage_count: u64,
    behind_count: u64,
    /// So often it is still looked whether the copy has taken up a rotation.
    looks_left: u32,
}

impl Vault {
    /// Reads a copy back and checks all of it. A system administrator's act.
    ///
    /// # Errors
    /// [`CopyError::NoSuchCopy`](crate::CopyError::NoSuchCopy).
    pub async fn check_copy(
        &self,
        actor: &Actor,
        name: &str,
    ) -> Result<impl Stream<Item = CopyCheckEvent> + Send + Sync + use<>> {
        let (role, act) = (Role::SystemAdministrator, Act::VerifyCopy);
        let facts = Facts::from([("copy", name.to_owned())]);
        self.refuse_without(actor, role, act, &facts)?;
        let entry = self.inner.copies.registry.get(name);
        let entry = entry.map_err(|error| self.failed(act, actor, &facts, error))?;
        let (events, mut receiver) = mpsc::channel(BACKUP_EVENTS_WAITING);
        let (this, actor, told) = (self.clone(), actor.clone(), events.clone());
        tokio::spawn(async move {
            let vault = this.clone();
            let work = async move {
                let task = {
                    let running = vault.inner.copies.running.lock();
                    let task = running.get(&entry.name);
                    task.map(|task| {
                        let progress = Some(task.progress.clone());
                        (task.readers.clone(), task.findings.clone(), progress)
                    })
                };
                let (readers, findings, progress) = task.unwrap_or_default();
                let _reading = Reading::begin(readers).await;
                let place = Place::parse(&entry.url)?;
                let store = blocking(move || Ok(place.open(false)?)).await?;
                let copy = Copy::new(store, entry.id, &vault.inner.keystore.system_key());
                let reader = CopyReader::newest(copy, entry.known.as_ref()).await?;
                if reader.head().as_of_ms == 0 {
                    return Err(CopyError::NeverComplete.into());
                }
                let scratch = format!("check-{}", entry.cursor);
                let mut check = Check {
                    name: entry.name.clone(),
                    scratch: vault.inner.folder.path().join(SCRATCH).join(scratch),
                    vault,
                    reader,
                    events,
                    findings,
                    progress,
                    page_count: 0,
                    blob_count: 0,
                    blob_bytes: 0,
                    damage_count: 0,
                    behind_count: 0,
                    looks_left: COPY_ROTATED_LOOKS,
                };
                let done = check.run().await;
                let _ = fs::remove_dir_all(&check.scratch);
                done
            };
            let event = match this.act(&actor, role, act, facts, work).await {
                Ok(event) => event,
                Err(error) => CopyCheckEvent::Failed {
                    problem: error.to_string(),
                },
            };
            let _ = told.send(event).await;
        });
        Ok(poll_fn(move |context| receiver.poll_recv(context)))
    }
}

impl Check {
    async fn run(&mut self) -> Result<CopyCheckEvent> {
        self.record().await?;
        self.keystore().await?;
        let progress = self.progress.as_ref();
        if let Some(lacking) = progress.and_then(|progress| progress.lacking()) {
            self.damage(lacking).await?;
        }
        for pieces in self.reader.head().files.clone().into_values() {
            for piece in pieces {
                if let Err(error) = self.reader.piece(&piece).await {
                    self.findings.files();
                    self.damage(error.to_string()).await?;
                }
            }
        }
        let buckets = self.reader.head().buckets.clone();
        for (id, state) in &buckets {
            let Some(id) = BucketId::from_hex(id) else {
                continue;
            };
            self.bucket(id, state).await?;
        }
        self.heads().await?;
        self.clock().await?;
        Ok(CopyCheckEvent::Done {
            head: self.reader.known().clone(),
            as_of_ms: self.reader.head().as_of_ms,
            bucket_count: buckets.len() as u64,
            page_count: self.page_count,
            blob_count: self.blob_count,
            blob_bytes: self.blob_bytes,
            damage_count: self.damage_count,
            behind_count: self.behind_count,
        })
    }

    /// Whether the newest head is as of a time that is yet to come.
    async fn clock(&mut self) -> Result<()> {
        let as_of_ms = self.reader.head().as_of_ms;
        let ahead_ms = ahead_ms(as_of_ms);
        if ahead_ms == 0 {
            return Ok(());
        }
        let (as_of, seconds) = (rfc3339(as_of_ms), ahead_ms / 1_000);
        let what = format!(
            "the newest head of the copy is as of {as_of}, {seconds} s from now: the server's \
             clock was ahead when that was noted, or is behind now. Until then heads are as of \
             that time, and a restore to a moment (`--at`) can't tell which of them is of it, and \
             says so"
        );
        self.tell(CopyCheckEvent::Note { what }).await
    }

    /// Whether the copy says of itself what is true.
    async fn record(&mut self) -> Result<()> {
        let keystore = self.vault.inner.keystore.id();
        match self.reader.copy().check_own_record(keystore).await {
            Err(error) if error.is_passing() => Err(error.into()),
            Err(error) => self.damage(error.to_string()).await,
            Ok(()) => Ok(()),
        }
    }

    /// Whether the keystore is there that the head names, or a later one that is this server's as
    /// far as that can be told here.
    async fn keystore(&mut self) -> Result<()> {
        let Some(named) = &self.reader.head().keystore else {
            return Ok(());
        };
        let entry = self.vault.inner.copies.registry.get(&self.name);
        let with = entry.ok().and_then(|entry| entry.keystore);
        let for_recipients = with.is_some_and(|with| !with.recipients.is_empty());
        let own = self.vault.inner.keystore.id();
        let is_own = |found: &FoundKeystore| is_own_keystore(found, own, for_recipients);
        if let Err(error) = self.reader.copy().has_keystore(named, is_own).await {
            self.findings.keystore();
            self.damage(error.to_string()).await?;
        }
        Ok(())
    }

    /// Opens the heads of all earlier moments.
    async fn heads(&mut self) -> Result<()> {
        let last = self.reader.known().number;
        let mut told: Option<RangeInclusive<u64>> = None;
        let damaged = tokio::select! {
            damaged = self.reader.copy().damaged_heads(last) => damaged?,
            // There may be many.
            () = self.events.closed() => return Err(BackupError::ListenerGone.into()),
        };
        for number in damaged {
            if told.as_ref().is_some_and(|heads| heads.contains(&number)) {
                continue;
            }
            let (heads, gap) = self.reader.copy().damage_around(number).await?;
            if let Some(progress) = &self.progress {
                progress.damaged(gap);
            }
            let (from, to) = (rfc3339(gap.from_ms), rfc3339(gap.to_ms));
            for number in heads.clone() {
                self.damage(format!(
                    "head {number} of the copy does not open: there is no state of the time \
                     between {from} and {to}"
                ))
                .await?;
            }
            told = Some(heads);
        }
        self.missing_heads(last).await
    }

    /// Looks for heads that the window is to have and that are gone.
    async fn missing_heads(&mut self, last: u64) -> Result<()> {
        let (as_of_ms, keep_ms) = (self.reader.head().as_of_ms, self.reader.head().keep_ms);
        let horizon_ms = now_ms().max(as_of_ms).saturating_sub(keep_ms);
        let copy = self.reader.copy().clone();
        for (heads, gap) in copy.missing_heads(last, horizon_ms).await? {
            if let Some(progress) = &self.progress {
                progress.damaged(gap);
            }
            let (from, to) = (rfc3339(gap.from_ms), rfc3339(gap.to_ms));
            let (first, last) = (heads.start(), heads.end());
            let which = if first == last {
                format!("head {first} of the copy is missing")
            } else {
                format!("heads {first} to {last} of the copy are missing")
            };
            self.damage(format!(
                "{which}: there is no state of the time between {from} and {to}"
            ))
            .await?;
        }
        Ok(())
    }

    async fn damage(&mut self, what: String) -> Result<()> {
        self.damage_count += 1;
        self.tell(CopyCheckEvent::Damage { what }).await
    }

    async fn tell(&self, event: CopyCheckEvent) -> Result<()> {
        let sent = self.events.send(event).await;
        Ok(sent.map_err(|_| BackupError::ListenerGone)?)
    }
}

/// Whether something is a keystore of this server: what is in it, and that it is of the generation
/// that its name says. One for recipients opens for them alone; of that the form is known.
fn is_own_keystore(found: &FoundKeystore, own: KeystoreId, for_recipients: bool) -> bool {
    let is_sealed_so = CarriedKeystore::is_for_recipients(&found.bytes) == for_recipients;
    let carried = || CarriedKeystore::read(&found.bytes, None).ok();
    let is_own = |carried: CarriedKeystore| {
        let checked = found.reference.check_generation(carried.generation());
        carried.id() == own && checked.is_ok()
    };
    is_sealed_so && (for_recipients || carried().is_some_and(is_own))
}
