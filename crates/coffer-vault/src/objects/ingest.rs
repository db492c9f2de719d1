//! Bytes on their way in: counted, digested and sealed as they arrive. No plaintext waits anywhere
//! but in memory, and there at most `INLINE_MAX_BYTES` of it.

use std::fmt;
use std::pin::Pin;

use bytes::{Bytes, BytesMut};
use coffer_keys::BucketKey;
use coffer_seal::SecretKey;
use coffer_store::limits::INLINE_MAX_BYTES;
use coffer_store::record::{BlobRef, Checksum, NewContent};
use coffer_store::{BlobWriter, FinishedBlob};
use futures::{Stream, StreamExt};

use crate::cutoff::SubjectCutoff;
use crate::digest::{DigestPlan, Digester, Digests};
use crate::error::{BodyError, Result, VaultError};
use crate::limits::SINGLE_PUT_MAX_BYTES;
use crate::open_buckets::{CustomerKey, OpenBucket, customer_key};
use crate::transfers::{Awaited, Ticket};

/// The bytes of an upload, as they arrive.
pub type Body = Pin<Box<dyn Stream<Item = Result<Bytes, BodyError>> + Send>>;

/// Compares the digests with what headers and trailers say: called once the body has ended and
/// before anything is committed. An error undoes the upload.
pub type CheckDigests = Box<dyn FnOnce(&Digests) -> Result<()> + Send>;

/// Bytes on their way in.
pub struct Incoming {
    /// How many there will be, where the client said so.
    pub declared_bytes: Option<u64>,
    /// What to compute over them.
    pub digests: DigestPlan,
    /// The bytes.
    pub body: Body,
    /// What to compare at the end.
    pub check: CheckDigests,
    /// Whether they may be locked: the client says what to compare them with, or need not.
    pub is_proven: bool,
    /// In place of the body: what its bytes have come with, sealed.
    pub arrived: Option<ArrivedBytes>,
}

/// Bytes that have come sealed.
#[derive(Debug)]
pub struct ArrivedBytes {
    /// The ticket that they came with.
    pub ticket: Ticket,
    /// The checksum that the client says they have: where they are opened later, it is compared
    /// then.
    pub told: Option<Checksum>,
}

impl Incoming {
    /// Whether they may be locked. What comes sealed is proven by its seals.
    pub(crate) fn may_be_locked(&self) -> bool {
        self.is_proven || self.arrived.is_some()
    }
}

impl fmt::Debug for Incoming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Incoming")
            .field("declared_bytes", &self.declared_bytes)
            .field("digests", &self.digests)
            .finish_non_exhaustive()
    }
}

/// What arrived, sealed and durable but not yet committed: dropping it leaves nothing behind.
pub(crate) struct Ingested {
    pub(crate) content: NewContent,
    /// Holds the blob's file until the catalog has it.
    pub(crate) blob: Option<FinishedBlob>,
    pub(crate) size_bytes: u64,
    pub(crate) digests: Digests,
    /// The bucket's key that wrapped the blob's data key.
    pub(crate) wrapped_by: BucketKey,
    /// That the blob is still to be opened, as the catalog says by now. To be kept until its commit
    /// is over, however that ends.
    pub(crate) awaited: Option<Awaited>,
}

/// Where the bytes are to go.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Placing {
    /// Into the catalog when they are few.
    InlineIfSmall,
    /// Always into a blob.
    Blob,
}

/// Receives a body to its end, checks its length and digests, and makes its blob durable.
/// What a client's key seals goes into a blob, however little it is.
pub(crate) async fn ingest(
    bucket: &OpenBucket,
    cutoff: &SubjectCutoff,
    incoming: Incoming,
    placing: Placing,
    customer: Option<CustomerKey>,
) -> Result<Ingested> {
    let placing = customer.as_ref().map_or(placing, |_| Placing::Blob);
    let Incoming {
        declared_bytes,
        digests,
        body,
        check,
        ..
    } = incoming;
    if declared_bytes.is_some_and(|declared| declared > SINGLE_PUT_MAX_BYTES) {
        return Err(VaultError::TooLarge {
            limit_bytes: SINGLE_PUT_MAX_BYTES,
        });
    }
    let mut receiver = Receiver {
        bucket,
        cutoff,
        body,
        digester: Digester::new(digests),
        declared_bytes,
        size_bytes: 0,
    };

    let inline_max = match placing {
        Placing::InlineIfSmall => INLINE_MAX_BYTES as u64,
        Placing::Blob => 0,
    };
    let mut early = BytesMut::new();
    if placing == Placing::InlineIfSmall && declared_bytes.is_none_or(|bytes| bytes <= inline_max) {
        while let Some(bytes) = receiver.next().await? {
            early.extend_from_slice(&bytes);
            if receiver.size_bytes > inline_max {
                break;
            }
        }
        if receiver.size_bytes <= inline_max {
            let (size_bytes, digests) = receiver.finish(check)?;
            let content = NewContent::Inline(early.freeze());
            return Ok(Ingested {
                content,
                blob: None,
                size_bytes,
                digests,
                wrapped_by: bucket.key(),
                awaited: None,
            });
        }
    }

    seal_into_blob(bucket, receiver, early, check, customer.as_ref()).await
}

/// Receives the rest of a body, after `early`, into a blob.
async fn seal_into_blob(
    bucket: &OpenBucket,
    mut receiver: Receiver<'_>,
    early: BytesMut,
    check: CheckDigests,
    customer: Option<&CustomerKey>,
) -> Result<Ingested> {
    let data_key = SecretKey::generate();
    let mut writer = bucket.blobs.create(&data_key)?;
    if !early.is_empty() {
        writer.write(early.freeze()).await?;
    }
    receive_into(&mut receiver, &mut writer).await?;
    let cutoff = receiver.cutoff;
    let (size_bytes, digests) = receiver.finish(check)?;
    let blob = writer.finish().await?;
    cutoff.check()?; // it may have taken a while
    let wrapped_by = bucket.key();
    let reference = BlobRef {
        id: blob.id(),
        plaintext_bytes: size_bytes,
        key_generation: wrapped_by.generation(),
        wrapped_key: customer_key::wrap(&wrapped_by, blob.id(), &data_key, customer),
        checksum: digests.checksum.clone(),
    };
    Ok(Ingested {
        content: NewContent::Blob(reference),
        blob: Some(blob),
        size_bytes,
        digests,
        wrapped_by,
        awaited: None,
    })
}

/// Wraps the data key of what is about to be committed anew, if the bucket's key was rotated while
/// it arrived. To be called under the commit's guard.
pub(crate) fn keep_current(
    bucket: &OpenBucket,
    wrapped_by: &BucketKey,
    blob: &mut BlobRef,
) -> Result<()> {
    let key = bucket.key();
    if blob.key_generation != key.generation() {
        let from = (wrapped_by, blob.key_generation);
        blob.wrapped_key = customer_key::rewrap(from, &key, blob.id, &blob.wrapped_key)?;
        blob.key_generation = key.generation();
    }
    Ok(())
}

/// The same of a blob, where what is about to be committed is one.
pub(crate) fn keep_content_current(
    bucket: &OpenBucket,
    wrapped_by: &BucketKey,
    content: &mut NewContent,
) -> Result<()> {
    match content {
        NewContent::Blob(blob) => keep_current(bucket, wrapped_by, blob),
        NewContent::Inline(_) => Ok(()),
    }
}

async fn receive_into(receiver: &mut Receiver<'_>, writer: &mut BlobWriter) -> Result<()> {
    while let Some(bytes) = receiver.next().await? {
        writer.write(bytes).await?;
    }
    Ok(())
}

struct Receiver<'a> {
    bucket: &'a OpenBucket,
    cutoff: &'a SubjectCutoff,
    body: Body,
    digester: Digester,
    declared_bytes: Option<u64>,
    size_bytes: u64,
}

impl Receiver<'_> {
    async fn next(&mut self) -> Result<Option<Bytes>> {
        // Bytes that are there already are taken first: to wait for a cut costs more than to look.
        let received = tokio::select! {
            biased;
            received = self.body.next() => received,
            () = self.bucket.cut_off() => return Err(VaultError::NoSuchBucket),
            () = self.cutoff.cut_off() => return Err(VaultError::AccessDenied),
        };
        if self.bucket.is_cut() {
            return Err(VaultError::NoSuchBucket);
        }
        self.cutoff.check()?;
        let Some(received) = received else {
            return Ok(None);
        };
        let bytes = received.map_err(|error| match error.0.downcast::<VaultError>() {
            Ok(own) => *own, // the body is a copy's: its source failed
            Err(foreign) => VaultError::Body(BodyError(foreign)),
        })?;
        self.size_bytes += bytes.len() as u64;
        if self
            .declared_bytes
            .is_some_and(|declared| self.size_bytes > declared)
        {
            return Err(VaultError::IncompleteBody);
        }
        if self.size_bytes > SINGLE_PUT_MAX_BYTES {
            return Err(VaultError::TooLarge {
                limit_bytes: SINGLE_PUT_MAX_BYTES,
            });
        }
        self.digester.update(&bytes);
        Ok(Some(bytes))
    }

    fn finish(self, check: CheckDigests) -> Result<(u64, Digests)> {
        if self
            .declared_bytes
            .is_some_and(|declared| self.size_bytes < declared)
        {
            return Err(VaultError::IncompleteBody);
        }
        let digests = self.digester.finish();
        check(&digests)?;
        Ok((self.size_bytes, digests))
    }
}
