//! Labels: rank and categories together.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use crate::category::Categories;
use crate::error::LabelError;
use crate::limits::TEXT_MAX_BYTES;
use crate::rank::Rank;

/// How sensitive something is: a rank, and the categories it belongs to.
///
/// Its text is SELinux's, `s2:c1.c3,c7`, or `s2` without categories. `>=` is the same as
/// [`Label::dominates`]; labels of which neither dominates the other compare as neither.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Label {
    /// How sensitive.
    pub rank: Rank,
    /// About what.
    pub categories: Categories,
}

impl Label {
    /// The label that every label dominates: `s0`.
    pub const LOWEST: Self = Self {
        rank: Rank::LOWEST,
        categories: Categories::NONE,
    };

    /// The label that dominates every label: `s15:c0.c1023`.
    pub const HIGHEST: Self = Self {
        rank: Rank::HIGHEST,
        categories: Categories::ALL,
    };

    /// Whether this label is at least as sensitive as `other` in every way: its rank is not
    /// lower, and it has all of the other's categories.
    pub fn dominates(&self, other: &Self) -> bool {
        self.rank >= other.rank && self.categories.includes(&other.categories)
    }

    /// The lowest label that dominates both: what a mixture of the two must be labelled.
    pub fn join(&self, other: &Self) -> Self {
        Self {
            rank: self.rank.max(other.rank),
            categories: self.categories.union(&other.categories),
        }
    }

    /// The highest label that both dominate.
    pub fn meet(&self, other: &Self) -> Self {
        Self {
            rank: self.rank.min(other.rank),
            categories: self.categories.intersection(&other.categories),
        }
    }
}

impl PartialOrd for Label {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        match (self.dominates(other), other.dominates(self)) {
            (true, true) => Some(Ordering::Equal),
            (true, false) => Some(Ordering::Greater),
            (false, true) => Some(Ordering::Less),
            (false, false) => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.categories.is_empty() {
            write!(f, "{}", self.rank)
        } else {
            write!(f, "{}:{}", self.rank, self.categories)
        }
    }
}

impl FromStr for Label {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        check_length(text)?;
        let (rank, categories) = match text.split_once(':') {
            // A colon with nothing behind it is a category that was forgotten.
            Some((_, "")) => return Err(LabelError::Category),
            Some((rank, categories)) => (rank, categories),
            None => (text, ""),
        };
        Ok(Self {
            rank: rank.parse()?,
            categories: categories.parse()?,
        })
    }
}

pub(crate) fn check_length(text: &str) -> Result<(), LabelError> {
    if text.len() > TEXT_MAX_BYTES {
        return Err(LabelError::TooLong {
            text_bytes: text.len(),
        });
    }
    Ok(())
}
