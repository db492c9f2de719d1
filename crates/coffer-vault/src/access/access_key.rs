//! Access keys as AWS forms them, at random.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD as BASE64;
use zeroize::Zeroizing;

use crate::limits::{ACCESS_KEY_ID_CHARS, SECRET_ACCESS_KEY_CHARS};

/// 20 characters as AWS forms them, of the Base32 alphabet (RFC 4648), beginning with `CF`.
pub(crate) fn random_access_key_id() -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    let random: [u8; ACCESS_KEY_ID_CHARS] = coffer_seal::random_bytes();
    let tail = random[2..]
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(byte & 31)]));
    "CF".chars().chain(tail).collect()
}

/// 40 characters of Base64 that hold 240 random bits.
pub(crate) fn random_secret_access_key() -> Zeroizing<String> {
    let random: Zeroizing<[u8; SECRET_ACCESS_KEY_CHARS / 4 * 3]> =
        Zeroizing::new(coffer_seal::random_bytes());
    Zeroizing::new(BASE64.encode(*random))
}
