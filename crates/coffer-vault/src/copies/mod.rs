//! Which sealed copies there are, and how they stand. How they are kept up is in `replica`.

use std::collections::BTreeMap;
use std::sync::Arc;

use coffer_replica::WrittenEnd;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::error::{CopyError, Result, Rollback};
use crate::fence::FencedBy;
use crate::system::{FenceNote, System};

mod registry;

mod standing;

mod unacknowledged;

mod synchronous;

mod progress;

mod carrier;

mod behind;

mod on_receipts;

mod findings;

mod readers;

mod engine_seat;

pub(crate) use self::carrier::Carrier;
pub(crate) use self::engine_seat::LOG_NAME;
pub use self::engine_seat::{EngineSeat, TakenLog};
pub(crate) use self::findings::Findings;
pub(crate) use self::on_receipts::left_of_origin;
pub use self::progress::{CarriedStatus, CopyState, CopyStatus};
pub(crate) use self::progress::{Passed, Progress, ahead_ms};
pub(crate) use self::readers::{Readers, Reading};
pub(crate) use self::registry::{Entry, Registry, SyncEntry, WithKeystore};
pub use self::synchronous::SyncStatus;
pub(crate) use self::synchronous::{Synchronous, WaitedFor};

/// All copies of one vault.
pub(crate) struct Copies {
    pub(crate) registry: Arc<Registry>,
    /// Whether the registry could be read.
    pub(crate) is_readable: bool,
    pub(crate) running: Mutex<BTreeMap<String, Running>>,
    /// Those that acknowledgements wait for.
    pub(crate) waited_for: WaitedFor,
    /// Copies are made and removed one after the other.
    pub(crate) changing: tokio::sync::Mutex<()>,
}

/// A copy that is kept up.
pub(crate) struct Running {
    pub(crate) progress: Arc<Progress>,
    /// How many read the copy: nothing is removed from it meanwhile.
    pub(crate) readers: Arc<Readers>,
    /// What checks found, which is to be put again.
    pub(crate) findings: Arc<Findings>,
    /// What puts the keystore there, if one goes along.
    pub(crate) carrier: Arc<Carrier>,
    /// What acknowledgements wait for, if they do.
    pub(crate) synchronous: Option<Arc<Synchronous>>,
    /// What it wrote last.
    pub(crate) written: Option<WrittenEnd>,
    pub(crate) stop: CancellationToken,
    pub(crate) task: JoinHandle<()>,
}

impl Copies {
    /// A folder that comes from another knows none of the copies that were made of it.
    pub(crate) fn warn_of_unknown(from: Option<&Rollback>) {
        if from.is_none() {
            return;
        }
        tracing::warn!(
            "this folder comes from a backup or a sealed copy: sealed copies that were made \
             before are not known to it, not kept up, and on no receipt of an erase by name"
        );
    }

    /// By which copy it was noted that this server is fenced off, and what showed it. The file
    /// `copies` may be lost, or moved away where it does not open.
    pub(crate) fn fenced_off(&self, system: &System) -> Result<Option<FenceNote>> {
        match self.registry.fenced_off() {
            Some((copy, why)) => Ok(Some(FenceNote { copy, why })),
            None => system.fence_note(),
        }
    }

    /// Refuses a start that would take changes though another serves in this server's place, as
    /// was noted, unless it is said that this counts no more.
    pub(crate) fn check_fenced_off(
        &self,
        system: &System,
        by: Option<&FencedBy>,
        ends_fence: bool,
    ) -> Result<()> {
        let Some(FenceNote { copy: name, why }) = self.fenced_off(system)? else {
            if ends_fence {
                tracing::warn!(
                    "--end-fence ended nothing: this server was not noted as fenced off, and \
                     starts as it does without. Leave it out of what starts the server"
                );
            }
            return Ok(());
        };
        if ends_fence {
            // Of a file that does not open nothing is known, and nothing is written over.
            if self.is_readable {
                self.registry.forget_fences()?;
            }
            system.forget_fence()?;
            if by.is_some_and(|by| by.copy == name) {
                tracing::warn!(
                    copy = name,
                    "that this server was fenced off is forgotten, as was asked for (--end-fence), \
                     and by --fenced-by that copy is asked again: if it still shows that another \
                     serves in its place, this server is fenced off again at once. Where that one \
                     is gone for good, start without --fenced-by, and make a new copy"
                );
                return Ok(());
            }
            tracing::warn!(
                copy = name,
                "this server was fenced off, and goes on by itself, as was asked for \
                 (--end-fence): what it takes from now on is at no other that serves in its place"
            );
            return Ok(());
        }
        if by.is_some_and(|by| by.copy == name) {
            return Ok(());
        }
        Err(CopyError::WasFencedOff { name, why }.into())
    }

    /// Refuses a start that is to be fenced by a copy that there is not: nothing could be changed,
    /// not even a copy made. One that is known to have ended this server's turn is asked no more.
    pub(crate) fn check_fence(&self, system: &System, by: Option<&FencedBy>) -> Result<()> {
        let Some(by) = by.filter(|_| self.is_readable) else {
            return Ok(());
        };
        let noted = self.fenced_off(system)?;
        if noted.is_some_and(|noted| noted.copy == by.copy) {
            return Ok(());
        }
        let current = self.registry.current();
        if current.iter().any(|entry| entry.name == by.copy) {
            return Ok(());
        }
        let name = by.copy.clone();
        let there = current.into_iter().map(|entry| entry.name).collect();
        Err(CopyError::NoFence { name, there }.into())
    }

    pub(crate) fn new((registry, read): (Registry, Result<()>)) -> Self {
        if let Err(error) = &read {
            tracing::error!(%error, "copies are not kept up");
        }
        Self {
            registry: Arc::new(registry),
            is_readable: read.is_ok(),
            running: Mutex::default(),
            waited_for: WaitedFor::default(),
            changing: tokio::sync::Mutex::default(),
        }
    }
}
