//! The encryption that a writer asks for.

use coffer_store::record::Encryption;

use crate::error::{CustomerKeyError, Result, VaultError};
use crate::open_buckets::CustomerKey;
use crate::system::BucketEncryption;

/// The encryption that a writer asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Under this key, inside of the bucket's.
    Customer(CustomerKey),
}

impl Default for AskedEncryption {
    fn default() -> Self {
        Self::BucketDefault { bucket_key: None }
    }
}

impl AskedEncryption {
    /// The key that the client brings along, if it does.
    pub(crate) fn customer_key(&self) -> Option<CustomerKey> {
        match self {
            Self::Customer(key) => Some(key.clone()),
            _ => None,
        }
    }

    /// What is told of an object, in a bucket of this default.
    ///
    /// # Errors
    /// [`CustomerKeyError::Blocked`].
    pub(crate) fn of_object(self, bucket: BucketEncryption) -> Result<Encryption> {
        let kms = |bucket_key| {
            if bucket_key {
                Encryption::KmsBucketKey
            } else {
                Encryption::Kms
            }
        };
        Ok(match self {
            Self::Customer(_) if !bucket.customer_keys => {
                return Err(CustomerKeyError::Blocked.into());
            }
            Self::Customer(key) => Encryption::Customer(key.new_check()),
            Self::Aes256 => Encryption::Aes256,
            Self::BucketDefault { .. } if bucket.aes256 => Encryption::Aes256,
            Self::BucketDefault { bucket_key } | Self::Kms { bucket_key } => {
                kms(bucket_key.unwrap_or(bucket.bucket_key))
            }
        })
    }
}

/// Whether a request has the key that an object is sealed under, and has none where it is not.
///
/// # Errors
/// [`CustomerKeyError::Missing`], [`CustomerKeyError::Wrong`], [`CustomerKeyError::NotApplicable`].
pub fn check_customer_key(encryption: &Encryption, key: Option<&CustomerKey>) -> Result<()> {
    match (encryption, key) {
        (Encryption::Customer(_), None) => Err(CustomerKeyError::Missing.into()),
        (Encryption::Customer(check), Some(key)) if !key.is_checked_by(check) => {
            Err(CustomerKeyError::Wrong.into())
        }
        (Encryption::Customer(_), Some(_)) | (_, None) => Ok(()),
        (_, Some(_)) => Err(CustomerKeyError::NotApplicable.into()),
    }
}

/// As [`check_customer_key`], of a part and the upload that it belongs to.
pub(super) fn check_key_of_part(upload: &Encryption, key: Option<&CustomerKey>) -> Result<()> {
    check_customer_key(upload, key).map_err(|error| match error {
        VaultError::CustomerKey(CustomerKeyError::Missing) => {
            CustomerKeyError::MissingForPart.into()
        }
        VaultError::CustomerKey(_) => CustomerKeyError::WrongForPart.into(),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_goes_before_the_default() {
        use AskedEncryption::{Aes256, BucketDefault, Kms};
        let bucket = |aes256, bucket_key| BucketEncryption {
            aes256,
            bucket_key,
            customer_keys: false,
        };
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
            let found = asked.clone().of_object(bucket).unwrap();
            assert_eq!(found, told, "{asked:?} {bucket:?}");
        }
    }

    #[test]
    fn keys_of_clients_are_taken_where_the_bucket_allows_them() {
        let [key, other] = [1, 2].map(|byte| CustomerKey::of_bytes(&[byte; 32]).unwrap());
        let asked = AskedEncryption::Customer(key.clone());
        let blocked = asked.clone().of_object(BucketEncryption::default());
        assert!(matches!(
            blocked,
            Err(VaultError::CustomerKey(CustomerKeyError::Blocked))
        ));
        let allowed = BucketEncryption {
            customer_keys: true,
            ..BucketEncryption::default()
        };
        let told = asked.of_object(allowed).unwrap();
        let why = |told, key| match check_customer_key(told, key) {
            Ok(()) => None,
            Err(VaultError::CustomerKey(error)) => Some(error),
            Err(other) => panic!("{other}"),
        };
        assert_eq!(why(&told, Some(&key)), None);
        assert_eq!(why(&told, Some(&other)), Some(CustomerKeyError::Wrong));
        assert_eq!(why(&told, None), Some(CustomerKeyError::Missing));
        assert_eq!(why(&Encryption::Kms, None), None);
        let not_applicable = Some(CustomerKeyError::NotApplicable);
        assert_eq!(why(&Encryption::Kms, Some(&key)), not_applicable);
    }
}
