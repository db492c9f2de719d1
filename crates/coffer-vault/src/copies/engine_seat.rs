//! A gateway's seat: what a vault is opened with that goes on with the log of an engine.

use std::fmt;
use std::fs;
use std::sync::Arc;

use coffer_audit::{Event, Outcome};
use coffer_durable::now_ms;
use coffer_keys::{ExportIdentity, Keystore};
use coffer_replica::{CopyId, CopyWriter, KnownHead, Place};
use parking_lot::Mutex;

use super::Copies;
use super::on_receipts::may_wait_for;
use super::registry::{Entry, Registry, SyncEntry, WithKeystore};
use crate::access::Act;
use crate::audit::SERVER;
use crate::data_folder::Folder;
use crate::error::Result;
use crate::fence::ServingRight;
use crate::limits::{ENGINE_KEEP_MS, ENGINE_WRITE_WAIT};
use crate::system::System;

/// What the log is called among the copies of its server.
pub(crate) const LOG_NAME: &str = "engine";

/// The log of an engine, which was taken over.
#[derive(Clone)]
pub struct TakenLog {
    /// The right under which it was.
    pub right: ServingRight,
    /// Its id.
    id: CopyId,
    /// The head that took it over.
    known: KnownHead,
    /// When it was made; of one that has nothing yet, now.
    made_ms: i64,
    /// Whether nothing is in it yet: a first start began it, and did not end.
    is_begun: bool,
    /// What goes on with it, once: a writer that resumed would fence off the one that came between.
    writer: Arc<Mutex<Option<CopyWriter>>>,
}

impl TakenLog {
    /// Of what took it over.
    pub(crate) fn new(writer: CopyWriter, right: ServingRight) -> Self {
        Self {
            right,
            id: writer.copy().id(),
            known: writer.known(),
            made_ms: Some(writer.head().first_ms)
                .filter(|at| *at > 0)
                .unwrap_or_else(now_ms),
            is_begun: false,
            writer: Arc::new(Mutex::new(Some(writer))),
        }
    }

    /// Of what took it over where a first start began it, and nothing is in it.
    pub(crate) fn begun(writer: CopyWriter, right: ServingRight) -> Self {
        Self {
            is_begun: true,
            ..Self::new(writer, right)
        }
    }
}

impl fmt::Debug for TakenLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut told = f.debug_struct("TakenLog");
        told.field("known", &self.known).finish_non_exhaustive()
    }
}

/// The log of an engine, and the right to serve it.
#[derive(Clone, Debug)]
pub struct EngineSeat {
    pub(crate) from: Place,
    pub(crate) right: ServingRight,
    /// Where other gateways find this one: a host and a port.
    address: String,
    /// For whom its keystore is sealed: a recipient of age.
    pub(crate) recipient: String,
    /// As it was taken over; none: it is to be made.
    pub(crate) taken: Option<TakenLog>,
}

impl EngineSeat {
    /// The seat of who has the lease, at the log that was taken over, or where there is none yet.
    pub fn new(
        from: Place,
        identity: &ExportIdentity,
        (address, right): (String, ServingRight),
        taken: Option<TakenLog>,
    ) -> Self {
        Self {
            from,
            right,
            address,
            recipient: identity.recipient().to_string(),
            taken,
        }
    }

    /// What goes on with the log that was taken over.
    pub(crate) fn writer(&self) -> Option<CopyWriter> {
        self.taken.as_ref()?.writer.lock().take()
    }

    /// Whether it may be served.
    pub(crate) fn right(&self) -> ServingRight {
        self.right.clone()
    }

    /// What the keystore goes along as: for the gateways, which are this server, and so all of it.
    pub(crate) fn with_keystore(&self) -> WithKeystore {
        WithKeystore {
            recipients: vec![self.recipient.clone()],
            is_of_engine: true,
            ..WithKeystore::default()
        }
    }

    /// What the audit log says of its being taken; nothing of one that is made, for which a first
    /// start stands.
    pub(crate) fn taken_event(&self) -> Option<Event> {
        let taken = self.taken.as_ref().filter(|taken| !taken.is_begun)?;
        let event = Event::new(Act::TakeOverEngine.name(), SERVER, Outcome::Done)
            .with("gateway", &self.address)
            .with("head", taken.known.number);
        Some(event)
    }

    /// How long a write waits for the log.
    pub(crate) fn sync(&self) -> SyncEntry {
        SyncEntry {
            wait_ms: u64::try_from(ENGINE_WRITE_WAIT.as_millis()).unwrap_or(u64::MAX),
            since_ms: None,
        }
    }

    /// Has the registry hold the log that was taken over, and nothing else.
    pub(crate) fn adopt(&self, registry: &Registry) -> Result<()> {
        let Some(taken) = &self.taken else {
            return Ok(());
        };
        let entry = Entry {
            name: LOG_NAME.to_owned(),
            url: self.from.url().to_owned(),
            id: taken.id,
            cursor: 0,
            made_ms: taken.made_ms,
            removed_ms: None,
            newest_ms: None,
            known: Some(taken.known.clone()),
            as_of_ms: 0,
            keep_ms: ENGINE_KEEP_MS,
            rested: (!taken.is_begun).then_some(taken.known.number),
            keystore: Some(self.with_keystore()),
            sync: Some(SyncEntry {
                since_ms: (!taken.is_begun).then(now_ms),
                ..self.sync()
            }),
            fenced_off: None,
        };
        registry.change(|entries| *entries = vec![entry])
    }
}

impl Copies {
    /// Remembers which receipts of erases wait for the log to take a keystore: who takes it over
    /// finds them in what it has. Blocks.
    pub(crate) fn find_pending(&self, system: &System) -> Result<()> {
        let log = self.registry.get(LOG_NAME)?;
        let mut pending = Vec::new();
        for id in system.receipts_pending_in(&log.id.to_string(), LOG_NAME)? {
            let receipt = system.receipt(&id)?;
            // In doubt as well: that stays pending.
            if receipt.is_some_and(|receipt| may_wait_for(&receipt, &log)) {
                pending.push(id);
            }
        }
        if pending.is_empty() {
            return Ok(());
        }
        self.registry
            .change_keystore(log.id, |with| with.pending = pending)
    }

    /// Those of a data folder; of a gateway, the log of its engine.
    pub(crate) fn open(
        folder: &Folder,
        keystore: &Keystore,
        seat: Option<&EngineSeat>,
    ) -> Result<Self> {
        let copies = Self::new(Registry::open(folder.path(), keystore));
        if let Some(seat) = seat {
            // What was served while the log was followed.
            let _ = fs::remove_dir_all(folder.standby());
            seat.adopt(&copies.registry)?;
            copies.waited_for.hold_readers();
        }
        Ok(copies)
    }
}
