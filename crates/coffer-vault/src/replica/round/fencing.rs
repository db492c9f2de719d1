//! What a copy's task tells of who else may serve, where the copy fences the server off.

use std::time::Instant;

use coffer_replica::ReplicaError;

use super::Round;
use crate::error::{BackupError, CopyError, Result, VaultError};

impl Round {
    /// Whether this copy fences the server off.
    pub(in crate::replica) fn fences(&self) -> Result<bool> {
        Ok(self.inner()?.gate.is_fenced_by(self.name()))
    }

    /// The copy, asked at that time, said that none serves in this one's place.
    pub(in crate::replica) fn is_alone(&self, at: Instant) -> Result<()> {
        self.inner()?.gate.alone(self.name(), at);
        Ok(())
    }

    /// Tells how it went.
    pub(in crate::replica) fn tell_gate(&self, done: &Result<()>) {
        let (Err(error), Ok(inner)) = (done, self.inner()) else {
            return;
        };
        let why = error.to_string();
        if is_of_another(error) {
            inner.gate.ended(self.name(), why);
        } else {
            inner.gate.not_reached(self.name(), why);
        }
    }
}

/// Whether it says that another server writes the copy, or serves in place of this one.
fn is_of_another(error: &VaultError) -> bool {
    let VaultError::Backup(BackupError::Copy(CopyError::Replica(error))) = error else {
        return false;
    };
    matches!(
        error,
        ReplicaError::Promoted { .. } | ReplicaError::OfEngine { .. } | ReplicaError::Fenced { .. }
    )
}
