//! Sealing a key under another key.

use crate::context::Context;
use crate::error::OpenError;
use crate::limits::{HEADER_BYTES, KEY_BYTES, WRAPPED_KEY_BYTES};
use crate::opener::Opener;
use crate::sealer::Sealer;
use crate::secret::SecretKey;

/// Wraps `key` under `wrapping_key`: a message of one chunk, which holds the 32 bytes.
///
/// ```
/// use coffer_seal::{BlobId, Context, KeyKind, SecretKey, unwrap_key, wrap_key};
///
/// let (bucket_key, data_key) = (SecretKey::generate(), SecretKey::generate());
/// let context = Context::key(KeyKind::Data(BlobId([7; 16])), 1);
/// let wrapped = wrap_key(&bucket_key, &context, &data_key);
/// assert_eq!(unwrap_key(&bucket_key, &context, &wrapped)?, data_key);
/// # Ok::<(), coffer_seal::OpenError>(())
/// ```
pub fn wrap_key(
    wrapping_key: &SecretKey,
    context: &Context,
    key: &SecretKey,
) -> [u8; WRAPPED_KEY_BYTES] {
    let sealer = Sealer::new(wrapping_key, context);
    let mut wrapped = [0; WRAPPED_KEY_BYTES];
    let (header, chunk) = wrapped.split_at_mut(HEADER_BYTES);
    header.copy_from_slice(sealer.header());
    sealer
        .seal_last(key.expose(), chunk)
        .expect("a wrapped key's size is that of its header and of 32 sealed bytes");
    wrapped
}

/// Unwraps a key, straight into memory of its own.
///
/// # Errors
///
/// When it was not wrapped under this key and context, or was changed.
pub fn unwrap_key(
    wrapping_key: &SecretKey,
    context: &Context,
    wrapped: &[u8; WRAPPED_KEY_BYTES],
) -> Result<SecretKey, OpenError> {
    let (header, chunk) = wrapped
        .split_first_chunk::<HEADER_BYTES>()
        .expect("a wrapped key is longer than a header");
    let opener = Opener::new(wrapping_key, context, header, WRAPPED_KEY_BYTES as u64)?;
    SecretKey::try_filled(|out| {
        let opened_bytes = opener.open_chunk(0, chunk, out)?;
        debug_assert_eq!(opened_bytes, KEY_BYTES);
        Ok(())
    })
}
