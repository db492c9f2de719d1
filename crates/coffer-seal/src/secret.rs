//! Secret keys as a type, and where random bytes come from.

use std::fmt;

use aws_lc_rs::{constant_time, hkdf, rand};
use zeroize::Zeroizing;

use crate::key_memory::KeySlot;
use crate::limits::KEY_BYTES;

/// What every info string of Cobblestone's own derivation begins with; C2SP chunked-encryption
/// v1, "Key derivation".
pub(crate) const COBBLESTONE_INFO_PREFIX: &[u8] = b"c2sp.org/chunked-encryption@v1+";

/// A secret of 32 uniformly random bytes.
///
/// It lies in memory that is locked and left out of core dumps ([`locked_memory`]), where moving it
/// leaves no copy behind, and is zeroized when dropped. `Debug` shows nothing of it, comparison
/// takes the same time wherever two keys differ, and only [`SecretKey::expose`] gives the bytes
/// out. A clone is a second copy in memory, so clone only what must outlive its owner.
///
/// ```
/// let key = coffer_seal::SecretKey::generate();
/// assert_eq!(format!("{key:?}"), "SecretKey(redacted)");
/// ```
///
/// [`locked_memory`]: crate::locked_memory
pub struct SecretKey(KeySlot);

impl SecretKey {
    /// A new key from the system's CSPRNG.
    pub fn generate() -> Self {
        Self::filled(|out| fill_random(out))
    }

    /// A key from bytes that are uniformly random already: never from a password. The caller's own
    /// copy is the caller's to zeroize, so whatever reads or unwraps a key uses
    /// [`SecretKey::try_filled`] instead.
    pub fn from_bytes(bytes: [u8; KEY_BYTES]) -> Self {
        let bytes = Zeroizing::new(bytes);
        Self::filled(|out| out.copy_from_slice(bytes.as_slice()))
    }

    /// The bytes themselves.
    pub fn expose(&self) -> &[u8; KEY_BYTES] {
        self.0.bytes()
    }

    /// The key that HKDF-Expand-SHA-512 (RFC 5869, section 2.3) makes with this key as the
    /// pseudorandom key and `label` as the info.
    ///
    /// For keys that are not Cobblestone input keys, such as a catalog's. Labels must not be
    /// prefixes of each other's variable parts: end the fixed part with a zero byte and give
    /// what follows a fixed width.
    ///
    /// # Panics
    ///
    /// When the label begins like an info string of Cobblestone's own, for the two must never
    /// meet.
    pub fn derive(&self, label: &[u8]) -> Self {
        assert!(
            !label.starts_with(COBBLESTONE_INFO_PREFIX),
            "a label must not begin like Cobblestone's own info strings"
        );
        Self::filled(|out| expand_sha512(self, &[label], out))
    }

    /// A key whose bytes are written where they stay, over zeros: no copy of them is elsewhere.
    ///
    /// # Errors
    ///
    /// Those of `fill`, and then there is no key.
    pub fn try_filled<E>(
        fill: impl FnOnce(&mut [u8; KEY_BYTES]) -> Result<(), E>,
    ) -> Result<Self, E> {
        let mut slot = KeySlot::take();
        fill(slot.bytes_mut())?;
        Ok(Self(slot))
    }

    fn filled(fill: impl FnOnce(&mut [u8; KEY_BYTES])) -> Self {
        let mut slot = KeySlot::take();
        fill(slot.bytes_mut());
        Self(slot)
    }
}

impl Clone for SecretKey {
    fn clone(&self) -> Self {
        Self::filled(|out| out.copy_from_slice(self.expose()))
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

impl PartialEq for SecretKey {
    fn eq(&self, other: &Self) -> bool {
        constant_time::verify_slices_are_equal(self.expose(), other.expose()).is_ok()
    }
}

impl Eq for SecretKey {}

/// `N` bytes from the system's CSPRNG, for ids and salts; secrets are made by
/// [`SecretKey::generate`].
pub fn random_bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    fill_random(&mut bytes);
    bytes
}

/// HKDF-Expand-SHA-512: fills `out` (at most 255 × 64 bytes) from the pseudorandom key `prk` and
/// the concatenation of `info`.
pub(crate) fn expand_sha512(prk: &SecretKey, info: &[&[u8]], out: &mut [u8]) {
    let prk = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA512, prk.expose());
    prk.expand(info, OutputBytes(out.len()))
        .and_then(|okm| okm.fill(out))
        .expect("every output asked for here is far below HKDF's limit of 16,320 bytes");
}

/// How much HKDF shall put out, in bytes.
struct OutputBytes(usize);

impl hkdf::KeyType for OutputBytes {
    fn len(&self) -> usize {
        self.0
    }
}

fn fill_random(out: &mut [u8]) {
    // Without random bytes nothing may be sealed, and no caller could do better than stop.
    rand::fill(out).expect("the system's random number generator works");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_differ_compare_and_hide() {
        let (one, two) = (SecretKey::generate(), SecretKey::generate());
        assert_ne!(one, two);
        assert_eq!(one, SecretKey::from_bytes(*one.expose()));
        assert_eq!(format!("{one:?}"), "SecretKey(redacted)");
        assert!(!format!("{:?}", Some(&one)).contains(&format!("{:?}", &one.expose()[..4])));
    }

    #[test]
    fn derived_keys_depend_on_key_and_label() {
        let key = SecretKey::from_bytes([7; KEY_BYTES]);
        assert_eq!(key.derive(b"a"), key.derive(b"a"));
        assert_ne!(key.derive(b"a"), key.derive(b"b"));
        assert_ne!(
            key.derive(b"a"),
            SecretKey::from_bytes([8; KEY_BYTES]).derive(b"a")
        );
        assert_ne!(key.derive(b""), key);
    }

    #[test]
    #[should_panic(expected = "must not begin")]
    fn cobblestone_labels_are_refused() {
        SecretKey::generate().derive(b"c2sp.org/chunked-encryption@v1+AEAD_AES_256_GCM\0");
    }

    #[test]
    fn random_bytes_are_not_constant() {
        assert_ne!(random_bytes::<16>(), random_bytes::<16>());
    }
}
