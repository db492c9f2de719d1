//! What an erase was, as a signed receipt.

use std::collections::BTreeMap;

use coffer_seal::{BucketId, random_bytes};

use crate::error::KeysError;
use crate::keystore::contents::{BucketEntry, LevelEntry};
use crate::keystore::levels::{Erased, ErasedWhat};
use crate::keystore::state::Keystore;
use crate::receipts::receipt::{
    AuditRecord, ErasedBucket, ErasedKeys, ErasedLevel, Medium, Method, Person, RECEIPT_FORMAT,
    Receipt, ReceiptPublicKey, ReceiptSigner, SealedCopy, What,
};
use coffer_durable::rfc3339;

/// What a receipt says that the keystore doesn't know.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReceiptDetails {
    /// Who did it: first who asked for it, then who approved.
    pub performed_by: Vec<Person>,
    /// When it was asked for, in milliseconds since 1970 (UTC).
    pub requested_ms: i64,
    /// How many objects the keys opened.
    pub objects: u64,
    /// How many bytes those had.
    pub bytes: u64,
    /// The buckets' names, by id, as far as they are known.
    pub bucket_names: BTreeMap<BucketId, String>,
    /// What was checked beside the keystore and the root key, sentence by sentence.
    pub verification: Vec<String>,
    /// What may be left beside what the keystore knows of, such as data keys that clients hold.
    pub remaining: Vec<String>,
    /// The sealed copies that there are and were.
    pub copies: Vec<SealedCopy>,
    /// The last record of the audit log.
    pub last_audit_record: Option<AuditRecord>,
}

impl Keystore {
    /// The key that verifies this keystore's receipts.
    ///
    /// # Errors
    ///
    /// [`KeysError::KeyDidNotOpen`] when the keystore opened with a wrapped key that doesn't.
    pub fn receipt_public_key(&self) -> Result<ReceiptPublicKey, KeysError> {
        Ok(self.receipt_signer()?.public_key())
    }

    /// Signs a receipt for an erase.
    ///
    /// # Errors
    ///
    /// As [`Keystore::receipt_public_key`].
    pub fn sign_receipt(
        &self,
        erased: &Erased,
        details: ReceiptDetails,
    ) -> Result<Receipt, KeysError> {
        let signer = self.receipt_signer()?;
        let mut verification = Vec::new();
        if !is_of_no_key(erased) {
            let of_keys = [
                "both copies of the keystore were written without the keys, synced, read back and \
                 compared",
                "the root key that older copies were sealed under was destroyed, which was \
                 confirmed before the erase was acknowledged",
            ];
            verification.extend(of_keys.map(str::to_owned));
        }
        verification.extend(details.verification.iter().cloned());
        let receipt = Receipt {
            format: RECEIPT_FORMAT.to_owned(),
            id: hex::encode(random_bytes::<16>()),
            performed_by: details.performed_by.clone(),
            requested_at: rfc3339(details.requested_ms),
            erased_at: rfc3339(erased.erased_ms),
            method: method(erased),
            medium: Medium {
                holder: erased.medium.holder.clone(),
                destruction: erased.medium.destruction.clone(),
                destination: "stays in use by the server".to_owned(),
            },
            verification,
            remaining: remaining(erased, &details),
            copies: Some(details.copies.clone()),
            last_audit_record: details.last_audit_record.clone(),
            signed_again_at: None,
            erased: erased_keys(erased, details),
            public_key: String::new(),
            signature: String::new(),
        };
        Ok(receipt.sign(&signer))
    }

    /// Signs a receipt of this keystore again, which says now what became of what was pending.
    ///
    /// # Errors
    ///
    /// As [`Keystore::receipt_public_key`].
    pub fn sign_again(&self, mut receipt: Receipt, signed_ms: i64) -> Result<Receipt, KeysError> {
        receipt.signed_again_at = Some(rfc3339(signed_ms));
        Ok(receipt.sign(&self.receipt_signer()?))
    }

    /// Signs a checkpoint of the audit log (`docs/FORMAT.md`, "Own records") with the key that
    /// signs receipts.
    ///
    /// # Errors
    ///
    /// As [`Keystore::receipt_public_key`].
    ///
    /// # Panics
    ///
    /// When the message does not begin as those of checkpoints do: nothing else may ever be signed
    /// this way.
    pub fn sign_checkpoint(&self, message: &[u8]) -> Result<[u8; 64], KeysError> {
        Ok(self.receipt_signer()?.sign_checkpoint(message))
    }

    fn receipt_signer(&self) -> Result<ReceiptSigner, KeysError> {
        let state = self.state();
        let seed = state.contents.receipt_seed(self.id(), &state.root)?;
        Ok(ReceiptSigner::from_seed(&seed))
    }
}

fn erased_keys(erased: &Erased, details: ReceiptDetails) -> ErasedKeys {
    let name = |bucket: &BucketEntry| details.bucket_names.get(&bucket.id).cloned();
    let bucket = |bucket: &BucketEntry| ErasedBucket {
        id: bucket.id.to_string(),
        name: name(bucket),
        key_generations: bucket
            .older_generation
            .into_iter()
            .chain(bucket.has_key().then_some(bucket.generation))
            .collect(),
    };
    ErasedKeys {
        what: match erased.what {
            ErasedWhat::Level => What::Level,
            ErasedWhat::Bucket => What::Bucket,
        },
        level: erased_level(&erased.level),
        buckets: erased.buckets.iter().map(bucket).collect(),
        objects: details.objects,
        bytes: details.bytes,
        keystore_id: erased.keystore_id.to_string(),
        keystore_generation: erased.keystore_generation,
    }
}

fn erased_level(level: &LevelEntry) -> ErasedLevel {
    ErasedLevel {
        id: level.id.to_string(),
        name: level.name.clone(),
        label: level.is_known().then_some(level.label),
        key_generation: level.generation,
        created_at: level.is_known().then(|| rfc3339(level.created_ms)),
        exports: level.export_count,
        imported: level.imported,
    }
}

/// Whether there was no key any more that it could have destroyed.
fn is_of_no_key(erased: &Erased) -> bool {
    erased.what == ErasedWhat::Bucket && erased.buckets.iter().all(|bucket| !bucket.has_key())
}

fn method(erased: &Erased) -> Method {
    let keys = match erased.what {
        ErasedWhat::Level => "the level's key and the keys of all of its buckets",
        ErasedWhat::Bucket => "the bucket's keys",
    };
    let sealed =
        format!("the data is sealed with AES-256-GCM under keys that were wrapped by {keys}");
    let gone = if !erased.level.is_known() {
        "the keystore had none when this erase was asked for, nor their level, and this erase \
         destroyed no key"
    } else if is_of_no_key(erased) {
        "the keystore had none any more when this erase was asked for: they were destroyed before, \
         and this erase destroyed no key"
    } else {
        "those were left out of the keystore, which was sealed anew under a new root key, and the \
         old root key was destroyed"
    };
    Method {
        category: erased.medium.category,
        technique: "cryptographic erase".to_owned(),
        details: format!("{sealed}; {gone}"),
        tool: concat!("coffer ", env!("CARGO_PKG_VERSION")).to_owned(),
        guideline: "NIST SP 800-88 rev. 1".to_owned(),
    }
}

fn remaining(erased: &Erased, details: &ReceiptDetails) -> Vec<String> {
    let level = &erased.level;
    let mut remaining = vec![erased.medium.remaining.clone()];
    if level.export_count > 0 {
        remaining.push(format!(
            "the level's key was exported {} times: who can open an export, and has a copy of the \
             sealed data, can still open what the export covered",
            level.export_count
        ));
    }
    if level.imported {
        remaining.push(
            "the level's key was imported: the keystore that it came from may hold it, and there \
             is at least one export of it"
                .to_owned(),
        );
    }
    remaining.extend(details.remaining.iter().cloned());
    remaining
}
