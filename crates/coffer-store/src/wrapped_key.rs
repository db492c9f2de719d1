//! Data keys as the catalog holds them: wrapped.

use rusqlite::ToSql;
use rusqlite::types::ToSqlOutput;

/// Header (56), sealed key (32), tag (16).
pub const WRAPPED_KEY_BYTES: usize = 104;

/// Header (56), a wrapped key, sealed (104), tag (16).
pub const WRAPPED_TWICE_BYTES: usize = 176;

/// A wrapped data key: one Cobblestone message under the bucket's key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WrappedKey {
    /// Of the data key itself.
    Once([u8; WRAPPED_KEY_BYTES]),
    /// Of the data key as a client's key has wrapped it.
    Twice(Box<[u8; WRAPPED_TWICE_BYTES]>),
}

impl WrappedKey {
    /// Takes the bytes of either.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let once = bytes.try_into().map(Self::Once);
        let twice = || bytes.try_into().map(|bytes| Self::Twice(Box::new(bytes)));
        once.or_else(|_| twice()).ok()
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Once(bytes) => bytes,
            Self::Twice(bytes) => &bytes[..],
        }
    }
}

impl From<[u8; WRAPPED_KEY_BYTES]> for WrappedKey {
    fn from(bytes: [u8; WRAPPED_KEY_BYTES]) -> Self {
        Self::Once(bytes)
    }
}

impl ToSql for WrappedKey {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_bytes().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_tells_which_it_is() {
        assert_eq!(
            WrappedKey::of_bytes(&[1; WRAPPED_KEY_BYTES]),
            Some(WrappedKey::Once([1; WRAPPED_KEY_BYTES]))
        );
        assert_eq!(
            WrappedKey::of_bytes(&[1; WRAPPED_TWICE_BYTES]),
            Some(WrappedKey::Twice(Box::new([1; WRAPPED_TWICE_BYTES])))
        );
        for length in [0, 32, 103, 105, 175, 177] {
            assert_eq!(WrappedKey::of_bytes(&vec![1; length]), None, "{length}");
        }
    }
}
