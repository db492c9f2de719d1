//! Reading without opening: the client is given data keys, and a ticket for the sealed bytes.
//!
//! A key that was released is out for good: so that it is, is counted beside the bucket before it
//! is given, and recorded as the read that it is.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use coffer_seal::{Context, SecretKey};
use coffer_store::record::{BlobRef, Content, ObjectName, WrappedKey};
use coffer_store::{ReadPin, SealedSegment, StoreError};

use super::body::{Keys, ObjectBody, count_damage, select};
use super::conditions::ReadOptions;
use super::read::{ObjectInfo, ObjectRead, look_up};
use crate::access::{Act, BucketName, Reading, Right, Subject};
use crate::audit::On;
use crate::counters::add;
use crate::error::Result;
use crate::limits::{TICKET_TIME, TRANSFER_SEGMENTS_MAX};
use crate::locks::LockReader;
use crate::open_buckets::{OpenBucket, UsedBucket};
use crate::system::BucketRow;
use crate::transfer_counters::TransferEnd;
use crate::transfers::{Asker, HasRight, NoSuchTransfer, Seat, Sending, Ticket, WaitingSend};
use crate::vault::Vault;

/// An object, or what of it may be had: sealed, or opened where that is not how it goes out.
pub enum Released {
    /// The client opens it.
    Sealed(SealedObject),
    /// The server opens it.
    Opened(ObjectRead),
}

/// What a client needs to fetch and open an object.
pub struct SealedObject {
    /// What is known of the object, and the range that was asked for.
    pub info: ObjectInfo,
    /// The plaintext bytes that the ticket is good for: they may end before what was asked for.
    pub range: Range<u64>,
    /// For the data port.
    pub ticket: Ticket,
    /// How long the ticket waits to be presented.
    pub patience: Duration,
    /// What comes for it, in order.
    pub segments: Vec<ReleasedSegment>,
    /// How many bytes come for it.
    pub sealed_bytes: u64,
}

/// A segment, and what opens it.
pub struct ReleasedSegment {
    /// The blob's data key.
    pub data_key: SecretKey,
    /// The blob's context.
    pub context: Context,
    /// Which chunks.
    pub segment: SealedSegment,
}

/// What was found of an object whose keys may be released.
enum Found {
    Sealed {
        bucket: UsedBucket,
        seat: Seat,
        pin: ReadPin,
        segments: Vec<ReleasedSegment>,
    },
    Opened(ObjectBody),
}

impl Vault {
    /// Opens an object for reading as [`read_object`](Self::read_object) does, for a client that
    /// can open it itself. It gets the keys and a ticket where the bucket's level allows it, the
    /// object lies in blobs, is under no key of a client's, and the subject has few enough
    /// transfers.
    ///
    /// # Errors
    /// Those of [`read_object`](Self::read_object).
    pub async fn release_object(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        name: &ObjectName,
        options: ReadOptions,
    ) -> Result<Released> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let (level, row) = (grant.level(), grant.row().clone());
        let locks = LockReader::of(&grant);
        let judged = grant.judged_objects();
        let seat = self.transfer_seat(subject, &row)?;
        let tally = self.inner.tally.clone();
        let look = |bucket: UsedBucket| async move {
            let before = bucket.key();
            let pin = bucket.blobs.pin();
            let told = (level, locks, &judged[..]);
            let (info, content) = look_up(&bucket, name, &options, told).await?;
            add(&tally.read_count, 1);
            let range = info.range.clone();
            let found = match (content, seat) {
                (
                    Content::Blobs {
                        first_offset_bytes,
                        blobs,
                    },
                    Some(seat),
                ) if !range.is_empty() && are_ours(&blobs) => {
                    let keys = Keys::around(before, &bucket);
                    let mut chosen = select(first_offset_bytes, blobs, &range)?;
                    chosen.truncate(TRANSFER_SEGMENTS_MAX);
                    let segments = release(&bucket, &keys, chosen).await;
                    let segments = segments.map_err(|error| count_damage(error, &tally))?;
                    self.note_released(&row, segments.len() as u64).await?;
                    Found::Sealed {
                        bucket,
                        seat,
                        pin,
                        segments,
                    }
                }
                (content, _) => {
                    let keys = (before, options.customer_key.clone());
                    let body = ObjectBody::new(bucket, keys, pin, content, range, tally);
                    Found::Opened(body.await?)
                }
            };
            Ok((info, found))
        };
        let found = grant.read(Act::ReadObject, On::Object(name), look).await?;
        let ((info, found), reading) = found;
        match found {
            Found::Opened(body) => {
                let body = body.while_allowed(subject.cutoff.clone(), reading);
                Ok(Released::Opened(ObjectRead { info, body }))
            }
            Found::Sealed {
                bucket: used,
                seat,
                pin,
                segments,
            } => {
                let asker = self.asker(subject, bucket, used, seat);
                let held = (asker, pin, reading);
                Ok(Released::Sealed(self.sealed(held, info, segments)))
            }
        }
    }

    /// What a client is told of an object whose keys it is given; the ticket waits from now on.
    fn sealed(
        &self,
        (asker, pin, reading): (Asker, ReadPin, Option<Reading>),
        info: ObjectInfo,
        segments: Vec<ReleasedSegment>,
    ) -> SealedObject {
        let sealed_bytes = sum(&segments, |it| it.sealed.end - it.sealed.start);
        let bytes = sum(&segments, |it| it.bytes);
        let ticket = self.inner.transfers.wait_to_send(WaitingSend {
            asker,
            segments: segments.iter().map(|it| it.segment.clone()).collect(),
            sealed_bytes,
            _pin: pin,
            _reading: reading,
        });
        SealedObject {
            range: info.range.start..info.range.start + bytes,
            info,
            ticket,
            patience: TICKET_TIME,
            segments,
            sealed_bytes,
        }
    }

    /// Takes what a ticket is good for, to be sent. Whether its subject may read there is asked
    /// anew.
    ///
    /// # Errors
    /// [`NoSuchTransfer`].
    pub async fn take_transfer(&self, ticket: &Ticket) -> Result<Sending, NoSuchTransfer> {
        let refused = || {
            self.inner.tally.transfers.sent(TransferEnd::Refused);
            NoSuchTransfer
        };
        let waiting = self.inner.transfers.take_to_send(ticket);
        let waiting = waiting.ok_or_else(refused)?;
        let (subject, name, id) = parts(&waiting.asker);
        let subject = subject.asking_again();
        let granted = self.readable(&subject, &name, Right::Read).await;
        let is_same = granted.is_ok_and(|grant| grant.row().id == id);
        let has_right = self.still(Right::Read, &waiting.asker);
        if !is_same || !has_right().await {
            return Err(refused());
        }
        Ok(Sending::new(waiting, has_right))
    }

    /// Whether a subject may ask for sealed transfers in a bucket that it may know of.
    pub fn has_transfers(&self, subject: &Subject, bucket: &BucketName) -> bool {
        let row = self.known(subject, bucket);
        row.is_ok_and(|row| self.allows_transfers(subject, &row).unwrap_or(false))
    }

    /// Whether data keys of a bucket's objects are given to this subject.
    pub(super) fn allows_transfers(&self, subject: &Subject, row: &BucketRow) -> Result<bool> {
        let allows = self.inner.tag(row)?.has_sealed_transfer;
        Ok(allows && self.data_port().is_some() && !subject.is_anonymous())
    }

    /// A seat for one more transfer, where they are allowed and there is room.
    pub(super) fn transfer_seat(&self, subject: &Subject, row: &BucketRow) -> Result<Option<Seat>> {
        let allows = self.allows_transfers(subject, row)?;
        let begin = || self.inner.transfers.begin(subject.id);
        Ok(allows.then(begin).flatten())
    }

    pub(super) fn asker(
        &self,
        subject: &Subject,
        bucket_name: &BucketName,
        bucket: UsedBucket,
        seat: Seat,
    ) -> Asker {
        Asker {
            subject: subject.clone(),
            bucket_name: bucket_name.clone(),
            bucket,
            tally: self.inner.tally.clone(),
            _seat: seat,
        }
    }

    /// Says whether the subject of a transfer still has its right, as a new request would be
    /// judged: by lists and tags of its object as well, where these count.
    pub(super) fn still(&self, right: Right, asker: &Asker) -> HasRight {
        let (vault, (subject, name, id)) = (self.clone(), parts(asker));
        Arc::new(move || {
            let (vault, subject, name) = (vault.clone(), subject.asking_again(), name.clone());
            Box::pin(async move {
                let row = vault.usable_row(&subject, &name, right);
                let Some(row) = row.ok().filter(|row| row.id == id) else {
                    return false;
                };
                vault.lets_object_still(&subject, &row, right).await
            })
        })
    }

    /// Looks at the object only where more than the bucket decides. What can't be judged is not
    /// allowed.
    async fn lets_object_still(&self, subject: &Subject, row: &BucketRow, right: Right) -> bool {
        if !row.documents.is_shared() {
            return true;
        }
        let checked = async {
            let granted = self.grant(row).await?;
            self.check_objects(subject, row, &granted.bucket, None)
                .await
        };
        let checked = checked.await;
        if let Err(error) = &checked {
            self.note_refusal(error, subject, right, row);
        }
        checked.is_ok()
    }

    /// Counts data keys as released, durably, before they are.
    pub(super) async fn note_released(&self, row: &Arc<BucketRow>, count: u64) -> Result<()> {
        self.cover_key_release(row, count).await?;
        add(&self.inner.tally.transfers.released_key_count, count);
        Ok(())
    }
}

pub(super) fn parts(asker: &Asker) -> (Subject, BucketName, coffer_seal::BucketId) {
    let Asker {
        subject,
        bucket_name,
        bucket,
        ..
    } = asker;
    (subject.clone(), bucket_name.clone(), bucket.id)
}

fn sum(segments: &[ReleasedSegment], of: impl Fn(&SealedSegment) -> u64) -> u64 {
    segments.iter().map(|released| of(&released.segment)).sum()
}

/// Whether the server's keys alone open these blobs.
fn are_ours(blobs: &[BlobRef]) -> bool {
    let is_ours = |blob: &BlobRef| matches!(blob.wrapped_key, WrappedKey::Once(_));
    blobs.iter().all(is_ours)
}

async fn release(
    bucket: &OpenBucket,
    keys: &Keys,
    chosen: VecDeque<(BlobRef, Range<u64>)>,
) -> Result<Vec<ReleasedSegment>, StoreError> {
    let mut segments = Vec::with_capacity(chosen.len());
    for (blob, within) in chosen {
        let (id, bytes) = (blob.id, blob.plaintext_bytes);
        let data_key = keys
            .unwrap(bucket.id, &blob)?
            .ok_or(StoreError::OutOfRange)?;
        let segment = bucket.blobs.sealed_segment(id, &data_key, bytes, within);
        segments.push(ReleasedSegment {
            segment: segment.await?,
            context: bucket.blobs.context(id),
            data_key,
        });
    }
    Ok(segments)
}
