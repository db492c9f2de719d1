//! Versions of objects: what one is called, and what is asked of them.

use std::fmt;
use std::str::FromStr;

use coffer_seal::{id_text, random_bytes};

/// Whether a bucket keeps what is put over and deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Versioning {
    /// Never did. What is put replaces what was there.
    #[default]
    Never,
    /// Each put makes a version, and each deletion a delete marker.
    Enabled,
    /// Keeps the versions that there are; what is put replaces the null version.
    Suspended,
}

impl Versioning {
    /// Its word in the catalog; none where versions were never kept.
    pub(crate) fn word(self) -> Option<&'static str> {
        match self {
            Self::Never => None,
            Self::Enabled => Some("enabled"),
            Self::Suspended => Some("suspended"),
        }
    }

    pub(crate) fn of_word(word: Option<&str>) -> Option<Self> {
        let all = [Self::Never, Self::Enabled, Self::Suspended];
        all.into_iter().find(|state| state.word() == word)
    }

    pub(crate) fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Never,
            1 => Self::Enabled,
            _ => Self::Suspended,
        }
    }

    pub(crate) fn number(self) -> u8 {
        self as u8
    }
}

/// What is set of a bucket's versions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VersioningSetting {
    /// Whether it keeps them.
    pub state: Versioning,
    /// Whether it was ever said that no second factor is asked for before one is deleted. None ever
    /// is.
    pub is_mfa_delete_off: bool,
}

impl From<Versioning> for VersioningSetting {
    fn from(state: Versioning) -> Self {
        Self {
            state,
            ..Self::default()
        }
    }
}

/// What a version is called: `null`, or 32 hexadecimal digits. Of two versions of one object, the
/// newer one has the higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VersionId {
    /// The one that was put while the bucket kept no versions. An object has one at most.
    Null,
    /// Any other.
    Numbered {
        /// The number of its content in the catalog.
        id: i64,
        /// Drawn at random, so that an id tells none of the others.
        tag: i64,
    },
}

impl VersionId {
    /// Of content with this number, and its tag, which the null version has not.
    pub(crate) fn of(id: i64, tag: Option<i64>) -> Self {
        tag.map_or(Self::Null, |tag| Self::Numbered { id, tag })
    }

    /// Its text, as [`Display`](fmt::Display) writes it: each read in a bucket that keeps versions
    /// is answered with one, and a formatter costs more than the digits.
    pub fn text(self) -> String {
        self.write(&mut [0; 32]).to_owned()
    }

    fn write(self, digits: &mut [u8; 32]) -> &str {
        let Self::Numbered { id, tag } = self else {
            return "null";
        };
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&id.to_be_bytes());
        bytes[8..].copy_from_slice(&tag.to_be_bytes());
        id_text(&bytes, digits)
    }

    /// A tag for a new version.
    pub(crate) fn new_tag() -> i64 {
        i64::from_be_bytes(random_bytes())
    }
}

impl fmt::Display for VersionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.write(&mut [0; 32]))
    }
}

/// The text is no version's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a version id is `null` or 32 hexadecimal digits")]
pub struct NoVersionId;

impl FromStr for VersionId {
    type Err = NoVersionId;

    /// ```
    /// use coffer_store::version::VersionId;
    ///
    /// let text = "0000000000000007ffffffffffffffff";
    /// let id = VersionId::Numbered { id: 7, tag: -1 };
    /// assert_eq!(text.parse(), Ok(id));
    /// assert_eq!((id.to_string().as_str(), id.text().as_str()), (text, text));
    /// assert_eq!(VersionId::Null.text(), "null");
    /// assert_eq!("null".parse(), Ok(VersionId::Null));
    /// assert!("7".parse::<VersionId>().is_err());
    /// ```
    fn from_str(text: &str) -> Result<Self, NoVersionId> {
        if text == "null" {
            return Ok(Self::Null);
        }
        let is_digits = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if text.len() != 32 || !text.bytes().all(is_digits) {
            return Err(NoVersionId);
        }
        let (id, tag) = text.split_at(16);
        let number = |digits| u64::from_str_radix(digits, 16).map_err(|_| NoVersionId);
        Ok(Self::Numbered {
            id: i64::try_from(number(id)?).map_err(|_| NoVersionId)?,
            tag: number(tag)?.cast_signed(),
        })
    }
}

/// Which version of an object is meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Which {
    /// The newest.
    #[default]
    Current,
    /// This one.
    Version(VersionId),
}

/// Why there is no object to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// There is none of the name.
    Object,
    /// It was deleted: the newest version is this delete marker.
    Deleted(VersionId),
    /// There is no such version of it.
    Version,
    /// The version that was named is a delete marker.
    Marker {
        /// The marker.
        version: VersionId,
        /// When it was made, in milliseconds since 1970.
        modified_ms: i64,
    },
}
