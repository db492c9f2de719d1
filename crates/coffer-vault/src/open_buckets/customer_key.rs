//! Keys that clients bring along, and data keys that such a key wraps inside and the bucket's
//! outside: neither side alone opens what they seal.

use coffer_keys::{BucketKey, KeysError};
use coffer_seal::{BlobId, Context, KeyKind, SecretKey, random_bytes, unwrap_key, wrap_key};
use coffer_store::record::{BlobRef, WrappedKey};
use md5::{Digest, Md5};

const CHECK_LABEL: &[u8] = b"coffer customer key check v1\0";
const SALT_BYTES: usize = 16;

/// The inner wrap is never made anew, whatever becomes of the bucket's key.
const INNER_GENERATION: u32 = 1;

/// A key that a client brings along with each request (S3: SSE-C). It is never stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustomerKey(SecretKey);

impl CustomerKey {
    /// Takes the client's bytes; none where they are not 32.
    pub fn of_bytes(bytes: &[u8]) -> Option<Self> {
        let key = SecretKey::try_filled(|out| {
            let has_length = bytes.len() == out.len();
            has_length.then(|| out.copy_from_slice(bytes)).ok_or(())
        });
        key.ok().map(Self)
    }

    /// Its MD5, which clients send along and answers repeat.
    pub fn md5(&self) -> [u8; 16] {
        Md5::digest(self.0.expose()).into()
    }

    /// What tells this key from others and nothing of it: salt, and what is derived from both, in
    /// hexadecimal digits.
    pub(crate) fn new_check(&self) -> String {
        let salt = random_bytes::<SALT_BYTES>();
        format!(
            "{}{}",
            hex::encode(salt),
            hex::encode(self.derived(&salt).expose())
        )
    }

    /// Whether a check was made of this key. In a time that does not tell how much of it is alike.
    pub(crate) fn is_checked_by(&self, check: &str) -> bool {
        let Ok(bytes) = hex::decode(check) else {
            return false;
        };
        match bytes.split_first_chunk::<SALT_BYTES>() {
            Some((salt, derived)) => <[u8; 32]>::try_from(derived)
                .is_ok_and(|derived| SecretKey::from_bytes(derived) == self.derived(salt)),
            None => false,
        }
    }

    fn derived(&self, salt: &[u8; SALT_BYTES]) -> SecretKey {
        self.0.derive(&[CHECK_LABEL, salt].concat())
    }
}

/// Wraps a blob's data key: under the client's key, where there is one, and the bucket's.
pub(crate) fn wrap(
    key: &BucketKey,
    blob_id: BlobId,
    data_key: &SecretKey,
    customer: Option<&CustomerKey>,
) -> WrappedKey {
    match customer {
        None => WrappedKey::Once(key.wrap(blob_id, data_key)),
        Some(CustomerKey(customer)) => {
            let inner = wrap_key(customer, &inner_context(blob_id), data_key);
            WrappedKey::Twice(Box::new(key.wrap_wrapped(blob_id, &inner)))
        }
    }
}

/// Unwraps a blob's data key. None where a client's key has wrapped it and none is given: what the
/// bucket's key wraps opened, then.
pub(crate) fn unwrap(
    key: &BucketKey,
    blob: &BlobRef,
    customer: Option<&CustomerKey>,
) -> Result<Option<SecretKey>, KeysError> {
    let (id, generation) = (blob.id, blob.key_generation);
    match (&blob.wrapped_key, customer) {
        (WrappedKey::Once(wrapped), _) => key.unwrap(id, generation, wrapped).map(Some),
        (WrappedKey::Twice(wrapped), customer) => {
            let inner = key.unwrap_wrapped(id, generation, wrapped)?;
            let unwrap = |CustomerKey(customer): &CustomerKey| {
                unwrap_key(customer, &inner_context(id), &inner)
                    .map_err(|_| KeysError::KeyDidNotOpen)
            };
            customer.map(unwrap).transpose()
        }
    }
}

/// Wraps anew, under the current generation of `to`, what `generation` of `from` wrapped. The
/// client's key is not needed for that.
pub(crate) fn rewrap(
    (from, generation): (&BucketKey, u32),
    to: &BucketKey,
    blob_id: BlobId,
    wrapped: &WrappedKey,
) -> Result<WrappedKey, KeysError> {
    Ok(match wrapped {
        WrappedKey::Once(wrapped) => {
            let data_key = from.unwrap(blob_id, generation, wrapped)?;
            WrappedKey::Once(to.wrap(blob_id, &data_key))
        }
        WrappedKey::Twice(wrapped) => {
            let inner = from.unwrap_wrapped(blob_id, generation, wrapped)?;
            WrappedKey::Twice(Box::new(to.wrap_wrapped(blob_id, &inner)))
        }
    })
}

fn inner_context(blob_id: BlobId) -> Context {
    Context::key(KeyKind::Customer(blob_id), INNER_GENERATION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_lengths_are_no_keys() {
        for length in [0, 16, 31, 33] {
            assert!(
                CustomerKey::of_bytes(&vec![7; length]).is_none(),
                "{length}"
            );
        }
    }

    #[test]
    fn a_check_knows_its_key_and_no_other() {
        let [one, two] = [7, 8].map(|byte| CustomerKey::of_bytes(&[byte; 32]).unwrap());
        let check = one.new_check();
        assert!(one.is_checked_by(&check) && !two.is_checked_by(&check));
        assert_ne!(
            one.new_check(),
            check,
            "it can't be seen that two objects have one key"
        );
        for damaged in ["", "zz", &check[..94], &format!("{check}00")] {
            assert!(!one.is_checked_by(damaged), "{damaged}");
        }
    }
}
