//! The record layer of TLS 1.3 (RFC 8446, section 5), for a client that must cost less than any
//! server it measures: records are opened where they were received, and sealed from the
//! pattern straight into the buffer that is sent. rustls does the handshake and hands over its
//! keys. Tickets are ignored; a server that wants new keys is an error (none does within 2^24
//! records of a direction).

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use coffer_measure::tls::client_trusting;
use rustls::{ClientConfig, ConnectionTrafficSecrets};

use crate::error::{BenchError, Result};

/// The most plaintext that a record holds.
pub const RECORD_PLAINTEXT_MAX_BYTES: usize = 16_384;

/// The most that a record takes on the wire.
pub const RECORD_MAX_BYTES: usize = HEADER_BYTES + RECORD_PLAINTEXT_MAX_BYTES + 256;

const HEADER_BYTES: usize = 5;
const TAG_BYTES: usize = 16;
const NONCE_BYTES: usize = 12;

const HANDSHAKE: u8 = 22;
const APPLICATION_DATA: u8 = 23;

/// For a client that trusts what one PEM file holds, and that protects records on its own: secrets
/// can be extracted from its connections.
pub fn client_config(trusted: &Path) -> Result<Arc<ClientConfig>> {
    let mut config = client_trusting(trusted)?;
    config.enable_secret_extraction = true;
    Ok(Arc::new(config))
}

/// One direction's key, and the number of the next record.
pub struct Direction {
    key: LessSafeKey,
    iv: [u8; NONCE_BYTES],
    sequence: u64,
}

/// What a look at received bytes finds.
#[derive(Debug, PartialEq, Eq)]
pub enum Received {
    /// The record has not arrived as a whole.
    Incomplete,
    /// Nothing for the reader; so many bytes are done with.
    Nothing {
        /// Bytes on the wire.
        record_bytes: usize,
    },
    /// Data, opened in place.
    Data {
        /// Bytes on the wire.
        record_bytes: usize,
        /// Where the plaintext stands, from the start of the record.
        plaintext: Range<usize>,
    },
}

impl Direction {
    /// From what rustls extracts of a connection.
    pub fn new((sequence, secrets): (u64, ConnectionTrafficSecrets)) -> Result<Self> {
        let unsupported = BenchError::Record {
            what: "the server chose another cipher",
        };
        let ConnectionTrafficSecrets::Aes256Gcm { key, iv } = secrets else {
            return Err(unsupported);
        };
        let key = UnboundKey::new(&AES_256_GCM, key.as_ref()).map_err(|_| unsupported)?;
        let mut iv_bytes = [0; NONCE_BYTES];
        iv_bytes.copy_from_slice(iv.as_ref());
        Ok(Self {
            key: LessSafeKey::new(key),
            iv: iv_bytes,
            sequence,
        })
    }

    /// RFC 8446, section 5.3: the sequence number, padded on the left, XOR the IV.
    fn next_nonce(&mut self) -> Nonce {
        let mut nonce = self.iv;
        for (byte, number) in nonce[4..].iter_mut().zip(self.sequence.to_be_bytes()) {
            *byte ^= number;
        }
        self.sequence += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Opens the record at the front of `received`.
    pub fn open(&mut self, received: &mut [u8]) -> Result<Received> {
        let Some((header, rest)) = received.split_first_chunk_mut::<HEADER_BYTES>() else {
            return Ok(Received::Incomplete);
        };
        let sealed_bytes = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let Some(sealed) = rest.get_mut(..sealed_bytes) else {
            return Ok(Received::Incomplete);
        };
        let record_bytes = HEADER_BYTES + sealed_bytes;
        if header[0] != APPLICATION_DATA {
            return Err(BenchError::Record {
                what: "a record that is not sealed",
            });
        }
        let nonce = self.next_nonce();
        let inner = self
            .key
            .open_in_place(nonce, Aad::from(*header), sealed)
            .map_err(|_| BenchError::Record {
                what: "it does not open",
            })?;
        // The last byte that isn't padding tells the kind.
        let end = inner.iter().rposition(|&byte| byte != 0);
        match end.map(|end| (inner[end], HEADER_BYTES..HEADER_BYTES + end)) {
            Some((APPLICATION_DATA, plaintext)) => Ok(Received::Data {
                record_bytes,
                plaintext,
            }),
            // NewSessionTicket is 4; KeyUpdate, 24, would need another key.
            Some((HANDSHAKE, message)) if received[message.start] == 4 => {
                Ok(Received::Nothing { record_bytes })
            }
            // The only alert that a server sends here is close_notify, or it has a grudge.
            _ => Err(BenchError::Closed),
        }
    }

    /// Writes a record to the front of `out` and returns its length. `plaintext`: at most
    /// [`RECORD_PLAINTEXT_MAX_BYTES`]; `out`: at least [`RECORD_MAX_BYTES`].
    pub fn seal(&mut self, plaintext: &[u8], out: &mut [u8]) -> Result<usize> {
        let sealed_bytes = plaintext.len() + 1 + TAG_BYTES;
        let length = u16::try_from(sealed_bytes).expect("a record's plaintext fits 16 bits");
        let [high, low] = length.to_be_bytes();
        let header = [APPLICATION_DATA, 3, 3, high, low];
        out[..HEADER_BYTES].copy_from_slice(&header);
        let (sealed, rest) = out[HEADER_BYTES..].split_at_mut(plaintext.len());
        let kind_and_tag = &mut rest[..1 + TAG_BYTES];
        let nonce = self.next_nonce();
        self.key
            .seal_out_of_place_scatter(
                nonce,
                Aad::from(header),
                plaintext,
                sealed,
                &[APPLICATION_DATA],
                kind_and_tag,
            )
            .map_err(|_| BenchError::Record {
                what: "it cannot be sealed",
            })?;
        Ok(HEADER_BYTES + sealed_bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn direction() -> Direction {
        let key = UnboundKey::new(&AES_256_GCM, &[7; 32]).unwrap();
        Direction {
            key: LessSafeKey::new(key),
            iv: [9; NONCE_BYTES],
            sequence: 0,
        }
    }

    #[test]
    fn what_was_sealed_opens_in_order_and_only_so() {
        let (mut sender, mut receiver) = (direction(), direction());
        let mut wire = vec![0; 2 * RECORD_MAX_BYTES];
        let first_bytes = sender.seal(b"first", &mut wire).unwrap();
        let second_bytes = sender.seal(b"second", &mut wire[first_bytes..]).unwrap();
        let (first, second) = wire[..first_bytes + second_bytes].split_at_mut(first_bytes);

        assert_eq!(
            receiver.open(&mut first[..20]).unwrap(),
            Received::Incomplete
        );
        let mut swapped = second.to_vec();
        assert!(direction().open(&mut swapped).is_err());
        for (record, text) in [(first, b"first".as_slice()), (second, b"second")] {
            let Received::Data {
                record_bytes,
                plaintext,
            } = receiver.open(record).unwrap()
            else {
                panic!("no data");
            };
            assert_eq!(record_bytes, record.len());
            assert_eq!(&record[plaintext], text);
        }
    }
}
