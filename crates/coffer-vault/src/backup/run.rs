//! A backup under way: where it goes, and what is told of it.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::mpsc;

use super::destination::Destination;
use super::{BackupCounts, BackupEvent};
use crate::access::BucketName;
use crate::error::{BackupError, Result};
use crate::limits::BACKUP_PROGRESS_EVERY;
use crate::vault::Vault;

pub(super) struct Run {
    pub(super) vault: Vault,
    pub(super) destination: Arc<Destination>,
    pub(super) events: mpsc::Sender<BackupEvent>,
    /// The folder that is being filled.
    pub(super) folder: PathBuf,
    pub(super) counts: BackupCounts,
    /// Buckets of which nothing is in the data folder.
    pub(super) left_out: Vec<BucketName>,
    /// Blobs that catalogs name and that are not there.
    pub(super) missing_count: u64,
    told: Mutex<Instant>,
}

impl Run {
    pub(super) fn new(
        vault: Vault,
        destination: Arc<Destination>,
        events: mpsc::Sender<BackupEvent>,
    ) -> Self {
        Self {
            folder: destination.unfinished(),
            vault,
            destination,
            events,
            counts: BackupCounts::default(),
            left_out: Vec::new(),
            missing_count: 0,
            told: Mutex::new(Instant::now()),
        }
    }

    /// Tells now and then how far it is.
    ///
    /// # Errors
    /// When the one who listened has gone: it is over then.
    pub(super) async fn tell(&self, counts: BackupCounts) -> Result<()> {
        {
            let mut told = self.told.lock();
            if told.elapsed() < BACKUP_PROGRESS_EVERY {
                return Ok(());
            }
            *told = Instant::now();
        }
        let sent = self.events.send(BackupEvent::Progress(counts)).await;
        Ok(sent.map_err(|_| BackupError::ListenerGone)?)
    }
}
