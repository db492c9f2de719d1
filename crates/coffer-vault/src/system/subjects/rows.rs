//! Subjects and their access keys as rows of the system database.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use coffer_label::{Clearance, Label};
use coffer_seal::{BucketId, SubjectId};
use coffer_store::StoreError;
use rusqlite::{Connection, Row, Transaction, params};
use zeroize::Zeroizing;

use super::entries::{SubjectEntry, Subjects};
use crate::access::{AccessKey, Grants, Mark, NewAccessKey, Rights, Roles, Subject};
use crate::error::{Result, VaultError};

impl Subjects {
    pub(in crate::system) fn load(connection: &Connection) -> Result<Self> {
        let mut grants = load_grants(connection)?;
        let mut marks: HashMap<SubjectId, Label> = of_subjects(connection, MARKS, read_mark)?;
        let mut keys = load_keys(connection)?;
        let mut subjects = Self::default();
        let sql = "SELECT id, name, clearance, roles, is_narrowed, is_disabled, expires_ms,
                   created_ms, is_trusted FROM subject";
        let found: Vec<(SubjectId, Subject)> = of_subjects(connection, sql, read_subject)?;
        for (id, mut subject) in found {
            if subject.grants.is_some() {
                subject.grants = Some(Arc::new(grants.remove(&id).unwrap_or_default()));
            }
            subject.mark = Mark::at(marks.remove(&id));
            let keys = keys.remove(&id).unwrap_or_default();
            subjects.insert(SubjectEntry::new(subject, keys, None));
        }
        Ok(subjects)
    }
}

/// What belongs to subjects, with their ids, which come first in each row.
fn of_subjects<T, C: FromIterator<(SubjectId, T)>>(
    connection: &Connection,
    sql: &str,
    read: impl Fn(&Row<'_>) -> Result<T>,
) -> Result<C> {
    let mut statement = connection.prepare(sql).map_err(StoreError::from)?;
    let mut rows = statement.query([]).map_err(StoreError::from)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next().map_err(StoreError::from)? {
        let id = SubjectId(row.get(0).map_err(StoreError::from)?);
        found.push((id, read(row)?));
    }
    Ok(found.into_iter().collect())
}

const MARKS: &str = "SELECT subject_id, label FROM mark";

fn read_mark(row: &Row<'_>) -> Result<Label> {
    let label: String = row.get(1).map_err(StoreError::from)?;
    label.parse().map_err(|_| VaultError::Damaged)
}

/// What there are several of, by subject.
fn grouped<K: Hash + Eq, T>(found: Vec<(K, T)>) -> HashMap<K, Vec<T>> {
    let mut groups: HashMap<K, Vec<T>> = HashMap::new();
    for (key, one) in found {
        groups.entry(key).or_default().push(one);
    }
    groups
}

fn load_grants(connection: &Connection) -> Result<HashMap<SubjectId, Grants>> {
    let sql = "SELECT subject_id, bucket_id, rights FROM bucket_grant";
    let found = of_subjects(connection, sql, |row| {
        let bucket = BucketId(row.get(1).map_err(StoreError::from)?);
        let rights: String = row.get(2).map_err(StoreError::from)?;
        let rights: Rights = rights.parse().map_err(|_| VaultError::Damaged)?;
        Ok((bucket, rights))
    })?;
    let of_each = grouped(found).into_iter();
    Ok(of_each
        .map(|(id, grants)| (id, grants.into_iter().collect()))
        .collect())
}

fn load_keys(connection: &Connection) -> Result<HashMap<SubjectId, Vec<NewAccessKey>>> {
    let sql = "SELECT subject_id, id, secret, is_disabled, expires_ms, created_ms
               FROM access_key ORDER BY created_ms, id";
    let found = of_subjects(connection, sql, |row| {
        let read = || -> rusqlite::Result<NewAccessKey> {
            Ok(NewAccessKey {
                secret: Zeroizing::new(row.get(2)?),
                key: AccessKey {
                    id: row.get(1)?,
                    is_disabled: row.get(3)?,
                    expires_ms: row.get(4)?,
                    created_ms: row.get(5)?,
                },
            })
        };
        Ok(read().map_err(StoreError::from)?)
    })?;
    Ok(grouped(found))
}

fn read_subject(row: &Row<'_>) -> Result<Subject> {
    let clearance: String = row.get(2).map_err(StoreError::from)?;
    let clearance: Clearance = clearance.parse().map_err(|_| VaultError::Damaged)?;
    let roles: String = row.get(3).map_err(StoreError::from)?;
    let roles: Roles = roles.parse().map_err(|_| VaultError::Damaged)?;
    let is_narrowed: bool = row.get(4).map_err(StoreError::from)?;
    Ok(Subject {
        id: SubjectId(row.get(0).map_err(StoreError::from)?),
        name: row.get(1).map_err(StoreError::from)?,
        access_key: None,
        clearance,
        roles,
        grants: is_narrowed.then(Arc::default),
        is_disabled: row.get(5).map_err(StoreError::from)?,
        expires_ms: row.get(6).map_err(StoreError::from)?,
        created_ms: row.get(7).map_err(StoreError::from)?,
        is_trusted: row.get(8).map_err(StoreError::from)?,
        mark: Arc::default(),
        cutoff: Arc::default(),
        asked: None,
    })
}

pub(super) fn write(transaction: &Transaction<'_>, entry: &SubjectEntry) -> Result<()> {
    let subject = &entry.subject;
    let row = transaction.execute(
        "INSERT INTO subject(id, name, clearance, roles, is_narrowed, is_disabled, expires_ms,
         created_ms, is_trusted) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)",
        params![
            subject.id.0,
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
        write_mark(transaction, subject.id, &label)?;
    }
    for (bucket, rights) in subject.grants.iter().flat_map(|grants| grants.iter()) {
        let sql = "INSERT INTO bucket_grant(subject_id, bucket_id, rights) VALUES(?, ?, ?)";
        let row = params![subject.id.0, bucket.0, rights.to_string()];
        transaction.execute(sql, row).map_err(StoreError::from)?;
    }
    for NewAccessKey { key, secret } in entry.keys() {
        let sql = "INSERT INTO access_key(id, subject_id, secret, is_disabled, expires_ms,
                   created_ms) VALUES(?, ?, ?, ?, ?, ?)";
        let row = params![
            key.id,
            subject.id.0,
            *secret,
            key.is_disabled,
            key.expires_ms,
            key.created_ms
        ];
        transaction.execute(sql, row).map_err(StoreError::from)?;
    }
    Ok(())
}

pub(super) fn write_mark(
    transaction: &Transaction<'_>,
    subject: SubjectId,
    label: &Label,
) -> Result<()> {
    let sql = "INSERT INTO mark(subject_id, label) VALUES(?1, ?2)
               ON CONFLICT(subject_id) DO UPDATE SET label = ?2";
    let written = transaction.execute(sql, params![subject.0, label.to_string()]);
    written.map_err(StoreError::from)?;
    Ok(())
}

pub(super) fn delete(transaction: &Transaction<'_>, id: SubjectId) -> Result<()> {
    for sql in [
        "DELETE FROM access_key WHERE subject_id = ?",
        "DELETE FROM bucket_grant WHERE subject_id = ?",
        "DELETE FROM mark WHERE subject_id = ?",
        "DELETE FROM subject WHERE id = ?",
    ] {
        transaction.execute(sql, [id.0]).map_err(StoreError::from)?;
    }
    Ok(())
}

/// Its quota, which `delete` leaves to a subject that is changed.
pub(super) fn delete_quota(transaction: &Transaction<'_>, id: SubjectId) -> Result<()> {
    let sql = "DELETE FROM quota WHERE kind = 'subject' AND id = ?";
    transaction.execute(sql, [id.0]).map_err(StoreError::from)?;
    Ok(())
}
