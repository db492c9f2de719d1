//! Bucket keys, and what they do: wrap data keys, and key a catalog.

use std::fmt;
use std::sync::Arc;

use coffer_seal::limits::WRAPPED_KEY_BYTES;
use coffer_seal::{Context, KeyKind, SecretKey, unwrap_key, wrap_key};

use crate::error::KeysError;

/// One generation of a bucket's key. Clones share the one copy in memory, which is zeroized when
/// the last of them is dropped.
#[derive(Clone)]
pub struct BucketKey(Arc<Shared>);

struct Shared {
    bucket_id: [u8; 16],
    generation: u32,
    key: SecretKey,
}

impl BucketKey {
    pub(crate) fn new(bucket_id: [u8; 16], generation: u32, key: SecretKey) -> Self {
        Self(Arc::new(Shared {
            bucket_id,
            generation,
            key,
        }))
    }

    /// Whose key it is.
    pub fn bucket_id(&self) -> &[u8; 16] {
        &self.0.bucket_id
    }

    /// Which of the bucket's keys it is, from 1.
    pub fn generation(&self) -> u32 {
        self.0.generation
    }

    /// Wraps a blob's data key, bound to the blob and to this generation.
    pub fn wrap(&self, blob_id: &[u8; 16], data_key: &SecretKey) -> [u8; WRAPPED_KEY_BYTES] {
        let context = Context::key(KeyKind::Data, blob_id, self.generation());
        wrap_key(&self.0.key, &context, data_key)
    }

    /// Unwraps a blob's data key that `generation` of this bucket's key wrapped.
    ///
    /// # Errors
    ///
    /// When this is another generation, or when the key was wrapped for another blob or bucket,
    /// or was changed.
    pub fn unwrap(
        &self,
        blob_id: &[u8; 16],
        generation: u32,
        wrapped: &[u8; WRAPPED_KEY_BYTES],
    ) -> Result<SecretKey, KeysError> {
        if generation != self.generation() {
            return Err(KeysError::OtherGeneration {
                wrapped: generation,
                own: self.generation(),
            });
        }
        let context = Context::key(KeyKind::Data, blob_id, generation);
        unwrap_key(&self.0.key, &context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)
    }

    /// The key of the bucket's catalog: HKDF-Expand of this key with `"coffer catalog v1" 0x00
    /// bucket-id(16) generation(4, big-endian)`.
    pub fn catalog_key(&self) -> SecretKey {
        let label = [
            b"coffer catalog v1\0".as_slice(),
            self.bucket_id(),
            &self.generation().to_be_bytes(),
        ]
        .concat();
        self.0.key.derive(&label)
    }
}

impl fmt::Debug for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketKey")
            .field("bucket_id", &hex::encode(self.bucket_id()))
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
