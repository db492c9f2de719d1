//! Sealing and opening messages that fit in memory.

use zeroize::Zeroizing;

use crate::context::Context;
use crate::error::OpenError;
use crate::layout::sealed_bytes;
use crate::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use crate::opener::Opener;
use crate::sealer::Sealer;
use crate::secret::SecretKey;

/// Seals a plaintext as one message.
pub fn seal(key: &SecretKey, context: &Context, plaintext: &[u8]) -> Vec<u8> {
    seal_with(Sealer::new(key, context), plaintext)
}

/// Opens a whole message. Either all of it opens or nothing is given out.
///
/// # Errors
///
/// When it is not a message that was sealed under this key and context, unchanged and complete.
pub fn open(
    key: &SecretKey,
    context: &Context,
    sealed: &[u8],
) -> Result<Zeroizing<Vec<u8>>, OpenError> {
    let message_bytes = sealed.len() as u64;
    let (header, body) = sealed
        .split_first_chunk::<HEADER_BYTES>()
        .ok_or(OpenError::Length {
            sealed_bytes: message_bytes,
        })?;
    let opener = Opener::new(key, context, header, message_bytes)?;
    let plaintext_bytes = usize::try_from(opener.plaintext_bytes())
        .expect("a message in memory holds less plaintext than its own length");
    let mut plaintext = Zeroizing::new(vec![0; plaintext_bytes]);
    let mut offset_bytes = 0;
    for (index, chunk) in (0..).zip(body.chunks(SEALED_CHUNK_BYTES)) {
        offset_bytes += opener.open_chunk(index, chunk, &mut plaintext[offset_bytes..])?;
    }
    Ok(plaintext)
}

pub(crate) fn seal_with(mut sealer: Sealer, plaintext: &[u8]) -> Vec<u8> {
    // Memory holds far less than a message may: addresses have 57 bits at most, of which a
    // buffer can't have 52.
    let message_bytes = sealed_bytes(plaintext.len() as u64)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .expect("a plaintext in memory is below the limit of 4 PiB");
    let mut message = vec![0; message_bytes];
    let (header, body) = message.split_at_mut(HEADER_BYTES);
    header.copy_from_slice(sealer.header());

    let (full, last) = plaintext.as_chunks::<CHUNK_BYTES>();
    let (sealed_full, sealed_last) = body.split_at_mut(full.len() * SEALED_CHUNK_BYTES);
    for (chunk, out) in full.iter().zip(sealed_full.chunks_mut(SEALED_CHUNK_BYTES)) {
        sealer
            .seal_chunk(chunk, out)
            .expect("the buffers were cut to the sizes that sealing asks for");
    }
    sealer
        .seal_last(last, sealed_last)
        .expect("the buffers were cut to the sizes that sealing asks for");
    message
}
