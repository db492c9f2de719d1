//! How serving ends: nothing new, then nothing at all.

use tokio_util::sync::CancellationToken;

/// Tells all parts of the server how far the end has come. Clones are the same.
#[derive(Debug, Clone)]
pub struct Shutdown {
    /// What is under way may end; nothing new begins.
    pub drain: CancellationToken,
    /// What is still under way is cut off, and nothing new begins, either.
    pub abort: CancellationToken,
}

impl Default for Shutdown {
    fn default() -> Self {
        let abort = CancellationToken::new();
        Self {
            drain: abort.child_token(),
            abort,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_off_begins_nothing_new_either() {
        let shutdown = Shutdown::default();
        shutdown.drain.cancel();
        assert!(!shutdown.abort.is_cancelled());
        let shutdown = Shutdown::default();
        shutdown.abort.cancel();
        assert!(shutdown.drain.is_cancelled());
    }
}
