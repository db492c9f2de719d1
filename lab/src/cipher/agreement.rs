//! All contenders of an algorithm give the same bytes, or no speed is printed.
//!
//! First each is held against published vectors, then against the others on random messages of
//! many lengths, in both directions; and each must refuse a message with a changed tag.

use coffer_seal::random_bytes;

use crate::cipher::algorithm::{Algorithm, TAG_BYTES};
use crate::cipher::vectors::{Vector, vectors};
use crate::cipher::{Cipher, CipherContender};
use crate::error::{LabError, Result};
use crate::record::Agreement;

/// Lengths of the random messages, in bytes; those that an algorithm does not take are left out.
/// Around blocks, sectors, pages and chunks, up to the longest that is measured.
const RANDOM_LENGTHS: [usize; 14] = [
    0,
    1,
    15,
    16,
    17,
    31,
    32,
    100,
    512,
    4096,
    16_384,
    65_551,
    65_552,
    1 << 20,
];

/// How many bytes of a difference are shown.
const SHOWN_BYTES: usize = 16;

/// Compares all that can run, on random messages of up to `longest` bytes.
///
/// # Errors
///
/// [`LabError::Disagree`] names the first that is wrong.
pub fn agree(
    algorithm: Algorithm,
    roster: &[CipherContender],
    longest: usize,
) -> Result<Agreement> {
    let running: Vec<_> = roster
        .iter()
        .filter(|one| one.contender.availability.runs())
        .collect();
    let vectors = vectors(algorithm)?;
    let comparable: Vec<_> = running.iter().filter(|one| !one.own_format).collect();
    for one in &comparable {
        for vector in &vectors {
            hold_against(one, vector)?;
        }
    }
    let lengths = || {
        RANDOM_LENGTHS
            .into_iter()
            .filter(|length| algorithm.takes(*length) && *length <= longest)
    };
    for length in lengths() {
        let message = Message::random(algorithm, length);
        let mut first = None;
        for one in &comparable {
            let sealed = message.round_trip(one)?;
            match &first {
                None => first = Some(sealed),
                Some(expected) => compare(one, &message.case("encrypting"), expected, &sealed)?,
            }
        }
        for one in running.iter().filter(|one| one.own_format) {
            message.round_trip(one)?;
        }
    }
    Ok(Agreement {
        algorithm: algorithm.name().to_owned(),
        contenders: running
            .iter()
            .map(|one| one.contender.name.clone())
            .collect(),
        vector_count: vectors.len(),
        random_count: lengths().count(),
    })
}

fn hold_against(one: &CipherContender, vector: &Vector) -> Result<()> {
    let mut cipher = (one.expand)(&vector.key)?;
    let mut data = vector.ciphertext.clone();
    let opened = cipher.decrypt(&vector.iv, &vector.aad, &mut data, &vector.tag);
    let case = |direction: &str| format!("{} ({direction})", vector.name);
    if !vector.valid {
        return match opened {
            Err(LabError::Tag) => Ok(()),
            Err(other) => Err(other),
            Ok(()) => Err(disagree(one, &case("decrypting"), b"a refusal", &data)),
        };
    }
    opens(one, &case("decrypting"), opened)?;
    compare(one, &case("decrypting"), &vector.plaintext, &data)?;
    let mut tag = [0; TAG_BYTES];
    cipher.encrypt(&vector.iv, &vector.aad, &mut data, &mut tag)?;
    compare(one, &case("encrypting"), &vector.ciphertext, &data)?;
    compare(one, &case("tag"), &vector.tag, &tag)
}

/// A random message and what it is encrypted with.
struct Message {
    algorithm: Algorithm,
    key: Vec<u8>,
    iv: Vec<u8>,
    aad: Vec<u8>,
    plaintext: Vec<u8>,
}

impl Message {
    fn random(algorithm: Algorithm, length: usize) -> Self {
        let aad: &[u8] = if algorithm.authenticates() {
            &random_bytes::<20>()
        } else {
            &[]
        };
        Self {
            algorithm,
            key: random_bytes::<64>()[..algorithm.key_bytes()].to_vec(),
            iv: random_bytes::<32>()[..algorithm.iv_bytes()].to_vec(),
            aad: aad.to_vec(),
            plaintext: random_message(length),
        }
    }

    fn case(&self, direction: &str) -> String {
        format!("{direction} a random message of {} B", self.plaintext.len())
    }

    /// Encrypts and decrypts; gives the ciphertext with its tag.
    fn round_trip(&self, one: &CipherContender) -> Result<Vec<u8>> {
        let mut cipher = (one.expand)(&self.key)?;
        let mut data = self.plaintext.clone();
        let mut tag = [0; TAG_BYTES];
        cipher.encrypt(&self.iv, &self.aad, &mut data, &mut tag)?;
        let sealed = [&data[..], &tag].concat();
        if one.own_format {
            // Its sealed form is kept inside: what comes back must come from there.
            data.fill(0);
        } else if self.algorithm.authenticates() {
            self.refuses_changes(one, cipher.as_mut(), &data, tag)?;
        }
        let opened = cipher.decrypt(&self.iv, &self.aad, &mut data, &tag);
        opens(one, &self.case("decrypting"), opened)?;
        compare(one, &self.case("decrypting"), &self.plaintext, &data)?;
        Ok(sealed)
    }

    fn refuses_changes(
        &self,
        one: &CipherContender,
        cipher: &mut dyn Cipher,
        sealed: &[u8],
        mut tag: [u8; TAG_BYTES],
    ) -> Result<()> {
        tag[TAG_BYTES - 1] ^= 1;
        let mut data = sealed.to_vec();
        match cipher.decrypt(&self.iv, &self.aad, &mut data, &tag) {
            Err(LabError::Tag) => Ok(()),
            Err(other) => Err(other),
            Ok(()) => Err(disagree(
                one,
                &self.case("a changed tag on"),
                b"a refusal",
                &data,
            )),
        }
    }
}

/// A right tag that is called wrong is a fault of the contender, which must be named.
fn opens(one: &CipherContender, case: &str, opened: Result<()>) -> Result<()> {
    match opened {
        Err(LabError::Tag) => Err(LabError::Disagree {
            contender: one.contender.name.clone(),
            case: case.to_owned(),
            expected: "that it opens".into(),
            found: "a refusal".into(),
        }),
        other => other,
    }
}

fn random_message(length: usize) -> Vec<u8> {
    let mut message = Vec::with_capacity(length);
    while message.len() < length {
        let block = random_bytes::<4096>();
        message.extend_from_slice(&block[..block.len().min(length - message.len())]);
    }
    message
}

fn compare(one: &CipherContender, case: &str, expected: &[u8], found: &[u8]) -> Result<()> {
    if expected == found {
        return Ok(());
    }
    let differs = expected.iter().zip(found).position(|(a, b)| a != b);
    let from = differs.unwrap_or(expected.len().min(found.len()));
    let case = format!("{case}, from byte {from}");
    Err(disagree(one, &case, &expected[from..], &found[from..]))
}

fn disagree(one: &CipherContender, case: &str, expected: &[u8], found: &[u8]) -> LabError {
    let shown = |bytes: &[u8]| hex::encode(&bytes[..bytes.len().min(SHOWN_BYTES)]);
    LabError::Disagree {
        contender: one.contender.name.clone(),
        case: case.to_owned(),
        expected: if expected == b"a refusal" {
            "a refusal".into()
        } else {
            shown(expected)
        },
        found: shown(found),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cipher::Tag;
    use crate::cipher::roster::{aeads, ceiling, roster};
    use crate::contender::{Contender, Placement};

    #[test]
    fn all_contenders_agree() {
        for algorithm in Algorithm::MODES {
            let agreement = agree(algorithm, &roster(algorithm), 1 << 20).unwrap();
            assert!(agreement.contenders.len() >= 3, "{agreement:?}");
        }
    }

    #[test]
    fn other_authenticated_ciphers_agree_with_their_vectors_and_each_other() {
        for algorithm in Algorithm::AEADS {
            let own = aeads().into_iter().filter(|(one, _)| *one == algorithm);
            let own: Vec<CipherContender> = own.map(|(_, one)| one).collect();
            let agreement = agree(algorithm, &own, 1 << 20).unwrap();
            let least = match algorithm {
                Algorithm::ChaCha20Poly1305 | Algorithm::GcmSiv256 => 2,
                _ => 1,
            };
            assert!(agreement.contenders.len() >= least, "{agreement:?}");
        }
    }

    #[test]
    fn the_ceiling_gives_back_what_it_took() {
        agree(Algorithm::Gcm256, &[ceiling()], 1 << 20).unwrap();
    }

    /// What is wrong with a contender that has a fault planted in it.
    #[derive(Clone, Copy, Debug)]
    enum Fault {
        Plaintext,
        Truncates,
        IgnoresTheTag,
        WrongAfterAChunk,
    }

    struct Faulty {
        honest: Box<dyn Cipher>,
        fault: Fault,
    }

    impl Faulty {
        fn spoil(&self, data: &mut [u8]) {
            match self.fault {
                Fault::Truncates if data.len() > 64 => data[64..].fill(0),
                Fault::WrongAfterAChunk if data.len() > 65_536 => data[65_536] ^= 1,
                _ => {}
            }
        }
    }

    impl Cipher for Faulty {
        fn encrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &mut Tag) -> Result<()> {
            if !matches!(self.fault, Fault::Plaintext) {
                self.honest.encrypt(iv, aad, data, tag)?;
            }
            self.spoil(data);
            Ok(())
        }

        fn decrypt(&mut self, iv: &[u8], aad: &[u8], data: &mut [u8], tag: &Tag) -> Result<()> {
            if matches!(self.fault, Fault::Plaintext) {
                return Ok(());
            }
            let opened = self.honest.decrypt(iv, aad, data, tag);
            self.spoil(data);
            match self.fault {
                Fault::IgnoresTheTag => Ok(()),
                _ => opened,
            }
        }
    }

    fn found(algorithm: Algorithm, fault: Fault, vectors_too: bool) -> Result<()> {
        let honest = || roster(algorithm).swap_remove(1);
        let expand = honest().expand;
        let faulty = CipherContender {
            contender: Contender::new("faulty", Placement::User, "a planted fault"),
            expand: Box::new(move |key| {
                let honest = expand(key)?;
                Ok(Box::new(Faulty { honest, fault }))
            }),
            own_format: false,
        };
        if vectors_too {
            return agree(algorithm, &[honest(), faulty], 1 << 20).map(|_| ());
        }
        let message = Message::random(algorithm, 65_552);
        let expected = message.round_trip(&honest())?;
        compare(&faulty, "random", &expected, &message.round_trip(&faulty)?)
    }

    #[test]
    fn planted_faults_are_caught() {
        let everywhere = [Fault::Plaintext, Fault::Truncates, Fault::WrongAfterAChunk];
        for algorithm in Algorithm::MODES {
            for fault in everywhere {
                let error = found(algorithm, fault, true).unwrap_err().to_string();
                assert!(error.contains("faulty"), "{algorithm:?} {fault:?}: {error}");
            }
        }
        let error = found(Algorithm::Gcm256, Fault::IgnoresTheTag, true).unwrap_err();
        assert!(matches!(error, LabError::Disagree { .. }), "{error}");
    }

    /// Were the vectors to hold no long message, the comparison between contenders still would.
    #[test]
    fn random_messages_alone_catch_them_too() {
        for fault in [Fault::Plaintext, Fault::Truncates, Fault::WrongAfterAChunk] {
            found(Algorithm::Ctr256, fault, false).unwrap_err();
        }
    }
}
