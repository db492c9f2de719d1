//! Configuration of buckets: documents that the front doors give a meaning.
//!
//! The CORS configuration is told to all who ask: a browser asks before it has a signature to show.
//! So it is as low as a label can be. In a bucket of another label only system administrators set
//! it, or what stands there could be told in it. Answering opens no bucket: neither work nor time
//! tells which there are.

use std::sync::Arc;

use coffer_label::Label;

use crate::access::{Act, Actor, BucketName, Right, Role, Subject};
use crate::acts::Changed;
use crate::audit::{Facts, On};
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result};
use crate::open_buckets::UsedBucket;
use crate::system::BucketConfiguration;
use crate::vault::Vault;

const ACT: Act = Act::WriteConfiguration;

impl Vault {
    /// A document of the bucket's configuration, if there is one.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`].
    pub async fn bucket_configuration(
        &self,
        subject: &Subject,
        name: &BucketName,
        kind: BucketConfiguration,
    ) -> Result<Option<Arc<str>>> {
        let row = self.usable(subject, name, Right::Read).await?;
        let grant = self.readable(subject, name, Right::Read).await?;
        let look = |_: UsedBucket| async { Ok(self.inner.system.configuration(&row, kind)) };
        let read = grant.read(Act::ReadConfiguration, On::Bucket, look);
        let (document, _reading) = read.await?;
        Ok(document)
    }

    /// Sets or removes a document of the bucket's configuration.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`];
    /// [`ToldToAll`](AdministrationError::ToldToAll) to those who may write there but are no system
    /// administrators, where the bucket has not the lowest label, and it is no lifecycle rules;
    /// [`ConfigurationsFull`](crate::AdministrationError::ConfigurationsFull).
    pub async fn set_bucket_configuration(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        kind: BucketConfiguration,
        document: Option<String>,
    ) -> Result<()> {
        // Rules of lifecycles delete.
        let also = match kind {
            BucketConfiguration::Lifecycle => &[Right::Delete][..],
            _ => &[],
        };
        let grant = self.changeable_by(subject, name, also).await?;
        let row = grant.row().clone();
        // Only those who may read in the bucket are told of lifecycle rules.
        let is_lowest = *self.inner.label(&row)? == Label::LOWEST;
        let is_told = kind != BucketConfiguration::Lifecycle;
        if is_told && !is_lowest && !subject.roles.has(Role::SystemAdministrator) {
            self.refused(subject, ACT, name);
            return Err(AdministrationError::ToldToAll.into());
        }
        let facts = Facts::from([
            ("bucket", name.to_string()),
            ("configuration", kind.name().to_owned()),
        ]);
        // From when this returns, nothing is ended by the rules that there were.
        let is_lifecycle = kind == BucketConfiguration::Lifecycle;
        let stepping = is_lifecycle.then(|| self.inner.clone());
        let grant = grant.recorded_as_act();
        let inner = self.inner.clone();
        let set = move |_: UsedBucket| async move {
            blocking(move || inner.system.configure(&row, kind, document)).await?;
            Ok(Changed::freeing((), Vec::new()))
        };
        let work = async move {
            let _step = match &stepping {
                Some(inner) => Some(inner.lifecycle.step.lock().await),
                None => None,
            };
            grant.change(ACT, [On::Bucket], set).await
        };
        let actor = Actor::Subject(subject.clone());
        self.act(&actor, Role::DataUser, ACT, facts, work).await
    }

    /// A bucket's CORS configuration, for all who ask: none where there is none, or no bucket.
    pub fn cors_configuration(&self, name: &BucketName) -> Option<Arc<str>> {
        let system = &self.inner.system;
        system.configuration(&*system.bucket(name)?, BucketConfiguration::Cors)
    }
}
