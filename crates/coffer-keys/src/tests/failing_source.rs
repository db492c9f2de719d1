//! Root-key sources that fail: on a disk that loses power, or at a chosen call.

use std::path::Path;
use std::sync::Arc;

use coffer_durable::simulated::SimulatedDisk;
use parking_lot::Mutex;

use crate::error::KeysError;
use crate::root::key_file::{KeyFile, RootText};
use crate::root::memory::MemoryRoot;
use crate::root::source::{RootKey, RootMedium, RootSource};
use crate::token_setup::TokenSetupError;

/// A source that keeps a file, on a disk that fails.
#[derive(Clone)]
pub(crate) struct FileOnDisk {
    pub(crate) disk: SimulatedDisk,
    pub(crate) name: &'static str,
    pub(crate) kind: Arc<dyn RootText + Send + Sync>,
}

impl FileOnDisk {
    fn file(&self) -> KeyFile<'_> {
        let path = Path::new(self.name);
        KeyFile::on(self.disk.boxed(), self.name, path, &*self.kind)
    }
}

impl RootSource for FileOnDisk {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        self.file().candidates()
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        self.file().add()
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        self.file().keep_only(kept)
    }

    fn describe(&self) -> String {
        "a file on a disk that fails".to_owned()
    }

    fn medium(&self) -> RootMedium {
        MemoryRoot::new().medium()
    }
}

/// Which of a source's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Candidates,
    Add,
    KeepOnly,
}

/// Whether a call that fails did its work all the same, as when only its answer was lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    Undone,
    Done,
}

/// A token or a keyring: off the disk, and at a chosen call it reports a failure.
#[derive(Clone, Default)]
pub(crate) struct FailingToken {
    pub(crate) keys: MemoryRoot,
    /// The call that fails: of which kind, after how many others of it, and what became of it.
    pub(crate) fault: Arc<Mutex<Option<(Call, usize, Effect)>>>,
}

impl FailingToken {
    pub(crate) fn fail(&self, fault: Option<(Call, usize, Effect)>) {
        *self.fault.lock() = fault;
    }

    /// Whether the fault is still to come.
    pub(crate) fn is_waiting(&self) -> bool {
        self.fault.lock().is_some()
    }

    fn run<T>(
        &self,
        call: Call,
        act: impl FnOnce() -> Result<T, KeysError>,
    ) -> Result<T, KeysError> {
        let mut fault = self.fault.lock();
        match &mut *fault {
            Some((kind, 0, effect)) if *kind == call => {
                if *effect == Effect::Done {
                    act()?;
                }
                *fault = None;
                let label = "it was pulled out".to_owned();
                Err(TokenSetupError::NoSuchToken { label }.into())
            }
            Some((kind, others, _)) if *kind == call => {
                *others -= 1;
                act()
            }
            _ => act(),
        }
    }
}

impl RootSource for FailingToken {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        self.run(Call::Candidates, || self.keys.candidates())
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        self.run(Call::Add, || self.keys.add())
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        self.run(Call::KeepOnly, || self.keys.keep_only(kept))
    }

    fn describe(&self) -> String {
        "a token that fails".to_owned()
    }

    fn medium(&self) -> RootMedium {
        self.keys.medium()
    }
}
