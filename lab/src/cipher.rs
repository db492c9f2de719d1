//! What every contender of the raw experiments can do: encrypt and decrypt in place.

pub mod algorithm;

mod aegis_crate;
mod af_alg;
mod aws_lc;
mod cobblestone;
mod copied;
mod kernel_module;
mod open_ssl;
mod plain_c;
mod rust_crypto;

pub mod roster;

mod null_cipher;

pub mod vectors;

pub mod agreement;

use self::algorithm::TAG_BYTES;
use crate::contender::Contender;
use crate::error::Result;

pub use af_alg::Operation as AfAlgOperation;
pub use kernel_module::{KernelModule, contender as kernel_module};
pub use null_cipher::{NullCipher, contender as null_cipher};
pub use open_ssl::{
    decrypting_stream as open_ssl_decrypting, encrypting_stream as open_ssl_encrypting,
};
pub use plain_c::PlainLoop;

/// The tag of an authenticated message; zeros and ignored where the algorithm has none.
pub type Tag = [u8; TAG_BYTES];

/// An expanded key of one algorithm, used by one thread.
///
/// In place, because that is what all of them can do. Lengths are those that
/// [`Algorithm`](crate::cipher::algorithm::Algorithm) tells.
pub trait Cipher {
    /// Encrypts `data` under `iv`, and writes the tag.
    fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()>;

    /// Decrypts `data` under `iv`.
    ///
    /// # Errors
    ///
    /// [`LabError::Tag`](crate::error::LabError::Tag) when the tag is wrong; `data` is then not to
    /// be looked at.
    fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()>;
}

/// A stream: each call goes on, in place, where the last one ended.
pub type Stream = Box<dyn FnMut(&mut [u8]) -> Result<()>>;

/// Expands a key.
pub type Expand = Box<dyn Fn(&[u8]) -> Result<Box<dyn Cipher>> + Send + Sync>;

/// A contender of one algorithm.
pub struct CipherContender {
    /// Who.
    pub contender: Contender,
    /// Expands a key for it.
    pub expand: Expand,
    /// A format of its own: it can be held against itself only.
    pub own_format: bool,
}
