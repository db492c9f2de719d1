//! How an object is said to be encrypted.

use serde::{Deserialize, Serialize};

/// What answers tell of an object's encryption: what its writer asked for, or the bucket's default.
/// Whatever is told, it is sealed alike.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Encryption {
    /// `aws:kms`, as of all objects of older formats.
    #[default]
    Kms,
    /// `aws:kms` with a bucket key.
    KmsBucketKey,
    /// `AES256`.
    Aes256,
}

impl Encryption {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
