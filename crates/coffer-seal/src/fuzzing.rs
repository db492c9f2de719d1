//! Bodies of the fuzz targets, and of property tests that feed them.

use crate::context::Context;
use crate::layout::{plaintext_bytes, sealed_bytes};
use crate::limits::{CHUNK_BYTES, HEADER_BYTES, SALT_BYTES, SEALED_CHUNK_BYTES};
use crate::opener::Opener;
use crate::sealer::Sealer;
use crate::secret::SecretKey;
use crate::whole::{open, seal_with};

/// A message made up without the key: it must not open.
///
/// # Panics
///
/// When it opens, or when a range lies outside the message: what the fuzzer looks for.
pub fn fuzz_open(data: &[u8]) {
    let key = SecretKey::from_bytes([0x5E; 32]);
    let context = Context::raw(*b"fuzz");
    assert!(open(&key, &context, data).is_err(), "a forgery opened");

    // The right header, so that the chunks are reached, and a length that may be anything.
    let Some((length, chunk)) = data.split_first_chunk::<8>() else {
        return;
    };
    let length = u64::from_be_bytes(*length);
    let header = *Sealer::with_salt(&key, &context, &[0; SALT_BYTES]).header();
    let Ok(opener) = Opener::new(&key, &context, &header, length) else {
        assert!(plaintext_bytes(length).is_err());
        return;
    };
    assert_eq!(sealed_bytes(opener.plaintext_bytes()), Some(length));
    let last = opener.chunk_count() - 1;
    let mut out = vec![0xAA; CHUNK_BYTES];
    for index in [0, last / 2, last, last + 1, length, u64::MAX] {
        let range = opener.chunk_range(index);
        assert!(range.start <= range.end && range.end <= length);
        assert!(opener.open_chunk(index, chunk, &mut out).is_err());
        assert!(
            out.iter().all(|byte| matches!(byte, 0 | 0xAA)),
            "unverified bytes were given out"
        );
    }
    assert_eq!(opener.chunk_range(last).end, length);
}

/// A message of ours that was edited: it opens exactly when the edit changed nothing.
///
/// The first 8 bytes of `data` choose the edit, the next the plaintext's length, the rest repeat
/// in it.
///
/// # Panics
///
/// When an edited message opens, or an unedited one doesn't: what the fuzzer looks for.
pub fn fuzz_edit(data: &[u8]) {
    let Some(([edit, at, to, value @ ..], pattern)) = data.split_first_chunk::<8>() else {
        return;
    };
    let key = SecretKey::from_bytes([0xED; 32]);
    let context = Context::raw(pattern);
    let length = usize::from(u16::from_be_bytes([value[0], value[1]]));
    let plaintext: Vec<u8> = pattern.iter().copied().cycle().take(length).collect();
    let message = seal_with(
        Sealer::with_salt(&key, &context, &[7; SALT_BYTES]),
        &plaintext,
    );

    let offset_bytes = u16::from_be_bytes([value[2], value[3]]).into();
    let edited = apply(*edit, &message, [*at, *to], offset_bytes, value[4]);
    match open(&key, &context, &edited) {
        Ok(opened) => {
            assert_eq!(edited, message, "an edited message opened");
            assert_eq!(*opened, plaintext, "a message opened as another");
        }
        Err(_) => assert_ne!(edited, message, "a message did not open"),
    }
}

/// Cuts, grows, flips, moves, repeats or removes, as `edit` says.
fn apply(edit: u8, message: &[u8], [at, to]: [u8; 2], offset: usize, mask: u8) -> Vec<u8> {
    let mut edited = message.to_vec();
    let offset = offset % message.len();
    let (header, body) = message.split_at(HEADER_BYTES);
    let mut chunks: Vec<&[u8]> = body.chunks(SEALED_CHUNK_BYTES).collect();
    let (at, to) = (
        usize::from(at) % chunks.len(),
        usize::from(to) % chunks.len(),
    );
    match edit % 7 {
        0 => return edited,
        1 => {
            edited.truncate(offset);
            return edited;
        }
        2 => {
            edited.insert(offset, mask);
            return edited;
        }
        3 => {
            edited[offset] ^= mask;
            return edited;
        }
        4 => chunks.swap(at, to),
        5 => chunks.insert(at, chunks[to]),
        _ => {
            chunks.remove(at);
        }
    }
    [header, &chunks.concat()].concat()
}
