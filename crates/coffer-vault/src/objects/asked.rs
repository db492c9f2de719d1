//! The encryption that a writer asks for.

use coffer_store::record::Encryption;

use crate::system::BucketEncryption;

/// The encryption that a writer asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AskedEncryption {
    /// None: the bucket's default.
    BucketDefault {
        /// Whether a bucket key is asked for, where the default is `aws:kms`.
        bucket_key: Option<bool>,
    },
    /// `AES256`.
    Aes256,
    /// `aws:kms`, with or without a bucket key, or as the bucket has it.
    Kms {
        /// Whether a bucket key is asked for.
        bucket_key: Option<bool>,
    },
}

impl Default for AskedEncryption {
    fn default() -> Self {
        Self::BucketDefault { bucket_key: None }
    }
}

impl AskedEncryption {
    /// What is told of an object, in a bucket of this default.
    pub(crate) fn of_object(self, bucket: BucketEncryption) -> Encryption {
        let kms = |bucket_key| {
            if bucket_key {
                Encryption::KmsBucketKey
            } else {
                Encryption::Kms
            }
        };
        match self {
            Self::Aes256 => Encryption::Aes256,
            Self::BucketDefault { .. } if bucket.aes256 => Encryption::Aes256,
            Self::BucketDefault { bucket_key } | Self::Kms { bucket_key } => {
                kms(bucket_key.unwrap_or(bucket.bucket_key))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_goes_before_the_default() {
        use AskedEncryption::{Aes256, BucketDefault, Kms};
        let bucket = |aes256, bucket_key| BucketEncryption { aes256, bucket_key };
        let kms = |bucket_key| Kms { bucket_key };
        let by_default = |bucket_key| BucketDefault { bucket_key };
        for (asked, bucket, told) in [
            (by_default(None), bucket(false, false), Encryption::Kms),
            (
                by_default(None),
                bucket(false, true),
                Encryption::KmsBucketKey,
            ),
            (
                by_default(Some(false)),
                bucket(false, true),
                Encryption::Kms,
            ),
            (
                by_default(Some(true)),
                bucket(true, true),
                Encryption::Aes256,
            ),
            (Aes256, bucket(false, true), Encryption::Aes256),
            (kms(None), bucket(true, false), Encryption::Kms),
            (kms(None), bucket(false, true), Encryption::KmsBucketKey),
            (kms(Some(false)), bucket(false, true), Encryption::Kms),
            (
                kms(Some(true)),
                bucket(true, false),
                Encryption::KmsBucketKey,
            ),
        ] {
            assert_eq!(asked.of_object(bucket), told, "{asked:?} {bucket:?}");
        }
    }
}
