//! Published test vectors, from `lab/vectors` (where its README says what each line holds).

use crate::cipher::Tag;
use crate::cipher::algorithm::{Algorithm, TAG_BYTES};
use crate::error::{LabError, Result};

/// One published case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vector {
    /// Where it comes from: `cavp/CBCMMT256/3`.
    pub name: String,
    /// The key.
    pub key: Vec<u8>,
    /// The IV, counter or tweak.
    pub iv: Vec<u8>,
    /// Additional data.
    pub aad: Vec<u8>,
    /// What is encrypted.
    pub plaintext: Vec<u8>,
    /// What it becomes.
    pub ciphertext: Vec<u8>,
    /// The tag; zeros where the algorithm has none.
    pub tag: Tag,
    /// False: must not decrypt.
    pub valid: bool,
}

/// The vectors of an algorithm.
pub fn vectors(algorithm: Algorithm) -> Result<Vec<Vector>> {
    let (file, text) = match algorithm {
        Algorithm::Cbc256 => (
            "aes-256-cbc.txt",
            include_str!("../../vectors/aes-256-cbc.txt"),
        ),
        Algorithm::Ctr128 => (
            "aes-128-ctr.txt",
            include_str!("../../vectors/aes-128-ctr.txt"),
        ),
        Algorithm::Ctr256 => (
            "aes-256-ctr.txt",
            include_str!("../../vectors/aes-256-ctr.txt"),
        ),
        Algorithm::Gcm256 => (
            "aes-256-gcm.txt",
            include_str!("../../vectors/aes-256-gcm.txt"),
        ),
        Algorithm::Xts256 => (
            "aes-256-xts.txt",
            include_str!("../../vectors/aes-256-xts.txt"),
        ),
        Algorithm::ChaCha20Poly1305 => (
            "chacha20-poly1305.txt",
            include_str!("../../vectors/chacha20-poly1305.txt"),
        ),
        Algorithm::GcmSiv256 => (
            "aes-256-gcm-siv.txt",
            include_str!("../../vectors/aes-256-gcm-siv.txt"),
        ),
        Algorithm::Aegis256 => ("aegis-256.txt", include_str!("../../vectors/aegis-256.txt")),
        Algorithm::Xaes256 => (
            "xaes-256-gcm.txt",
            include_str!("../../vectors/xaes-256-gcm.txt"),
        ),
    };
    let broken = |line: &str| LabError::Data {
        file: format!("lab/vectors/{file}"),
        what: format!(
            "can't be understood: {}",
            line.chars().take(60).collect::<String>()
        ),
    };
    text.lines()
        .map(|line| parse(line).ok_or_else(|| broken(line)))
        .collect()
}

fn parse(line: &str) -> Option<Vector> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [name, key, iv, aad, plaintext, ciphertext, tag, verdict] = fields[..] else {
        return None;
    };
    let bytes = |field: &str| hex::decode(if field == "-" { "" } else { field }).ok();
    let tag = match bytes(tag)? {
        none if none.is_empty() => [0; TAG_BYTES],
        tag => tag.try_into().ok()?,
    };
    Some(Vector {
        name: name.to_owned(),
        key: bytes(key)?,
        iv: bytes(iv)?,
        aad: bytes(aad)?,
        plaintext: bytes(plaintext)?,
        ciphertext: bytes(ciphertext)?,
        tag,
        valid: match verdict {
            "valid" => true,
            "invalid" => false,
            _ => return None,
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_algorithm_has_vectors_that_fit_it() {
        for algorithm in Algorithm::MODES.into_iter().chain(Algorithm::AEADS) {
            let vectors = vectors(algorithm).unwrap();
            // C2SP's specification of XAES has two.
            let least = if algorithm == Algorithm::Xaes256 {
                2
            } else {
                4
            };
            assert!(vectors.len() >= least, "{algorithm:?}");
            for vector in &vectors {
                assert_eq!(vector.key.len(), algorithm.key_bytes(), "{}", vector.name);
                assert_eq!(vector.iv.len(), algorithm.iv_bytes(), "{}", vector.name);
                assert!(algorithm.takes(vector.plaintext.len()), "{}", vector.name);
                assert_eq!(
                    vector.plaintext.len(),
                    vector.ciphertext.len(),
                    "{}",
                    vector.name
                );
            }
        }
        let gcm = vectors(Algorithm::Gcm256).unwrap();
        assert!(gcm.iter().any(|vector| !vector.valid));
    }
}
