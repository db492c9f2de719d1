//! Writing what the client has sealed: announced first, then received at the data port, and
//! committed as any other upload.

use std::sync::Arc;
use std::time::Duration;

use coffer_policy::Action;
use coffer_seal::{BlobId, Context, SecretKey, UploadId};
use coffer_store::limits::INLINE_MAX_BYTES;
use coffer_store::record::{BlobRef, Checksum, Encryption, NewContent, ObjectName};
use coffer_store::{Opening, StoreError};
use futures::StreamExt;

use super::body::Keys;
use super::ingest::{ArrivedBytes, Incoming, Ingested, Placing, ingest};
use super::multipart::{find_upload, part_plan};
use super::release::parts;
use super::write::plan;
use crate::access::{Act, BucketName, Right, Subject};
use crate::acts::{ChangeGrant, ToItsEnd};
use crate::audit::On;
use crate::counters::add;
use crate::digest::{DigestPlan, Digester, Digests};
use crate::error::{BodyError, Result, VaultError};
use crate::limits::{PART_NUMBER_MAX, SINGLE_PUT_MAX_BYTES, TICKET_TIME};
use crate::open_buckets::{CustomerKey, OpenBucket, UsedBucket};
use crate::transfer_counters::TransferEnd;
use crate::transfers::{Arrival, Arrived, ArrivedAs, NoSuchTransfer, Ticket, WaitingArrival};
use crate::vault::Vault;

/// An upload to be.
#[derive(Clone, Debug)]
pub struct Announcement {
    /// The name of the object.
    pub name: ObjectName,
    /// Of a part: its upload, and its number.
    pub part: Option<(UploadId, u32)>,
    /// How much plaintext it has, in bytes.
    pub plaintext_bytes: u64,
    /// The checksum that the commit will tell, as far as that is known.
    pub digests: DigestPlan,
}

/// What a client needs to seal an upload and send it.
pub struct SealedUpload {
    /// For the data port, and for the commit.
    pub ticket: Ticket,
    /// How long the ticket waits to be presented.
    pub patience: Duration,
    /// What to seal it under, once.
    pub data_key: SecretKey,
    /// What to seal it with.
    pub context: Context,
    /// How many bytes that makes.
    pub sealed_bytes: u64,
}

impl Vault {
    /// Announces an upload, or a part of one, that the client will seal itself. None where it is to
    /// be sent as any other: it is small, the bucket's level does not allow it, its upload is under
    /// a key of the client's, or the subject has as many transfers as it may.
    ///
    /// # Errors
    /// Those of [`put_object`](Self::put_object) and [`put_part`](Self::put_part) that are known
    /// before anything is sent.
    pub async fn announce(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        announcement: Announcement,
    ) -> Result<Option<SealedUpload>> {
        let Announcement {
            name,
            part,
            plaintext_bytes,
            mut digests,
        } = announcement;
        if plaintext_bytes > SINGLE_PUT_MAX_BYTES {
            return Err(VaultError::TooLarge {
                limit_bytes: SINGLE_PUT_MAX_BYTES,
            });
        }
        if part.is_some_and(|(_, number)| !(1..=PART_NUMBER_MAX).contains(&number)) {
            return Err(VaultError::Invalid {
                what: "a part number is from 1 to 10,000",
            });
        }
        let mut grant = self.changeable(subject, bucket, Right::Write).await?;
        if let Some((id, number)) = part {
            let find = |bucket| find_upload(bucket, id, &name);
            let on = On::Part(&name, number);
            let upload = Arc::new(grant.find(Act::WritePart, on, find).await?);
            self.check_upload(subject, &mut grant, Action::PutObject, &upload)
                .await?;
            if matches!(upload.details.encryption, Encryption::Customer(_)) {
                return Ok(None);
            }
            digests = part_plan(&upload, digests)?;
        }
        if plaintext_bytes <= INLINE_MAX_BYTES as u64 {
            return Ok(None);
        }
        let Some(seat) = self.transfer_seat(subject, grant.row())? else {
            return Ok(None);
        };
        self.note_released(grant.row(), 1).await?;
        let digests = plan(&grant, digests);
        let becomes = ArrivedAs { name, part };
        let begin = |used: UsedBucket| async move {
            let data_key = SecretKey::generate();
            let opening = self.opening_of(digests);
            let writer = used
                .blobs
                .receive(data_key.clone(), plaintext_bytes, opening)?;
            let (context, sealed_bytes) = (writer.context().clone(), writer.sealed_bytes());
            let ticket = self.inner.transfers.wait_to_receive(WaitingArrival {
                asker: self.asker(subject, bucket, used, seat),
                becomes,
                digests,
                writer,
            });
            Ok(SealedUpload {
                ticket,
                patience: TICKET_TIME,
                data_key,
                context,
                sealed_bytes,
            })
        };
        grant.prepare(begin).await.map(Some)
    }

    /// Takes what a ticket is good for, to be received. Whether its subject may write there is
    /// asked anew.
    ///
    /// # Errors
    /// [`NoSuchTransfer`].
    pub async fn take_arrival(&self, ticket: Ticket) -> Result<Arrival, NoSuchTransfer> {
        let refused = || {
            self.inner.tally.transfers.received(TransferEnd::Refused);
            NoSuchTransfer
        };
        let waiting = self.inner.transfers.take_to_receive(&ticket);
        let waiting = waiting.ok_or_else(refused)?;
        let (subject, name, id) = parts(&waiting.asker);
        let subject = subject.asking_again();
        let granted = self.changeable(&subject, &name, Right::Write).await;
        let is_same = granted.is_ok_and(|grant| grant.row().id == id);
        let has_right = self.still(Right::Write, &waiting.asker);
        if !is_same || !has_right().await {
            return Err(refused());
        }
        let home = (ticket, self.inner.transfers.clone());
        Ok(Arrival::new(waiting, home, has_right))
    }

    /// When what is announced is opened: an entity tag that is an MD5 can't wait.
    fn opening_of(&self, digests: DigestPlan) -> Opening {
        if digests.md5 {
            Opening::AsItComes
        } else {
            self.inner.transfers.opening()
        }
    }

    /// What an upload brings: its body, or what has arrived sealed for it.
    pub(super) async fn take_in(
        &self,
        grant: &ChangeGrant,
        becomes: ArrivedAs,
        mut incoming: Incoming,
        placing: Placing,
        customer: Option<CustomerKey>,
    ) -> Result<Ingested> {
        let cutoff = grant.cutoff();
        let Some(ArrivedBytes { ticket, told }) = incoming.arrived.take() else {
            let receive = |bucket: UsedBucket| async move {
                ingest(&bucket, &cutoff, incoming, placing, customer).await
            };
            return grant.prepare(receive).await;
        };
        if customer.is_some() {
            return Err(VaultError::Invalid {
                what: "what was sent sealed is under a key of the server's, not of the client's",
            });
        }
        let (subject, id) = (grant.subject(), grant.bucket());
        let is_meant = |asker: &_, announced: &ArrivedAs| {
            let (asker, _, bucket) = parts(asker);
            asker.id == subject && bucket == id && *announced == becomes
        };
        let arrived = self.inner.transfers.take_arrived(&ticket, is_meant);
        let arrived =
            arrived.ok_or_else(|| VaultError::Body(BodyError(Box::new(NoSuchTransfer))))?;
        let look = |bucket: UsedBucket| async move {
            let ingested = as_ingested(self, &bucket, arrived, incoming, told).await?;
            cutoff.check()?;
            Ok(ingested)
        };
        grant.prepare(look).await
    }
}

/// What has arrived, as if it had come with the request. What was not opened yet, and is `told` to
/// have the checksum that is wanted, waits for that.
async fn as_ingested(
    vault: &Vault,
    bucket: &UsedBucket,
    arrived: Arrived,
    incoming: Incoming,
    told: Option<Checksum>,
) -> Result<Ingested> {
    let Arrived {
        mut reference,
        blob,
        digests: formed,
        wrapped_by,
        ..
    } = arrived;
    let wanted = incoming.digests;
    let fits = |sum: Option<&Checksum>| wanted.checksum == sum.map(|sum| sum.algorithm);
    let has_all =
        |formed: &Digests| fits(formed.checksum.as_ref()) && (!wanted.md5 || formed.md5.is_some());
    let is_opened = formed.is_some();
    let told = told.filter(|told| !is_opened && !wanted.md5 && fits(Some(told)));
    let mut awaited = None;
    let digests = match (formed.filter(has_all), &told) {
        (Some(formed), _) => formed,
        (None, Some(told)) => {
            // First: the row may become durable when this is not waited for any more.
            awaited = Some(vault.inner.transfers.unverified().awaited(bucket.id));
            note_awaited(vault, bucket, reference.id, told.clone()).await?;
            Digests {
                checksum: Some(told.clone()),
                md5: None,
            }
        }
        (None, None) => {
            // It was not opened, or the commit tells another checksum than was announced.
            let keys = Keys::around(wrapped_by.clone(), bucket);
            let read = read_again(bucket, &reference, keys, wanted).await;
            read.map_err(|error| match error {
                VaultError::Damaged if !is_opened => VaultError::BadDigest { what: "seal" },
                other => other,
            })?
        }
    };
    (incoming.check)(&digests)?;
    reference.checksum = digests.checksum.clone();
    Ok(Ingested {
        size_bytes: reference.plaintext_bytes,
        content: NewContent::Blob(reference),
        blob: Some(blob),
        digests,
        wrapped_by,
        awaited,
    })
}

/// Notes that a blob is to be verified, and counts it, to the end: the row may stand though the
/// client is gone.
async fn note_awaited(
    vault: &Vault,
    bucket: &UsedBucket,
    id: BlobId,
    told: Checksum,
) -> Result<()> {
    let (bucket, tally) = (bucket.clone(), vault.inner.tally.clone());
    ToItsEnd::new(async move {
        bucket.catalog.await_verification(id, &told).await?;
        add(&tally.transfers.stored_unverified_count, 1);
        Ok(())
    })
    .await
}

async fn read_again(
    bucket: &OpenBucket,
    blob: &BlobRef,
    keys: Keys,
    wanted: DigestPlan,
) -> Result<Digests> {
    let data_key = keys
        .unwrap(bucket.id, blob)?
        .ok_or(StoreError::OutOfRange)?;
    let opened = bucket.blobs.open(blob.id, &data_key, blob.plaintext_bytes);
    let mut reader = opened.await?;
    let mut digester = Digester::new(wanted);
    while let Some(bytes) = reader.next().await {
        digester.update(&bytes?);
    }
    Ok(digester.finish())
}
