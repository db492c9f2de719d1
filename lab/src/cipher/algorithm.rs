//! The algorithms that are compared.

use serde::{Deserialize, Serialize};

/// Bytes of a block of AES.
pub const BLOCK_BYTES: usize = 16;

/// Bytes of the tag of GCM.
pub const TAG_BYTES: usize = 16;

/// AES in a mode, with a length of key; or another authenticated cipher.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Algorithm {
    /// SP 800-38A, 6.2, with 256 bits, without padding.
    Cbc256,
    /// SP 800-38A, 6.5, with 128 bits and a counter of 128 bits.
    Ctr128,
    /// The same with 256 bits.
    Ctr256,
    /// SP 800-38D, with 256 bits, an IV of 96 bits and a tag of 128.
    Gcm256,
    /// IEEE 1619, with two keys of 256 bits.
    Xts256,
    /// RFC 8439.
    ChaCha20Poly1305,
    /// RFC 8452, with 256 bits.
    GcmSiv256,
    /// The CFRG's draft on AEGIS, with 256 bits and a tag of 128.
    Aegis256,
    /// C2SP's XAES-256-GCM, with an IV of 192 bits.
    Xaes256,
}

impl Algorithm {
    /// Authenticated ciphers besides AES-GCM, which are compared with each other.
    pub const AEADS: [Self; 4] = [
        Self::ChaCha20Poly1305,
        Self::GcmSiv256,
        Self::Aegis256,
        Self::Xaes256,
    ];

    /// AES in its modes, each with experiments of its own.
    pub const MODES: [Self; 5] = [
        Self::Cbc256,
        Self::Ctr128,
        Self::Ctr256,
        Self::Gcm256,
        Self::Xts256,
    ];

    /// As standards write it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cbc256 => "AES-256-CBC",
            Self::Ctr128 => "AES-128-CTR",
            Self::Ctr256 => "AES-256-CTR",
            Self::Gcm256 => "AES-256-GCM",
            Self::Xts256 => "AES-256-XTS",
            Self::ChaCha20Poly1305 => "ChaCha20-Poly1305",
            Self::GcmSiv256 => "AES-256-GCM-SIV",
            Self::Aegis256 => "AEGIS-256",
            Self::Xaes256 => "XAES-256-GCM",
        }
    }

    /// As the kernel calls it; or would, which has neither of the last three.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Cbc256 => "cbc(aes)",
            Self::Ctr128 | Self::Ctr256 => "ctr(aes)",
            Self::Gcm256 => "gcm(aes)",
            Self::Xts256 => "xts(aes)",
            Self::ChaCha20Poly1305 => "rfc7539(chacha20,poly1305)",
            Self::GcmSiv256 => "gcm-siv(aes)",
            Self::Aegis256 => "aegis256",
            Self::Xaes256 => "xaes-gcm(aes)",
        }
    }

    /// Bytes of the key.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Ctr128 => 16,
            Self::Xts256 => 64,
            _ => 32,
        }
    }

    /// Bytes of the IV, first counter or tweak.
    pub fn iv_bytes(self) -> usize {
        match self {
            Self::Gcm256 | Self::ChaCha20Poly1305 | Self::GcmSiv256 => 12,
            Self::Xaes256 => 24,
            Self::Aegis256 => 32,
            _ => BLOCK_BYTES,
        }
    }

    /// Whether it takes additional data and gives a tag.
    pub fn authenticates(self) -> bool {
        self == Self::Gcm256 || Self::AEADS.contains(&self)
    }

    /// Whether it takes messages of this many bytes.
    pub fn takes(self, byte_count: usize) -> bool {
        match self {
            Self::Cbc256 => byte_count.is_multiple_of(BLOCK_BYTES),
            Self::Xts256 => byte_count >= BLOCK_BYTES,
            _ => true,
        }
    }
}
