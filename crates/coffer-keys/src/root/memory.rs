//! The root key in this process's memory.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::error::KeysError;
use crate::root::source::{RootKey, RootMedium, RootSource, Sanitization};

/// Root keys that are nowhere but in memory: for tests, and for data that must not outlive the
/// process. Clones share their keys.
#[derive(Debug, Clone, Default)]
pub struct MemoryRoot(Arc<Mutex<Vec<RootKey>>>);

impl MemoryRoot {
    /// A source without a key.
    pub fn new() -> Self {
        Self::default()
    }

    /// A source that holds this key.
    pub fn holding(root: RootKey) -> Self {
        Self(Arc::new(Mutex::new(vec![root])))
    }
}

impl RootSource for MemoryRoot {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        Ok(self.0.lock().clone())
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        let mut keys = self.0.lock();
        if keys.len() > 1 {
            return Err(KeysError::RootUnsettled {
                place: self.describe(),
            });
        }
        let root = RootKey::generate();
        keys.push(root.clone());
        Ok(root)
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        let mut keys = self.0.lock();
        if kept.is_some_and(|kept| !keys.contains(kept)) {
            return Err(KeysError::RootMissing {
                place: self.describe(),
            });
        }
        keys.retain(|key| Some(key) == kept);
        Ok(())
    }

    fn describe(&self) -> String {
        "memory".to_owned()
    }

    fn medium(&self) -> RootMedium {
        RootMedium {
            category: Sanitization::Clear,
            holder: "memory of the server's process".to_owned(),
            destruction: "zeroized".to_owned(),
            remaining: "a dump of the process's memory, or memory that was swapped out, taken \
                        while the key was in use"
                .to_owned(),
        }
    }
}
