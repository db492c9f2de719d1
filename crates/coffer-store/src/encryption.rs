//! How an object is said to be encrypted.

use serde::{Deserialize, Serialize};

/// What answers tell of an object's encryption: what its writer asked for, or the bucket's default.
/// All is sealed alike, but for what a client's own key seals besides.
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
    /// Under a key of the client's own, inside of the bucket's: what tells that key from others.
    Customer(String),
}

impl Encryption {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}
