//! The keys of one message, as its salt and context make them.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::constant_time;
use aws_lc_rs::error::Unspecified;
use zeroize::Zeroizing;

use crate::context::Context;
use crate::limits::{COMMITMENT_BYTES, HEADER_BYTES, KEY_BYTES, SALT_BYTES, TAG_BYTES};
use crate::secret::{COBBLESTONE_INFO_PREFIX, SecretKey, expand_sha512};

/// The rest of the info string's fixed part: the cipher's name in the IANA registry of AEAD
/// algorithms, ended by a zero byte.
const AEAD_NAME: &[u8] = b"AEAD_AES_256_GCM\0";

const DERIVED_BYTES: usize = KEY_BYTES + NONCE_LEN + COMMITMENT_BYTES;

const _: () = assert!(DERIVED_BYTES == 76);

/// One message's cipher key and base nonce. Both are single-use: no other message has them.
pub(crate) struct MessageKey {
    cipher: LessSafeKey,
    base_nonce: [u8; NONCE_LEN],
}

impl MessageKey {
    /// Derives a message's keys and the header that it begins with: salt and commitment.
    ///
    /// `key || base nonce || commitment = HKDF-Expand-SHA-512(prk = input key, info =
    /// "c2sp.org/chunked-encryption@v1+" || "AEAD_AES_256_GCM" || 0x00 || salt || context)`;
    /// C2SP chunked-encryption v1, "Key derivation".
    pub(crate) fn derive(
        input_key: &SecretKey,
        context: &Context,
        salt: &[u8; SALT_BYTES],
    ) -> (Self, [u8; HEADER_BYTES]) {
        let mut derived = Zeroizing::new([0; DERIVED_BYTES]);
        let info = [COBBLESTONE_INFO_PREFIX, AEAD_NAME, salt, context.as_bytes()];
        expand_sha512(input_key, &info, derived.as_mut_slice());
        let (cipher_key, rest) = derived.split_at(KEY_BYTES);
        let (base_nonce, commitment) = rest.split_at(NONCE_LEN);

        let mut header = [0; HEADER_BYTES];
        header[..SALT_BYTES].copy_from_slice(salt);
        header[SALT_BYTES..].copy_from_slice(commitment);
        let cipher = UnboundKey::new(&AES_256_GCM, cipher_key)
            .expect("AES-256-GCM takes the 32 bytes that were split off");
        let message_key = Self {
            cipher: LessSafeKey::new(cipher),
            base_nonce: base_nonce
                .try_into()
                .expect("12 bytes were split off for the nonce"),
        };
        (message_key, header)
    }

    /// The keys of the message with this header; `None` when the header's commitment is not
    /// theirs, that is, when the message was sealed under another key or context.
    pub(crate) fn committed(
        input_key: &SecretKey,
        context: &Context,
        header: &[u8; HEADER_BYTES],
    ) -> Option<Self> {
        let salt = header
            .first_chunk::<SALT_BYTES>()
            .expect("a header begins with a salt");
        let (message_key, expected) = Self::derive(input_key, context, salt);
        constant_time::verify_slices_are_equal(&expected, header)
            .ok()
            .map(|()| message_key)
    }

    /// Seals one chunk in one pass from `plaintext` into `out`, which is a tag longer. Whoever
    /// calls makes sure that no index is used twice.
    pub(crate) fn seal_chunk(
        &self,
        index: u64,
        plaintext: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (ciphertext, tag) = out.split_at_mut(plaintext.len());
        self.cipher.seal_out_of_place_scatter(
            self.nonce(index),
            Aad::empty(),
            plaintext,
            ciphertext,
            &[],
            tag,
        )
    }

    /// Seals one chunk where it lies: `chunk` begins with the plaintext and ends with room for a
    /// tag. Otherwise as [`seal_chunk`](Self::seal_chunk).
    pub(crate) fn seal_chunk_in_place(
        &self,
        index: u64,
        chunk: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (text, room) = chunk.split_at_mut(chunk.len() - TAG_BYTES);
        let tag = self
            .cipher
            .seal_in_place_separate_tag(self.nonce(index), Aad::empty(), text)?;
        room.copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Opens one chunk in one pass from `sealed` (ciphertext and tag) into `out`, which is a tag
    /// shorter. Where it does not verify, `out` is all zeros.
    pub(crate) fn open_chunk(
        &self,
        index: u64,
        sealed: &[u8],
        out: &mut [u8],
    ) -> Result<(), Unspecified> {
        let (ciphertext, tag) = sealed.split_at(sealed.len() - TAG_BYTES);
        let opened =
            self.cipher
                .open_separate_gather(self.nonce(index), Aad::empty(), ciphertext, tag, out);
        if opened.is_err() {
            // The cipher decrypts while it authenticates, and promises nothing about what it leaves
            // behind when the tag is wrong.
            out.fill(0);
        }
        opened
    }

    /// The base nonce XOR the chunk's number as a big-endian integer of the nonce's width. Unique
    /// under this key, because the key belongs to one message and an index to one chunk of it.
    fn nonce(&self, index: u64) -> Nonce {
        let mut nonce = self.base_nonce;
        let counter = &mut nonce[NONCE_LEN - size_of::<u64>()..];
        for (byte, number) in counter.iter_mut().zip(index.to_be_bytes()) {
            *byte ^= number;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}
