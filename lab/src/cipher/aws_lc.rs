//! AWS-LC through `aws-lc-rs`, the library that coffer seals with. It offers no XTS.

use aws_lc_rs::aead::{
    AES_256_GCM, AES_256_GCM_SIV, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use aws_lc_rs::cipher::{
    AES_128, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;

use crate::cipher::algorithm::{Algorithm, BLOCK_BYTES};
use crate::cipher::{Cipher, Tag};
use crate::contender::{Availability, Contender, Placement};
use crate::error::{LabError, Result};

pub(super) fn contender(algorithm: Algorithm) -> Contender {
    let contender =
        Contender::new("aws-lc-rs", Placement::User, "AWS-LC, linked in").set(match algorithm {
            one if one.authenticates() => "LessSafeKey, in place, tag apart",
            _ => "EncryptingKey and DecryptingKey, in place",
        });
    match algorithm {
        Algorithm::Xts256 => contender.available(Availability::cannot(
            "aws-lc-rs does not offer XTS",
            "nothing on this machine; a later version of aws-lc-rs may offer it",
        )),
        _ => contender,
    }
}

fn refused(what: &'static str) -> impl Fn(Unspecified) -> LabError {
    move |_| LabError::Cipher {
        contender: "aws-lc-rs".into(),
        what: what.into(),
    }
}

pub(super) fn expand(algorithm: Algorithm, bytes: &[u8]) -> Result<Box<dyn Cipher>> {
    let authenticated = match algorithm {
        Algorithm::Gcm256 => Some(&AES_256_GCM),
        Algorithm::GcmSiv256 => Some(&AES_256_GCM_SIV),
        Algorithm::ChaCha20Poly1305 => Some(&CHACHA20_POLY1305),
        _ => None,
    };
    if let Some(authenticated) = authenticated {
        let key = UnboundKey::new(authenticated, bytes).map_err(refused("the key"))?;
        return Ok(Box::new(Authenticated(LessSafeKey::new(key))));
    }
    let size = match algorithm {
        Algorithm::Ctr128 => &AES_128,
        Algorithm::Cbc256 | Algorithm::Ctr256 => &AES_256,
        _ => return Err(refused("the algorithm")(Unspecified)),
    };
    let key = || UnboundCipherKey::new(size, bytes).map_err(refused("the key"));
    let (encrypting, decrypting) = if algorithm == Algorithm::Cbc256 {
        (EncryptingKey::cbc(key()?), DecryptingKey::cbc(key()?))
    } else {
        (EncryptingKey::ctr(key()?), DecryptingKey::ctr(key()?))
    };
    Ok(Box::new(Unauthenticated {
        encrypting: encrypting.map_err(refused("the key"))?,
        decrypting: decrypting.map_err(refused("the key"))?,
    }))
}

struct Unauthenticated {
    encrypting: EncryptingKey,
    decrypting: DecryptingKey,
}

fn fixed(iv: &[u8]) -> Result<FixedLength<BLOCK_BYTES>> {
    let iv: &[u8; BLOCK_BYTES] = iv.try_into().map_err(|_| refused("the IV")(Unspecified))?;
    Ok(iv.into())
}

impl Cipher for Unauthenticated {
    fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        let context = EncryptionContext::Iv128(fixed(iv)?);
        let done = self.encrypting.less_safe_encrypt(data, context);
        done.map(|_| ()).map_err(refused("to encrypt"))
    }

    fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        let context = DecryptionContext::Iv128(fixed(iv)?);
        let done = self.decrypting.decrypt(data, context);
        done.map(|_| ()).map_err(refused("to decrypt"))
    }
}

struct Authenticated(LessSafeKey);

impl Cipher for Authenticated {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        let nonce = Nonce::try_assume_unique_for_key(iv).map_err(refused("the IV"))?;
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce, Aad::from(aad), data);
        tag.copy_from_slice(sealed.map_err(refused("to seal"))?.as_ref());
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        let nonce = Nonce::try_assume_unique_for_key(iv).map_err(refused("the IV"))?;
        let opened = self
            .0
            .open_in_place_separate_tag(nonce, Aad::from(aad), tag, data);
        opened.map(|_| ()).map_err(|_| LabError::Tag)
    }
}
