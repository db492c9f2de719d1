//! Locks that stand against an erase.

use std::fmt;

use coffer_durable::rfc3339;

/// What an erase would destroy is locked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EraseLocked {
    /// A bucket that holds it.
    pub bucket: String,
    /// How many objects are locked there, at most.
    pub count: u64,
    /// Until when the last of them is, at the latest, in milliseconds since 1970.
    pub until_ms: Option<i64>,
    /// Whether there is a hold, which has no end.
    pub has_hold: bool,
    /// Whether two people would be enough, for it is locked for governance only.
    pub takes_two: bool,
}

impl std::error::Error for EraseLocked {}

impl fmt::Display for EraseLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            bucket,
            count,
            until_ms,
            has_hold,
            takes_two,
        } = self;
        write!(
            f,
            "objects in the bucket {bucket} are locked: {count} at most"
        )?;
        if let Some(until_ms) = until_ms {
            write!(f, ", until {} at the latest", rfc3339(*until_ms))?;
        }
        if *has_hold {
            f.write_str(", some by a legal hold, which lasts until it is taken off")?;
        }
        f.write_str(if *takes_two {
            "; it takes two people to erase them (governance)"
        } else {
            "; nothing is erased before that ends, for the level was not made with \
             --erase-breaks-locks"
        })
    }
}
