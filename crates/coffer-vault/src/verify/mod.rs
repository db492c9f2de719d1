//! Verifying what is stored: every page of every catalog, every chunk of every blob.

use std::sync::Arc;
use std::time::Instant;

use coffer_store::StoreError;
use coffer_store::record::{BlobRef, Content, ObjectName, WalkedObject, WalkedPart};
use futures::{Stream, StreamExt};
use tokio::sync::mpsc;

use crate::access::{Act, Actor, BucketName, Role};
use crate::audit::Facts;
use crate::cutoff::SubjectCutoff;
use crate::error::{Result, VaultError};
use crate::limits::{VERIFY_EVENTS_WAITING, VERIFY_PAGE, VERIFY_PROGRESS_EVERY};
use crate::objects::Keys;
use crate::open_buckets::{IN_DOUBT, OpenBucket};
use crate::vault::Vault;

mod event;

mod pace;

mod damage;

pub(crate) use self::damage::check_not_noted;
pub use self::event::VerifyEvent;
use self::pace::Pace;

/// How deep a verification looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VerifyDepth {
    /// Every page of every catalog, every chunk of every blob.
    #[default]
    Everything,
    /// That each blob begins with the commitment to its key, and has its length: a blob's bytes
    /// count as checked then, though only its header was read.
    Commitments,
}

impl Vault {
    /// Opens what is stored, as deep as asked, and tells what does not open, at
    /// `rate_bytes_per_second` at most. It ends early when the stream is dropped. A system
    /// administrator's act: it gives out no data, and names of objects only to the folder's owner.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`](crate::VaultError::AccessDenied).
    pub async fn verify(
        &self,
        actor: &Actor,
        depth: VerifyDepth,
        rate_bytes_per_second: Option<u64>,
    ) -> Result<impl Stream<Item = VerifyEvent> + Send + Sync + use<>> {
        let (this, asking) = (self.clone(), actor.clone());
        let work = async move { Ok(this.walk(depth, rate_bytes_per_second, &asking)) };
        let role = Role::SystemAdministrator;
        self.act(actor, role, Act::VerifyStorage, Facts::new(), work)
            .await
    }

    fn walk(
        &self,
        depth: VerifyDepth,
        rate_bytes_per_second: Option<u64>,
        asking: &Actor,
    ) -> ReceiverStream {
        let (events, receiver) = mpsc::channel(VERIFY_EVENTS_WAITING);
        let walk = Walk {
            vault: self.clone(),
            events,
            depth,
            tells_names: matches!(asking, Actor::Local { .. }),
            cutoff: match asking {
                Actor::Subject(subject) => Some(subject.cutoff.clone()),
                Actor::Local { .. } => None,
            },
            pace: Pace::new(rate_bytes_per_second),
            told: Instant::now(),
            checked_count: 0,
            checked_bytes: 0,
            total_bytes: 0,
            damage_count: 0,
            client_key_count: 0,
        };
        tokio::spawn(walk.run());
        ReceiverStream(receiver)
    }
}

struct ReceiverStream(mpsc::Receiver<VerifyEvent>);

impl Stream for ReceiverStream {
    type Item = VerifyEvent;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<VerifyEvent>> {
        self.0.poll_recv(cx)
    }
}

/// The listener has gone away, or the server stops.
struct Abandoned;

struct Walk {
    vault: Vault,
    events: mpsc::Sender<VerifyEvent>,
    depth: VerifyDepth,
    tells_names: bool,
    /// Of the subject that asked.
    cutoff: Option<Arc<SubjectCutoff>>,
    pace: Pace,
    told: Instant,
    checked_count: u64,
    checked_bytes: u64,
    total_bytes: u64,
    damage_count: u64,
    client_key_count: u64,
}

impl Walk {
    async fn run(mut self) {
        if self.system().await.is_err() {
            return;
        }
        let rows = self.vault.inner.system.buckets();
        let Ok(not_restored) = self.not_restored().await else {
            return;
        };
        let mut buckets = Vec::with_capacity(rows.len());
        for row in rows {
            let inner = &self.vault.inner;
            // As of a folder that is read: blobs without a catalog are not nothing.
            if not_restored.contains(&row.id) && !inner.folder.bucket(row.id).exists() {
                let bucket = row.name.to_string();
                if self.tell(VerifyEvent::LeftOut { bucket }).await.is_err() {
                    return;
                }
                continue;
            }
            match inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, row.id)
                .await
            {
                Ok(bucket) => {
                    self.total_bytes += bucket.catalog.total_bytes().await.unwrap_or(0);
                    // Held only while it is verified: others may want it closed.
                    buckets.push(row);
                }
                // Deleted since the rows were read, or truly damaged.
                Err(_) if inner.system.bucket(&row.name).is_none() => {}
                // An erase has just begun, or has just come to nothing.
                Err(VaultError::NoSuchBucket) => {}
                Err(error) => {
                    let error = error.of_bucket(row.name.as_str(), row.id);
                    if self.not_opened(&row.name, error).await.is_err() {
                        return;
                    }
                }
            }
        }
        for row in buckets {
            let inner = &self.vault.inner;
            let opened = inner
                .open_buckets
                .open(&inner.folder, &inner.keystore, row.id)
                .await;
            let Ok(bucket) = opened else { continue };
            if self.bucket(&row.name, &bucket).await.is_err() {
                return;
            }
        }
        let Self {
            checked_count,
            checked_bytes,
            damage_count,
            client_key_count,
            ..
        } = self;
        let done = VerifyEvent::Done {
            checked_count,
            checked_bytes,
            damage_count,
            rollback_count: 0,
            client_key_count,
        };
        let _ = self.events.send(done).await;
    }

    async fn bucket(&mut self, name: &BucketName, bucket: &OpenBucket) -> Result<(), Abandoned> {
        if bucket.catalog.is_in_doubt() {
            self.damage(name, None, IN_DOUBT.to_owned()).await?;
        }
        if self.depth == VerifyDepth::Everything {
            match bucket.catalog.check_integrity().await {
                Ok(()) => {}
                Err(_) if bucket.is_cut() => return Ok(()),
                Err(StoreError::Closed) => return self.closed(),
                Err(error) => {
                    self.damage(name, None, format!("the catalog: {error}"))
                        .await?;
                }
            }
        }
        let mut after = None;
        loop {
            let before = bucket.key();
            let page = match bucket
                .catalog
                .objects_after(after.as_ref(), VERIFY_PAGE)
                .await
            {
                Ok(page) => page,
                Err(_) if bucket.is_cut() => return Ok(()),
                Err(StoreError::Closed) => return self.closed(),
                Err(error) => {
                    let what = format!("the catalog can't be read further: {error}");
                    self.not_read(name, what, &error).await?;
                    break;
                }
            };
            let Some(last) = page.last() else { break };
            after = Some(last.place.clone());
            let keys = Keys::around(before, bucket);
            for WalkedObject { place, content, .. } in page {
                self.item(name, (bucket, &keys), place.name, content)
                    .await?;
            }
        }
        self.uploads(name, bucket).await
    }

    /// The parts of uploads under way.
    async fn uploads(&mut self, name: &BucketName, bucket: &OpenBucket) -> Result<(), Abandoned> {
        let mut after = None;
        loop {
            let before = bucket.key();
            let page = match bucket.catalog.parts_after(after, VERIFY_PAGE).await {
                Ok(page) => page,
                Err(_) if bucket.is_cut() => return Ok(()),
                Err(StoreError::Closed) => return self.closed(),
                Err(error) => {
                    let what = format!("the catalog's uploads can't be read further: {error}");
                    return self.not_read(name, what, &error).await;
                }
            };
            let Some(last) = page.last() else {
                return Ok(());
            };
            after = Some((last.upload_id, last.part.number));
            let keys = Keys::around(before, bucket);
            for WalkedPart {
                name: object, part, ..
            } in page
            {
                let content = Content::Blobs {
                    first_offset_bytes: 0,
                    blobs: vec![part.blob],
                };
                self.item(name, (bucket, &keys), object, content).await?;
            }
        }
    }

    async fn item(
        &mut self,
        bucket_name: &BucketName,
        (bucket, keys): (&OpenBucket, &Keys),
        name: ObjectName,
        content: Content,
    ) -> Result<(), Abandoned> {
        match content {
            Content::Inline(bytes) => self.checked(bytes.len() as u64).await?,
            Content::Blobs { blobs, .. } => {
                for blob in blobs {
                    let opened = self.blob(bucket, keys, &blob).await?;
                    let checked = match opened {
                        Ok(()) => check_not_noted(bucket, blob.id).await,
                        failed => failed,
                    };
                    if let Err(error) = checked {
                        // That it can't be had now tells nothing of it.
                        if matches!(error, StoreError::NotFetched { .. } | StoreError::Full) {
                            tracing::warn!(%error, "the check ends: a blob was not fetched");
                            return Err(Abandoned);
                        }
                        // Deleted, replaced or erased while it was being read is no damage.
                        match bucket.catalog.contains_blob(&blob.id).await {
                            Ok(false) => {}
                            _ if bucket.is_cut() => {}
                            Err(StoreError::Closed) => return self.closed(),
                            _ => {
                                let what = format!("blob {}: {error}", blob.id);
                                self.damage(bucket_name, Some(name.clone()), what).await?;
                            }
                        }
                    }
                }
            }
        }
        self.checked_count += 1;
        Ok(())
    }

    async fn blob(
        &mut self,
        bucket: &OpenBucket,
        keys: &Keys,
        blob: &BlobRef,
    ) -> Result<Result<(), StoreError>, Abandoned> {
        let data_key = match keys.unwrap(bucket.id, blob) {
            Ok(Some(data_key)) => data_key,
            Ok(None) => {
                self.client_key_count += 1;
                let checked = bucket.blobs.check_length(blob.id, blob.plaintext_bytes);
                return Ok(checked.await);
            }
            Err(error) => return Ok(Err(error)),
        };
        let mut reader = match bucket
            .blobs
            .open(blob.id, &data_key, blob.plaintext_bytes)
            .await
        {
            Ok(reader) => reader,
            Err(error) => return Ok(Err(error)),
        };
        if self.depth == VerifyDepth::Commitments {
            self.checked(blob.plaintext_bytes).await?;
            return Ok(Ok(()));
        }
        while let Some(read) = reader.next().await {
            match read {
                _ if bucket.is_cut() => return Ok(Ok(())),
                Ok(bytes) => self.checked(bytes.len() as u64).await?,
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(()))
    }

    async fn checked(&mut self, bytes: u64) -> Result<(), Abandoned> {
        self.checked_bytes += bytes;
        self.pace.keep(self.checked_bytes).await;
        if self.told.elapsed() < VERIFY_PROGRESS_EVERY {
            return Ok(());
        }
        self.told = Instant::now();
        let Self {
            checked_count,
            checked_bytes,
            total_bytes,
            ..
        } = *self;
        self.tell(VerifyEvent::Progress {
            checked_count,
            checked_bytes,
            total_bytes,
        })
        .await
    }

    async fn tell(&self, event: VerifyEvent) -> Result<(), Abandoned> {
        if self.cutoff.as_ref().is_some_and(|cutoff| cutoff.is_cut()) {
            return Err(Abandoned);
        }
        self.events.send(event).await.map_err(|_| Abandoned)
    }
}
