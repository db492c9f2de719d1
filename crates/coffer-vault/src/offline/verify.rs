//! Verifying what is stored in a folder that no server runs on, such as a copy: every page of every
//! catalog, every chunk of every blob, keystore and audit log, and whether all is of one time.

use coffer_keys::{CopyView, inspect_keystore};
use coffer_seal::BucketId;
use coffer_store::record::{BlobRef, Content, ObjectName};
use coffer_store::{CATALOG_FILE, ContentWalk, StoreError};
use futures::StreamExt;

use crate::access::BucketName;
use crate::audit::audit_key;
use crate::error::{Result, RollbackOf, VaultError};
use crate::limits::VERIFY_PAGE;
use crate::offline::{BucketPlace, Offline, OfflineBucket};
use crate::open_buckets::{IN_DOUBT, OpenBucket, customer_key};
use crate::system::System;
use crate::verify::{VerifyEvent, check_not_noted};

/// Where a verification stands.
struct Walk<T> {
    /// Told of what is damaged, and how far it is.
    told: T,
    tells_damage: bool,
    checked_count: u64,
    checked_bytes: u64,
    total_bytes: u64,
    damage_count: u64,
    rollback_count: u64,
    client_key_count: u64,
}

impl Offline {
    /// Opens all that is stored, and tells what does not open; the last event is the end. Of a
    /// folder that was copied while a server ran on it, that it is no consistent copy is told in
    /// place of each damage. Buckets that a restore of others left out are none, and named.
    /// `elsewhere` is damage that the caller has found in files of its own: it is told first, and
    /// counted.
    pub async fn verify(&self, elsewhere: Vec<String>, told: impl FnMut(VerifyEvent)) {
        let mut walk = Walk::new(told);
        for what in elsewhere {
            walk.damage(None, None, what);
        }
        // The caller's files are not written while a server runs.
        let elsewhere_count = walk.damage_count;
        walk.tells_damage = !self.folder.was_copied_live();
        for what in self.system_damage() {
            walk.damage(None, None, format!("system.db: {what}"));
        }
        for what in self
            .keystore_damage()
            .into_iter()
            .chain(self.audit_damage())
        {
            walk.damage(None, None, what);
        }
        let mut is_system_older = false;
        for rollback in self.rollbacks().await {
            is_system_older |= matches!(rollback.of, RollbackOf::System);
            // A copy is older than what its root key's source holds: that is what it is for.
            let is_copy = self.is_backup && matches!(rollback.of, RollbackOf::Keystore { .. });
            if !is_copy {
                walk.rollback(rollback.to_string());
            }
        }
        let buckets = self.restored(&mut walk.told).await;
        for bucket in &buckets {
            if let Ok(open) = self.open_id(bucket.id).await {
                walk.total_bytes += open.catalog.total_bytes().await.unwrap_or(0);
            }
        }
        for bucket in buckets {
            let name = bucket.name.as_deref().and_then(BucketName::new);
            match self
                .verify_bucket(bucket.id, name.as_ref(), &mut walk)
                .await
            {
                Err(_) if self.is_of_another_time(&bucket, is_system_older) => {
                    walk.rollback(other_time_told(bucket.id));
                }
                Err(error) => walk.damage(name.as_ref(), None, catalog_damage(&bucket, &error)),
                Ok(()) => {}
            }
        }
        let count = walk.damage_count - elsewhere_count + walk.rollback_count;
        if !walk.tells_damage && count > 0 {
            let what = format!(
                "this folder was copied while a server ran on it, and is no consistent copy: \
                 {count} things in it don't open or don't fit together. Copy it with \
                 `coffer backup`, or while the server is stopped"
            );
            (walk.told)(VerifyEvent::Damage {
                bucket: None,
                name: None,
                what,
            });
        }
        (walk.told)(VerifyEvent::Done {
            checked_count: walk.checked_count,
            checked_bytes: walk.checked_bytes,
            damage_count: walk.damage_count,
            rollback_count: walk.rollback_count,
            client_key_count: walk.client_key_count,
        });
    }

    /// All buckets but those that a restore left out, which are named.
    async fn restored(&self, told: &mut impl FnMut(VerifyEvent)) -> Vec<OfflineBucket> {
        let mut buckets = self.buckets().await;
        buckets.retain(|bucket| {
            let is_left_out = bucket.place == BucketPlace::NotRestored;
            if is_left_out {
                let name = bucket.name.clone();
                let bucket = name.unwrap_or_else(|| bucket.id.to_string());
                told(VerifyEvent::LeftOut { bucket });
            }
            !is_left_out
        });
        buckets
    }

    /// Whether a bucket that does not open is newer than the `system.db` of a restored copy, or was
    /// deleted before it: it is known by its key only, and the keystore of a copy may be of another
    /// moment than its `system.db`.
    fn is_of_another_time(&self, bucket: &OfflineBucket, is_system_older: bool) -> bool {
        let is_apart = is_system_older || self.is_backup && self.has_names();
        is_apart && bucket.place != BucketPlace::Here && !is_named(bucket)
    }

    /// A server that starts mends one copy of the keystore by the other; here that is told.
    fn keystore_damage(&self) -> Vec<String> {
        let path = self.folder.path().join("keystore");
        match inspect_keystore(&path) {
            Err(error) => vec![error.to_string()],
            Ok(copies) => copies
                .iter()
                .zip(["first", "second"])
                .filter(|(copy, _)| **copy == CopyView::Damaged)
                .map(|(_, which)| format!("keystore: the {which} of its two copies is damaged"))
                .collect(),
        }
    }

    fn audit_damage(&self) -> Vec<String> {
        let folder = self.folder.audit();
        let public_key = match self.keystore.receipt_public_key() {
            Ok(public_key) => public_key.to_bytes(),
            Err(error) => return vec![format!("audit: {error}")],
        };
        let verified = coffer_audit::verify(&folder, &audit_key(&self.keystore), &public_key, None);
        match verified {
            Err(error) => vec![format!("audit: {error}")],
            Ok(report) => {
                let found = report.findings.iter();
                found.map(|found| format!("audit: {found}")).collect()
            }
        }
    }

    fn system_damage(&self) -> Vec<String> {
        let (path, key) = (self.folder.system_db(), self.keystore.system_key());
        // Pages that a log makes whole can't be told from damaged ones; what is read of them can.
        let has_log = self.folder.path().join("system.db-wal").exists();
        let looked = if has_log {
            System::open_read_only(&path, &key).map(|_| Vec::new())
        } else {
            System::damaged_pages(&path, &key)
        };
        looked.unwrap_or_else(|error| vec![error.to_string()])
    }

    async fn verify_bucket<T: FnMut(VerifyEvent)>(
        &self,
        id: BucketId,
        name: Option<&BucketName>,
        walk: &mut Walk<T>,
    ) -> Result<()> {
        let bucket = self.open_id(id).await?;
        if bucket.catalog.is_in_doubt() {
            walk.damage(name, None, IN_DOUBT.to_owned());
        }
        // As for `system.db`.
        let log = self.folder.bucket(id).join(format!("{CATALOG_FILE}-wal"));
        if !log.exists() {
            bucket.catalog.check_integrity().await?;
        }
        let mut contents = ContentWalk::default();
        while let Some(page) = contents.next(&bucket.catalog, VERIFY_PAGE).await? {
            for (object, content) in page {
                if let Content::Inline(bytes) = &content {
                    walk.checked(bytes.len() as u64);
                }
                for blob in content.blobs() {
                    if !self.lies_elsewhere(&bucket, blob) {
                        walk.blob(&bucket, blob, name, &object).await;
                    }
                }
                walk.checked_count += 1;
            }
        }
        Ok(())
    }
}

fn is_named(bucket: &OfflineBucket) -> bool {
    bucket.name.as_deref().and_then(BucketName::new).is_some()
}

/// What is wrong with a bucket.
fn catalog_damage(bucket: &OfflineBucket, error: &VaultError) -> String {
    let id = bucket.id;
    if is_named(bucket) && bucket.place != BucketPlace::Here {
        return format!("its folder buckets/{id} is missing");
    }
    if is_named(bucket) {
        return format!("the catalog: {error}");
    }
    format!("the catalog of bucket {id}: {error}")
}

fn other_time_told(id: BucketId) -> String {
    format!(
        "the keystore has a key for bucket {id}, and there is no such bucket: it was made after \
         the time that system.db is of, or deleted before"
    )
}

impl<T: FnMut(VerifyEvent)> Walk<T> {
    fn new(told: T) -> Self {
        Self {
            told,
            tells_damage: true,
            checked_count: 0,
            checked_bytes: 0,
            total_bytes: 0,
            damage_count: 0,
            rollback_count: 0,
            client_key_count: 0,
        }
    }

    async fn blob(
        &mut self,
        bucket: &OpenBucket,
        blob: &BlobRef,
        name: Option<&BucketName>,
        object: &ObjectName,
    ) {
        if let Err(error) = self.open_blob(bucket, blob).await {
            let what = format!("blob {}: {error}", blob.id);
            self.damage(name, Some(object), what);
        }
    }

    async fn open_blob(&mut self, bucket: &OpenBucket, blob: &BlobRef) -> Result<()> {
        let wrapped = || StoreError::Damaged {
            what: "its wrapped data key does not open",
            bucket: bucket.id,
            blob: Some(blob.id),
        };
        let key = customer_key::unwrap(&bucket.key(), blob, None);
        let key = key.map_err(|_| VaultError::Store(wrapped()))?;
        let told = VaultError::Store;
        let Some(key) = key else {
            self.client_key_count += 1;
            let checked = bucket.blobs.check_length(blob.id, blob.plaintext_bytes);
            return checked.await.map_err(told);
        };
        let opened = bucket.blobs.open(blob.id, &key, blob.plaintext_bytes).await;
        let mut reader = opened.map_err(told)?;
        while let Some(read) = reader.next().await {
            self.checked(read.map_err(told)?.len() as u64);
        }
        check_not_noted(bucket, blob.id).await.map_err(told)
    }

    fn checked(&mut self, bytes: u64) {
        self.checked_bytes += bytes;
        (self.told)(VerifyEvent::Progress {
            checked_count: self.checked_count,
            checked_bytes: self.checked_bytes,
            total_bytes: self.total_bytes,
        });
    }

    fn rollback(&mut self, what: String) {
        self.rollback_count += 1;
        if self.tells_damage {
            (self.told)(VerifyEvent::Rollback { what });
        }
    }

    fn damage(&mut self, bucket: Option<&BucketName>, name: Option<&ObjectName>, what: String) {
        self.damage_count += 1;
        if self.tells_damage {
            (self.told)(VerifyEvent::Damage {
                bucket: bucket.cloned(),
                name: name.cloned(),
                what,
            });
        }
    }
}
