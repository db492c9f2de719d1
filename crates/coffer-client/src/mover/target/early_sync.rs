//! Writing a file to the disk while more of it is fetched, so that little is left in the end.

use std::fs::File;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use tokio::task::spawn_blocking;

/// Syncs of one file, one at a time.
#[derive(Default)]
pub(super) struct EarlySync(Arc<State>);

#[derive(Default)]
struct State {
    is_running: AtomicBool,
    /// Held while one goes on. The kernel tells each failure once.
    failure: Mutex<Option<io::Error>>,
}

impl EarlySync {
    /// Begins one, unless one goes on. How it went, [`finish`](Self::finish) tells.
    pub(super) fn begin(&self, file: &Arc<File>) {
        if self.0.is_running.swap(true, Ordering::AcqRel) {
            return;
        }
        let (file, state) = (Arc::clone(file), Arc::clone(&self.0));
        spawn_blocking(move || {
            let mut failure = state.failure.lock();
            if let Err(error) = file.sync_data() {
                failure.get_or_insert(error);
            }
            state.is_running.store(false, Ordering::Release);
        });
    }

    /// Waits for the one that goes on, and syncs all.
    pub(super) fn finish(&self, file: &File) -> io::Result<()> {
        let mut failure = self.0.failure.lock();
        file.sync_all()?;
        failure.take().map_or(Ok(()), Err)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_an_early_one_could_not_write_is_told_in_the_end() {
        let file = Arc::new(tempfile::tempfile().unwrap());
        let early = EarlySync::default();
        early.begin(&file);
        early.finish(&file).unwrap();
        let failure = io::Error::from(io::ErrorKind::StorageFull);
        *early.0.failure.lock() = Some(failure);
        let told = early.finish(&file).unwrap_err();
        assert_eq!(told.kind(), io::ErrorKind::StorageFull);
    }
}
