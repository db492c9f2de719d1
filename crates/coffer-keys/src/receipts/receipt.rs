//! Receipts: signed statements of what an erase destroyed, and what that proves.
//!
//! A receipt is a JSON document with the fields of a certificate of sanitization (NIST SP 800-88
//! rev. 1, appendix G), signed with Ed25519 (RFC 8032). With the public key it can be verified
//! without a server; `docs/FORMAT.md`, "Receipts", says how without this code.
//!
//! Only what is in the structures below can be in a receipt that verifies: nothing that was added,
//! removed, changed or written twice goes unnoticed.

use std::fmt;
use std::str::FromStr;

use aws_lc_rs::signature::{ED25519, Ed25519KeyPair, UnparsedPublicKey};
use coffer_label::Label;
use coffer_seal::SecretKey;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::KeysError;
pub use crate::receipts::sealed_copy::{CopyKeystore, CopyKeystoreState, SealedCopy};
use crate::root::source::Sanitization;

/// What a receipt's first field says. The signed bytes begin with it and a zero byte, so that no
/// other signature can be taken for a receipt's.
pub const RECEIPT_FORMAT: &str = "coffer receipt v5";

/// As receipts of an earlier version begin: they have no ids of sealed copies.
const RECEIPT_FORMAT_4: &str = "coffer receipt v4";

/// As receipts of an earlier version begin: they say nothing of keystores in sealed copies.
const RECEIPT_FORMAT_3: &str = "coffer receipt v3";

/// As receipts of an earlier version begin: they say nothing of sealed copies.
const RECEIPT_FORMAT_2: &str = "coffer receipt v2";

/// As receipts of the first version begin: they have no names of subjects either.
const RECEIPT_FORMAT_1: &str = "coffer receipt v1";

/// What the bytes of a checkpoint of the audit log begin with, which the same key signs.
const CHECKPOINT_PREFIX: &[u8] = b"coffer audit checkpoint v1\0";

/// What the bytes begin with that say where a pruned audit log begins, likewise.
const PRUNE_PREFIX: &[u8] = b"coffer audit prune v1\0";

/// A signed receipt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// [`RECEIPT_FORMAT`], or that of an earlier version.
    pub format: String,
    /// The receipt's own id, in hexadecimal digits.
    pub id: String,
    /// What was destroyed.
    pub erased: ErasedKeys,
    /// Who did it: first who asked for it, then who approved.
    pub performed_by: Vec<Person>,
    /// When it was asked for; RFC 3339, UTC.
    pub requested_at: String,
    /// When all keys were destroyed; RFC 3339, UTC.
    pub erased_at: String,
    /// How.
    pub method: Method,
    /// What held the keys, and what destroying them there proves.
    pub medium: Medium,
    /// What was checked before the erase was acknowledged.
    pub verification: Vec<String>,
    /// What may still allow to recover the data. Empty only if nothing is known.
    pub remaining: Vec<String>,
    /// The sealed copies that there are and were; absent in earlier formats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<Vec<SealedCopy>>,
    /// The last record of the audit log when the receipt was signed first.
    pub last_audit_record: Option<AuditRecord>,
    /// When it was signed again, after a copy had taken the keystore without the keys that had been
    /// pending; RFC 3339, UTC. All else is as before, but for what it says of that copy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signed_again_at: Option<String>,
    /// The key that verifies this receipt, in hexadecimal digits.
    pub public_key: String,
    /// Over all other fields: 128 hexadecimal digits.
    pub signature: String,
}

/// What was destroyed: key by key, and what they opened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedKeys {
    /// Whether it was a whole level or one bucket.
    pub what: What,
    /// The level.
    pub level: ErasedLevel,
    /// The buckets, by id.
    pub buckets: Vec<ErasedBucket>,
    /// How many objects they held.
    pub objects: u64,
    /// How many bytes those had.
    pub bytes: u64,
    /// The keystore, and its generation without the keys.
    pub keystore_id: String,
    /// How often the keystore was changed, this erase included.
    pub keystore_generation: u64,
}

/// What was erased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum What {
    /// A level with all of its buckets.
    Level,
    /// One bucket; its level stays.
    Bucket,
}

/// A level, as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedLevel {
    /// In hexadecimal digits.
    pub id: String,
    /// Its name; its id, where the keystore that signed had it no more.
    pub name: String,
    /// The classification of the data; none where the keystore had the level no more.
    pub label: Option<Label>,
    /// The generation of its key; 0 where the keystore had the level no more.
    pub key_generation: u32,
    /// When it was made; RFC 3339, UTC; none where the keystore had the level no more.
    pub created_at: Option<String>,
    /// How often its key was exported from this keystore.
    pub exports: u32,
    /// Whether its key came from another keystore.
    pub imported: bool,
}

/// A bucket whose keys were destroyed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ErasedBucket {
    /// In hexadecimal digits.
    pub id: String,
    /// Its name, where it was known.
    pub name: Option<String>,
    /// The generations of its key, all destroyed.
    pub key_generations: Vec<u32>,
}

/// Who did something, in what role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Person {
    /// An access key's id, or `local:UID` for a user of the local socket.
    pub name: String,
    /// The name of the access key's subject when it spoke.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Such as "requested" or "approved".
    pub role: String,
}

/// How it was done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Method {
    /// What NIST SP 800-88 rev. 1 would call it on this medium.
    pub category: Sanitization,
    /// "cryptographic erase".
    pub technique: String,
    /// What was done, in a sentence.
    pub details: String,
    /// With which tool, and its version.
    pub tool: String,
    /// The guideline whose words these are.
    pub guideline: String,
}

/// What held the keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Medium {
    /// What held the root key.
    pub holder: String,
    /// How it was destroyed there.
    pub destruction: String,
    /// Where the medium goes: it stays in use.
    pub destination: String,
}

/// A record of the audit log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AuditRecord {
    /// Its number.
    pub number: u64,
    /// Its hash, in hexadecimal digits.
    pub hash: String,
}

impl Receipt {
    /// Signs a receipt: its fields `public_key` and `signature` are filled in.
    pub fn sign(mut self, signer: &ReceiptSigner) -> Self {
        self.public_key = signer.public_key().to_string();
        let signature = signer.0.sign(&self.signed_bytes());
        self.signature = hex::encode(signature.as_ref());
        self
    }

    /// Verifies that the receipt is as the holder of this key signed it.
    ///
    /// # Errors
    ///
    /// [`KeysError::ReceiptForged`].
    pub fn verify(&self, key: &ReceiptPublicKey) -> Result<(), KeysError> {
        let is_named = self.is_known() && self.public_key == key.to_string();
        let signature = hex::decode(&self.signature).unwrap_or_default();
        // One way only to write a signature, so that no two texts are the same receipt.
        let is_plain = hex::encode(&signature) == self.signature;
        let is_right = UnparsedPublicKey::new(&ED25519, &key.0)
            .verify(&self.signed_bytes(), &signature)
            .is_ok();
        if is_named && is_plain && is_right {
            Ok(())
        } else {
            Err(KeysError::ReceiptForged)
        }
    }

    /// Reads a receipt. That proves nothing yet: [`Receipt::verify`] does.
    ///
    /// # Errors
    ///
    /// [`KeysError::ReceiptMalformed`].
    pub fn from_json(text: &str) -> Result<Self, KeysError> {
        let malformed = |reason: String| KeysError::ReceiptMalformed { reason };
        let receipt: Self =
            serde_json::from_str(text).map_err(|error| malformed(error.to_string()))?;
        if !receipt.is_known() {
            return Err(malformed(format!(
                "its format is {:?}, and this version of coffer understands those up to \
                 {RECEIPT_FORMAT:?}",
                receipt.format
            )));
        }
        Ok(receipt)
    }

    /// Whether it is of a known format, and has nothing that came with a later one.
    fn is_known(&self) -> bool {
        let has_names = self.performed_by.iter().any(|one| one.subject.is_some());
        let has_copies = self.copies.is_some();
        let copies = self.copies.iter().flatten();
        let has_ids = copies.clone().any(|copy| copy.id.is_some());
        let has_keystores = { copies }.any(|copy| copy.keystore.is_some());
        match &*self.format {
            RECEIPT_FORMAT => has_copies,
            _ if has_ids => false,
            RECEIPT_FORMAT_4 => has_copies,
            _ if has_keystores || self.signed_again_at.is_some() => false,
            RECEIPT_FORMAT_3 => has_copies,
            RECEIPT_FORMAT_2 => !has_copies,
            RECEIPT_FORMAT_1 => !has_copies && !has_names,
            _ => false,
        }
    }

    /// The receipt as JSON for people, indented.
    pub fn to_json(&self) -> String {
        let value = serde_json::to_string_pretty(self);
        value.expect("strings, integers and lists are always JSON") + "\n"
    }

    /// What is signed: the prefix, and the canonical form of all fields but the signature.
    fn signed_bytes(&self) -> Vec<u8> {
        let value = serde_json::to_value(self);
        let mut value = value.expect("strings, integers and lists are always JSON");
        if let Value::Object(fields) = &mut value {
            fields.remove("signature");
        }
        let mut text = String::new();
        write_canonical(&value, &mut text);
        [self.format.as_bytes(), b"\0", text.as_bytes()].concat()
    }
}

/// JSON as RFC 8785 (JCS) writes it: no white space, members by name. All numbers are integers and
/// all names ASCII here, so nothing else of it matters.
fn write_canonical(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| name.as_str());
            text.push('{');
            for (index, (name, value)) in fields.into_iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                text.push_str(&Value::from(name.as_str()).to_string());
                text.push(':');
                write_canonical(value, text);
            }
            text.push('}');
        }
        Value::Array(values) => {
            text.push('[');
            for (index, value) in values.iter().enumerate() {
                if index > 0 {
                    text.push(',');
                }
                write_canonical(value, text);
            }
            text.push(']');
        }
        // What serde_json escapes in strings is what RFC 8785 does.
        plain => text.push_str(&plain.to_string()),
    }
}

/// The key that signs receipts: kept in the keystore, and nowhere else.
pub struct ReceiptSigner(Ed25519KeyPair);

impl ReceiptSigner {
    /// The signing key of this seed (RFC 8032, section 5.1.5).
    pub fn from_seed(seed: &SecretKey) -> Self {
        let pair = Ed25519KeyPair::from_seed_unchecked(seed.expose());
        Self(pair.expect("any 32 bytes are the seed of an Ed25519 key"))
    }

    /// The key that verifies what this one signs.
    pub fn public_key(&self) -> ReceiptPublicKey {
        let key = aws_lc_rs::signature::KeyPair::public_key(&self.0).as_ref();
        ReceiptPublicKey(key.try_into().expect("an Ed25519 public key has 32 bytes"))
    }
}

impl ReceiptSigner {
    /// Signs a checkpoint of the audit log, or where it begins, and panics at anything else.
    pub(crate) fn sign_checkpoint(&self, message: &[u8]) -> [u8; 64] {
        assert!(
            message.starts_with(CHECKPOINT_PREFIX) || message.starts_with(PRUNE_PREFIX),
            "only checkpoints are signed this way"
        );
        let signature = self.0.sign(message);
        let signature = signature.as_ref().try_into();
        signature.expect("an Ed25519 signature has 64 bytes")
    }
}

impl fmt::Debug for ReceiptSigner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReceiptSigner(redacted)")
    }
}

impl ReceiptPublicKey {
    /// The Ed25519 public key (RFC 8032, section 5.1.5).
    pub fn to_bytes(self) -> [u8; 32] {
        self.0
    }
}

/// The key that verifies receipts; as text, 64 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceiptPublicKey([u8; 32]);

impl fmt::Display for ReceiptPublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&hex::encode(self.0))
    }
}

impl FromStr for ReceiptPublicKey {
    type Err = KeysError;

    fn from_str(text: &str) -> Result<Self, KeysError> {
        let mut key = [0; 32];
        hex::decode_to_slice(text.trim(), &mut key).map_err(|_| KeysError::ReceiptKey)?;
        Ok(Self(key))
    }
}
