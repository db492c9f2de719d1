//! What a restore tells of itself.

use coffer_replica::{Gap, KnownHead, WrongClock};
use coffer_store::record::ObjectName;

/// What a restore tells as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RestoreEvent {
    /// So much is there.
    Progress {
        /// Blobs.
        blob_count: u64,
        /// Bytes that were fetched of them.
        fetched_bytes: u64,
    },
    /// The moment that was asked for lies in a time of which the copy has no state: what was
    /// acknowledged between its beginning and that moment is missing.
    Gap(Gap),
    /// Which state is of the moment that was asked for can't be told. What is restored was before
    /// it for certain.
    Clock(WrongClock),
    /// Heads of the copy do not open, and were passed over.
    Damaged {
        /// Their numbers.
        heads: Vec<u64>,
        /// Where the head after the restored one is among them: what was acknowledged in this time
        /// before the moment that was asked for may be missing, and that the store withholds no
        /// head in it was not checked.
        unchecked: Option<Gap>,
    },
    /// The head that was given is out of the window: it was not compared.
    HeadLeft(KnownHead),
    /// The moment that was asked for is later than what the copy has: its newest state is restored.
    Later,
    /// The keystore has no key for a bucket: it was erased, or made after that keystore was copied.
    NoKey {
        /// Its id.
        bucket: String,
    },
    /// The copy has nothing of a bucket: it could not be opened where the copy was made.
    NotThere {
        /// Its name.
        bucket: String,
    },
    /// A bucket was deleted or erased after that moment, and with it what the copy had of it.
    Removed {
        /// Its name, or its id.
        bucket: String,
    },
    /// Data keys that the keystore does not open: what wrapped them was destroyed when the key was
    /// rotated after that moment; or it is later than the keystore.
    Rotated {
        /// The name of the bucket, or its id.
        bucket: String,
        /// How many; each is of a blob.
        key_count: u64,
    },
    /// The copy lacks a blob, or has another one in its place.
    Missing {
        /// The name of the bucket, or its id.
        bucket: String,
        /// The object, or the one that an upload would have made; none where the
        /// catalog names none.
        name: Option<ObjectName>,
        /// What is wrong, with the blob's name in the store.
        what: String,
    },
    /// All is there, but for what was told to be missing.
    Done(Restored),
}

/// What was restored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restored {
    /// Which head that is.
    pub head: KnownHead,
    /// All that was acknowledged before is there, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// Nothing that was asked for after is there, in milliseconds since 1970.
    pub until_ms: i64,
    /// The time before the moment that was asked for of which what was changed is not there.
    pub lacks: Option<Gap>,
    /// Buckets.
    pub bucket_count: u64,
    /// Buckets that were not asked for.
    pub left_out_count: u64,
    /// Blobs.
    pub blob_count: u64,
    /// Bytes that were fetched of them.
    pub fetched_bytes: u64,
    /// Blobs that are missing.
    pub missing_count: u64,
}
