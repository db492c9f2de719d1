//! Who uses an open bucket, counted: one that is in use is not closed to make room, and an erase
//! waits until it is not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The users of a bucket, those who wait for its opening among them. Clones are of the same bucket.
#[derive(Clone, Default)]
pub(super) struct Users(Arc<AtomicUsize>);

impl Users {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    /// One more, until it is dropped.
    pub(super) fn add(&self) -> User {
        self.0.fetch_add(1, Ordering::SeqCst);
        User(self.clone())
    }
}

/// One that is counted.
pub(super) struct User(Users);

impl Clone for User {
    fn clone(&self) -> Self {
        self.0.add()
    }
}

impl Drop for User {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::SeqCst);
    }
}
