//! Checkpoints: signed statements of number and hash of a record.

use std::fmt;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use coffer_seal::{KeystoreId, SecretKey};

use crate::error::AuditError;
use crate::event::{CHECKPOINT, Event, PRUNED};
use crate::format::record::{Hash, Recorded};
use crate::format::segment::Cut;

/// An Ed25519 public key, in bytes.
pub const PUBLIC_KEY_BYTES: usize = 32;

/// An Ed25519 signature, in bytes.
pub const SIGNATURE_BYTES: usize = 64;

/// What the signed bytes begin with, so that no other signature can be taken for a checkpoint's.
const SIGNED_PREFIX: &[u8] = b"coffer audit checkpoint v1\0";

/// What they begin with that say where a log begins.
const PRUNED_PREFIX: &[u8] = b"coffer audit prune v1\0";

/// What signs checkpoints: the keystore's receipt key, wherever that is kept.
pub trait CheckpointSigner: Send + Sync {
    /// An Ed25519 signature (RFC 8032) over the message; `None` when the key can't be used now.
    fn sign(&self, message: &[u8]) -> Option<[u8; SIGNATURE_BYTES]>;

    /// The key that verifies it.
    fn public_key(&self) -> [u8; PUBLIC_KEY_BYTES];
}

/// A signing key in memory.
pub struct CheckpointKey(Ed25519KeyPair);

impl CheckpointKey {
    /// The signing key of this seed (RFC 8032, section 5.1.5).
    pub fn from_seed(seed: &SecretKey) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose());
        Self(pair.expect("any 32 bytes are the seed of an Ed25519 key"))
    }

    /// The key that verifies what this one signs.
    pub fn public_key(&self) -> [u8; PUBLIC_KEY_BYTES] {
        let key = KeyPair::public_key(&self.0).as_ref();
        key.try_into().expect("an Ed25519 public key has 32 bytes")
    }
}

impl CheckpointSigner for CheckpointKey {
    fn sign(&self, message: &[u8]) -> Option<[u8; SIGNATURE_BYTES]> {
        self.0.sign(message).as_ref().try_into().ok()
    }

    fn public_key(&self) -> [u8; PUBLIC_KEY_BYTES] {
        Self::public_key(self)
    }
}

impl fmt::Debug for CheckpointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CheckpointKey(redacted)")
    }
}

/// The event that says that `last` is the last record before it.
pub(crate) fn checkpoint(
    signer: &dyn CheckpointSigner,
    keystore_id: KeystoreId,
    last: &Recorded,
) -> Result<Event, AuditError> {
    let signature = signer.sign(&signed_bytes(keystore_id, last));
    let signature = signature.ok_or(AuditError::NotSigned)?;
    Ok(Event::of_log(CHECKPOINT)
        .with("sequence", last.sequence)
        .with("hash", last.hash)
        .with("public_key", hex::encode(signer.public_key()))
        .with("signature", hex::encode(signature)))
}

/// Whether the event is a checkpoint of `last`, signed by this key.
pub(crate) fn is_signed(
    event: &Event,
    keystore_id: KeystoreId,
    last: &Recorded,
    public_key: &[u8; PUBLIC_KEY_BYTES],
) -> bool {
    let detail = |name| event.details.get(name).map_or("", String::as_str);
    let names_last = detail("sequence") == last.sequence.to_string()
        && Hash::from_hex(detail("hash")) == Some(last.hash);
    let mut signature = [0; SIGNATURE_BYTES];
    names_last
        && detail("public_key") == hex::encode(public_key)
        && hex::decode_to_slice(detail("signature"), &mut signature).is_ok()
        && UnparsedPublicKey::new(&ED25519, public_key)
            .verify(&signed_bytes(keystore_id, last), &signature)
            .is_ok()
}

/// What is removed at the beginning of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Pruning {
    /// Where the log begins afterwards.
    pub(crate) cut: Cut,
    /// Where it began.
    pub(crate) from: Cut,
    /// Why: who asked for it, and how old it had to be.
    pub(crate) details: Vec<(&'static str, String)>,
}

/// The event that says which records were removed.
pub(crate) fn pruned(
    signer: &dyn CheckpointSigner,
    keystore_id: KeystoreId,
    pruning: &Pruning,
) -> Result<Event, AuditError> {
    let Pruning { cut, from, details } = pruning;
    let signature = signer.sign(&pruned_bytes(keystore_id, cut));
    let signature = signature.ok_or(AuditError::NotSigned)?;
    let event = Event::of_log(PRUNED)
        .with("first", from.before.sequence + 1)
        .with("sequence", cut.before.sequence)
        .with("hash", cut.before.hash)
        .with("count", cut.before.sequence - from.before.sequence)
        .with("segment", cut.segment)
        .with("public_key", hex::encode(signer.public_key()))
        .with("signature", hex::encode(signature));
    let told = details.iter();
    Ok(told.fold(event, |event, (name, value)| event.with(name, value)))
}

/// Where the log begins, by an event that is signed with this key.
pub(crate) fn signed_cut(
    event: &Event,
    keystore_id: KeystoreId,
    public_key: &[u8; PUBLIC_KEY_BYTES],
) -> Option<Cut> {
    let detail = |name| event.details.get(name).map_or("", String::as_str);
    let cut = Cut {
        segment: detail("segment").parse().ok()?,
        before: Recorded {
            sequence: detail("sequence").parse().ok()?,
            hash: Hash::from_hex(detail("hash"))?,
        },
    };
    let mut signature = [0; SIGNATURE_BYTES];
    hex::decode_to_slice(detail("signature"), &mut signature).ok()?;
    UnparsedPublicKey::new(&ED25519, public_key)
        .verify(&pruned_bytes(keystore_id, &cut), &signature)
        .is_ok()
        .then_some(cut)
}

fn pruned_bytes(keystore_id: KeystoreId, cut: &Cut) -> Vec<u8> {
    [
        PRUNED_PREFIX,
        &keystore_id.0,
        &cut.before.sequence.to_be_bytes(),
        &cut.before.hash.0,
        &cut.segment.to_be_bytes(),
    ]
    .concat()
}

fn signed_bytes(keystore_id: KeystoreId, last: &Recorded) -> Vec<u8> {
    [
        SIGNED_PREFIX,
        &keystore_id.0,
        &last.sequence.to_be_bytes(),
        &last.hash.0,
    ]
    .concat()
}
