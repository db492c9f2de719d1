//! A copy of a data folder that is served meanwhile, in which everything fits together.
//!
//! The steps, in this order:
//!
//! 1. Blobs, as catalogs name them now: they never change. This takes as long as it takes.
//! 2. Bucket by bucket, a copy of the catalog, and the blobs that came since; what is removed
//!    meanwhile stays until both are done. No key of a bucket is rotated before step 3 is done.
//! 3. The keystore and then `system.db`, while no bucket is made, deleted or erased: those that
//!    were made since are copied now, those that are gone are left out.
//! 4. The audit log, and an anchor that holds how far all of these have come.
//! 5. The record that says that the copy is complete; and it takes the place of the one before.
//!
//! So what is below is never older than what holds it ([`freshness`](crate::freshness)), and each
//! bucket is as it was at one moment. Were the root key changed meanwhile, the copy would open with
//! none that there is: then all from 2 on is done again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::Stream;
use futures::stream::poll_fn;
use tokio::sync::mpsc;

use crate::access::{Act, Actor, BucketName, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{BackupError, Result, VaultError};
use crate::limits::BACKUP_EVENTS_WAITING;
use crate::vault::Vault;

mod record;

mod promotion;

mod destination;

mod gaps;

mod run;

mod buckets;

mod work;

pub(crate) use self::gaps::refuse_gaps;
pub(crate) use self::promotion::{
    PROMOTED_FROM, note_origin, seal_promotion, unrecorded_promotion,
};
pub(crate) use self::record::{BACKUP_FILE, BackupRecord, forget};

use self::destination::Destination;
use self::run::Run;

const ACT: Act = Act::BackUpStorage;

/// How much of a backup was done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BackupCounts {
    /// How many buckets the copy has.
    pub bucket_count: u64,
    /// How many blobs it has.
    pub blob_count: u64,
    /// How many of them were copied now.
    pub copied_count: u64,
    /// And how many bytes those have.
    pub copied_bytes: u64,
    /// Of how many buckets it has but the name and the key, as this server: their erase was
    /// ordered in the copy that this server went on from, which had left them out.
    pub left_to_erase_count: u64,
    /// Of how many others it has no more than that, as this server: a restore left them out.
    pub left_out_count: u64,
}

/// What a backup tells as it goes.
#[derive(Debug)]
pub enum BackupEvent {
    /// So much has been looked at, and copied.
    Progress(BackupCounts),
    /// The copy has but the name of this bucket, as this server, for a restore left it out.
    LeftOut {
        /// Its name.
        bucket: BucketName,
    },
    /// The copy is complete.
    Done {
        /// The folder that holds it.
        folder: PathBuf,
        /// What it has.
        counts: BackupCounts,
    },
    /// There is none, and the one before stays.
    Failed(VaultError),
}

impl Vault {
    /// Copies the data folder into `folder/copy`, in place of an earlier copy, and tells how far it
    /// is. It ends early when the stream is dropped: the next call goes on from there. A system
    /// administrator's act, for who is on this machine.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`]; when nothing can be copied there.
    pub async fn back_up(
        &self,
        actor: &Actor,
        folder: &Path,
    ) -> Result<impl Stream<Item = BackupEvent> + Send + Sync + use<>> {
        let role = Role::SystemAdministrator;
        let facts = Facts::from([("folder", folder.display().to_string())]);
        self.refuse_without(actor, role, ACT, &facts)?;
        if !matches!(actor, Actor::Local { .. }) {
            let what = "a backup is written by the server to a folder of its machine: ask for it \
                        there, with `coffer backup DIR --data DATA`";
            return Err(self.failed(ACT, actor, &facts, VaultError::Invalid { what }));
        }
        let kept = "its folder is a cache, and no backup is made of it: copy the engine's store, \
                    or restore from it";
        let kept = self.refuse_in_engine(kept);
        kept.map_err(|error| self.failed(ACT, actor, &facts, error))?;
        let (data, id) = (self.data().to_owned(), self.inner.keystore.id());
        let wanted = folder.to_owned();
        let destination = blocking(move || Destination::open(&wanted, &data, id)).await;
        let destination = destination.map_err(|error| self.failed(ACT, actor, &facts, error))?;
        let (events, mut receiver) = mpsc::channel(BACKUP_EVENTS_WAITING);
        let (this, actor) = (self.clone(), actor.clone());
        tokio::spawn(async move {
            let told = events.clone();
            let run = Run::new(this.clone(), Arc::new(destination), events);
            let begun = vec![facts.clone()];
            let work = async move {
                let told = facts["folder"].clone();
                let (folder, counts) = run.work().await.map_err(|error| match error {
                    VaultError::StorageFull => BackupError::NoRoom { path: told }.into(),
                    error => error,
                })?;
                let mut done = facts;
                done.insert("buckets", counts.bucket_count.to_string());
                done.insert("blobs", counts.blob_count.to_string());
                done.insert("copied_bytes", counts.copied_bytes.to_string());
                Ok(((folder, counts), vec![done]))
            };
            let event = match this.act_telling(&actor, role, ACT, begun, work).await {
                Ok((folder, counts)) => BackupEvent::Done { folder, counts },
                Err(error) => BackupEvent::Failed(error),
            };
            let _ = told.send(event).await;
        });
        Ok(poll_fn(move |context| receiver.poll_recv(context)))
    }
}
