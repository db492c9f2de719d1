//! A standby: a sealed copy followed, its states served, and promoted in the original's place.
//!
//! ```text
//! DIR                   what a restore of the newest head would leave; nothing here is opened
//!                       to be written, and it is marked as not complete until the promotion
//! ├ keystore, system.db, anchor, audit/, buckets/ID/catalog.db, buckets/ID/blobs/
//! └ standby/
//!   ├ copy.json         what the copy said of itself
//!   ├ segments/ID       which segment the catalog has come to, and as which file
//!   ├ building/ID       a catalog that is being put together
//!   └ states/N          a data folder that is served: copies of the small files, the other names
//!                       of catalogs until they are opened, and a way to the blobs
//! ```
//!
//! A round takes the keystore and the newest head, brings what is in `DIR` up to it, makes a state
//! of that and opens it as a vault that changes nothing (`fence`). So what is served is always of
//! one head. The protocol, and what it does not do, is in `docs/decisions/0056-a-standby.md`.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::{Duration, Instant};

use coffer_keys::{ExportIdentity, Keystore};
use coffer_replica::{
    BucketState, Copy, CopyRecord, KeystoreRef, KnownHead, Piece, Place, Store, WrittenEnd,
};
use coffer_seal::BucketId;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::backup::BackupRecord;
use crate::blocking::blocking;
use crate::copies::TakenLog;
use crate::data_folder::{Folder, STANDBY};
use crate::engine::refuse_cache;
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::fence::{Asked, PromotedStandby, StandbyLink, StandbyState};
use crate::limits::{STANDBY_BEHIND_TOLD_EVERY, STANDBY_LOOKS_EVERY, STANDBY_RETRY_MAX};
use crate::replica::check_files;
use crate::vault::{Inner, VaultOptions};

mod states;

mod served;

mod keystore;

mod record;

mod files;

mod room;

mod left_out;

mod catalogs;

mod sweep;

mod round;

mod older_keys;

mod promote;

mod take_over;

pub use self::served::{FormerStates, ServedState};

use self::room::{Room, is_full};

/// What is followed, and how it is served.
pub struct FollowOptions {
    /// The copy.
    pub from: Place,
    /// What opens its keystore, where that is sealed for recipients of age.
    pub identity: Option<ExportIdentity>,
    /// How states are served; the folder is where the standby keeps what it has.
    pub vault: VaultOptions,
    /// Whether it is the log of an engine, by one of its gateways.
    pub is_of_engine: bool,
    /// What this gateway wrote last into it, when it served.
    pub written: Option<WrittenEnd>,
}

/// What a standby came to.
pub enum StandbyTurn {
    /// A state, which is to be served from now on.
    State(ServedState),
    /// It can't be followed, as long as nothing is changed.
    Failed(VaultError),
    /// The folder is a data folder, which a start may go on from, as from a restored one.
    Promoted(PromotedStandby),
    /// The folder is a data folder of all that the log of the engine holds, to be gone on with.
    TakenOver(TakenLog),
}

/// What follows a copy.
pub struct Standby {
    from: Place,
    identity: Option<ExportIdentity>,
    vault: VaultOptions,
    link: StandbyLink,
    asked: mpsc::Receiver<Asked>,
    /// The copy, once it was reached.
    reached: Option<Reached>,
    /// What it said of itself when a head was opened last: its store may lose or alter that.
    record: Option<CopyRecord>,
    /// Whether that is noted in the folder, where it is to be.
    has_noted: bool,
    held: Held,
    /// The head by which another standby of the copy was promoted, if one was.
    ended_by: Option<u64>,
    /// Whether its own promotion has ended the original's turn, since the start.
    has_ended_original: bool,
    /// The newest head that was seen: the store is not to show an older one.
    known: Option<KnownHead>,
    /// What this one wrote last itself, which the store is to have.
    written: Option<WrittenEnd>,
    /// What is served: which head, with which keystore.
    served: Option<(KnownHead, KeystoreRef)>,
    /// Whether anything was served since the start.
    has_served: bool,
    /// The number of the last state.
    number: u64,
    swept: Option<Instant>,
    /// When the log said last that it falls behind.
    behind_told: Option<Instant>,
    /// What is served, as long as it is.
    serving: Weak<Inner>,
    room: Room,
    folder: Folder,
}

/// A copy that was reached, with the keystore that opens it.
struct Reached {
    store: Store,
    keystore: Keystore,
    reference: KeystoreRef,
    copy: Copy,
    /// What it said of itself then.
    record: CopyRecord,
}

/// What the folder is known to hold since the start.
#[derive(Default)]
struct Held {
    files: HashMap<String, Vec<Piece>>,
    buckets: HashMap<BucketId, BucketState>,
    /// How many blobs could not be fetched, of buckets where any could not.
    missing: HashMap<BucketId, u64>,
}

impl Standby {
    /// Takes the folder: an empty one, or what a standby left.
    ///
    /// # Errors
    /// [`CopyError::Served`], [`CopyError::Target`], of a folder that is something else.
    pub async fn begin(options: FollowOptions) -> Result<Self> {
        let FollowOptions {
            from,
            identity,
            vault,
            is_of_engine,
            written,
        } = options;
        let (data, place) = (vault.data.clone(), from.clone());
        let (lock, number, record) = blocking(move || {
            let lock = Folder::hold(&data)?;
            refuse_others(&data)?;
            if !is_of_engine {
                refuse_cache(&data)?;
            }
            let number = states::clear(&data)?;
            Ok((lock, number, record::noted(&data, &place, is_of_engine)))
        })
        .await?;
        let (link, asked) = StandbyLink::new(from.url().to_owned(), is_of_engine);
        Ok(Self {
            from,
            identity,
            vault,
            link,
            asked,
            reached: None,
            has_noted: record.is_some(),
            record,
            held: Held::default(),
            ended_by: None,
            has_ended_original: false,
            known: None,
            written,
            served: None,
            has_served: false,
            number,
            swept: None,
            behind_told: None,
            serving: Weak::new(),
            room: Room::default(),
            folder: lock,
        })
    }

    /// How it stands, and how its promotion is asked for.
    pub fn link(&self) -> &StandbyLink {
        &self.link
    }

    /// Has `end` called by whatever is about to write or remove something in the folder and finds
    /// that another one has its name, before it does.
    pub fn when_folder_is_another(&self, end: impl Fn() + Send + Sync + 'static) {
        self.folder.when_another(end);
    }

    fn data(&self) -> &Path {
        &self.vault.data
    }

    /// Waits for what comes next. What fails is told, and tried again.
    pub async fn next(&mut self) -> StandbyTurn {
        let mut wait = Duration::ZERO;
        let mut retry = STANDBY_LOOKS_EVERY;
        if !self.has_served
            && let Some(left) = self.left().await
        {
            self.has_served = true;
            return StandbyTurn::State(left);
        }
        loop {
            match timeout(wait, self.asked.recv()).await {
                Ok(Some(Asked::Promotion {
                    without_copy,
                    event,
                    answer,
                })) => {
                    let asked = (without_copy, event);
                    if let Some(promoted) = self.try_promote(asked, answer).await {
                        return StandbyTurn::Promoted(promoted);
                    }
                    continue;
                }
                Ok(Some(Asked::TakingOver(right, answer))) => {
                    if let Some(log) = self.try_take_over(right, answer).await {
                        return StandbyTurn::TakenOver(log);
                    }
                    continue;
                }
                // Asked for before the last attempt failed.
                Ok(Some(Asked::Looking)) if self.link.is_failing() => continue,
                Ok(Some(Asked::Looking) | None) | Err(_) => {}
            }
            let began = Instant::now();
            self.room.filling = None;
            match self.follow().await {
                Ok(found) => {
                    retry = STANDBY_LOOKS_EVERY;
                    self.room.is_short = false;
                    let problem = self.problem();
                    self.link.is_current(began);
                    self.link.change(|told| {
                        told.state = StandbyState::Following;
                        told.problem = problem;
                    });
                    if let Some(state) = found {
                        self.has_served = true;
                        return StandbyTurn::State(state);
                    }
                    // A round that takes long is not followed by the next at once.
                    wait = STANDBY_LOOKS_EVERY;
                }
                Err(error) if !self.has_served && !is_passing(&error) => {
                    if self.has_made_room_for(&error).await {
                        continue;
                    }
                    return StandbyTurn::Failed(self.told_first(error));
                }
                Err(error) => {
                    self.fell_behind(error).await;
                    wait = retry;
                    retry = (retry * 2).min(STANDBY_RETRY_MAX);
                }
            }
        }
    }

    /// A round failed.
    async fn fell_behind(&mut self, error: VaultError) {
        if is_full(&error) {
            self.make_room().await;
        }
        let waits = is_to_come(&error);
        let problem = self.told(error).to_string();
        let told = self.behind_told.map(|told| told.elapsed());
        if told.is_none_or(|since| since >= STANDBY_BEHIND_TOLD_EVERY) {
            self.behind_told = Some(Instant::now());
            let what = self.called();
            if self.has_served || !waits {
                tracing::warn!(error = problem, "{what} falls behind");
            } else {
                tracing::info!("{what} waits for the first state: {problem}");
            }
        }
        self.link.change(|told| {
            told.state = StandbyState::Failing;
            told.problem = Some(problem);
        });
        self.reached = None;
    }

    /// Before it is given up that nothing is served: what an earlier run fetched may not be needed
    /// any more. Whether it is to be tried again.
    async fn has_made_room_for(&mut self, error: &VaultError) -> bool {
        let is_first = is_full(error) && !self.room.is_short;
        if is_first {
            self.make_room().await;
        }
        is_first
    }

    /// What is told where nothing is served yet, and none goes on by itself.
    fn told_first(&self, error: VaultError) -> VaultError {
        if is_full(&error) {
            VaultError::StorageFull
        } else {
            self.told(error)
        }
    }

    /// What is told of an error.
    fn told(&self, error: VaultError) -> VaultError {
        match error {
            error if is_full(&error) => {
                let path = self.data().display().to_string();
                CopyError::NoRoomToFollow { path }.into()
            }
            error => self.told_of_log(error),
        }
    }

    /// What keeps a standby that has followed from having all.
    fn problem(&self) -> Option<String> {
        if let Some(number) = self.ended_by {
            return Some(format!(
                "a standby that followed this copy was promoted by head {number}, so nothing \
                 comes any more: follow a copy of that server"
            ));
        }
        let count: u64 = self.held.missing.values().sum();
        (count > 0).then(|| {
            format!(
                "the copy lacks {count} blobs that its catalogs name, or has others in their \
                 place: `coffer replica verify` at the original names them, and puts them again"
            )
        })
    }
}

/// Whether it may pass by itself, while nothing is served yet.
fn is_passing(error: &VaultError) -> bool {
    match error {
        VaultError::Backup(BackupError::Copy(CopyError::Replica(error))) => error.is_passing(),
        error => is_to_come(error),
    }
}

/// Whether the copy was only just begun.
fn is_to_come(error: &VaultError) -> bool {
    matches!(
        error,
        VaultError::Backup(BackupError::Copy(CopyError::NeverComplete))
    )
}

/// Refuses a folder that is something else than a standby's.
fn refuse_others(data: &Path) -> Result<()> {
    if BackupRecord::is_begun(data) {
        return Ok(());
    }
    let path = data.display().to_string();
    if let Ok(Some(_)) = BackupRecord::read(data) {
        let problem = "it was promoted, or restored: start it without --follow, with \
                       --accept-rollback";
        return Err(CopyError::Served { path, problem }.into());
    }
    if data.join("system.db").exists() {
        let problem = "it is the data folder of a server, as that of a standby is once it was \
                       promoted: start it without --follow";
        return Err(CopyError::Served { path, problem }.into());
    }
    check_files(data)
}

/// Where states and what leads to them are.
fn standby_folder(data: &Path) -> PathBuf {
    data.join(STANDBY)
}
