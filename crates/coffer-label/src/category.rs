//! Categories: what something is about, as a set.

use std::fmt;
use std::str::FromStr;

use crate::error::LabelError;
use crate::limits::CATEGORY_COUNT;
use crate::rank::parse_decimal;

const WORD_COUNT: usize = CATEGORY_COUNT as usize / 64;

/// A set as bits, in bytes.
const BITS_BYTES: usize = CATEGORY_COUNT as usize / 8;

/// A category, `c0` to `c1023`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Category(u16);

/// A set of categories. Its text is theirs in ascending order, separated by commas; three or
/// more neighbours are written as a range, `c1.c3`. The empty set's text is empty.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Categories([u64; WORD_COUNT]);

impl Category {
    /// The category with this number, 0 to 1023.
    ///
    /// # Errors
    ///
    /// [`LabelError::Category`] when there is none.
    pub const fn new(number: u16) -> Result<Self, LabelError> {
        if number < CATEGORY_COUNT {
            Ok(Self(number))
        } else {
            Err(LabelError::Category)
        }
    }

    /// The category's number, 0 to 1023.
    pub const fn number(self) -> u16 {
        self.0
    }

    /// Its place in a set: word and bit.
    const fn place(self) -> (usize, u64) {
        (self.0 as usize / 64, 1 << (self.0 % 64))
    }
}

impl Categories {
    /// The set of none.
    pub const NONE: Self = Self([0; WORD_COUNT]);

    /// The set of all.
    pub const ALL: Self = Self([u64::MAX; WORD_COUNT]);

    /// Adds one.
    pub fn insert(&mut self, category: Category) {
        let (word, bit) = category.place();
        self.0[word] |= bit;
    }

    /// Whether it is in the set.
    pub fn contains(&self, category: Category) -> bool {
        let (word, bit) = category.place();
        self.0[word] & bit != 0
    }

    /// Whether none is in the set.
    pub fn is_empty(&self) -> bool {
        *self == Self::NONE
    }

    /// Whether all of `other` are in this set.
    pub fn includes(&self, other: &Self) -> bool {
        self.union(other) == *self
    }

    /// Those in either set.
    pub fn union(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] | other.0[word]))
    }

    /// Those in both sets.
    pub fn intersection(&self, other: &Self) -> Self {
        Self(std::array::from_fn(|word| self.0[word] & other.0[word]))
    }

    /// The set as bits: category `n` is bit `n % 8`, counted from the lowest, of byte `n / 8`.
    pub fn to_bytes(&self) -> [u8; BITS_BYTES] {
        let mut bytes = [0; BITS_BYTES];
        for (out, word) in bytes.chunks_exact_mut(8).zip(self.0) {
            out.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// The set that [`Categories::to_bytes`] made these bytes of. Every bit is a category.
    pub fn from_bytes(bytes: &[u8; BITS_BYTES]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        Self(std::array::from_fn(|word| u64::from_le_bytes(words[word])))
    }

    /// The set's categories, ascending.
    pub fn iter(&self) -> impl Iterator<Item = Category> + '_ {
        (0..CATEGORY_COUNT)
            .map(Category)
            .filter(|category| self.contains(*category))
    }

    /// Runs of neighbours, ascending, as first and last.
    fn runs(&self) -> Vec<(Category, Category)> {
        let mut runs: Vec<(Category, Category)> = Vec::new();
        for category in self.iter() {
            match runs.last_mut() {
                Some((_, last)) if last.0 + 1 == category.0 => *last = category,
                _ => runs.push((category, category)),
            }
        }
        runs
    }
}

impl FromIterator<Category> for Categories {
    fn from_iter<I: IntoIterator<Item = Category>>(categories: I) -> Self {
        let mut set = Self::NONE;
        for category in categories {
            set.insert(category);
        }
        set
    }
}

impl fmt::Display for Category {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "c{}", self.0)
    }
}

impl FromStr for Category {
    type Err = LabelError;

    fn from_str(text: &str) -> Result<Self, LabelError> {
        text.strip_prefix('c')
            .and_then(parse_decimal)
            .ok_or(LabelError::Category)
            .and_then(Self::new)
    }
}

impl fmt::Display for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (first, last)) in self.runs().into_iter().enumerate() {
            if number > 0 {
                f.write_str(",")?;
            }
            match last.0 - first.0 {
                0 => write!(f, "{first}")?,
                1 => write!(f, "{first},{last}")?,
                _ => write!(f, "{first}.{last}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Categories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Categories({self})")
    }
}

impl FromStr for Categories {
    type Err = LabelError;

    /// Any order and repetition is understood; only `Display` writes the one canonical text.
    fn from_str(text: &str) -> Result<Self, LabelError> {
        let mut set = Self::NONE;
        if text.is_empty() {
            return Ok(set);
        }
        for item in text.split(',') {
            match item.split_once('.') {
                None => set.insert(item.parse()?),
                Some((first, last)) => {
                    let (first, last): (Category, Category) = (first.parse()?, last.parse()?);
                    if first >= last {
                        return Err(LabelError::Range);
                    }
                    (first.0..=last.0)
                        .map(Category)
                        .for_each(|one| set.insert(one));
                }
            }
        }
        Ok(set)
    }
}
