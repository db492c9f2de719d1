//! AES in plain C, from `c/`: the code that the kernel module runs too.

use std::sync::Once;

use crate::cipher::algorithm::{Algorithm, BLOCK_BYTES};
use crate::cipher::{Cipher, Tag};
use crate::contender::{Contender, Placement};
use crate::error::{LabError, Result};

/// `struct aes_plain_key` of `c/aes_plain.h`.
#[repr(C)]
struct Key {
    encrypt: [u32; 60],
    decrypt: [u32; 60],
    rounds: u32,
}

/// `struct aes_plain_ghash` of `c/aes_plain.h`.
#[repr(C)]
struct Ghash {
    high: [u64; 16],
    low: [u64; 16],
}

unsafe extern "C" {
    fn aes_plain_prepare();
    fn aes_plain_expand(key: *mut Key, bytes: *const u8, byte_count: usize);
    fn aes_plain_cbc_encrypt(key: *const Key, iv: *const u8, data: *mut u8, byte_count: usize);
    fn aes_plain_cbc_decrypt(key: *const Key, iv: *const u8, data: *mut u8, byte_count: usize);
    fn aes_plain_loop(
        key: *const Key,
        iv: *const u8,
        buffer: *mut u8,
        byte_count: usize,
        call_bytes: usize,
        turns: u64,
    );
    fn aes_plain_ctr(key: *const Key, counter: *const u8, data: *mut u8, byte_count: usize);
    fn aes_plain_xts_encrypt(
        key: *const Key,
        tweak_key: *const Key,
        tweak: *const u8,
        data: *mut u8,
        byte_count: usize,
    );
    fn aes_plain_xts_decrypt(
        key: *const Key,
        tweak_key: *const Key,
        tweak: *const u8,
        data: *mut u8,
        byte_count: usize,
    );
    fn aes_plain_ghash_prepare(ghash: *mut Ghash, key: *const Key);
    fn aes_plain_gcm_encrypt(
        key: *const Key,
        ghash: *const Ghash,
        iv: *const u8,
        aad: *const u8,
        aad_count: usize,
        data: *mut u8,
        byte_count: usize,
        tag: *mut u8,
    );
    fn aes_plain_gcm_decrypt(
        key: *const Key,
        ghash: *const Ghash,
        iv: *const u8,
        aad: *const u8,
        aad_count: usize,
        data: *mut u8,
        byte_count: usize,
        tag: *const u8,
    ) -> i32;
}

static PREPARED: Once = Once::new();

pub(super) fn contender() -> Contender {
    Contender::new("AES in plain C", Placement::User, "lab/c, compiled by cc")
        .set("four tables a direction, -O2")
        .set("the same files as the kernel module's")
}

struct PlainC {
    algorithm: Algorithm,
    key: Key,
    /// The second key, of XTS only.
    tweak_key: Key,
    ghash: Ghash,
}

fn expand_one(bytes: &[u8]) -> Key {
    let mut key = Key {
        encrypt: [0; 60],
        decrypt: [0; 60],
        rounds: 0,
    };
    // SAFETY: the function writes into `key`, which has the layout of the header, and reads
    // `bytes` by its length, which is 16 or 32.
    unsafe { aes_plain_expand(&mut key, bytes.as_ptr(), bytes.len()) };
    key
}

pub(super) fn expand(algorithm: Algorithm, bytes: &[u8]) -> Result<Box<dyn Cipher>> {
    if bytes.len() != algorithm.key_bytes() || !Algorithm::MODES.contains(&algorithm) {
        return Err(refused("no mode of AES, or a key of another length"));
    }
    prepare();
    let (first, second) = match algorithm {
        Algorithm::Xts256 => bytes.split_at(32),
        _ => (bytes, bytes),
    };
    let mut cipher = PlainC {
        algorithm,
        key: expand_one(first),
        tweak_key: expand_one(second),
        ghash: Ghash {
            high: [0; 16],
            low: [0; 16],
        },
    };
    // SAFETY: both have the layout of the header.
    unsafe { aes_plain_ghash_prepare(&mut cipher.ghash, &cipher.key) };
    Ok(Box::new(cipher))
}

/// The loop of table A in C: what the kernel module runs too.
pub struct PlainLoop(Key);

impl PlainLoop {
    /// Expands a key of 32 bytes.
    pub fn new(key: &[u8; 32]) -> Self {
        prepare();
        Self(expand_one(key))
    }

    /// Encrypts and decrypts `data` in calls of `call_bytes`, `turns` times.
    pub fn run(&self, iv: &[u8; BLOCK_BYTES], data: &mut [u8], call_bytes: usize, turns: u64) {
        let (key, count) = (&raw const self.0, data.len());
        // SAFETY: the key has been expanded; the C code goes no further than the length it is told.
        unsafe {
            aes_plain_loop(
                key,
                iv.as_ptr(),
                data.as_mut_ptr(),
                count,
                call_bytes,
                turns,
            );
        }
    }
}

fn prepare() {
    // SAFETY: fills the tables of the C code, once, before any other call.
    PREPARED.call_once(|| unsafe { aes_plain_prepare() });
}

fn refused(what: &str) -> LabError {
    LabError::Cipher {
        contender: "AES in plain C".into(),
        what: what.into(),
    }
}

impl PlainC {
    fn check(&self, iv: &[u8], data: &[u8]) -> Result<()> {
        if iv.len() == self.algorithm.iv_bytes() && self.algorithm.takes(data.len()) {
            Ok(())
        } else {
            Err(refused("an IV or data of another length"))
        }
    }
}

impl Cipher for PlainC {
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
        self.check(iv, data)?;
        let (key, iv, count) = (&raw const self.key, iv.as_ptr(), data.len());
        let data = data.as_mut_ptr();
        // SAFETY: the keys have been expanded; `iv` and `data` have the lengths that `check` saw,
        // and the C code goes no further than the lengths it is told.
        unsafe {
            match self.algorithm {
                Algorithm::Cbc256 => aes_plain_cbc_encrypt(key, iv, data, count),
                Algorithm::Ctr128 | Algorithm::Ctr256 => aes_plain_ctr(key, iv, data, count),
                Algorithm::Xts256 => aes_plain_xts_encrypt(key, &self.tweak_key, iv, data, count),
                Algorithm::Gcm256 => aes_plain_gcm_encrypt(
                    key,
                    &self.ghash,
                    iv,
                    aad.as_ptr(),
                    aad.len(),
                    data,
                    count,
                    tag.as_mut_ptr(),
                ),
                // `expand` takes no others.
                _ => return Err(refused("no mode of AES")),
            }
        }
        Ok(())
    }

    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
        self.check(iv, data)?;
        let (key, iv, count) = (&raw const self.key, iv.as_ptr(), data.len());
        let data = data.as_mut_ptr();
        let mut status = 0;
        // SAFETY: as in `encrypt`.
        unsafe {
            match self.algorithm {
                Algorithm::Cbc256 => aes_plain_cbc_decrypt(key, iv, data, count),
                Algorithm::Ctr128 | Algorithm::Ctr256 => aes_plain_ctr(key, iv, data, count),
                Algorithm::Xts256 => aes_plain_xts_decrypt(key, &self.tweak_key, iv, data, count),
                Algorithm::Gcm256 => {
                    status = aes_plain_gcm_decrypt(
                        key,
                        &self.ghash,
                        iv,
                        aad.as_ptr(),
                        aad.len(),
                        data,
                        count,
                        tag.as_ptr(),
                    );
                }
                _ => return Err(refused("no mode of AES")),
            }
        }
        if status == 0 {
            Ok(())
        } else {
            Err(LabError::Tag)
        }
    }
}
