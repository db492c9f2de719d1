//! Ranks: how sensitive, as a number.

use std::fmt;
use std::str::FromStr;

use crate::error::LabelError;
use crate::limits::RANK_COUNT;

/// A rank, `s0` (lowest) to `s15`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rank(u8);

impl Rank {
    /// The lowest rank, `s0`.
    pub const LOWEST: Self = Self(0);

    /// The highest rank, `s15`.
    pub const HIGHEST: Self = Self(RANK_COUNT - 1);

    /// The rank with this number, 0 to 15.
    ///
    /// # Errors
    ///
    /// [`LabelError::Rank`] when there is none.
    pub const fn new(number: u8) -> Result<Self, LabelError> {
        if number < RANK_COUNT {
            Ok(Self(number))
        } else {
            Err(LabelError::Rank)
        }
    }

    /// The rank's number, 0 to 15.
    pub const fn number(self) -> u8 {
        self.0
    }
}

impl fmt::Display for Rank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}", self.0)
    }
}

impl FromStr for Rank {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        let number = text.strip_prefix('s').and_then(parse_decimal);
        number
            .and_then(|number| u8::try_from(number).ok())
            .ok_or(LabelError::Rank)
            .and_then(Self::new)
    }
}

/// A decimal number as it is written by `Display`: no sign, no leading zero. One spelling for
/// each number means that two texts of the same rank or category are equal.
pub(crate) fn parse_decimal(text: &str) -> Option<u16> {
    let canonical = text == "0" || text.starts_with(|first: char| ('1'..='9').contains(&first));
    canonical.then(|| text.parse().ok()).flatten()
}
