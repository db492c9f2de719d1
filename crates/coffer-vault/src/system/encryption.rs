//! A bucket's default encryption, as it is kept in `system.db`.

use serde::{Deserialize, Serialize};

use crate::error::{Result, VaultError};

/// What is done with objects whose writers ask for no encryption, and for which they may ask.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BucketEncryption {
    /// They are said to be `AES256` rather than `aws:kms`.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub aes256: bool,
    /// Those that are `aws:kms` are said to have a bucket key.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub bucket_key: bool,
    /// Objects may be sealed under keys of their clients too.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub customer_keys: bool,
}

impl BucketEncryption {
    /// The document that says so; none of what holds without one.
    pub fn to_document(self) -> Option<String> {
        let is_default = self == Self::default();
        (!is_default).then(|| serde_json::to_string(&self).expect("a struct of booleans is JSON"))
    }

    /// Reads a document.
    ///
    /// # Errors
    /// [`VaultError::Damaged`].
    pub fn of_document(document: Option<&str>) -> Result<Self> {
        match document {
            Some(document) => serde_json::from_str(document).map_err(|_| VaultError::Damaged),
            None => Ok(Self::default()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_read_as_they_were_written() {
        for bits in 0..8 {
            let encryption = BucketEncryption {
                aes256: bits & 1 > 0,
                bucket_key: bits & 2 > 0,
                customer_keys: bits & 4 > 0,
            };
            let document = encryption.to_document();
            let read = BucketEncryption::of_document(document.as_deref()).unwrap();
            assert_eq!(read, encryption);
        }
        assert_eq!(BucketEncryption::default().to_document(), None);
        assert!(BucketEncryption::of_document(Some("{\"aes\":true}")).is_err());
    }
}
