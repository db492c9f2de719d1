//! Whether a log goes on from what was written there last.

use super::CopyReader;
use crate::error::{ReplicaError, Result};
use crate::write::WrittenEnd;

impl CopyReader {
    /// Refuses a log that does not go on from what was written there last: one that is shorter, and
    /// one in which another has its place, as where its newest part was lost before another wrote
    /// on. What left the window, or does not open any more, counts by its number alone.
    ///
    /// # Errors
    /// [`ReplicaError::RolledBack`], [`ReplicaError::Replaced`]; of the store.
    pub async fn check_goes_on_from(&self, written: &WrittenEnd) -> Result<()> {
        let Some(known) = written.known_in(self.copy.id()) else {
            return Ok(());
        };
        let number = known.number;
        let newest = self.known();
        if newest.number < number {
            let (found, known) = (newest.number, number);
            return Err(ReplicaError::RolledBack { found, known });
        }
        match self.copy.entry(number).await {
            Ok(found) if found.known != known => Err(ReplicaError::Replaced { number }),
            Ok(_) | Err(ReplicaError::Missing { .. } | ReplicaError::Altered { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
