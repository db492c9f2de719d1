//! The system's OpenSSL, through its C functions: `EVP_CipherInit_ex`, `EVP_CipherUpdate`,
//! `EVP_CipherFinal`.

use std::ffi::c_int;
use std::ptr;

use foreign_types::ForeignType;
use openssl::cipher::{Cipher as EvpCipher, CipherRef};
use openssl::cipher_ctx::CipherCtx;
use openssl::error::ErrorStack;

use crate::cipher::algorithm::{Algorithm, TAG_BYTES};
use crate::cipher::{Cipher, Stream, Tag};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};

const NAME: &str = "OpenSSL";

pub(super) fn contender() -> Contender {
    Contender::new(NAME, Placement::User, openssl::version::version())
        .set("libcrypto of the system, EVP_CipherUpdate in place")
        .set("a context a direction, key set once, EVP_CipherInit_ex for each IV")
}

/// None, where it has no such cipher, or has it in newer versions only.
fn evp(algorithm: Algorithm) -> Option<&'static CipherRef> {
    Some(match algorithm {
        Algorithm::Cbc256 => EvpCipher::aes_256_cbc(),
        Algorithm::Ctr128 => EvpCipher::aes_128_ctr(),
        Algorithm::Ctr256 => EvpCipher::aes_256_ctr(),
        Algorithm::Gcm256 => EvpCipher::aes_256_gcm(),
        Algorithm::Xts256 => EvpCipher::aes_256_xts(),
        Algorithm::ChaCha20Poly1305 => EvpCipher::chacha20_poly1305(),
        Algorithm::GcmSiv256 | Algorithm::Aegis256 | Algorithm::Xaes256 => return None,
    })
}

fn refused(what: &'static str) -> impl Fn(ErrorStack) -> LabError {
    move |error| LabError::Cipher {
        contender: NAME.into(),
        what: format!("{what}: {error}"),
    }
}

struct OpenSsl {
    algorithm: Algorithm,
    encrypting: CipherCtx,
    decrypting: CipherCtx,
}

fn open(algorithm: Algorithm, key: &[u8]) -> Result<OpenSsl> {
    let wrong_key = LabError::Cipher {
        contender: NAME.into(),
        what: "no such cipher, or a key of another length".into(),
    };
    let evp = evp(algorithm).filter(|_| key.len() == algorithm.key_bytes());
    let Some(evp) = evp else {
        return Err(wrong_key);
    };
    let set_up = || -> std::result::Result<OpenSsl, ErrorStack> {
        let (mut encrypting, mut decrypting) = (CipherCtx::new()?, CipherCtx::new()?);
        encrypting.encrypt_init(Some(evp), Some(key), None)?;
        decrypting.decrypt_init(Some(evp), Some(key), None)?;
        encrypting.set_padding(false);
        decrypting.set_padding(false);
        Ok(OpenSsl {
            algorithm,
            encrypting,
            decrypting,
        })
    };
    set_up().map_err(refused("setting up"))
}

pub(super) fn expand(algorithm: Algorithm, key: &[u8]) -> Result<Box<dyn Cipher>> {
    Ok(Box::new(open(algorithm, key)?))
}

/// Transforms `data` in place and says whether OpenSSL did, and all of it.
fn update(context: &mut CipherCtx, data: &mut [u8]) -> bool {
    let Ok(count) = c_int::try_from(data.len()) else {
        return false;
    };
    let mut written: c_int = 0;
    // SAFETY: EVP_CipherUpdate may work in place (EVP_EncryptInit(3)). Without padding, and with
    // whole blocks for the modes that want them, it writes as many bytes as it reads. The safe
    // wrapper asks for a block more than that.
    let status = unsafe {
        openssl_sys::EVP_CipherUpdate(
            context.as_ptr(),
            data.as_mut_ptr(),
            &mut written,
            data.as_ptr(),
            count,
        )
    };
    status == 1 && written == count
}

fn finish(context: &mut CipherCtx) -> bool {
    let mut none = [0; TAG_BYTES];
    let mut written: c_int = 0;
    let room = none.as_mut_ptr();
    // SAFETY: the room is a block, the most that it writes; without padding it writes nothing.
    let status = unsafe { openssl_sys::EVP_CipherFinal(context.as_ptr(), room, &mut written) };
    status == 1 && written == 0
}

fn feed(context: &mut CipherCtx, aad: &[u8]) -> bool {
    let Ok(count) = c_int::try_from(aad.len()) else {
        return false;
    };
    let mut written: c_int = 0;
    // SAFETY: without a place to write to, `aad` is only read, by its length.
    let status = unsafe {
        openssl_sys::EVP_CipherUpdate(
            context.as_ptr(),
            ptr::null_mut(),
            &mut written,
            aad.as_ptr(),
            count,
        )
    };
    status == 1
}

fn failed() -> LabError {
    LabError::Cipher {
        contender: NAME.into(),
        what: "EVP_CipherUpdate failed".into(),
    }
}

impl OpenSsl {
    fn check(&self, iv: &[u8], data: &[u8]) -> Result<()> {
        let fits = iv.len() == self.algorithm.iv_bytes() && self.algorithm.takes(data.len());
        if fits { Ok(()) } else { Err(failed()) }
    }
}

impl Cipher for OpenSsl {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        self.check(iv, data)?;
        let context = &mut self.encrypting;
        context
            .encrypt_init(None, None, Some(iv))
            .map_err(refused("the IV"))?;
        let authenticates = self.algorithm.authenticates();
        let fed = !authenticates || aad.is_empty() || feed(context, aad);
        let done = fed && update(context, data);
        if !done || (authenticates && !finish(context)) {
            return Err(failed());
        }
        if authenticates {
            context.tag(tag).map_err(refused("the tag"))?;
        }
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        self.check(iv, data)?;
        let context = &mut self.decrypting;
        context
            .decrypt_init(None, None, Some(iv))
            .map_err(refused("the IV"))?;
        if !self.algorithm.authenticates() {
            return if update(context, data) {
                Ok(())
            } else {
                Err(failed())
            };
        }
        context.set_tag(tag).map_err(refused("the tag"))?;
        let fed = aad.is_empty() || feed(context, aad);
        if !fed || !update(context, data) {
            return Err(failed());
        }
        if finish(context) {
            Ok(())
        } else {
            Err(LabError::Tag)
        }
    }
}

/// AES in counter mode with a key of that length.
fn counter_mode(key: &[u8]) -> Algorithm {
    if key.len() == Algorithm::Ctr128.key_bytes() {
        Algorithm::Ctr128
    } else {
        Algorithm::Ctr256
    }
}

/// A stream to encrypt under one counter, with AES-128 or AES-256 by the length of the key: each
/// call goes on where the last one ended.
pub fn encrypting_stream(key: &[u8], iv: &[u8]) -> Result<Stream> {
    let mut context = open(counter_mode(key), key)?.encrypting;
    let begun = context.encrypt_init(None, None, Some(iv));
    begun.map_err(refused("the IV"))?;
    Ok(stream(context))
}

/// The same to decrypt.
pub fn decrypting_stream(key: &[u8], iv: &[u8]) -> Result<Stream> {
    let mut context = open(counter_mode(key), key)?.decrypting;
    let begun = context.decrypt_init(None, None, Some(iv));
    begun.map_err(refused("the IV"))?;
    Ok(stream(context))
}

fn stream(mut context: CipherCtx) -> Stream {
    Box::new(move |data| {
        if update(&mut context, data) {
            Ok(())
        } else {
            Err(failed())
        }
    })
}
