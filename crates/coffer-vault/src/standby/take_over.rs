//! Taking over: a gateway of an engine that has the lease goes on with the log, in the next epoch,
//! and its folder becomes a data folder of all that the log holds.
//!
//! What was acknowledged is in a head, so nothing is lost, and nothing is a rollback. The head that
//! takes the epoch is the moment: the gateway that wrote the log before creates none after it.

use coffer_replica::{CopyReader, CopyWriter, ReplicaError};
use tokio::sync::oneshot;

use super::Standby;
use super::keystore::check_head;
use super::promote::remove_progress;
use crate::backup::forget;
use crate::blocking::blocking;
use crate::copies::TakenLog;
use crate::error::{BackupError, CopyError, Result, VaultError};
use crate::fence::{ServingRight, StandbyState};

impl Standby {
    /// Takes the log over, and answers. None, if that failed: then it goes on following.
    pub(super) async fn try_take_over(
        &mut self,
        right: ServingRight,
        answer: oneshot::Sender<Result<()>>,
    ) -> Option<TakenLog> {
        match self.take_over(right).await {
            Ok(log) => {
                let _ = answer.send(Ok(()));
                Some(log)
            }
            Err(error) => {
                let ended_by = promoted_by(&error);
                let error = self.told_of_log(error);
                self.link.change(|told| {
                    told.ended_by = ended_by.or(told.ended_by);
                    told.state = StandbyState::Failing;
                    told.problem = Some(format!("it could not take the log over: {error}"));
                });
                self.reached = None;
                let _ = answer.send(Err(error));
                None
            }
        }
    }

    async fn take_over(&mut self, right: ServingRight) -> Result<TakenLog> {
        // As near as it can be before the one that served is fenced off.
        let near = self.reach_newest().await?;
        self.note_record().await;
        self.fetch(&near).await?;
        // Fetching may have taken longer than the lease: then another may have the log.
        right.check()?;
        self.put_record_again(&near).await?;
        right.check()?;
        let writer = CopyWriter::resume_engine(near.copy().clone(), Some(near.known())).await?;
        let last = CopyReader::of(&writer)?;
        self.known = Some(last.known().clone());
        self.reach().await?;
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        check_head(&last, &reached.reference)?;
        self.fetch(&last).await?;
        let data = self.data().to_owned();
        blocking(move || {
            remove_progress(&data)?;
            forget(&data)
        })
        .await?;
        let missing_count: u64 = self.held.missing.values().sum();
        if missing_count > 0 {
            tracing::error!(missing_count, "the log lacks blobs that its catalogs name");
        }
        Ok(TakenLog::new(writer, right))
    }
}

/// By which head a standby was promoted, where that keeps the log from being taken over.
fn promoted_by(error: &VaultError) -> Option<u64> {
    match error {
        VaultError::Backup(BackupError::Copy(CopyError::Replica(ReplicaError::Promoted {
            number,
        }))) => Some(*number),
        _ => None,
    }
}
