//! The vault that is served, and another in its place: the states of a standby.

use std::ops::Deref;
use std::sync::Arc;

use coffer_vault::Vault;
use parking_lot::RwLock;
use s3s::service::S3Service;

use super::Door;

/// What is served for a while.
pub(super) struct Turn {
    pub(super) s3s: S3Service,
    pub(super) vault: Vault,
    /// Held, beside by this, by all that is under way.
    pub(super) lease: Arc<()>,
}

/// What is served now.
pub(super) struct Turns(RwLock<Arc<Turn>>);

impl Turns {
    pub(super) fn new(turn: Turn) -> Self {
        Self(RwLock::new(Arc::new(turn)))
    }

    /// Serves this from now on.
    pub(super) fn turn(&self, next: Turn) {
        *self.0.write() = Arc::new(next);
    }

    /// What is served.
    pub(super) fn current(&self) -> Arc<Turn> {
        self.0.read().clone()
    }
}

/// The service for one request: the vault that it is about, to its end.
pub(super) struct Serving {
    pub(super) at: Arc<Turn>,
    pub(super) door: Arc<Door>,
}

impl Deref for Serving {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}
