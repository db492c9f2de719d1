//! The crates of the RustCrypto project, and `xts-mode`, which builds on them.

use aes::cipher::{Array, BlockModeDecrypt, BlockModeEncrypt, InnerIvInit, KeyInit, StreamCipher};
use aes::{Aes128, Aes256};
use aes_gcm::Aes256Gcm;
use aes_gcm::aead::{self, AeadInOut, Nonce};
use aes_gcm_siv::Aes256GcmSiv;
use ctr::{Ctr128BE, CtrCore};
use xaes_256_gcm::Xaes256Gcm;
use xts_mode::Xts128;

use crate::cipher::algorithm::{Algorithm, BLOCK_BYTES};
use crate::cipher::{Cipher, Tag};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};

pub(super) fn contender(algorithm: Algorithm) -> Contender {
    let crates = match algorithm {
        Algorithm::Cbc256 => "crates aes 0.9, cbc 0.2",
        Algorithm::Ctr128 | Algorithm::Ctr256 => "crates aes 0.9, ctr 0.10",
        Algorithm::Gcm256 => "crate aes-gcm 0.11",
        Algorithm::Xts256 => "crates aes 0.9, xts-mode 0.6",
        Algorithm::GcmSiv256 => "crate aes-gcm-siv 0.12",
        Algorithm::Xaes256 => "crate xaes-256-gcm 0.1",
        Algorithm::ChaCha20Poly1305 | Algorithm::Aegis256 => "nothing",
    };
    Contender::new("RustCrypto", Placement::User, crates)
        .set("instructions found at run time, key expanded once, in place")
        .set("built as the workspace's release profile says: one unit, thin LTO; much slower else")
}

fn refused(what: &str) -> LabError {
    LabError::Cipher {
        contender: "RustCrypto".into(),
        what: what.into(),
    }
}

pub(super) fn expand(algorithm: Algorithm, bytes: &[u8]) -> Result<Box<dyn Cipher>> {
    let key = || refused("a key of another length");
    let aes_256 = |bytes: &[u8]| Aes256::new_from_slice(bytes).map_err(|_| key());
    Ok(match algorithm {
        Algorithm::Cbc256 => Box::new(Cbc(aes_256(bytes)?)),
        Algorithm::Ctr128 => Box::new(Ctr128(Aes128::new_from_slice(bytes).map_err(|_| key())?)),
        Algorithm::Ctr256 => Box::new(Ctr256(aes_256(bytes)?)),
        Algorithm::Gcm256 => authenticated::<Aes256Gcm>(bytes)?,
        Algorithm::GcmSiv256 => authenticated::<Aes256GcmSiv>(bytes)?,
        Algorithm::Xaes256 => authenticated::<Xaes256Gcm>(bytes)?,
        // Its crate would have the server built with other features of a crate that it has, too.
        Algorithm::ChaCha20Poly1305 | Algorithm::Aegis256 => {
            return Err(refused("no such cipher"));
        }
        Algorithm::Xts256 => {
            let (first, second) = bytes.split_at_checked(32).ok_or_else(key)?;
            Box::new(Xts(Xts128::new(aes_256(first)?, aes_256(second)?)))
        }
    })
}

fn iv_of<const N: usize>(iv: &[u8]) -> Result<[u8; N]> {
    iv.try_into()
        .map_err(|_| refused("an IV of another length"))
}

struct Cbc(Aes256);

impl Cipher for Cbc {
    fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        let iv = Array(iv_of::<BLOCK_BYTES>(iv)?);
        let (blocks, rest) = Array::slice_as_chunks_mut(data);
        if !rest.is_empty() {
            return Err(refused("data that is not whole blocks"));
        }
        cbc::Encryptor::inner_iv_init(&self.0, &iv).encrypt_blocks(blocks);
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        let iv = Array(iv_of::<BLOCK_BYTES>(iv)?);
        let (blocks, rest) = Array::slice_as_chunks_mut(data);
        if !rest.is_empty() {
            return Err(refused("data that is not whole blocks"));
        }
        cbc::Decryptor::inner_iv_init(&self.0, &iv).decrypt_blocks(blocks);
        Ok(())
    }
}

/// Counter mode over a borrowed cipher: a new counter costs no key expansion.
macro_rules! counter_mode {
    ($name:ident, $aes:ty) => {
        struct $name($aes);

        impl $name {
            fn apply(&self, iv: &[u8], data: &mut [u8]) -> Result<()> {
                let iv = Array(iv_of::<BLOCK_BYTES>(iv)?);
                let core = CtrCore::inner_iv_init(&self.0, &iv);
                Ctr128BE::from_core(core).apply_keystream(data);
                Ok(())
            }
        }

        impl Cipher for $name {
            fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
                self.apply(iv, data)
            }

            fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
                self.apply(iv, data)
            }
        }
    };
}

counter_mode!(Ctr128, Aes128);
counter_mode!(Ctr256, Aes256);

struct Authenticated<A>(A);

fn authenticated<A: AeadInOut + KeyInit + 'static>(bytes: &[u8]) -> Result<Box<dyn Cipher>> {
    let cipher = A::new_from_slice(bytes).map_err(|_| refused("a key of another length"))?;
    Ok(Box::new(Authenticated(cipher)))
}

impl<A: AeadInOut> Cipher for Authenticated<A> {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        let nonce = Nonce::<A>::try_from(iv).map_err(|_| refused("an IV of another length"))?;
        let made = self.0.encrypt_inout_detached(&nonce, aad, data.into());
        tag.copy_from_slice(&made.map_err(|_| refused("to encrypt"))?);
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        let nonce = Nonce::<A>::try_from(iv).map_err(|_| refused("an IV of another length"))?;
        let tag = aead::Tag::<A>::try_from(&tag[..]).map_err(|_| refused("a tag"))?;
        let done = self
            .0
            .decrypt_inout_detached(&nonce, aad, data.into(), &tag);
        done.map_err(|_| LabError::Tag)
    }
}

struct Xts(Xts128<Aes256>);

impl Cipher for Xts {
    fn encrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &mut Tag) -> Result<()> {
        if data.len() < BLOCK_BYTES {
            return Err(refused("less than a block"));
        }
        self.0.encrypt_sector(data, Array(iv_of(iv)?));
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], _: &[u8], data: &mut [u8], _: &Tag) -> Result<()> {
        if data.len() < BLOCK_BYTES {
            return Err(refused("less than a block"));
        }
        self.0.decrypt_sector(data, Array(iv_of(iv)?));
        Ok(())
    }
}
