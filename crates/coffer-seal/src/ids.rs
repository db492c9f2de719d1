//! Ids: 16 random bytes, a type for each kind of thing, so that one can't be taken for another.
//!
//! As text they are 32 lower-case hexadecimal digits, in folders' names, logs and answers; serde
//! writes them as 16 numbers.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::secret::random_bytes;

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        pub struct $name(pub [u8; 16]);

        impl $name {
            /// A new one.
            pub fn random() -> Self {
                Self(random_bytes())
            }

            /// Reads 32 lower-case hexadecimal digits, as `Display` writes them.
            pub fn from_hex(text: &str) -> Option<Self> {
                bytes_of(text).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(id_text(&self.0, &mut [0; 32]))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }
    )*};
}

ids! {
    /// Names a keystore, and with it the server's data folder, for ever.
    KeystoreId,
    /// Names a level for ever.
    LevelId,
    /// Names a bucket for ever.
    BucketId,
    /// Names a blob for ever.
    BlobId,
    /// Names a subject for ever, whatever it is called and whatever access keys it has.
    SubjectId,
    /// Names an upload in parts for ever.
    UploadId,
    /// Names a request that waits for approvals.
    RequestId,
}

/// What an id of 16 bytes is written as. Ids are written with each request, and a thousand of them
/// into a list: a format for each byte costs many times as much.
pub fn id_text<'a>(id: &[u8; 16], digits: &'a mut [u8; 32]) -> &'a str {
    write(id, digits);
    // Digits are always text.
    std::str::from_utf8(digits).unwrap_or_default()
}

fn write(id: &[u8; 16], digits: &mut [u8; 32]) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (pair, byte) in digits.chunks_exact_mut(2).zip(id) {
        pair[0] = DIGITS[usize::from(byte >> 4)];
        pair[1] = DIGITS[usize::from(byte & 15)];
    }
}

/// The same text, kept to be read several times; it takes nothing of the heap.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct IdText([u8; 32]);

impl IdText {
    /// Writes an id.
    pub fn new(id: &[u8; 16]) -> Self {
        let mut digits = [0; 32];
        write(id, &mut digits);
        Self(digits)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

fn bytes_of(text: &str) -> Option<[u8; 16]> {
    let digits: &[u8; 32] = text.as_bytes().try_into().ok()?;
    let mut id = [0; 16];
    for (byte, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(id)
}

fn digit(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_32_lower_case_digits_and_nothing_else() {
        let id = BlobId(std::array::from_fn(|index| index as u8 * 17));
        let text = "00112233445566778899aabbccddeeff";
        assert_eq!(id.to_string(), text);
        assert_eq!(format!("{id:?}"), text);
        assert_eq!(IdText::new(&id.0).as_str(), text);
        assert_eq!(BlobId::from_hex(text), Some(id));
        for other in [&text.to_uppercase(), &text[1..], &format!("{text}0"), "é"] {
            assert_eq!(BlobId::from_hex(other), None, "{other}");
        }
    }

    #[test]
    fn documents_hold_16_numbers() {
        let id = LevelId(std::array::from_fn(|index| index as u8));
        let json = "[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15]";
        assert_eq!(serde_json::to_string(&id).unwrap(), json);
        assert_eq!(serde_json::from_str::<LevelId>(json).unwrap(), id);
    }
}
