//! Subjects in the system database, and in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_label::{Clearance, Label};
use coffer_seal::BucketId;
use coffer_store::StoreError;
use parking_lot::RwLockWriteGuard;
use rusqlite::{Connection, Row, Transaction, params};
use zeroize::Zeroizing;

use super::System;
use crate::access::{Grants, Mark, Rights, Roles, Subject};
use crate::error::{Result, VaultError};
use crate::limits::SUBJECT_COUNT_MAX;

/// All subjects, by access key id and by name.
#[derive(Default)]
pub(super) struct Subjects {
    by_access_key: HashMap<String, SubjectRow>,
    by_name: BTreeMap<String, Arc<Subject>>,
}

struct SubjectRow {
    subject: Arc<Subject>,
    secret_access_key: Zeroizing<String>,
    /// Whether it is not known if it still counts: then it does not.
    is_in_doubt: bool,
}

impl Subjects {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut grants = load_grants(connection)?;
        let mut marks = load_marks(connection)?;
        let mut subjects = Self::default();
        let mut statement = connection
            .prepare(
                "SELECT access_key_id, secret_access_key, name, clearance, roles, is_narrowed,
                 is_disabled, expires_ms, created_ms, is_trusted FROM subject",
            )
            .map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let secret = Zeroizing::new(row.get(1).map_err(StoreError::from)?);
            let mut subject = read_subject(row)?;
            if let Some(granted) = &mut subject.grants {
                *granted = grants.remove(&subject.access_key_id).unwrap_or_default();
            }
            subject.mark = Mark::at(marks.remove(&subject.name));
            subjects.insert(Arc::new(subject), secret);
        }
        Ok(subjects)
    }

    fn insert(&mut self, subject: Arc<Subject>, secret_access_key: Zeroizing<String>) {
        self.by_name.insert(subject.name.clone(), subject.clone());
        let id = subject.access_key_id.clone();
        let row = SubjectRow {
            subject,
            secret_access_key,
            is_in_doubt: false,
        };
        self.by_access_key.insert(id, row);
    }
}

fn load_marks(connection: &Connection) -> Result<HashMap<String, Label>> {
    let mut marks = HashMap::new();
    let mut statement = connection
        .prepare("SELECT subject, label FROM mark")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let label: String = row.get(1).map_err(StoreError::from)?;
        let label = label.parse().map_err(|_| VaultError::Damaged)?;
        marks.insert(row.get(0).map_err(StoreError::from)?, label);
    }
    Ok(marks)
}

fn load_grants(connection: &Connection) -> Result<HashMap<String, Grants>> {
    let mut grants: HashMap<String, Grants> = HashMap::new();
    let mut statement = connection
        .prepare("SELECT access_key_id, bucket_id, rights FROM bucket_grant")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let access_key_id: String = row.get(0).map_err(StoreError::from)?;
        let bucket = BucketId(row.get(1).map_err(StoreError::from)?);
        let rights: String = row.get(2).map_err(StoreError::from)?;
        let rights: Rights = rights.parse().map_err(|_| VaultError::Damaged)?;
        grants
            .entry(access_key_id)
            .or_default()
            .insert(bucket, rights);
    }
    Ok(grants)
}

fn read_subject(row: &Row<'_>) -> Result<Subject> {
    let clearance: String = row.get(3).map_err(StoreError::from)?;
    let clearance: Clearance = clearance.parse().map_err(|_| VaultError::Damaged)?;
    let roles: String = row.get(4).map_err(StoreError::from)?;
    let roles: Roles = roles.parse().map_err(|_| VaultError::Damaged)?;
    let is_narrowed: bool = row.get(5).map_err(StoreError::from)?;
    Ok(Subject {
        access_key_id: row.get(0).map_err(StoreError::from)?,
        name: row.get(2).map_err(StoreError::from)?,
        clearance,
        roles,
        grants: is_narrowed.then(Grants::new),
        is_disabled: row.get(6).map_err(StoreError::from)?,
        expires_ms: row.get(7).map_err(StoreError::from)?,
        created_ms: row.get(8).map_err(StoreError::from)?,
        is_trusted: row.get(9).map_err(StoreError::from)?,
        mark: Arc::default(),
        cutoff: Arc::default(),
    })
}

impl System {
    /// Whether any access key was ever made.
    pub(crate) fn has_subjects(&self) -> bool {
        !self.subjects.read().by_access_key.is_empty()
    }

    /// The holder of an access key that counts at this time.
    pub(crate) fn subject(
        &self,
        access_key_id: &str,
        now_ms: impl FnOnce() -> i64,
    ) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read();
        let row = subjects.by_access_key.get(access_key_id)?;
        row.subject.counts_at(now_ms).then(|| row.subject.clone())
    }

    /// The secret of an access key that counts at this time.
    pub(crate) fn secret_access_key(
        &self,
        access_key_id: &str,
        now_ms: impl FnOnce() -> i64,
    ) -> Option<Zeroizing<String>> {
        let subjects = self.subjects.read();
        let row = subjects.by_access_key.get(access_key_id)?;
        let counts = row.subject.counts_at(now_ms);
        counts.then(|| row.secret_access_key.clone())
    }

    /// Whether an access key does not count because what was last changed of it is in doubt.
    pub(crate) fn is_key_in_doubt(&self, access_key_id: &str) -> bool {
        let subjects = self.subjects.read();
        let row = subjects.by_access_key.get(access_key_id);
        row.is_some_and(|row| row.is_in_doubt)
    }

    /// The holder of this access key, whatever its state.
    pub(crate) fn subject_of_key(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read();
        let row = subjects.by_access_key.get(access_key_id)?;
        Some(row.subject.clone())
    }

    /// The subject of this name, whatever its state.
    pub(crate) fn subject_named(&self, name: &str) -> Option<Arc<Subject>> {
        self.subjects.read().by_name.get(name).cloned()
    }

    /// All subjects by name.
    pub(crate) fn all_subjects(&self) -> Vec<Arc<Subject>> {
        self.subjects.read().by_name.values().cloned().collect()
    }

    /// When the next access key that has a time of expiry reaches it.
    pub(crate) fn next_expiry_ms(&self) -> Option<i64> {
        let subjects = self.subjects.read();
        let counting = subjects.by_name.values();
        let counting = counting.filter(|subject| !subject.cutoff.is_cut());
        counting.filter_map(|subject| subject.expires_ms).min()
    }

    /// Adds a subject.
    pub(crate) fn add_subject(&self, subject: Subject, secret: Zeroizing<String>) -> Result<()> {
        let mut held = self.held();
        {
            let subjects = self.subjects.read();
            if subjects.by_name.contains_key(&subject.name) {
                return Err(VaultError::SubjectExists);
            }
            if subjects.by_name.len() >= SUBJECT_COUNT_MAX {
                let limit = SUBJECT_COUNT_MAX;
                return Err(VaultError::TooManySubjects { limit });
            }
        }
        let new = Arc::new(subject);
        let (added, kept_secret) = (new.clone(), secret.clone());
        let settle = move |system: &Self, is_added: bool| {
            if is_added {
                system.subjects_mut().insert(added, kept_secret);
            }
        };
        held.change_then(
            |transaction| write_subject(transaction, &new, &secret),
            Box::new(settle),
        )
    }

    /// Puts what `change` makes of a subject in its place; access key and name stay. Gives out the
    /// subject before and after.
    ///
    /// While it is in doubt whether that happened, the access key does not count.
    pub(crate) fn change_subject(
        &self,
        name: &str,
        change: impl FnOnce(&Subject) -> Result<Subject>,
    ) -> Result<(Arc<Subject>, Arc<Subject>)> {
        let mut held = self.held();
        // While something else is in doubt, this certainly does not happen.
        held.read(|_| Ok(()))?;
        let (before, secret) = self.row_of(name)?;
        let after = Arc::new(change(&before)?);
        let settle = {
            let (before, after, secret) = (before.clone(), after.clone(), secret.clone());
            move |system: &Self, is_changed: bool| {
                let current = if is_changed {
                    after
                } else {
                    as_before(&before)
                };
                system.subjects_mut().insert(current, secret);
            }
        };
        let replace = |transaction: &Transaction<'_>| {
            delete_subject(transaction, &before)?;
            write_subject(transaction, &after, &secret)
        };
        let done = held.change_then(replace, Box::new(settle));
        self.suspend_if_in_doubt(&done, &before, &secret);
        done.map(|()| (before, after))
    }

    /// Raises a subject's mark by a label; durable when this returns. Gives out what it is then.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] when the subject has another mark by now, or is gone.
    pub(crate) fn raise_mark(&self, name: &str, mark: &Arc<Mark>, label: &Label) -> Result<Label> {
        let mut held = self.held();
        let subject = self.subject_named(name).ok_or(VaultError::AccessDenied)?;
        if !Arc::ptr_eq(&subject.mark, mark) {
            return Err(VaultError::AccessDenied);
        }
        let joined = mark.joined(label);
        if mark.covers(label) {
            return Ok(joined);
        }
        let raised = {
            let mark = mark.clone();
            move |_: &Self, is_raised: bool| {
                if is_raised {
                    mark.raise(joined);
                }
            }
        };
        let raise = |transaction: &Transaction<'_>| write_mark(transaction, name, &joined);
        held.change_then(raise, Box::new(raised)).map(|()| joined)
    }

    /// Removes a subject and gives it out. Its access key does not count while that is in doubt.
    pub(crate) fn remove_subject(&self, name: &str) -> Result<Arc<Subject>> {
        let mut held = self.held();
        // As for a change.
        held.read(|_| Ok(()))?;
        let (subject, secret) = self.row_of(name)?;
        let settle = {
            let (subject, secret) = (subject.clone(), secret.clone());
            move |system: &Self, is_removed: bool| {
                let mut subjects = system.subjects_mut();
                if is_removed {
                    subjects.by_access_key.remove(&subject.access_key_id);
                    subjects.by_name.remove(&subject.name);
                } else {
                    subjects.insert(as_before(&subject), secret);
                }
            }
        };
        let remove = |transaction: &Transaction<'_>| delete_subject(transaction, &subject);
        let done = held.change_then(remove, Box::new(settle));
        self.suspend_if_in_doubt(&done, &subject, &secret);
        done.map(|()| subject)
    }

    fn row_of(&self, name: &str) -> Result<(Arc<Subject>, Zeroizing<String>)> {
        let subject = self.subject_named(name).ok_or(VaultError::NoSuchSubject)?;
        let subjects = self.subjects.read();
        let row = subjects.by_access_key.get(&subject.access_key_id);
        let row = row.ok_or(VaultError::NoSuchSubject)?;
        Ok((subject, row.secret_access_key.clone()))
    }

    /// What may have been taken from a subject is not left to it. To be called while the database
    /// is held.
    fn suspend_if_in_doubt<T>(&self, done: &Result<T>, subject: &Subject, secret: &str) {
        if !matches!(done, Err(VaultError::SystemInDoubt)) {
            return;
        }
        let suspended = Subject {
            is_disabled: true,
            cutoff: Arc::default(),
            ..subject.clone()
        };
        let secret = Zeroizing::new(secret.to_owned());
        let mut subjects = self.subjects_mut();
        subjects.insert(Arc::new(suspended), secret);
        if let Some(row) = subjects.by_access_key.get_mut(&subject.access_key_id) {
            row.is_in_doubt = true;
        }
        drop(subjects);
        subject.cutoff.cut();
    }

    pub(super) fn subjects_mut(&self) -> RwLockWriteGuard<'_, Subjects> {
        // Nothing that runs under this lock panics half-way through a change.
        self.subjects.write()
    }
}

/// A subject that stays as it was. Who was cut off meanwhile may come again.
fn as_before(subject: &Arc<Subject>) -> Arc<Subject> {
    if subject.cutoff.is_cut() && subject.counts_at(now_ms) {
        Arc::new(Subject {
            cutoff: Arc::default(),
            ..Subject::clone(subject)
        })
    } else {
        subject.clone()
    }
}

fn write_subject(transaction: &Transaction<'_>, subject: &Subject, secret: &str) -> Result<()> {
    let row = transaction.execute(
        "INSERT INTO subject(access_key_id, secret_access_key, name, clearance, roles,
         is_narrowed, is_disabled, expires_ms, created_ms, is_trusted)
         VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            subject.access_key_id,
            secret,
            subject.name,
            subject.clearance.to_string(),
            subject.roles.to_string(),
            subject.grants.is_some(),
            subject.is_disabled,
            subject.expires_ms,
            subject.created_ms,
            subject.is_trusted,
        ],
    );
    row.map_err(StoreError::from)?;
    if let Some(label) = subject.mark.label() {
        write_mark(transaction, &subject.name, &label)?;
    }
    for (bucket, rights) in subject.grants.iter().flatten() {
        let sql = "INSERT INTO bucket_grant(access_key_id, bucket_id, rights) VALUES(?, ?, ?)";
        let row = params![subject.access_key_id, bucket.0, rights.to_string()];
        transaction.execute(sql, row).map_err(StoreError::from)?;
    }
    Ok(())
}

fn write_mark(transaction: &Transaction<'_>, subject: &str, label: &Label) -> Result<()> {
    let sql = "INSERT INTO mark(subject, label) VALUES(?1, ?2)
               ON CONFLICT(subject) DO UPDATE SET label = ?2";
    let written = transaction.execute(sql, params![subject, label.to_string()]);
    written.map_err(StoreError::from)?;
    Ok(())
}

fn delete_subject(transaction: &Transaction<'_>, subject: &Subject) -> Result<()> {
    for table in ["bucket_grant", "subject"] {
        let sql = format!("DELETE FROM {table} WHERE access_key_id = ?");
        let done = transaction.execute(&sql, params![subject.access_key_id]);
        done.map_err(StoreError::from)?;
    }
    let unmarked = transaction.execute("DELETE FROM mark WHERE subject = ?", [&subject.name]);
    unmarked.map_err(StoreError::from)?;
    Ok(())
}
