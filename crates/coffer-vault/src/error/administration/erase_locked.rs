//! Locks that stand against an erase.

use std::fmt;

use coffer_durable::rfc3339;
use coffer_store::lock::StandingLocks;

/// What an erase would destroy is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EraseLocked {
    /// A bucket that holds it.
    pub bucket: String,
    /// How many objects are locked there, at most, however they are.
    pub count: u64,
    /// How many are locked now, kind by kind, where they were counted.
    pub counted: Option<StandingLocks>,
    /// Until when the last one for compliance is, at the latest, in milliseconds since 1970.
    pub compliance_until_ms: Option<i64>,
    /// Until when the last one for governance is, at the latest, in milliseconds since 1970.
    pub governance_until_ms: Option<i64>,
    /// Whether there is a hold, which has no end.
    pub has_hold: bool,
}

impl EraseLocked {
    /// Whether two people would be enough, for it is locked for governance only.
    pub fn takes_two(&self) -> bool {
        !self.has_hold && self.compliance_until_ms.is_none()
    }
}

impl std::error::Error for EraseLocked {}

impl fmt::Display for EraseLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counted = self.counted;
        let count = match (counted, self.takes_two()) {
            (None, _) => self.count,
            (Some(counted), true) => counted.governance,
            (Some(counted), false) => counted.strict,
        };
        let number = |of: fn(StandingLocks) -> u64| {
            counted.map_or(String::new(), |counted| format!("{} ", of(counted)))
        };
        let until = |until_ms: Option<i64>| {
            let text = until_ms.map(|ms| format!(" until {} at the latest", rfc3339(ms)));
            text.unwrap_or_default()
        };
        write!(
            f,
            "objects in the bucket {} are locked: {count} at most",
            self.bucket
        )?;
        if self.compliance_until_ms.is_some() {
            let (number, until) = (number(|of| of.compliance), until(self.compliance_until_ms));
            write!(f, ", {number}for compliance{until}")?;
        }
        if self.has_hold {
            let some = counted.map_or("some".to_owned(), |counted| counted.held.to_string());
            write!(
                f,
                ", {some} by a legal hold, which lasts until it is taken off"
            )?;
        }
        let (governed, until) = (number(|of| of.governance), until(self.governance_until_ms));
        if self.takes_two() {
            return write!(
                f,
                ", {governed}for governance{until}; it takes two people to erase them"
            );
        }
        f.write_str(
            "; nothing is erased before that ends, for the level was not made with \
             --erase-breaks-locks",
        )?;
        if self.governance_until_ms.is_some() {
            write!(
                f,
                " ({governed}for governance{until} would give way to two people)"
            )?;
        }
        Ok(())
    }
}
