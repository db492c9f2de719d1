//! The algorithms that are compared.

use serde::{Deserialize, Serialize};

/// Bytes of a block of AES.
pub const BLOCK_BYTES: usize = 16;

/// Bytes of the tag of GCM.
pub const TAG_BYTES: usize = 16;

/// AES in a mode, with a length of key.
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
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Self; 5] = [
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
        }
    }

    /// As the kernel calls it.
    pub fn kernel_name(self) -> &'static str {
        match self {
            Self::Cbc256 => "cbc(aes)",
            Self::Ctr128 | Self::Ctr256 => "ctr(aes)",
            Self::Gcm256 => "gcm(aes)",
            Self::Xts256 => "xts(aes)",
        }
    }

    /// Bytes of the key.
    pub fn key_bytes(self) -> usize {
        match self {
            Self::Ctr128 => 16,
            Self::Cbc256 | Self::Ctr256 | Self::Gcm256 => 32,
            Self::Xts256 => 64,
        }
    }

    /// Bytes of the IV, first counter or tweak.
    pub fn iv_bytes(self) -> usize {
        if self == Self::Gcm256 {
            12
        } else {
            BLOCK_BYTES
        }
    }

    /// Whether it takes additional data and gives a tag.
    pub fn authenticates(self) -> bool {
        self == Self::Gcm256
    }

    /// Whether it takes messages of this many bytes.
    pub fn takes(self, byte_count: usize) -> bool {
        match self {
            Self::Cbc256 => byte_count.is_multiple_of(BLOCK_BYTES),
            Self::Xts256 => byte_count >= BLOCK_BYTES,
            Self::Ctr128 | Self::Ctr256 | Self::Gcm256 => true,
        }
    }
}
