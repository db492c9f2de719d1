//! Bucket keys, and what they do: wrap data keys, and key a catalog.

use std::fmt;
use std::sync::Arc;

use coffer_seal::limits::{WRAPPED_KEY_BYTES, WRAPPED_TWICE_BYTES};
use coffer_seal::{
    BlobId, BucketId, Context, KeyKind, SecretKey, open, seal, unwrap_key, wrap_key,
};

use crate::error::KeysError;

/// A bucket's key: the current generation, which wraps, and while a rotation is under way the one
/// before it, which still unwraps. Clones share the one copy in memory, which is zeroized when the
/// last of them is dropped.
#[derive(Clone)]
pub struct BucketKey(Arc<Shared>);

struct Shared {
    bucket_id: BucketId,
    current: (u32, SecretKey),
    older: Option<(u32, SecretKey)>,
    catalog_key: SecretKey,
}

impl BucketKey {
    pub(crate) fn new(
        bucket_id: BucketId,
        current: (u32, SecretKey),
        older: Option<(u32, SecretKey)>,
        catalog_key: SecretKey,
    ) -> Self {
        Self(Arc::new(Shared {
            bucket_id,
            current,
            older,
            catalog_key,
        }))
    }

    /// Whose key it is.
    pub fn bucket_id(&self) -> BucketId {
        self.0.bucket_id
    }

    /// The current generation of the bucket's key, from 1.
    pub fn generation(&self) -> u32 {
        self.0.current.0
    }

    /// The generation before, while it is kept.
    pub fn older_generation(&self) -> Option<u32> {
        self.0.older.as_ref().map(|(number, _)| *number)
    }

    /// Wraps a blob's data key, bound to the blob and to the current generation.
    pub fn wrap(&self, blob_id: BlobId, data_key: &SecretKey) -> [u8; WRAPPED_KEY_BYTES] {
        let (generation, key) = &self.0.current;
        let context = Context::key(KeyKind::Data(blob_id), *generation);
        wrap_key(key, &context, data_key)
    }

    /// Unwraps a blob's data key that `generation` of this bucket's key wrapped.
    ///
    /// # Errors
    ///
    /// When this generation isn't at hand, or when the key was wrapped for another blob or bucket,
    /// or was changed.
    pub fn unwrap(
        &self,
        blob_id: BlobId,
        generation: u32,
        wrapped: &[u8; WRAPPED_KEY_BYTES],
    ) -> Result<SecretKey, KeysError> {
        let key = self.of(generation)?;
        let context = Context::key(KeyKind::Data(blob_id), generation);
        unwrap_key(key, &context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)
    }

    /// Wraps a blob's data key that a client's key has wrapped, bound to the blob and to the
    /// current generation.
    pub fn wrap_wrapped(
        &self,
        blob_id: BlobId,
        inner: &[u8; WRAPPED_KEY_BYTES],
    ) -> [u8; WRAPPED_TWICE_BYTES] {
        let (generation, key) = &self.0.current;
        let context = Context::key(KeyKind::CustomerData(blob_id), *generation);
        let wrapped = seal(key, &context, inner);
        wrapped
            .try_into()
            .expect("what is sealed has the length of the plaintext, a header and a tag")
    }

    /// Unwraps a blob's data key as a client's key has wrapped it.
    ///
    /// # Errors
    ///
    /// As [`BucketKey::unwrap`].
    pub fn unwrap_wrapped(
        &self,
        blob_id: BlobId,
        generation: u32,
        wrapped: &[u8; WRAPPED_TWICE_BYTES],
    ) -> Result<[u8; WRAPPED_KEY_BYTES], KeysError> {
        let key = self.of(generation)?;
        let context = Context::key(KeyKind::CustomerData(blob_id), generation);
        let inner = open(key, &context, wrapped).map_err(|_| KeysError::KeyDidNotOpen)?;
        inner[..].try_into().map_err(|_| KeysError::KeyDidNotOpen)
    }

    /// Wraps a data key that an older generation wrapped anew, under the current one.
    ///
    /// # Errors
    ///
    /// As [`BucketKey::unwrap`].
    pub fn rewrap(
        &self,
        blob_id: BlobId,
        generation: u32,
        wrapped: &[u8; WRAPPED_KEY_BYTES],
    ) -> Result<[u8; WRAPPED_KEY_BYTES], KeysError> {
        Ok(self.wrap(blob_id, &self.unwrap(blob_id, generation, wrapped)?))
    }

    /// The key of the bucket's catalog, the same for all generations.
    pub fn catalog_key(&self) -> SecretKey {
        self.0.catalog_key.clone()
    }

    fn of(&self, generation: u32) -> Result<&SecretKey, KeysError> {
        [Some(&self.0.current), self.0.older.as_ref()]
            .into_iter()
            .flatten()
            .find(|(number, _)| *number == generation)
            .map(|(_, key)| key)
            .ok_or(KeysError::OtherGeneration {
                wrapped: generation,
                own: self.generation(),
            })
    }
}

impl fmt::Debug for BucketKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BucketKey")
            .field("bucket_id", &self.bucket_id())
            .field("generation", &self.generation())
            .finish_non_exhaustive()
    }
}
