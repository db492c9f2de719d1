//! Clearances: the labels that a subject may work at.

use std::fmt;
use std::str::FromStr;

use crate::error::LabelError;
use crate::label::{Label, check_length};

/// A range of labels, from `low` to a `high` that dominates it.
///
/// Its text is SELinux's, `s0-s2:c1`, or one label alone when both are the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clearance {
    low: Label,
    high: Label,
}

impl Clearance {
    /// The clearance from `low` to `high`.
    ///
    /// # Errors
    ///
    /// [`LabelError::Clearance`] when `high` doesn't dominate `low`.
    pub fn new(low: Label, high: Label) -> Result<Self, LabelError> {
        if high.dominates(&low) {
            Ok(Self { low, high })
        } else {
            Err(LabelError::Clearance)
        }
    }

    /// The lowest label of the range.
    pub fn low(&self) -> &Label {
        &self.low
    }

    /// The highest label of the range.
    pub fn high(&self) -> &Label {
        &self.high
    }

    /// Whether a label lies within the range: `high` dominates it, and it dominates `low`.
    pub fn contains(&self, label: &Label) -> bool {
        self.high.dominates(label) && label.dominates(&self.low)
    }
}

impl fmt::Display for Clearance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.low == self.high {
            write!(f, "{}", self.low)
        } else {
            write!(f, "{}-{}", self.low, self.high)
        }
    }
}

impl FromStr for Clearance {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        check_length(text)?;
        let (low, high) = text.split_once('-').unwrap_or((text, text));
        Self::new(low.parse()?, high.parse()?)
    }
}
