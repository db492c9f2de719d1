//! Setting quotas, and telling how much of them is used.

use crate::access::{Act, Actor, BucketName, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result, VaultError};
use crate::quotas::{Quota, QuotaOf, QuotaUsage};
use crate::vault::Vault;

/// A quota, and how much of it is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuotaInfo {
    /// What it is of.
    pub of: QuotaOf,
    /// The name of that.
    pub name: String,
    /// How much there may be.
    pub quota: Quota,
    /// How much there is.
    pub used: QuotaUsage,
}

impl Vault {
    /// Sets the quota of a bucket, a level or a subject, in place of the one that it had. What is
    /// there already stays, however much it is. A system administrator's act.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::NoSuchLevel`], [`VaultError::NoSuchSubject`];
    /// [`VaultError::Invalid`] for one without any limit, or of buckets in a bucket; those of
    /// administrative acts.
    pub async fn set_quota(
        &self,
        actor: &Actor,
        kind: &str,
        name: &str,
        quota: Quota,
    ) -> Result<QuotaInfo> {
        let (of, told) = self.quota_of(actor, Act::SetQuota, kind, name)?;
        if quota == Quota::default() {
            return Err(VaultError::Invalid {
                what: "a quota has a limit: of bytes, objects, uploads or buckets",
            });
        }
        if kind == "bucket" && quota.buckets.is_some() {
            return Err(VaultError::Invalid {
                what: "a bucket holds no buckets: their number is limited by level or subject",
            });
        }
        let mut facts = facts_of(of, &told);
        let limits = [
            ("bytes", quota.bytes),
            ("objects", quota.objects),
            ("uploads", quota.uploads),
            ("buckets", quota.buckets),
        ];
        for (what, limit) in limits {
            if let Some(limit) = limit {
                facts.insert(what, limit.to_string());
            }
        }
        let this = self.clone();
        let work = async move {
            // Before it limits anything, all that it counts is known.
            this.read_for(&[of]).await;
            this.keep_quota(of, Some(quota)).await
        };
        let role = Role::SystemAdministrator;
        self.act(actor, role, Act::SetQuota, facts, work).await?;
        Ok(self.quota_info(of, told, quota))
    }

    /// Removes a quota.
    ///
    /// # Errors
    /// [`AdministrationError::NoQuota`] where there is none; as [`Vault::set_quota`].
    pub async fn remove_quota(&self, actor: &Actor, kind: &str, name: &str) -> Result<()> {
        let (of, told) = self.quota_of(actor, Act::RemoveQuota, kind, name)?;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        let all = self.inner.open_buckets.quotas.all();
        if !all.iter().any(|(one, _)| *one == of) {
            let error = AdministrationError::NoQuota { kind: of.kind() }.into();
            return Err(self.failed(Act::RemoveQuota, actor, &facts_of(of, &told), error));
        }
        let this = self.clone();
        let work = async move { this.keep_quota(of, None).await };
        let role = Role::SystemAdministrator;
        let facts = facts_of(of, &told);
        self.act(actor, role, Act::RemoveQuota, facts, work).await
    }

    async fn keep_quota(&self, of: QuotaOf, quota: Option<Quota>) -> Result<()> {
        let inner = self.inner.clone();
        let ledger = inner.open_buckets.quotas.clone();
        let settled = move |has_happened: bool| {
            if has_happened {
                ledger.set(of, quota);
            }
        };
        blocking(move || inner.system.keep_quota(of, quota, settled)).await
    }

    /// All quotas that the actor may know of, with what is used of them: a system administrator's
    /// to see.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`]; [`VaultError::SystemInDoubt`].
    pub async fn quotas(&self, actor: &Actor) -> Result<Vec<QuotaInfo>> {
        let facts = Facts::default();
        self.refuse_without(actor, Role::SystemAdministrator, Act::ListQuotas, &facts)?;
        let inner = self.inner.clone();
        blocking(move || inner.system.assure_certain()).await?;
        let all = self.inner.open_buckets.quotas.all();
        let of: Vec<QuotaOf> = all.iter().map(|(of, _)| *of).collect();
        self.read_for(&of).await;
        let told = |(of, quota)| {
            let name = self.name_of(actor, of)?;
            Some(self.quota_info(of, name, quota))
        };
        let mut told: Vec<QuotaInfo> = all.into_iter().filter_map(told).collect();
        told.sort_by(|a, b| (a.of.kind(), &a.name).cmp(&(b.of.kind(), &b.name)));
        Ok(told)
    }

    /// All quotas of what is there, with what is used of them, as far as it has been read: for
    /// metrics.
    pub fn quotas_by_id(&self) -> Vec<QuotaInfo> {
        let inner = &self.inner;
        let is_there = |(of, _): &(QuotaOf, Quota)| match *of {
            QuotaOf::Bucket(id) => inner.system.bucket_of_id(id).is_some(),
            QuotaOf::Level(id) => inner.keystore.level(id).is_some(),
            QuotaOf::Subject(id) => inner.system.subject_of_id(id).is_some(),
        };
        let all = inner.open_buckets.quotas.all().into_iter().filter(is_there);
        let told = all.map(|(of, quota)| self.quota_info(of, String::new(), quota));
        told.collect()
    }

    fn quota_info(&self, of: QuotaOf, name: String, quota: Quota) -> QuotaInfo {
        let used = self.inner.open_buckets.quotas.usage(of);
        QuotaInfo {
            of,
            name,
            quota,
            used,
        }
    }

    /// What is meant, and its name. Who may not set quotas learns nothing.
    fn quota_of(
        &self,
        actor: &Actor,
        act: Act,
        kind: &str,
        name: &str,
    ) -> Result<(QuotaOf, String)> {
        let facts = Facts::from([("kind", kind.to_owned()), ("name", name.to_owned())]);
        self.refuse_without(actor, Role::SystemAdministrator, act, &facts)?;
        let inner = &self.inner;
        match kind {
            "bucket" => {
                let row = BucketName::new(name).and_then(|name| inner.system.bucket(&name));
                let row = row.ok_or(VaultError::NoSuchBucket)?;
                if !actor.may_know(inner.label(&row)?) {
                    return Err(VaultError::NoSuchBucket);
                }
                Ok((QuotaOf::Bucket(row.id), name.to_owned()))
            }
            "level" => {
                let level = inner.keystore.level_named(name);
                let level = level.filter(|level| actor.may_know(&level.label));
                let level = level.ok_or(VaultError::NoSuchLevel)?;
                Ok((QuotaOf::Level(level.id), level.name))
            }
            "subject" => {
                let entry = inner.system.find_subject(name);
                let subject = entry.ok_or(VaultError::NoSuchSubject)?.subject;
                Ok((QuotaOf::Subject(subject.id()), subject.name().to_owned()))
            }
            _ => Err(VaultError::Invalid {
                what: "a quota is of a bucket, a level or a subject",
            }),
        }
    }

    fn name_of(&self, actor: &Actor, of: QuotaOf) -> Option<String> {
        let inner = &self.inner;
        match of {
            QuotaOf::Bucket(id) => {
                let row = inner.system.bucket_of_id(id)?;
                let is_known = actor.may_know(inner.label(&row).ok()?);
                is_known.then(|| row.name.to_string())
            }
            QuotaOf::Level(id) => {
                let level = inner.keystore.level(id);
                let level = level.filter(|level| actor.may_know(&level.label))?;
                Some(level.name)
            }
            QuotaOf::Subject(id) => {
                let entry = inner.system.find_subject(&id.to_string())?;
                Some(entry.subject.name().to_owned())
            }
        }
    }
}

fn facts_of(of: QuotaOf, name: &str) -> Facts {
    Facts::from([(of.kind(), name.to_owned())])
}
