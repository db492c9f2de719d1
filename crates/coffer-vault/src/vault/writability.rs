//! Whether the data folder can be written, for who asks whether the server is ready: tried, with a
//! write that leaves nothing, and not more often than it tells something.

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::time::Instant;

use coffer_durable::try_write;
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::error::is_out_of_files;
use crate::limits::{TRY_WRITE_EVERY, TRY_WRITE_TIME};
use crate::vault::Vault;

/// How it went last.
#[derive(Default)]
pub(crate) struct Writability(Arc<Mutex<Option<Tried>>>);

/// When it was tried, and what was wrong.
type Tried = (Instant, Option<String>);

impl Vault {
    /// Why nothing can be written to the data folder, if so. A disk that is merely full is not
    /// meant: it takes deletions, and refuses the rest by itself.
    pub async fn why_not_writable(&self) -> Option<String> {
        let last = self.inner.writability.0.clone();
        let path = self.data().to_owned();
        let look = async move {
            let mut last = last.lock_owned().await;
            if let Some((at, found)) = &*last
                && at.elapsed() < TRY_WRITE_EVERY
            {
                return found.clone();
            }
            // It holds the lock for as long as it takes, so that one is under way at most.
            let tried = tokio::task::spawn_blocking(move || {
                let found = try_write(&path).err().and_then(told);
                let before = last.replace((Instant::now(), found.clone()));
                let before = before.and_then(|(_, found)| found);
                match (&before, &found) {
                    (None, Some(error)) => {
                        tracing::error!(error, "the data folder can't be written");
                    }
                    (Some(_), None) => tracing::warn!("the data folder can be written again"),
                    _ => {}
                }
                found
            });
            tried.await.unwrap_or_default()
        };
        let stuck = "a write has been under way for too long";
        let looked = timeout(TRY_WRITE_TIME, look).await;
        looked.unwrap_or_else(|_| Some(stuck.to_owned()))
    }
}

/// What is wrong with the folder itself.
fn told(error: io::Error) -> Option<String> {
    let is_passing = matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded
    );
    (!is_passing && !is_out_of_files(&error)).then(|| error.to_string())
}
