//! Freshness, held from above: whatever could be put back alone has a count that only rises, and
//! something above it holds how far that had come.
//!
//! ```text
//! the source of the root key    holds the keystore's generation, where it lies outside
//!  └ keystore                   holds what follows, as the last administrative act left it
//!     ├ system.db               its count of commits
//!     ├ audit/                  its last record, with its hash
//!     └ anchor                  its number; it holds both as well, seconds late, and
//!        └ catalogs             their counts of commits
//! ```
//!
//! What is below is made durable first. So what is found newer than it is held is as a crash may
//! leave it; what is found older was put back: a start refuses it, until it is accepted on purpose.
//! `docs/THREATS.md` says how late each hop is.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use coffer_audit::{Hash, Recorded};
use coffer_durable::{now_ms, sync_folder};
use coffer_keys::limits::ROLLBACK_STEP;
use coffer_keys::{Anchor, AnchorFile, Held, Keeping, Keystore};
use parking_lot::Mutex;

use crate::audit::Audit;
use crate::data_folder::{Folder, failed};
use crate::error::{Result, VaultError};
use crate::limits::{KEYSTORE_HOLDS_EVERY, TOKEN_HOLDS_EVERY};
use crate::system::System;

mod commits;

mod compare;

mod accept_rollback;

mod in_log;

pub(crate) use self::commits::Commits;
pub(crate) use self::compare::{Comparison, known_record};
pub(crate) use self::in_log::InLog;

/// The anchor's file in the data folder.
pub(crate) const ANCHOR_FILE: &str = "anchor";

/// On what occasion it is looked whether something has to be held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Occasion {
    /// A data user's bucket was made or deleted, of which there may be many.
    Bucket,
    /// Another administrative act is about to be acknowledged.
    Act,
    /// Some seconds have passed.
    Moment,
    /// The server starts or stops.
    Turn,
}

/// What holds the versions of things below.
pub(crate) struct Freshness {
    keystore: Arc<Keystore>,
    folder: PathBuf,
    pub(crate) commits: Arc<Commits>,
    state: Mutex<State>,
}

struct State {
    anchor: AnchorFile,
    /// The next anchor has a higher number than this.
    floor: u64,
    /// What of the catalogs' commits was news when it was written.
    news: u64,
    /// When the keystore was last written for what is no act.
    keystore_at: Instant,
    /// Of an engine: no more is held than its log has.
    in_log: Option<InLog>,
    /// What is to be held of an act that the log did not have yet.
    owed: Option<Held>,
    /// The generation that the source holds, as far as this process wrote it, and when.
    outside: Option<(u64, Instant)>,
    /// Whether the source could not be written, and that was told.
    is_outside_failing: bool,
}

impl Freshness {
    /// Reads what is held.
    pub(crate) fn open(folder: &Folder, keystore: Arc<Keystore>) -> Result<Self> {
        let anchor = AnchorFile::open(&folder.path().join(ANCHOR_FILE), &keystore)?;
        let commits = Arc::new(Commits::of(anchor.newest()));
        Ok(Self {
            keystore,
            folder: folder.path().to_owned(),
            commits,
            state: Mutex::new(State {
                anchor,
                floor: 0,
                news: 0,
                keystore_at: Instant::now(),
                in_log: None,
                owed: None,
                outside: None,
                is_outside_failing: false,
            }),
        })
    }

    /// From here on no more is held than the log of an engine has: as it was taken over, for now.
    pub(crate) fn follow_log(&self) {
        let mut state = self.state.lock();
        let held = self.keystore.held();
        let newest = state.anchor.newest();
        let recorded = known_record(&self.keystore, newest, None);
        state.in_log = Some(InLog {
            system_commits: state.held_system_commits(&held),
            recorded: recorded.map(|(recorded, _)| recorded),
            anchor_number: state.anchor.number(),
        });
    }

    /// The log of an engine has a head with this.
    pub(crate) fn log_has(&self, in_log: InLog) {
        self.state.lock().in_log = Some(in_log);
    }

    /// A record that the audit log must hold: the highest of those that are held.
    pub(crate) fn known_record(&self, system: &System) -> Result<Option<Recorded>> {
        let state = self.state.lock();
        let known = known_record(
            &self.keystore,
            state.anchor.newest(),
            system.audit_anchor()?,
        );
        Ok(known.map(|(recorded, _)| recorded))
    }

    /// Makes what was found at a start durable, so that it may be held, and holds it.
    pub(crate) fn begin(&self, system: &System, audit: &Audit) -> Result<()> {
        // Not the database itself: to close its file would drop the locks that SQLite has on it.
        sync_if_there(&self.folder.join("system.db-wal"))?;
        // SQLite goes on when it could not sync the log's name.
        sync_folder(&self.folder).map_err(failed("sync", &self.folder))?;
        self.state.lock().anchor.sync()?;
        self.hold(system, audit, Occasion::Turn)
    }

    /// Holds how far everything has come, as far as it is due. What is read here is durable.
    /// Blocks.
    pub(crate) fn hold(&self, system: &System, audit: &Audit, occasion: Occasion) -> Result<()> {
        // One after the other: so nothing lower is ever held after something higher, and a
        // call that waits here mostly finds all held already.
        let mut state = self.state.lock();
        let held = self.keystore.held();
        let last = audit.log().map(|log| log.last());
        let known = known_record(&self.keystore, state.anchor.newest(), last);
        let (audit_record, audit_hash) =
            known.map_or((0, [0; 32]), |(known, _)| (known.sequence, known.hash.0));
        let held_commits = state.held_system_commits(&held);
        let system_commits = match system.commit_count() {
            // It was put back while the server runs: were that held, the next start would take it.
            Ok(found) if found < held_commits => {
                return Err(VaultError::SystemRolledBack {
                    found,
                    held: held_commits,
                });
            }
            Ok(count) => count,
            // A damaged page is no reason to hold nothing else: it counts no more then.
            Err(VaultError::Damaged) => held_commits,
            Err(error) => return Err(error),
        };
        if matches!(occasion, Occasion::Moment | Occasion::Turn) {
            let news = self.commits.news();
            let is_held = |newest: &Anchor| {
                newest.system_commits == system_commits && newest.audit_record == audit_record
            };
            let is_current = state.news == news && state.anchor.newest().is_some_and(is_held);
            if !is_current || state.anchor.number() < state.floor {
                let anchor = Anchor {
                    system_commits,
                    audit_record,
                    audit_hash,
                    held_ms: now_ms(),
                    commits: self.commits.of_buckets(&self.keystore),
                };
                let above = held.anchor_number.max(state.floor);
                state.anchor.write(anchor, above)?;
                state.news = news;
            }
        }
        let wanted = Held {
            system_commits,
            audit_record,
            audit_hash,
            anchor_number: state.anchor.number(),
            held_ms: held.held_ms,
            is_outside: held.is_outside,
        };
        let wanted = state.bound(wanted, &held, occasion);
        let is_owed = state.owed.is_some_and(|owed| {
            owed.system_commits <= wanted.system_commits && owed.audit_record <= wanted.audit_record
        });
        let is_due = is_owed
            || occasion != Occasion::Moment
            || state.keystore_at.elapsed() >= KEYSTORE_HOLDS_EVERY;
        if wanted != held && is_due {
            let held_ms = now_ms();
            self.keystore.hold(Held { held_ms, ..wanted })?;
            state.keystore_at = Instant::now();
        }
        if is_owed {
            state.owed = None;
        }
        if is_due {
            state.hold_outside(&self.keystore, occasion);
        }
        Ok(())
    }

    /// Writes the anchor of a copy of the data folder, in place of what is there. Its number.
    pub(crate) fn anchor_copy(&self, path: &Path, anchor: Anchor) -> Result<u64> {
        if let Err(error) = std::fs::remove_file(path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(failed("remove", path)(error));
        }
        // No newer than the one that is here, for both could be in each other's place.
        let above = self.state.lock().anchor.number().saturating_sub(1);
        Ok(AnchorFile::open(path, &self.keystore)?.write(anchor, above)?)
    }

    /// How many commits the system database had, as it is held.
    fn held_system_commits(&self) -> u64 {
        self.state.lock().held_system_commits(&self.keystore.held())
    }

    /// Has the next anchor a number that none has had.
    fn raise_anchor(&self) {
        let mut state = self.state.lock();
        let held = state
            .anchor
            .number()
            .max(self.keystore.held().anchor_number);
        state.floor = held.saturating_add(ROLLBACK_STEP);
    }
}

impl State {
    /// What may be held of this now. An act of which that is less is owed.
    fn bound(&mut self, wanted: Held, held: &Held, occasion: Occasion) -> Held {
        let Some(in_log) = &self.in_log else {
            return wanted;
        };
        let bound = in_log.bound(wanted, held);
        let is_act = matches!(occasion, Occasion::Act | Occasion::Bucket);
        let is_less = bound.system_commits < wanted.system_commits
            || bound.audit_record < wanted.audit_record;
        if is_act && is_less {
            self.owed = Some(wanted);
        }
        bound
    }

    /// How many commits the system database had, as keystore and anchor hold it.
    fn held_system_commits(&self, held: &Held) -> u64 {
        let by_anchor = self.anchor.newest();
        let by_anchor = by_anchor.map_or(0, |anchor| anchor.system_commits);
        by_anchor.max(held.system_commits)
    }

    /// Has the source hold the keystore. A source that can't be written keeps no request from
    /// working: it is told, and tried again.
    fn hold_outside(&mut self, keystore: &Keystore, occasion: Occasion) {
        let generation = keystore.generation();
        let is_sparing = keystore.keeping() == Keeping::InToken
            && matches!(occasion, Occasion::Bucket | Occasion::Moment);
        match self.outside {
            Some((held, _)) if held == generation => return,
            Some((_, at)) if is_sparing && at.elapsed() < TOKEN_HOLDS_EVERY => return,
            // A token may count sign-ins that fail, and lock itself.
            _ if is_sparing && self.is_outside_failing => return,
            _ => {}
        }
        match keystore.hold_outside() {
            Ok(()) => {
                self.outside = Some((generation, Instant::now()));
                self.is_outside_failing = false;
            }
            Err(error) if !self.is_outside_failing => {
                self.is_outside_failing = true;
                tracing::warn!(
                    %error,
                    "the source of the root key can't hold how new the keystore is: until it can, \
                     an older copy of the whole data folder would not be found"
                );
            }
            Err(_) => {}
        }
    }
}

/// The record of a log that something holds; `None` of none.
fn recorded(sequence: u64, hash: [u8; 32]) -> Option<Recorded> {
    (sequence > 0).then_some(Recorded {
        sequence,
        hash: Hash(hash),
    })
}

/// A killed server may have left it in the system's memory only.
pub(crate) fn sync_if_there(path: &Path) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path);
    match file.and_then(|file| file.sync_all()) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(failed("sync", path)(error))
        }
        _ => Ok(()),
    }
}

/// What an act that was done answers when it could not be held.
pub(crate) fn not_held(error: VaultError) -> VaultError {
    VaultError::EndNotHeld(Box::new(error))
}
