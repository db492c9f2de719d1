//! What the copy says of itself, noted where a head was opened by it: where its store shows another
//! copy in its place, or lost that, a start knows it.

use std::fs;
use std::path::{Path, PathBuf};

use coffer_replica::{CopyReader, CopyRecord, Place, ReplicaError, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Standby, standby_folder, states};
use crate::blocking::blocking;
use crate::data_folder::{Folder, write_private};
use crate::engine::{note_record, noted_record};
use crate::error::{Result, VaultError};

/// What is noted in the folder of a standby; a gateway notes it in its `engine.json`.
#[derive(Serialize, Deserialize)]
struct Noted {
    /// Of the copy at this URL: at another is another.
    url: String,
    record: Value,
}

impl Noted {
    fn of(url: String, record: &CopyRecord) -> Result<Self> {
        let record = serde_json::to_value(record).map_err(|_| VaultError::Damaged)?;
        Ok(Self { url, record })
    }

    fn write(&self, data: &Path) -> Result<()> {
        Folder::assure_own(data)?;
        states::make_private(&standby_folder(data))?;
        let text = serde_json::to_string(self).map_err(|_| VaultError::Damaged)?;
        write_private(&noted_path(data), &format!("{text}\n"))
    }
}

fn noted_path(data: &Path) -> PathBuf {
    standby_folder(data).join("copy.json")
}

/// What an earlier run noted of the copy in this place. Blocks.
pub(super) fn noted(data: &Path, from: &Place, is_of_engine: bool) -> Option<CopyRecord> {
    if is_of_engine {
        return noted_record(data);
    }
    let text = fs::read(noted_path(data)).ok()?;
    let noted = serde_json::from_slice::<Noted>(&text).ok()?;
    (noted.url == from.public_url()).then(|| CopyRecord::kept(&noted.record))?
}

impl Standby {
    /// What the copy says of itself; where its store lost that, what it said before. Where it says
    /// that it is another, no head opens by that, and none is damaged.
    pub(super) async fn record(&self, store: &Store) -> Result<CopyRecord> {
        match (CopyRecord::read(&**store).await, &self.record) {
            (Err(ReplicaError::RecordLost | ReplicaError::RecordUnreadable), Some(before)) => {
                Ok(before.clone())
            }
            (Ok(found), Some(before)) => {
                before.check_own(&found)?;
                Ok(found)
            }
            (record, _) => Ok(record?),
        }
    }

    /// A head was opened by what the copy says of itself: that is true, and is kept.
    pub(super) async fn note_record(&mut self) {
        let reached = self.reached.as_ref().map(|reached| &reached.record);
        let is_new =
            |record: &&CopyRecord| !self.has_noted || self.record.as_ref() != Some(*record);
        let Some(record) = reached.filter(is_new) else {
            return;
        };
        let (data, noted) = (self.data().to_owned(), record.clone());
        let url = self.from.public_url();
        let is_of_engine = self.link.is_of_engine();
        self.record = Some(record.clone());
        let noted = blocking(move || {
            if is_of_engine {
                note_record(&data, noted)
            } else {
                Noted::of(url, &noted)?.write(&data)
            }
        });
        let noted = noted.await;
        self.has_noted = noted.is_ok();
        if let Err(error) = noted {
            tracing::warn!(%error, "what the copy says of itself could not be noted here");
        }
    }

    /// Has the copy say again what it said of itself, where its store lost that: its writer is
    /// about to be the one that goes on from this.
    pub(super) async fn put_record_again(&self, near: &CopyReader) -> Result<()> {
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        let (copy, keystore) = (near.copy(), reached.keystore.id());
        if copy.put_record_again(keystore, Some(near.known())).await? {
            tracing::warn!("copy.json was missing in the copy's place, and was put there again");
        }
        Ok(())
    }
}
