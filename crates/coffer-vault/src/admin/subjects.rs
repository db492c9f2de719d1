//! Subjects: made, listed, changed, deleted. System administrators' acts.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_seal::SubjectId;

use crate::access::{
    AccessKey, Act, Actor, BucketName, Grants, NewAccessKey, Rights, Role, Roles, Subject,
};
use crate::audit::{Facts, whole};
use crate::blocking::blocking;
use crate::cutoff::ConnectionCutoff;
use crate::error::{Result, VaultError};
use crate::limits::GRANT_COUNT_MAX;
use crate::quotas::QuotaOf;
use crate::system::SubjectEntry;
use crate::vault::{Inner, Vault};

pub(super) mod administrators;

mod checks;

mod grants;

mod records;

use self::administrators::After;
pub(super) use self::checks::check_expiry as check_key_expiry;
use self::checks::{check_expiry, check_name, check_trust};
pub(super) use self::records::{about_subject, key_facts};

use self::records::state;

/// A subject to be made.
#[derive(Clone, Debug)]
pub struct NewSubject {
    /// Its name, unique: letters, digits, and `.`, `_`, `@` and `-` between them.
    pub name: String,
    /// What it may see and write: `LOW..HIGH`, names of levels or labels; or one of either; or
    /// SELinux's text, such as `s0-s2:c1`.
    pub clearance: String,
    /// Whether what it reads is to have no bearing on where it writes; for a clearance that is a
    /// range.
    pub is_trusted: bool,
    /// What it may do.
    pub roles: Roles,
    /// When it expires with all of its access keys, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// Rights by bucket; none: every right in every bucket that the clearance allows.
    pub grants: Option<Vec<(BucketName, Rights)>>,
}

/// What to change of a subject.
#[derive(Clone, Debug, Default)]
pub struct SubjectChange {
    /// Its name.
    pub name: Option<String>,
    /// Its clearance, as in [`NewSubject`].
    pub clearance: Option<String>,
    /// Whether its clearance is trusted; a new clearance is not, unless this says so.
    pub is_trusted: Option<bool>,
    /// Its roles.
    pub roles: Option<Roles>,
    /// When it expires; the inner `None`: never.
    pub expires_ms: Option<Option<i64>>,
    /// Whether it is disabled.
    pub is_disabled: Option<bool>,
    /// Take away all grants first: every right in every bucket that the clearance allows.
    pub all_buckets: bool,
    /// Buckets to grant these rights in, instead of those granted there before.
    pub grant: Vec<(BucketName, Rights)>,
    /// Buckets to grant nothing in any more.
    pub revoke: Vec<BucketName>,
}

/// A subject, and what its grants name.
#[derive(Clone, Debug)]
pub struct SubjectInfo {
    /// The subject.
    pub subject: Arc<Subject>,
    /// Its access keys, in the order in which they were made.
    pub keys: Vec<AccessKey>,
    /// Rights by bucket; none: every right in every bucket that the clearance allows.
    pub grants: Option<Vec<(BucketName, Rights)>>,
    /// What of them its clearance leaves out.
    pub unreachable: Vec<(BucketName, Rights)>,
    /// What it has read, where that bears on where it writes: levels, or their label.
    pub read: Option<String>,
    /// Whether it is disabled, with all of its access keys.
    pub is_disabled: bool,
    /// Whether it is not known what was last changed of it. It counts as disabled then.
    pub is_in_doubt: bool,
    /// When it expires, with all of its access keys, in milliseconds since 1970.
    pub expires_ms: Option<i64>,
    /// When it was made, in milliseconds since 1970.
    pub created_ms: i64,
}

impl Vault {
    /// Makes a subject with an access key; the secret is given out this once.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], [`VaultError::SubjectExists`],
    /// [`VaultError::TooManySubjects`], [`VaultError::NoSuchBucket`] for a grant,
    /// [`VaultError::Invalid`].
    pub async fn create_subject(
        &self,
        actor: &Actor,
        new: NewSubject,
    ) -> Result<(SubjectInfo, NewAccessKey)> {
        const ACT: Act = Act::CreateSubject;
        let role = Role::SystemAdministrator;
        let asked = Facts::from([
            ("subject", new.name.clone()),
            ("clearance", new.clearance.clone()),
            ("roles", new.roles.to_string()),
        ]);
        self.refuse_without(actor, role, ACT, &asked)?;
        let subject = match self.inner.new_subject(new) {
            Ok(subject) => subject,
            Err(error) => return Err(self.failed(ACT, actor, &asked, error)),
        };
        if self.inner.system.is_subject_name(&subject.name) {
            return Err(self.failed(ACT, actor, &asked, VaultError::SubjectExists));
        }
        let key = NewAccessKey::random(None, subject.created_ms);
        let info = self
            .inner
            .info(Arc::new(subject.clone()), vec![key.key.clone()]);
        let (this, told, done) = (self.clone(), state(&info), state(&info));
        let work = blocking(move || {
            this.inner.system.add_subject(subject, key.clone())?;
            this.inner.expiries_changed.notify_one();
            Ok(((info, key), done))
        });
        self.act_telling(actor, role, ACT, told, work).await
    }

    /// The subjects that the actor may know of, by name: those who look after the server, and the
    /// auditors of what they do, of all; others of themselves.
    pub fn subjects(&self, actor: &Actor) -> Vec<SubjectInfo> {
        let subjects = self.inner.system.all_subjects().into_iter();
        let known = subjects.filter(|entry| may_know(actor, &entry.subject));
        known.map(|entry| self.inner.subject_info(&entry)).collect()
    }

    /// A subject by name, by id, or by the id of one of its access keys.
    ///
    /// # Errors
    /// [`VaultError::NoSuchSubject`], also for one that the actor may not know of.
    pub fn subject_named(&self, actor: &Actor, name: &str) -> Result<SubjectInfo> {
        let found = self.inner.system.find_subject(name);
        let known = found.filter(|entry| may_know(actor, &entry.subject));
        let entry = known.ok_or(VaultError::NoSuchSubject)?;
        Ok(self.inner.subject_info(&entry))
    }

    /// Changes a subject. Requests of its that are under way are cut off when it is disabled, its
    /// access changes, or it loses a role.
    ///
    /// # Errors
    /// As [`create_subject`](Self::create_subject), [`VaultError::NoSuchSubject`], and
    /// [`LastAdministrator`](crate::AdministrationError::LastAdministrator) unless that is meant.
    pub async fn change_subject(
        &self,
        actor: &Actor,
        name: &str,
        change: SubjectChange,
        without_administrator: bool,
    ) -> Result<SubjectInfo> {
        let act = match change {
            SubjectChange {
                is_disabled: Some(true),
                ..
            } => Act::DisableSubject,
            SubjectChange {
                is_disabled: Some(false),
                ..
            } => Act::EnableSubject,
            SubjectChange { name: Some(_), .. } => Act::RenameSubject,
            _ => Act::ChangeSubject,
        };
        let role = Role::SystemAdministrator;
        let about = Facts::from([("subject", name.to_owned())]);
        self.refuse_without(actor, role, act, &about)?;
        let failed = |error| self.failed(act, actor, &about, error);
        let before = self.inner.system.find_subject(name);
        let before = before
            .ok_or_else(|| failed(VaultError::NoSuchSubject))?
            .subject;
        // Done again when no other request can change it.
        let changed = move |inner: &Inner, before: &Subject, change| {
            let after = inner.changed(before, change)?;
            if !without_administrator {
                inner.check_administrator_left(before.id, &After::Subject(&after))?;
            }
            Ok(after)
        };
        if let Err(error) = changed(&self.inner, &before, change.clone()) {
            return Err(failed(error));
        }
        let told = whole(&about_subject(&before), change.told());
        let (this, id, asked_by) = (self.clone(), before.id, ConnectionCutoff::current());
        let work = blocking(move || {
            let changed = |before: &Subject| changed(&this.inner, before, change);
            let (before, after) = this.inner.system.change_subject(id, changed)?;
            before.cut_but(Some(&after), asked_by.as_ref());
            this.inner.followers.take_away();
            this.inner.expiries_changed.notify_one();
            let info = this.inner.subject_info(&after);
            let done = state(&info);
            Ok((info, done))
        });
        self.act_telling(actor, role, act, told, work).await
    }

    /// Deletes a subject and its access keys, and cuts off its requests.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], [`VaultError::NoSuchSubject`], and
    /// [`LastAdministrator`](crate::AdministrationError::LastAdministrator) unless that is meant.
    pub async fn delete_subject(
        &self,
        actor: &Actor,
        name: &str,
        without_administrator: bool,
    ) -> Result<()> {
        const ACT: Act = Act::DeleteSubject;
        let role = Role::SystemAdministrator;
        let about = Facts::from([("subject", name.to_owned())]);
        self.refuse_without(actor, role, ACT, &about)?;
        let Some(before) = self.inner.system.find_subject(name) else {
            return Err(self.failed(ACT, actor, &about, VaultError::NoSuchSubject));
        };
        let told = state(&self.inner.subject_info(&before));
        let (this, id) = (self.clone(), before.subject.id);
        let asked_by = ConnectionCutoff::current();
        let work = blocking(move || {
            let quotas = this.inner.open_buckets.quotas.clone();
            let removed = move || quotas.set(QuotaOf::Subject(id), None);
            let check = || {
                if without_administrator {
                    return Ok(());
                }
                this.inner.check_administrator_left(id, &After::Gone)
            };
            let gone = this.inner.system.remove_subject(id, check, removed)?;
            gone.cut_but(None, asked_by.as_ref());
            this.inner.followers.take_away();
            let done = state(&this.inner.subject_info(&gone));
            Ok(((), done))
        });
        self.act_telling(actor, role, ACT, told, work).await
    }
}

impl Inner {
    fn new_subject(&self, new: NewSubject) -> Result<Subject> {
        check_name(&new.name)?;
        check_expiry(new.expires_ms)?;
        let mut grants = new.grants.is_some().then(Grants::new);
        self.grant(&mut grants, new.grants.unwrap_or_default())?;
        let clearance = self.clearance(&new.clearance)?;
        check_trust(&clearance, new.is_trusted)?;
        Ok(Subject {
            id: SubjectId::random(),
            name: new.name.into(),
            access_key: None,
            clearance,
            is_trusted: new.is_trusted,
            mark: Arc::default(),
            roles: new.roles,
            grants: grants.map(Arc::new),
            is_disabled: false,
            expires_ms: new.expires_ms,
            created_ms: now_ms(),
            cutoff: Arc::default(),
            asked: None,
        })
    }

    fn changed(&self, before: &Subject, change: SubjectChange) -> Result<Subject> {
        let mut after = before.clone();
        if let Some(name) = change.name.filter(|name| **name != *before.name) {
            check_name(&name)?;
            if self.system.is_subject_name(&name) {
                return Err(VaultError::SubjectExists);
            }
            after.name = name.into();
        }
        if let Some(clearance) = &change.clearance {
            after.clearance = self.clearance(clearance)?;
            after.is_trusted = false;
        }
        after.is_trusted = change.is_trusted.unwrap_or(after.is_trusted);
        check_trust(&after.clearance, after.is_trusted)?;
        if let Some(roles) = change.roles {
            after.roles = roles;
        }
        if let Some(expires_ms) = change.expires_ms {
            check_expiry(expires_ms)?;
            after.expires_ms = expires_ms;
        }
        if let Some(is_disabled) = change.is_disabled {
            after.is_disabled = is_disabled;
        }
        if change.all_buckets {
            after.grants = None;
        }
        let mut grants = after.grants.take().map(Arc::unwrap_or_clone);
        self.grant(&mut grants, change.grant)?;
        if let Some(grants) = &mut grants {
            for name in &change.revoke {
                let row = self.system.bucket(name).ok_or(VaultError::NoSuchBucket)?;
                grants.remove(&row.id);
            }
        } else if !change.revoke.is_empty() {
            let what = "there is no grant to revoke: the subject may use every bucket that its \
                        clearance allows";
            return Err(VaultError::Invalid { what });
        }
        after.grants = grants.map(Arc::new);
        let keeps_access = after.counts_at(now_ms)
            && before.roles.iter().all(|role| after.roles.has(role))
            && after.clearance == before.clearance
            && after.is_trusted == before.is_trusted
            && after.grants == before.grants;
        if !keeps_access || before.cutoff.is_cut() {
            after.cutoff = Arc::default();
        }
        if (after.clearance, after.is_trusted) != (before.clearance, before.is_trusted) {
            after.mark = before.carried_mark();
        }
        Ok(after)
    }

    /// Grants rights in buckets, instead of those granted there before.
    fn grant(&self, grants: &mut Option<Grants>, new: Vec<(BucketName, Rights)>) -> Result<()> {
        for (name, rights) in new {
            let row = self.system.bucket(&name).ok_or(VaultError::NoSuchBucket)?;
            if rights == Rights::default() {
                let what = "a grant has one right at least: read, write, list or delete";
                return Err(VaultError::Invalid { what });
            }
            grants.get_or_insert_default().insert(row.id, rights);
        }
        if grants
            .as_ref()
            .is_some_and(|grants| grants.len() > GRANT_COUNT_MAX)
        {
            let what = "a subject can be granted something in 1,000 buckets at most";
            return Err(VaultError::Invalid { what });
        }
        Ok(())
    }

    pub(crate) fn subject_info(&self, entry: &SubjectEntry) -> SubjectInfo {
        let keys = entry.access_keys().cloned().collect();
        SubjectInfo {
            is_in_doubt: entry.is_in_doubt,
            ..self.info(entry.subject.clone(), keys)
        }
    }

    fn info(&self, subject: Arc<Subject>, keys: Vec<AccessKey>) -> SubjectInfo {
        let (grants, unreachable) = self.grants_told(&subject);
        SubjectInfo {
            keys,
            grants,
            unreachable,
            read: subject.mark().map(|label| self.label_told(&label)),
            is_disabled: subject.is_disabled,
            is_in_doubt: false,
            expires_ms: subject.expires_ms,
            created_ms: subject.created_ms,
            subject,
        }
    }
}

/// Whether an actor may know of a subject: of itself, and of all if it looks after the server.
fn may_know(actor: &Actor, subject: &Subject) -> bool {
    match actor {
        _ if actor.looks_after() => true,
        Actor::Subject(own) => own.id == subject.id,
        Actor::Local { .. } => false,
    }
}
