//! As what outcomes are recorded.

use coffer_audit::Outcome;

use crate::access::Act;
use crate::error::{Result, VaultError};

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
