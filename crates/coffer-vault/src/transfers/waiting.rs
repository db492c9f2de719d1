//! What waits for the data port, or for a commit.

use std::collections::VecDeque;
use std::sync::Arc;

use coffer_keys::BucketKey;
use coffer_seal::UploadId;
use coffer_store::record::{BlobRef, ObjectName};
use coffer_store::{FinishedBlob, ReadPin, SealedBlobWriter, SealedSegment};

use super::seats::Seat;
use crate::access::{BucketName, Reading, Subject};
use crate::counters::Tally;
use crate::digest::{DigestPlan, Digests};
use crate::open_buckets::UsedBucket;

/// Whose transfer it is, and in which bucket.
pub(crate) struct Asker {
    /// As it asked.
    pub(crate) subject: Subject,
    pub(crate) bucket_name: BucketName,
    pub(crate) bucket: UsedBucket,
    pub(crate) tally: Arc<Tally>,
    pub(crate) _seat: Seat,
}

/// Bytes that are to be sent.
pub(crate) struct WaitingSend {
    pub(crate) asker: Asker,
    /// What is still to be sent, in order.
    pub(crate) segments: VecDeque<SealedSegment>,
    pub(crate) sealed_bytes: u64,
    /// Keeps the files while another request deletes or replaces the object.
    pub(crate) _pin: ReadPin,
    /// That it is read, for the subject's mark.
    pub(crate) _reading: Option<Reading>,
}

/// What bytes that arrive are to become.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArrivedAs {
    pub(crate) name: ObjectName,
    /// Of a part: its upload, and its number.
    pub(crate) part: Option<(UploadId, u32)>,
}

impl ArrivedAs {
    pub(crate) fn object(name: &ObjectName) -> Self {
        Self {
            name: name.clone(),
            part: None,
        }
    }

    pub(crate) fn part(name: &ObjectName, part: (UploadId, u32)) -> Self {
        Self {
            name: name.clone(),
            part: Some(part),
        }
    }
}

/// Bytes that are to come.
pub(crate) struct WaitingArrival {
    pub(crate) asker: Asker,
    pub(crate) becomes: ArrivedAs,
    pub(crate) digests: DigestPlan,
    pub(crate) writer: SealedBlobWriter,
}

/// Bytes that have come, sealed and durable: dropping them leaves nothing behind.
pub(crate) struct Arrived {
    pub(crate) becomes: ArrivedAs,
    pub(crate) reference: BlobRef,
    pub(crate) blob: FinishedBlob,
    /// None: it has not been opened.
    pub(crate) digests: Option<Digests>,
    /// The bucket's key that wrapped the blob's data key. Goes before the bucket.
    pub(crate) wrapped_by: BucketKey,
    pub(crate) asker: Asker,
}

pub(super) enum Waiting {
    Send(Box<WaitingSend>),
    Receive(Box<WaitingArrival>),
    Arrived(Box<Arrived>),
}

impl Waiting {
    pub(super) fn asker(&self) -> &Asker {
        match self {
            Self::Send(waiting) => &waiting.asker,
            Self::Receive(waiting) => &waiting.asker,
            Self::Arrived(waiting) => &waiting.asker,
        }
    }
}
