//! Who reads a copy that its task may remove from.
//!
//! What is out of the window goes with the heads that named it. A reader that comes meanwhile
//! waits: the head that it would find may be the next to go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{Mutex, OwnedMutexGuard};

/// How many read a copy, and whether something is being removed from it.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    count: AtomicUsize,
    removing: Arc<Mutex<()>>,
}

/// Keeps what is read from being removed.
pub(crate) struct Reading(Arc<Readers>);

impl Readers {
    /// Whether one reads, or waits for that.
    pub(crate) fn is_read(&self) -> bool {
        self.count.load(Ordering::SeqCst) > 0
    }

    /// Has readers wait, for as long as this is held, before they look which head is the newest;
    /// none, where one reads already.
    pub(crate) fn begin_removal(&self) -> Option<OwnedMutexGuard<()>> {
        let removing = self.removing.clone().try_lock_owned().ok()?;
        (!self.is_read()).then_some(removing)
    }
}

impl Reading {
    /// Begins as soon as nothing is removed any more, and no removal begins before it ends.
    pub(crate) async fn begin(readers: Arc<Readers>) -> Self {
        readers.count.fetch_add(1, Ordering::SeqCst);
        let reading = Self(readers);
        drop(reading.0.removing.lock().await);
        reading
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.count.fetch_sub(1, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn readers_and_removals_wait_for_each_other() {
        let readers = Arc::<Readers>::default();
        let removing = readers.begin_removal().unwrap();
        let mut begun = tokio::spawn(Reading::begin(readers.clone()));
        let early = timeout(Duration::from_millis(50), &mut begun).await;
        assert!(early.is_err(), "it reads what is being removed");
        assert!(readers.is_read(), "the removal is to end soon");
        drop(removing);
        let reading = begun.await.unwrap();
        assert!(readers.begin_removal().is_none());
        let other = Reading::begin(readers.clone()).await;
        drop(reading);
        assert!(readers.begin_removal().is_none());
        drop(other);
        assert!(readers.begin_removal().is_some());
    }

    #[tokio::test]
    async fn one_that_is_not_waited_for_any_more_is_no_reader() {
        let readers = Arc::<Readers>::default();
        let removing = readers.begin_removal().unwrap();
        let left = timeout(Duration::from_millis(50), Reading::begin(readers.clone())).await;
        assert!(left.is_err());
        assert!(!readers.is_read());
        drop(removing);
        assert!(readers.begin_removal().is_some());
    }
}
