//! Whether objects of a bucket can be locked, and how new ones are.

use std::sync::Arc;

use coffer_store::lock::{Retention, RetentionMode};
use coffer_store::version::Versioning;
use serde::{Deserialize, Serialize};

use crate::access::{Act, Actor, BucketName, Right, Role, Subject};
use crate::acts::Changed;
use crate::audit::{Facts, On};
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result, VaultError};
use crate::limits::LOCK_DEFAULT_MAX_DAYS;
use crate::open_buckets::UsedBucket;
use crate::system::BucketConfiguration;
use crate::vault::Vault;

const ACT: Act = Act::WriteConfiguration;
const DAY_MS: i64 = 24 * 3_600 * 1_000;

/// That objects of a bucket can be locked. It is never taken back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ObjectLock {
    /// How new objects are locked whose writers ask for nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<DefaultRetention>,
}

/// How new objects are locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DefaultRetention {
    /// For compliance, else for governance.
    pub is_compliance: bool,
    /// For how many days, or years.
    pub length: u32,
    /// Whether these are years.
    pub in_years: bool,
}

impl DefaultRetention {
    /// For how many days; a year has 365.
    pub fn days(self) -> u64 {
        u64::from(self.length) * if self.in_years { 365 } else { 1 }
    }

    /// As of an object that is made at this time.
    pub(crate) fn from(self, now_ms: i64) -> Retention {
        let mode = if self.is_compliance {
            RetentionMode::Compliance
        } else {
            RetentionMode::Governance
        };
        let days = i64::try_from(self.days()).unwrap_or(i64::MAX);
        Retention {
            mode,
            until_ms: now_ms.saturating_add(days.saturating_mul(DAY_MS)),
        }
    }
}

impl ObjectLock {
    /// The document that says so.
    pub fn to_document(self) -> String {
        serde_json::to_string(&self).expect("a struct of numbers is JSON")
    }

    pub(crate) fn of_document(document: Option<&str>) -> Result<Option<Self>> {
        let read = document.map(serde_json::from_str).transpose();
        read.map_err(|_| VaultError::Damaged)
    }
}

impl Vault {
    /// Whether objects of a bucket can be locked, and how new ones are.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`].
    pub async fn object_lock(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Option<ObjectLock>> {
        let kind = BucketConfiguration::ObjectLock;
        let document = self.bucket_configuration(subject, name, kind).await?;
        ObjectLock::of_document(document.as_deref())
    }

    /// Lets objects of a bucket be locked, from now on, and says how new ones are.
    ///
    /// # Errors
    /// [`AdministrationError::LockNeedsVersions`]; [`VaultError::Invalid`] where the default is
    /// longer than may be.
    pub async fn set_object_lock(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        lock: ObjectLock,
    ) -> Result<()> {
        self.check_default(lock)?;
        let grant = self.changeable_by(subject, name, &[Right::Delete]).await?;
        let grant = grant.recorded_as_act();
        let row = grant.row().clone();
        let kind = BucketConfiguration::ObjectLock;
        let mut facts = Facts::from([
            ("bucket", name.to_string()),
            ("configuration", kind.name().to_owned()),
        ]);
        if let Some(default) = lock.default {
            facts.insert("default_days", default.days().to_string());
        }
        let inner = self.inner.clone();
        let set = move |bucket: UsedBucket| async move {
            let versioning = bucket.catalog.versioning().await;
            if versioning.map_err(VaultError::of_setting)? != Versioning::Enabled {
                return Err(AdministrationError::LockNeedsVersions.into());
            }
            let document = Some(lock.to_document());
            blocking(move || inner.system.configure(&row, kind, document)).await?;
            Ok(Changed::freeing((), Vec::new()))
        };
        let this = self.clone();
        let work = async move {
            // Not while versioning is suspended.
            let _changing = this.inner.changing_buckets.lock().await;
            grant.change(ACT, [On::Bucket], set).await
        };
        let actor = Actor::Subject(subject.clone());
        self.act(&actor, Role::DataUser, ACT, facts, work).await
    }

    fn check_default(&self, lock: ObjectLock) -> Result<()> {
        let Some(default) = lock.default else {
            return Ok(());
        };
        let max = u64::from(LOCK_DEFAULT_MAX_DAYS);
        if default.length == 0 || default.days() > max {
            return Err(VaultError::Invalid {
                what: "a default retention is from 1 to 36,500 days, or 1 to 100 years",
            });
        }
        self.check_days(default.days())
    }

    /// Whether something may be locked for so many days.
    pub(super) fn check_days(&self, days: u64) -> Result<()> {
        let limit_days = self.inner.lock_max_days;
        if days > u64::from(limit_days) {
            return Err(AdministrationError::LockTooLong { limit_days }.into());
        }
        Ok(())
    }
}
