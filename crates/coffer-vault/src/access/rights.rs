//! Rights: what a grant allows in one bucket.

use std::fmt;
use std::str::FromStr;

use super::act::Act;
use crate::error::VaultError;

/// What can be done in a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Right {
    /// Read objects and their tags, also as the source of a copy.
    Read,
    /// Put objects and tags, also over what is there, and by multipart upload or copy.
    Write,
    /// List objects and multipart uploads.
    List,
    /// Delete objects, and the bucket when it is empty.
    Delete,
}

impl Right {
    /// All there are.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::List, Self::Delete];

    /// Its name on the command line, in the API and in records.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::List => "list",
            Self::Delete => "delete",
        }
    }

    /// What records call the use of it.
    pub(crate) fn act(self) -> Act {
        match self {
            Self::Read => Act::ReadObject,
            Self::Write => Act::WriteObject,
            Self::List => Act::ListObjects,
            Self::Delete => Act::DeleteObject,
        }
    }

    /// Whether it changes what it is used on, so that the rule for writing holds.
    pub(crate) fn changes(self) -> bool {
        matches!(self, Self::Write | Self::Delete)
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

impl FromStr for Right {
    type Err = VaultError;

    fn from_str(text: &str) -> Result<Self, VaultError> {
        let named = |right: &Self| right.as_str() == text;
        let found = Self::ALL.into_iter().find(named);
        found.ok_or(VaultError::Invalid {
            what: "a right is read, write, list or delete",
        })
    }
}

/// A set of rights. Its text is their names with commas between them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u8);

impl Rights {
    /// Every right.
    pub fn all() -> Self {
        Right::ALL.into_iter().collect()
    }

    /// Whether the right is among them.
    pub fn has(self, right: Right) -> bool {
        self.0 & right.bit() != 0
    }

    /// The rights, in the order of [`Right::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Right> {
        Right::ALL.into_iter().filter(move |right| self.has(*right))
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<I: IntoIterator<Item = Right>>(rights: I) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | right.bit()))
    }
}

impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, right) in self.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            write!(f, "{comma}{}", right.as_str())?;
        }
        Ok(())
    }
}

impl FromStr for Rights {
    type Err = VaultError;

    fn from_str(text: &str) -> Result<Self, VaultError> {
        let names = text.split(',').filter(|name| !name.is_empty());
        names.map(str::parse::<Right>).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        for bits in 0..16 {
            let rights = Rights(bits);
            assert_eq!(rights.to_string().parse::<Rights>().unwrap(), rights);
            assert_eq!(rights.iter().collect::<Rights>(), rights);
        }
        assert_eq!(Rights::all(), Rights(15));
        assert!("read,own".parse::<Rights>().is_err());
    }
}
