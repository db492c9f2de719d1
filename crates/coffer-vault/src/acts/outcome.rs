//! What changes come to, and as what outcomes are recorded.

use coffer_audit::Outcome;
use coffer_seal::BlobId;

use crate::access::Act;
use crate::audit::Facts;
use crate::error::{Result, VaultError};

/// What a change did.
pub(crate) struct Changed<T> {
    pub(crate) value: T,
    /// Blobs that no row refers to any more.
    pub(crate) freed: Vec<BlobId>,
    /// Which of the things that the act was on failed, by their places; nothing became of those.
    pub(crate) failed: Vec<usize>,
    /// What is recorded of some of them now that they are done, by their places.
    pub(crate) told: Vec<(usize, Facts)>,
}

impl<T> Changed<T> {
    /// All was done, and these blobs were freed.
    pub(crate) fn freeing(value: T, freed: Vec<BlobId>) -> Self {
        Self {
            value,
            freed,
            failed: Vec::new(),
            told: Vec::new(),
        }
    }
}

/// As what a look is recorded that has ended so. A condition or a range that is not met tells of an
/// object what a HEAD does; that something is not there is told as well.
pub(super) fn recorded_as<T>(act: Act, outcome: &Result<T>) -> (Act, Outcome) {
    match outcome {
        Ok(_) => (act, Outcome::Done),
        Err(
            VaultError::PreconditionFailed
            | VaultError::NotModified { .. }
            | VaultError::InvalidRange { .. }
            | VaultError::NoSuchPart,
        ) if matches!(act, Act::ReadObject | Act::HeadObject) => (Act::HeadObject, Outcome::Done),
        Err(_) => (act, Outcome::Failed),
    }
}
