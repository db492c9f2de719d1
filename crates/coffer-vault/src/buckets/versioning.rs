//! Whether buckets keep versions.

use std::sync::Arc;

use coffer_store::version::{Versioning, VersioningSetting};

use crate::access::{Act, Actor, BucketName, Right, Role, Subject};
use crate::acts::Changed;
use crate::audit::{Facts, On};
use crate::error::{AdministrationError, Result, VaultError};
use crate::open_buckets::UsedBucket;
use crate::vault::Vault;

const ACT: Act = Act::WriteConfiguration;

impl Vault {
    /// What is set of a bucket's versions.
    ///
    /// # Errors
    /// [`VaultError::BucketInDoubt`] while it is in doubt whether that was changed.
    pub async fn versioning(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<VersioningSetting> {
        let grant = self.readable(subject, name, Right::Read).await?;
        let look = |bucket: UsedBucket| async move {
            let setting = bucket.catalog.versioning_setting().await;
            setting.map_err(VaultError::of_setting)
        };
        let read = grant.read(Act::ReadConfiguration, On::Bucket, look).await?;
        Ok(read.0)
    }

    /// Has a bucket keep versions from now on, or keep no more. Who may write but not delete can't
    /// have a bucket forget what is written over.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`].
    pub async fn set_versioning(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        setting: impl Into<VersioningSetting>,
    ) -> Result<()> {
        let setting = setting.into();
        let state = setting.state;
        let grant = self.changeable_by(subject, name, &[Right::Delete]).await?;
        let grant = grant.recorded_as_act();
        let facts = Facts::from([
            ("bucket", name.to_string()),
            ("configuration", "versioning".to_owned()),
            ("state", format!("{state:?}").to_lowercase()),
        ]);
        let row = grant.row().clone();
        let set = move |bucket: UsedBucket| async move {
            if state != Versioning::Enabled && row.has_object_lock() {
                return Err(AdministrationError::LockNeedsVersions.into());
            }
            bucket.catalog.set_versioning(setting).await?;
            Ok(Changed::freeing((), Vec::new()))
        };
        let this = self.clone();
        let work = async move {
            // Not while object lock is turned on, which needs versions.
            let _changing = this.inner.changing_buckets.lock().await;
            grant.change(ACT, [On::Bucket], set).await
        };
        let actor = Actor::Subject(subject.clone());
        self.act(&actor, Role::DataUser, ACT, facts, work).await
    }
}
