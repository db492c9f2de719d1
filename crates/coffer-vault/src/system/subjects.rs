//! Subjects in the system database, and in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLockReadGuard, RwLockWriteGuard};

use coffer_label::Clearance;
use coffer_store::StoreError;
use coffer_store::record::Id;
use rusqlite::{Connection, Row, Transaction, params};
use zeroize::Zeroizing;

use super::System;
use crate::error::{Result, VaultError};
use crate::limits::SUBJECT_COUNT_MAX;
use crate::rights::Rights;
use crate::roles::Roles;
use crate::subject::{Grants, Subject};

/// All subjects, by access key id and by name.
#[derive(Default)]
pub(super) struct Subjects {
    by_access_key: HashMap<String, SubjectRow>,
    by_name: BTreeMap<String, Arc<Subject>>,
}

struct SubjectRow {
    subject: Arc<Subject>,
    secret_access_key: Zeroizing<String>,
}

impl Subjects {
    pub(super) fn load(connection: &Connection) -> Result<Self> {
        let mut grants = load_grants(connection)?;
        let mut subjects = Self::default();
        let mut statement = connection
            .prepare(
                "SELECT access_key_id, secret_access_key, name, clearance, roles, is_narrowed,
                 is_disabled, expires_ms, created_ms FROM subject",
            )
            .map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            let secret = Zeroizing::new(row.get(1).map_err(StoreError::from)?);
            let mut subject = read_subject(row)?;
            if let Some(granted) = &mut subject.grants {
                *granted = grants.remove(&subject.access_key_id).unwrap_or_default();
            }
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
        };
        self.by_access_key.insert(id, row);
    }
}

fn load_grants(connection: &Connection) -> Result<HashMap<String, Grants>> {
    let mut grants: HashMap<String, Grants> = HashMap::new();
    let mut statement = connection
        .prepare("SELECT access_key_id, bucket_id, rights FROM bucket_grant")
        .map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let access_key_id: String = row.get(0).map_err(StoreError::from)?;
        let bucket = Id(row.get(1).map_err(StoreError::from)?);
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
        standing: Arc::default(),
    })
}

impl System {
    /// Whether any access key was ever made.
    pub(crate) fn has_subjects(&self) -> bool {
        !self.subjects().by_access_key.is_empty()
    }

    /// Whoever holds an access key that counts at this time.
    pub(crate) fn subject(
        &self,
        access_key_id: &str,
        now_ms: impl FnOnce() -> i64,
    ) -> Option<Arc<Subject>> {
        let subjects = self.subjects();
        let row = subjects.by_access_key.get(access_key_id)?;
        row.subject.counts_at(now_ms).then(|| row.subject.clone())
    }

    /// The secret of an access key that counts at this time.
    pub(crate) fn secret_access_key(
        &self,
        access_key_id: &str,
        now_ms: impl FnOnce() -> i64,
    ) -> Option<Zeroizing<String>> {
        let subjects = self.subjects();
        let row = subjects.by_access_key.get(access_key_id)?;
        let counts = row.subject.counts_at(now_ms);
        counts.then(|| row.secret_access_key.clone())
    }

    /// Whoever holds this access key, whatever its state.
    pub(crate) fn subject_of_key(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        let subjects = self.subjects();
        let row = subjects.by_access_key.get(access_key_id)?;
        Some(row.subject.clone())
    }

    /// The subject of this name, whatever its state.
    pub(crate) fn subject_named(&self, name: &str) -> Option<Arc<Subject>> {
        self.subjects().by_name.get(name).cloned()
    }

    /// All subjects by name.
    pub(crate) fn all_subjects(&self) -> Vec<Arc<Subject>> {
        self.subjects().by_name.values().cloned().collect()
    }

    /// When the next access key that has a time of expiry reaches it.
    pub(crate) fn next_expiry_ms(&self) -> Option<i64> {
        let subjects = self.subjects();
        let counting = subjects.by_name.values();
        let counting = counting.filter(|subject| !subject.standing.is_cut());
        counting.filter_map(|subject| subject.expires_ms).min()
    }

    /// Adds a subject.
    pub(crate) fn add_subject(&self, subject: Subject, secret: Zeroizing<String>) -> Result<()> {
        let mut connection = self.connection();
        {
            let subjects = self.subjects();
            if subjects.by_name.contains_key(&subject.name) {
                return Err(VaultError::SubjectExists);
            }
            if subjects.by_name.len() >= SUBJECT_COUNT_MAX {
                let limit = SUBJECT_COUNT_MAX;
                return Err(VaultError::TooManySubjects { limit });
            }
        }
        let add = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            write_subject(&transaction, &subject, &secret)?;
            transaction.commit()
        };
        add(&mut connection).map_err(StoreError::from)?;
        self.subjects_mut().insert(Arc::new(subject), secret);
        Ok(())
    }

    /// Puts what `change` makes of a subject in its place; access key and name stay. Gives out the
    /// subject before and after.
    pub(crate) fn change_subject(
        &self,
        name: &str,
        change: impl FnOnce(&Subject) -> Result<Subject>,
    ) -> Result<(Arc<Subject>, Arc<Subject>)> {
        let mut connection = self.connection();
        let before = self.subject_named(name).ok_or(VaultError::NoSuchSubject)?;
        let after = Arc::new(change(&before)?);
        let secret = {
            let subjects = self.subjects();
            let row = subjects.by_access_key.get(&before.access_key_id);
            let row = row.ok_or(VaultError::NoSuchSubject)?;
            row.secret_access_key.clone()
        };
        let replace = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            delete_subject(&transaction, &before)?;
            write_subject(&transaction, &after, &secret)?;
            transaction.commit()
        };
        replace(&mut connection).map_err(StoreError::from)?;
        self.subjects_mut().insert(after.clone(), secret);
        Ok((before, after))
    }

    /// Removes a subject and gives it out.
    pub(crate) fn remove_subject(&self, name: &str) -> Result<Arc<Subject>> {
        let mut connection = self.connection();
        let subject = self.subject_named(name).ok_or(VaultError::NoSuchSubject)?;
        let remove = |connection: &mut Connection| {
            let transaction = connection.transaction()?;
            delete_subject(&transaction, &subject)?;
            transaction.commit()
        };
        remove(&mut connection).map_err(StoreError::from)?;
        let mut subjects = self.subjects_mut();
        subjects.by_access_key.remove(&subject.access_key_id);
        subjects.by_name.remove(&subject.name);
        Ok(subject)
    }

    fn subjects(&self) -> RwLockReadGuard<'_, Subjects> {
        self.subjects.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn subjects_mut(&self) -> RwLockWriteGuard<'_, Subjects> {
        // Nothing that runs under this lock panics half-way through a change.
        self.subjects
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

fn write_subject(
    transaction: &Transaction<'_>,
    subject: &Subject,
    secret: &str,
) -> rusqlite::Result<()> {
    transaction.execute(
        "INSERT INTO subject(access_key_id, secret_access_key, name, clearance, roles,
         is_narrowed, is_disabled, expires_ms, created_ms) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
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
        ],
    )?;
    for (bucket, rights) in subject.grants.iter().flatten() {
        transaction.execute(
            "INSERT INTO bucket_grant(access_key_id, bucket_id, rights) VALUES(?, ?, ?)",
            params![subject.access_key_id, bucket.0, rights.to_string()],
        )?;
    }
    Ok(())
}

fn delete_subject(transaction: &Transaction<'_>, subject: &Subject) -> rusqlite::Result<()> {
    for table in ["bucket_grant", "subject"] {
        transaction.execute(
            &format!("DELETE FROM {table} WHERE access_key_id = ?"),
            params![subject.access_key_id],
        )?;
    }
    Ok(())
}
