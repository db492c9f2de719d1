//! What a verification tells.

use coffer_store::record::ObjectName;

use crate::access::BucketName;

/// What `verify` reports as it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VerifyEvent {
    /// So much has been checked.
    Progress {
        /// Blobs and small objects opened so far.
        checked_count: u64,
        /// Bytes of plaintext opened so far.
        checked_bytes: u64,
        /// Bytes of plaintext there are, as the catalogs tell.
        total_bytes: u64,
    },
    /// This does not open.
    Damage {
        /// In which bucket; none where it is `system.db`.
        bucket: Option<BucketName>,
        /// Which object or upload; none where it is the catalog itself.
        name: Option<ObjectName>,
        /// What is damaged, in a few words.
        what: String,
    },
    /// This is older than is known of it, or of another time than what is above it: it opens.
    Rollback {
        /// What is, in a sentence.
        what: String,
    },
    /// A restore of others left this bucket out, and nothing of it is here: it is not looked at.
    LeftOut {
        /// Its name; its id, where that is not known.
        bucket: String,
    },
    /// The walk is over.
    Done {
        /// Blobs and small objects opened.
        checked_count: u64,
        /// Bytes of plaintext opened.
        checked_bytes: u64,
        /// How much damage was reported.
        damage_count: u64,
        /// How much was that is older than is known: a server that runs has refused that before.
        rollback_count: u64,
        /// Blobs that only a client's key opens: their wrapped keys and lengths were checked.
        client_key_count: u64,
    },
}
