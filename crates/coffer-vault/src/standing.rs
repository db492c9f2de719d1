//! Whether a subject's requests may go on: taken away while they are under way when its access key
//! is disabled, expires or is deleted, or when its access shrinks.

use std::sync::atomic::{AtomicBool, Ordering};

/// What requests under way hang on. All who hold the same one are cut off together.
#[derive(Debug, Default)]
pub(crate) struct Standing {
    is_cut: AtomicBool,
}

impl Standing {
    /// Cuts off whoever holds it, for good.
    pub(crate) fn cut(&self) {
        self.is_cut.store(true, Ordering::SeqCst);
    }

    /// Whether it has been cut.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::SeqCst)
    }
}
