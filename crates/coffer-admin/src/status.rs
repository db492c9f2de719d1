//! What the server is doing.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

/// What the server is doing. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<AtomicU8>);

const STARTING: u8 = 0;
const SERVING: u8 = 1;
const STOPPING: u8 = 2;

impl Status {
    /// It serves from now on.
    pub fn serves(&self) {
        self.0.store(SERVING, Ordering::Release);
    }

    /// It takes no new work from now on.
    pub fn stops(&self) {
        self.0.store(STOPPING, Ordering::Release);
    }

    /// Whether it takes new work.
    pub fn is_ready(&self) -> bool {
        self.0.load(Ordering::Acquire) == SERVING
    }

    /// In a word.
    pub fn word(&self) -> &'static str {
        match self.0.load(Ordering::Acquire) {
            STARTING => "starting",
            SERVING => "ready",
            _ => "stopping",
        }
    }
}
