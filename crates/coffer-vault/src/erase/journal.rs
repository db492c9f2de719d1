//! The draft of an erase: what is written down before the keys are destroyed, so that a receipt can
//! be signed for it whatever happens in between.

use std::collections::{BTreeMap, HashSet};

use coffer_durable::now_ms;
use coffer_keys::receipt::{AuditRecord, Person, Receipt};
use coffer_keys::{BucketEntry, Erased, ErasedWhat, Keystore, LevelEntry, ReceiptDetails};
use coffer_seal::{BucketId, LevelId};
use serde::{Deserialize, Serialize};

use crate::access::Act;
use crate::audit::Audit;
use crate::copies::{Copies, left_of_origin};
use crate::error::Result;
use crate::system::{DocumentId, KeyReleases, Kind, System};

/// What an erase reaches never, in the words of a receipt.
const LEFT_OUTSIDE: &str = "what had left the server before: in the memory and files of clients, \
                            and what the system had copied of the server's memory, as swap or in \
                            a dump";

/// An erase that has begun.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct EraseDraft {
    pub(crate) what: ErasedWhat,
    pub(crate) level: LevelEntry,
    pub(crate) buckets: Vec<DraftBucket>,
    pub(crate) objects: u64,
    pub(crate) bytes: u64,
    /// Buckets whose objects are not among those counted.
    pub(crate) uncounted: usize,
    pub(crate) requested_ms: i64,
    pub(crate) performed_by: Vec<Person>,
    /// What the receipt says of object locks; missing in drafts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) locks: Option<String>,
    /// How many data keys clients were given of the level's buckets that are gone; missing in
    /// drafts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) level_key_releases: Option<KeyReleases>,
    /// Whether who opens the database next is to complete it, though no key was destroyed yet;
    /// false in drafts of earlier versions, which dropped it then.
    #[serde(default)]
    pub(crate) is_ordered: bool,
}

/// Buckets whose erase is ordered.
pub(crate) fn ordered_to_erase(system: &System) -> Result<HashSet<BucketId>> {
    let drafts = system.documents::<EraseDraft>(Kind::Erase)?;
    let ordered = drafts.iter().filter(|draft| draft.is_ordered);
    Ok(ordered.flat_map(EraseDraft::bucket_ids).collect())
}

/// A bucket whose keys are to be destroyed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct DraftBucket {
    pub(crate) entry: BucketEntry,
    /// None of one that was being made or deleted.
    pub(crate) name: Option<String>,
    /// How many data keys clients were given; none of one without a row, whose level has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) key_releases: Option<KeyReleases>,
    /// When it was made; none of one without a row, and in drafts of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) created_ms: Option<i64>,
}

impl EraseDraft {
    /// The level's id, or the bucket's.
    pub(crate) fn id(&self) -> DocumentId {
        match (self.what, self.buckets.first()) {
            (ErasedWhat::Bucket, Some(bucket)) => bucket.entry.id.into(),
            _ => self.level.id.into(),
        }
    }

    /// When what is erased was made, where nothing of it was here before: what comes from another
    /// server may have been.
    fn made_ms(&self) -> Option<i64> {
        match (self.what, &self.buckets[..]) {
            _ if self.level.imported => None,
            (ErasedWhat::Level, _) => Some(self.level.created_ms),
            (ErasedWhat::Bucket, [bucket]) => bucket.created_ms,
            (ErasedWhat::Bucket, _) => None,
        }
    }

    /// As what it is recorded.
    pub(super) fn act(&self) -> Act {
        match self.what {
            ErasedWhat::Level => Act::EraseLevel,
            ErasedWhat::Bucket => Act::EraseBucket,
        }
    }

    pub(crate) fn bucket_ids(&self) -> Vec<BucketId> {
        let ids = self.buckets.iter().map(|bucket| bucket.entry.id);
        ids.collect()
    }

    /// The level, where all of it is erased.
    pub(crate) fn whole_level(&self) -> Option<LevelId> {
        (self.what == ErasedWhat::Level).then_some(self.level.id)
    }

    /// Whether the keystore holds the keys still: then nothing was destroyed.
    pub(crate) fn is_untouched(&self, keystore: &Keystore) -> bool {
        match self.what {
            ErasedWhat::Level => keystore.level(self.level.id).is_some(),
            ErasedWhat::Bucket => {
                let is_there = |bucket: &DraftBucket| keystore.bucket_key(bucket.entry.id).is_ok();
                self.buckets.iter().any(is_there)
            }
        }
    }

    /// What was destroyed, told after the fact: the keystore holds it no more.
    pub(crate) fn erased(&self, keystore: &Keystore) -> Erased {
        Erased {
            what: self.what,
            level: self.level.clone(),
            buckets: self.buckets.iter().map(|bucket| bucket.entry).collect(),
            keystore_id: keystore.id(),
            keystore_generation: keystore.generation(),
            medium: keystore.source().medium(),
            erased_ms: now_ms(),
        }
    }

    /// Signs the receipt. `checked` and `left` are what else was verified, and what may remain.
    pub(crate) fn sign(
        &self,
        (keystore, copies, system): (&Keystore, &Copies, &System),
        erased: &Erased,
        mut checked: Vec<String>,
        mut left: Vec<String>,
        last_audit_record: Option<AuditRecord>,
    ) -> Result<Receipt> {
        if self.uncounted > 0 {
            checked.push(format!(
                "objects and bytes are those of all buckets but {}, which had not been counted \
                 since the server started",
                self.uncounted
            ));
        }
        checked.extend(self.keyless_told());
        let keys = self.keys_told();
        checked.extend(keys.checked);
        left.extend(keys.left);
        left.push(LEFT_OUTSIDE.to_owned());
        let made_ms = self.made_ms();
        left.extend(left_of_origin(system.went_on()?, made_ms));
        let copies = copies.on_receipts(erased.keystore_generation, made_ms);
        checked.extend(copies.passed);
        left.extend(copies.unknown);
        let name = |bucket: &DraftBucket| Some((bucket.entry.id, bucket.name.clone()?));
        let bucket_names: BTreeMap<_, _> = self.buckets.iter().filter_map(name).collect();
        let details = ReceiptDetails {
            performed_by: self.performed_by.clone(),
            requested_ms: self.requested_ms,
            objects: self.objects,
            bytes: self.bytes,
            bucket_names,
            verification: checked,
            remaining: left,
            copies: copies.copies,
            last_audit_record,
        };
        Ok(keystore.sign_receipt(erased, details)?)
    }
}

/// The audit log's last record, as a receipt names it.
pub(crate) fn last_audit_record(audit: &Audit) -> Option<AuditRecord> {
    let last = audit.log()?.last();
    Some(AuditRecord {
        number: last.sequence,
        hash: last.hash.to_string(),
    })
}
