//! Subjects and their access keys: asked for, and changed, a subject at a time.

use std::sync::Arc;

use coffer_label::Label;
use coffer_seal::SubjectId;
use parking_lot::RwLockWriteGuard;
use rusqlite::Transaction;
use zeroize::Zeroizing;

use super::System;
use crate::access::{Mark, NewAccessKey, Subject};
use crate::error::{Result, VaultError};
use crate::limits::SUBJECT_COUNT_MAX;

mod entries;

mod rows;

pub(crate) use self::entries::SubjectEntry;
pub(super) use self::entries::Subjects;

impl System {
    /// Whether any subject was ever made.
    pub(crate) fn has_subjects(&self) -> bool {
        !self.subjects.read().by_id.is_empty()
    }

    /// The holder of an access key that counts at this time.
    pub(crate) fn subject(
        &self,
        access_key_id: &str,
        now_ms: impl Fn() -> i64,
    ) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read();
        let key = subjects.by_access_key.get(access_key_id)?;
        key.holder.counts_at(now_ms).then(|| key.holder.clone())
    }

    /// The secret of an access key that counts at this time.
    pub(crate) fn secret_access_key(
        &self,
        access_key_id: &str,
        now_ms: impl Fn() -> i64,
    ) -> Option<Zeroizing<String>> {
        let subjects = self.subjects.read();
        let key = subjects.by_access_key.get(access_key_id)?;
        key.holder.counts_at(now_ms).then(|| key.secret().clone())
    }

    /// Whether an access key does not count because what was last changed of it is in doubt.
    pub(crate) fn is_key_in_doubt(&self, access_key_id: &str) -> bool {
        let subjects = self.subjects.read();
        let key = subjects.by_access_key.get(access_key_id);
        key.is_some_and(|key| key.is_in_doubt)
    }

    /// The holder of this access key, whatever its state.
    pub(crate) fn subject_of_key(&self, access_key_id: &str) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read();
        let key = subjects.by_access_key.get(access_key_id)?;
        Some(key.holder.clone())
    }

    /// The subject of this id, whatever its state.
    pub(crate) fn subject_of_id(&self, id: SubjectId) -> Option<Arc<Subject>> {
        let subjects = self.subjects.read();
        Some(subjects.by_id.get(&id)?.subject.clone())
    }

    /// The subject of this name, or of this id, or that has the access key of this id, whatever
    /// its state.
    pub(crate) fn find_subject(&self, text: &str) -> Option<SubjectEntry> {
        self.subjects.read().find(text).cloned()
    }

    /// Whether a subject has this name.
    pub(crate) fn is_subject_name(&self, name: &str) -> bool {
        self.subjects.read().by_name.contains_key(name)
    }

    /// All subjects by name.
    pub(crate) fn all_subjects(&self) -> Vec<SubjectEntry> {
        let subjects = self.subjects.read();
        let ids = subjects.by_name.values();
        ids.filter_map(|id| subjects.by_id.get(id))
            .cloned()
            .collect()
    }

    /// When the next subject or access key that has a time of expiry reaches it.
    pub(crate) fn next_expiry_ms(&self) -> Option<i64> {
        let subjects = self.subjects.read();
        let entries = subjects.by_id.values();
        entries.filter_map(SubjectEntry::next_expiry_ms).min()
    }

    /// Adds a subject with its first access key.
    pub(crate) fn add_subject(&self, subject: Subject, key: NewAccessKey) -> Result<SubjectEntry> {
        let mut held = self.held();
        {
            let subjects = self.subjects.read();
            if subjects.by_name.contains_key(&*subject.name) {
                return Err(VaultError::SubjectExists);
            }
            if subjects.by_name.len() >= SUBJECT_COUNT_MAX {
                let limit = SUBJECT_COUNT_MAX;
                return Err(VaultError::TooManySubjects { limit });
            }
        }
        let new = SubjectEntry::new(subject, vec![key], None);
        let added = new.clone();
        let settle = move |system: &Self, is_added: bool| {
            if is_added {
                system.subjects_mut().insert(added);
            }
        };
        let write = |transaction: &Transaction<'_>| rows::write(transaction, &new);
        held.change_then(write, Box::new(settle))?;
        Ok(new)
    }

    /// Puts what `change` makes of a subject in its place; id and access keys stay. Gives out the
    /// subject before and after.
    ///
    /// While it is in doubt whether that happened, its access keys do not count.
    pub(crate) fn change_subject(
        &self,
        id: SubjectId,
        change: impl FnOnce(&Subject) -> Result<Subject>,
    ) -> Result<(SubjectEntry, SubjectEntry)> {
        let ((), before, after) = self.change_entry(id, |before| {
            let after = change(&before.subject)?;
            Ok(((), SubjectEntry::new(after, before.keys(), Some(before))))
        })?;
        Ok((before, after))
    }

    /// The same of its access keys; gives out what `change` does, too.
    pub(crate) fn change_keys<T>(
        &self,
        id: SubjectId,
        change: impl FnOnce(&mut Vec<NewAccessKey>) -> Result<T>,
    ) -> Result<(T, SubjectEntry, SubjectEntry)> {
        self.change_entry(id, |before| {
            let mut keys = before.keys();
            let told = change(&mut keys)?;
            let subject = Subject::clone(&before.subject);
            Ok((told, SubjectEntry::new(subject, keys, Some(before))))
        })
    }

    fn change_entry<T>(
        &self,
        id: SubjectId,
        change: impl FnOnce(&SubjectEntry) -> Result<(T, SubjectEntry)>,
    ) -> Result<(T, SubjectEntry, SubjectEntry)> {
        let mut held = self.held();
        // While something else is in doubt, this certainly does not happen.
        held.read(|_| Ok(()))?;
        let before = self.entry(id)?;
        let (told, after) = change(&before)?;
        if after.subject.name != before.subject.name && self.is_subject_name(&after.subject.name) {
            return Err(VaultError::SubjectExists);
        }
        let settle = {
            let (before, after) = (before.clone(), after.clone());
            move |system: &Self, is_changed: bool| {
                let current = if is_changed { after } else { before };
                system.subjects_mut().insert(current.revived());
            }
        };
        let replace = |transaction: &Transaction<'_>| {
            rows::delete(transaction, id)?;
            rows::write(transaction, &after)
        };
        let done = held.change_then(replace, Box::new(settle));
        self.suspend_if_in_doubt(&done, &before);
        done?;
        // As it counts now.
        let after = self.entry(id)?;
        Ok((told, before, after))
    }

    /// Raises a subject's mark by a label; durable when this returns. Gives out what it is then.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`] when the subject has another mark by now, or is gone.
    pub(crate) fn raise_mark(
        &self,
        id: SubjectId,
        mark: &Arc<Mark>,
        label: &Label,
    ) -> Result<Label> {
        let mut held = self.held();
        let subject = self.subject_of_id(id).ok_or(VaultError::AccessDenied)?;
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
        let raise = |transaction: &Transaction<'_>| rows::write_mark(transaction, id, &joined);
        held.change_then(raise, Box::new(raised)).map(|()| joined)
    }

    /// Removes a subject with its access keys and its quota, unless `check` refuses, and gives it
    /// out. The keys do not count while that is in doubt; `removed` is called once it is certain
    /// that it is gone.
    pub(crate) fn remove_subject(
        &self,
        id: SubjectId,
        check: impl FnOnce() -> Result<()>,
        removed: impl FnOnce() + Send + 'static,
    ) -> Result<SubjectEntry> {
        let mut held = self.held();
        // As for a change.
        held.read(|_| Ok(()))?;
        let gone = self.entry(id)?;
        check()?;
        let settle = {
            let gone = gone.clone();
            move |system: &Self, is_removed: bool| {
                let mut subjects = system.subjects_mut();
                if is_removed {
                    subjects.remove(id);
                    removed();
                } else {
                    subjects.insert(gone.revived());
                }
            }
        };
        let remove = |transaction: &Transaction<'_>| {
            rows::delete(transaction, id)?;
            rows::delete_quota(transaction, id)
        };
        let done = held.change_then(remove, Box::new(settle));
        self.suspend_if_in_doubt(&done, &gone);
        done.map(|()| gone)
    }

    /// All subjects as they are once they and all their access keys are disabled.
    pub(super) fn all_disabled(&self) -> Vec<SubjectEntry> {
        let disabled = |before: SubjectEntry| {
            let mut keys = before.keys();
            keys.iter_mut().for_each(|key| key.key.is_disabled = true);
            let subject = Subject {
                is_disabled: true,
                ..Subject::clone(&before.subject)
            };
            SubjectEntry::new(subject, keys, Some(&before))
        };
        self.all_subjects().into_iter().map(disabled).collect()
    }

    /// Writes subjects with their access keys in place of what there is of them.
    pub(super) fn write_subjects(
        transaction: &Transaction<'_>,
        entries: &[SubjectEntry],
    ) -> Result<()> {
        entries.iter().try_for_each(|entry| {
            rows::delete(transaction, entry.subject.id)?;
            rows::write(transaction, entry)
        })
    }

    /// Has these subjects be as they were written.
    pub(super) fn show_subjects(&self, entries: Vec<SubjectEntry>) {
        let mut subjects = self.subjects_mut();
        entries.into_iter().for_each(|entry| subjects.insert(entry));
    }

    fn entry(&self, id: SubjectId) -> Result<SubjectEntry> {
        let subjects = self.subjects.read();
        let entry = subjects.by_id.get(&id).cloned();
        entry.ok_or(VaultError::NoSuchSubject)
    }

    /// What may have been taken from a subject is not left to it. To be called while the database
    /// is held.
    fn suspend_if_in_doubt<T>(&self, done: &Result<T>, entry: &SubjectEntry) {
        if matches!(done, Err(VaultError::SystemInDoubt)) {
            self.subjects_mut().insert(entry.suspended());
            entry.cut_but(None, None);
        }
    }

    pub(super) fn subjects_mut(&self) -> RwLockWriteGuard<'_, Subjects> {
        // Nothing that runs under this lock panics half-way through a change.
        self.subjects.write()
    }
}
