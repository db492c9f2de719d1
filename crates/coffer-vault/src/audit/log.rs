//! The vault's audit log: opened with the vault, opened again when that failed, and closed with it.
//!
//! A log that can't be opened (a full disk, say) does not keep the server from giving out data.
//! What must be recorded is refused until it can be, and each such act tries again.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use coffer_audit::{
    AuditError, AuditKey, AuditLog, CheckpointSigner, Event, Options, Outcome, Recorded,
};
use coffer_keys::Keystore;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::facts::{Facts, event};
use super::rate_limit::{FailureLimit, RateLimit};
use crate::access::{Act, Subject};
use crate::error::{Result, VaultError};
use crate::limits::{REPEATS_KEPT, STRANGERS_TOLD};
use crate::system::{Jump, System};

/// What the audit key is derived with from the keystore's system key.
const KEY_LABEL: &[u8] = b"coffer audit key v1\0";

/// The actor of what the server does by itself.
pub(crate) const SERVER: &str = "server";

pub(crate) struct Audit {
    folder: PathBuf,
    keystore: Arc<Keystore>,
    public_key: [u8; 32],
    /// A record that the log must hold.
    known: Option<Recorded>,
    /// Whether a start accepted that it does not.
    is_rolled_back: bool,
    log: OnceLock<AuditLog>,
    opening: Mutex<()>,
    /// The record that `system.db` has.
    anchor: Mutex<Option<Recorded>>,
    repeats: RateLimit,
    /// Of those who claim an access key that there is not.
    strangers: RateLimit,
    /// How much damage has been told of, as it is counted.
    damage_told: AtomicU64,
    /// What is only made to look as if it were noted.
    passed_over: RateLimit,
    /// Acts that failed after they had begun.
    pub(crate) failures: FailureLimit,
    /// What tells of repeats, minute by minute.
    pub(crate) clock: Mutex<Option<JoinHandle<()>>>,
}

/// The keystore's receipt key, which never stays in memory.
struct KeystoreSigner {
    keystore: Arc<Keystore>,
    public_key: [u8; 32],
}

impl CheckpointSigner for KeystoreSigner {
    fn sign(&self, message: &[u8]) -> Option<[u8; 64]> {
        self.keystore.sign_checkpoint(message).ok()
    }

    fn public_key(&self) -> [u8; 32] {
        self.public_key
    }
}

/// The key of a keystore's audit log.
pub(crate) fn audit_key(keystore: &Keystore) -> AuditKey {
    AuditKey::new(keystore.system_key().derive(KEY_LABEL), keystore.id())
}

impl Audit {
    /// Opens the log in `folder`, or leaves that for later. Blocks.
    /// `known`: a record that it must hold; with it, whether it was accepted that it does not.
    pub(crate) fn open(
        folder: PathBuf,
        keystore: Arc<Keystore>,
        system: &System,
        (known, is_rolled_back): (Option<Recorded>, bool),
    ) -> Result<Self> {
        let public_key = keystore.receipt_public_key().map_err(VaultError::Keys)?;
        let audit = Self {
            folder,
            public_key: public_key.to_bytes(),
            keystore,
            known,
            is_rolled_back,
            anchor: Mutex::new(system.audit_anchor()?),
            log: OnceLock::new(),
            opening: Mutex::new(()),
            repeats: RateLimit::by_place(REPEATS_KEPT),
            strangers: RateLimit::new(STRANGERS_TOLD),
            damage_told: AtomicU64::new(0),
            passed_over: RateLimit::by_place(REPEATS_KEPT),
            failures: FailureLimit::default(),
            clock: Mutex::default(),
        };
        match audit.log_or_open() {
            Ok(_) => audit.tick(system, false),
            Err(VaultError::AuditUnavailable(
                error @ (AuditError::NewerFormat { .. } | AuditError::Exhausted),
            )) => return Err(VaultError::AuditUnavailable(error)),
            Err(error) => tracing::error!(%error, "acts that must be recorded are refused for now"),
        }
        Ok(audit)
    }

    /// The log, if it is open.
    pub(crate) fn log(&self) -> Option<&AuditLog> {
        self.log.get()
    }

    /// The key that verifies its checkpoints.
    pub(crate) fn public_key(&self) -> &[u8; 32] {
        &self.public_key
    }

    /// The log; opens it where that failed before. Blocks then.
    pub(crate) fn log_or_open(&self) -> Result<&AuditLog> {
        if let Some(log) = self.log.get() {
            return Ok(log);
        }
        let _opening = self.opening.lock();
        if let Some(log) = self.log.get() {
            return Ok(log);
        }
        let signer = KeystoreSigner {
            keystore: self.keystore.clone(),
            public_key: self.public_key,
        };
        let options = Options {
            known: self.known,
            ..Options::default()
        };
        let key = audit_key(&self.keystore);
        let (log, opened) = AuditLog::open(&self.folder, key, Box::new(signer), options)
            .map_err(VaultError::AuditUnavailable)?;
        if let Some(found) = &opened.damage
            && opened.is_older_copy
            && self.is_rolled_back
        {
            tracing::warn!(
                found,
                "the audit log goes on from an older copy in a new segment, as was accepted: \
                 `coffer audit verify` tells which records were rolled back"
            );
        } else if let Some(found) = &opened.damage {
            tracing::error!(
                found,
                "THE AUDIT LOG IS DAMAGED: it goes on in a new segment, and `coffer audit verify` \
                 tells of it from now on"
            );
        }
        if opened.cut_bytes > 0 {
            tracing::warn!(
                bytes = opened.cut_bytes,
                "cut off what a crash left unfinished in the audit log"
            );
        }
        let start = Event::new(Act::StartServer.name(), SERVER, Outcome::Done)
            .with("version", env!("CARGO_PKG_VERSION"));
        if let Err(error) = log.append(start.clone()) {
            tracing::error!(%error, "the start could not be recorded yet");
            let _ = log.note(start);
        }
        Ok(self.log.get_or_init(|| log))
    }

    /// Records an event; durable when this returns.
    pub(crate) async fn record(self: &Arc<Self>, event: Event) -> Result<Recorded> {
        if self.log().is_none() {
            let this = self.clone();
            tokio::task::spawn_blocking(move || this.log_or_open().map(drop))
                .await
                .map_err(|_| VaultError::ShuttingDown)??;
        }
        let log = self.log().ok_or(VaultError::ShuttingDown)?;
        let (told, recorded) = oneshot::channel();
        // The request may have gone.
        log.append_then(event, move |recorded| drop(told.send(recorded)))
            .map_err(unavailable)?;
        recorded
            .await
            .map_err(|_| VaultError::ShuttingDown)?
            .map_err(unavailable)
    }

    /// Records an event within a second, if the log can be written.
    pub(crate) fn note(&self, event: Event) {
        if let Some(log) = self.log()
            && let Err(error) = log.note(event)
        {
            tracing::error!(%error, "an event could not be recorded");
        }
    }

    /// As [`Audit::note`], but what the same actor has just done in the same place is only counted.
    pub(crate) fn note_repeated(&self, event: Event) {
        if let Some(event) = self.repeats.take(event, Instant::now()) {
            self.note(event);
        }
    }

    /// As [`Audit::note_repeated`], of a caller that claims an access key that there is not. Only a
    /// few such ids are told within a minute; all others are counted as one.
    pub(crate) fn note_stranger(&self, event: Event, claimed: &str) {
        let named = event.clone().with("claimed", claimed);
        if !self.strangers.has_room_for(&named) {
            self.note_repeated(event);
        } else if let Some(named) = self.strangers.take(named, Instant::now()) {
            self.note(named);
        }
    }

    /// As [`Audit::note_repeated`], of a subject that was denied something in a bucket.
    pub(crate) fn note_denied(&self, act: Act, subject: &Subject, bucket: &str) {
        self.note_repeated(denied_in(act, subject, bucket));
    }

    /// Takes as long as [`Audit::note_denied`] and records nothing: that a bucket is hidden must
    /// not be told from that there is none, by the clock either.
    pub(crate) fn pass_over(&self, act: Act, subject: &Subject, bucket: &str) {
        let event = denied_in(act, subject, bucket);
        drop(self.passed_over.take(event, Instant::now()));
    }

    /// Notes that stored data did not open, which is counted as `damage_count`: what a verification
    /// told already is not told again.
    pub(crate) fn note_damage(&self, damage_count: u64) {
        let told = self.damage_told.fetch_max(damage_count, Ordering::Relaxed);
        if damage_count > told {
            let event = Event::new(Act::FindDamage.name(), SERVER, Outcome::Failed)
                .with("count", damage_count - told);
            self.note(event);
        }
    }

    /// Notes that the wall clock moved as locks do not follow it.
    pub(crate) fn note_lock_time(&self, jump: Jump) {
        let Jump {
            wall_ms,
            followed_ms,
            is_running,
        } = jump;
        let server_was = if is_running { "running" } else { "stopped" };
        let event = Event::new(Act::JumpLockTime.name(), SERVER, Outcome::Done)
            .with("wall_ms", wall_ms)
            .with("followed_ms", followed_ms)
            .with("server_was", server_was);
        tracing::warn!(
            wall_ms,
            followed_ms,
            server_was,
            "the wall clock moved as the time by which object locks end does not follow: the \
             server was running, it moved backwards or by more than a week, or that time had come \
             as far already"
        );
        self.note(event);
    }

    /// A verification tells of one place that is damaged.
    pub(crate) fn note_damaged_place(&self, bucket: &str, what: &str) {
        self.damage_told.fetch_add(1, Ordering::Relaxed);
        let event = Event::new(Act::FindDamage.name(), SERVER, Outcome::Failed)
            .with("bucket", bucket)
            .with("what", what);
        self.note_repeated(event);
    }

    /// Tells of what has repeated, and moves the anchor up. Blocks.
    pub(crate) fn tick(&self, system: &System, all: bool) {
        self.tell_repeats(all);
        drop(self.passed_over.due(Instant::now(), all));
        if let Err(error) = self.move_anchor(system) {
            tracing::warn!(%error, "could not keep the audit log's last record in system.db");
        }
    }

    fn tell_repeats(&self, all: bool) {
        for repeats in [&self.repeats, &self.strangers] {
            for event in repeats.due(Instant::now(), all) {
                self.note(event);
            }
        }
    }

    fn move_anchor(&self, system: &System) -> Result<()> {
        let Some(log) = self.log() else { return Ok(()) };
        let last = log.last();
        let mut anchor = self.anchor.lock();
        if *anchor != Some(last) && last.sequence > 0 {
            system.set_audit_anchor(&last)?;
            *anchor = Some(last);
        }
        Ok(())
    }

    /// Records the stop, and closes the log. Blocks.
    pub(crate) fn close(&self, system: &System) {
        self.tell_repeats(true);
        let Some(log) = self.log() else { return };
        let stop = Event::new(Act::StopServer.name(), SERVER, Outcome::Done);
        match log.append(stop).map(drop).and_then(|()| log.close()) {
            Ok(()) | Err(AuditError::Closed) => {}
            Err(error) => tracing::error!(%error, "the stop could not be recorded"),
        }
        self.tick(system, true);
    }
}

fn denied_in(act: Act, subject: &Subject, bucket: &str) -> Event {
    event(act, subject, Outcome::Denied, &Facts::new()).with("bucket", bucket)
}

fn unavailable(error: AuditError) -> VaultError {
    match error {
        AuditError::Closed => VaultError::ShuttingDown,
        error => VaultError::AuditUnavailable(error),
    }
}
