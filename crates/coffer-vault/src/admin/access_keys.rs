//! Access keys of subjects: made, changed, rotated, deleted. System administrators' acts.

use std::time::Duration;

use coffer_durable::now_ms;

use super::subjects::administrators::After;
use super::subjects::{SubjectInfo, about_subject, check_key_expiry, key_facts};
use crate::access::{Act, Actor, NewAccessKey, Role};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::cutoff::ConnectionCutoff;
use crate::error::{AdministrationError, Result, VaultError};
use crate::limits::{ACCESS_KEY_COUNT_MAX, EXPIRY_MAX_MS};
use crate::vault::Vault;

/// What to change of an access key.
#[derive(Clone, Debug, Default)]
pub struct AccessKeyChange {
    /// Whether it is disabled.
    pub is_disabled: Option<bool>,
    /// When it expires, in milliseconds since 1970; the inner `None`: never.
    pub expires_ms: Option<Option<i64>>,
}

impl Vault {
    /// Makes one more access key for a subject; its secret is given out this once. Where the
    /// subject has as many as it may, the new one takes the place of the one that expired first.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], [`VaultError::NoSuchSubject`], [`VaultError::Invalid`],
    /// [`AdministrationError::TooManyAccessKeys`].
    pub async fn create_access_key(
        &self,
        actor: &Actor,
        subject: &str,
        expires_ms: Option<i64>,
    ) -> Result<(SubjectInfo, NewAccessKey)> {
        let create = move |keys: &mut Vec<NewAccessKey>| add(keys, expires_ms);
        let act = Act::CreateAccessKey;
        // One more leaves no fewer.
        self.change_keys(actor, act, (subject, None), true, create)
            .await
    }

    /// Makes a new access key for a subject, and has those end after the overlap that count now
    /// and would not end before; at once, with requests under way, where there is none.
    ///
    /// # Errors
    /// As [`create_access_key`](Self::create_access_key), and
    /// [`AdministrationError::LastAdministrator`] unless that is meant.
    pub async fn rotate_access_keys(
        &self,
        actor: &Actor,
        subject: &str,
        (overlap, expires_ms): (Duration, Option<i64>),
        without_administrator: bool,
    ) -> Result<(SubjectInfo, NewAccessKey)> {
        let rotate = move |keys: &mut Vec<NewAccessKey>| {
            let now = now_ms();
            let overlap_ms = i64::try_from(overlap.as_millis()).ok();
            let what = "the overlap is too long";
            let end = overlap_ms.and_then(|overlap_ms| now.checked_add(overlap_ms));
            let end = end.filter(|end| *end <= EXPIRY_MAX_MS);
            let end = end.ok_or(VaultError::Invalid { what })?;
            let mut ending = Vec::new();
            for NewAccessKey { key, .. } in keys.iter_mut() {
                if key.counts_at(|| now) && key.expires_ms.is_none_or(|ms| ms > end) {
                    key.expires_ms = Some(end);
                    ending.push(key.id.clone());
                }
            }
            let (new, mut facts) = add(keys, expires_ms)?;
            facts.insert("ending", ending.join(" "));
            facts.insert("ending_ms", end.to_string());
            Ok((new, facts))
        };
        let act = Act::RotateAccessKeys;
        let place = (subject, None);
        self.change_keys(actor, act, place, without_administrator, rotate)
            .await
    }

    /// Changes an access key. Requests under way with it are cut off once it does not count.
    ///
    /// # Errors
    /// As [`rotate_access_keys`](Self::rotate_access_keys), and
    /// [`AdministrationError::NoSuchAccessKey`].
    pub async fn change_access_key(
        &self,
        actor: &Actor,
        (subject, id): (&str, &str),
        change: AccessKeyChange,
        without_administrator: bool,
    ) -> Result<SubjectInfo> {
        let act = match change.is_disabled {
            Some(true) => Act::DisableAccessKey,
            Some(false) => Act::EnableAccessKey,
            None => Act::ChangeAccessKey,
        };
        let wanted = id.to_owned();
        let change = move |keys: &mut Vec<NewAccessKey>| {
            let place = place(keys, &wanted)?;
            let NewAccessKey { key, .. } = &mut keys[place];
            if let Some(expires_ms) = change.expires_ms {
                check_key_expiry(expires_ms)?;
                key.expires_ms = expires_ms;
            }
            key.is_disabled = change.is_disabled.unwrap_or(key.is_disabled);
            Ok(((), key_facts(key)))
        };
        let place = (subject, Some(id));
        let changed = self.change_keys(actor, act, place, without_administrator, change);
        changed.await.map(|(info, ())| info)
    }

    /// Deletes an access key for good, and cuts off requests under way with it.
    ///
    /// # Errors
    /// As [`change_access_key`](Self::change_access_key).
    pub async fn delete_access_key(
        &self,
        actor: &Actor,
        (subject, id): (&str, &str),
        without_administrator: bool,
    ) -> Result<SubjectInfo> {
        let wanted = id.to_owned();
        let delete = move |keys: &mut Vec<NewAccessKey>| {
            let gone = keys.remove(place(keys, &wanted)?);
            Ok(((), key_facts(&gone.key)))
        };
        let act = Act::DeleteAccessKey;
        let place = (subject, Some(id));
        let deleted = self.change_keys(actor, act, place, without_administrator, delete);
        deleted.await.map(|(info, ())| info)
    }

    /// Changes the access keys of a subject in one transaction. `key`: the one that it is about.
    async fn change_keys<T: Send + 'static>(
        &self,
        actor: &Actor,
        act: Act,
        (subject, key): (&str, Option<&str>),
        without_administrator: bool,
        change: impl FnOnce(&mut Vec<NewAccessKey>) -> Result<(T, Facts)> + Send + 'static,
    ) -> Result<(SubjectInfo, T)> {
        let role = Role::SystemAdministrator;
        let mut about = Facts::from([("subject", subject.to_owned())]);
        about.extend(key.map(|key| ("access_key_id", key.to_owned())));
        self.refuse_without(actor, role, act, &about)?;
        let Some(found) = self.inner.system.find_subject(subject) else {
            return Err(self.failed(act, actor, &about, VaultError::NoSuchSubject));
        };
        about.extend(about_subject(&found.subject));
        if key.is_some_and(|key| !found.access_keys().any(|known| known.id == key)) {
            let error = AdministrationError::NoSuchAccessKey.into();
            return Err(self.failed(act, actor, &about, error));
        }
        let (this, id, told) = (self.clone(), found.subject.id, about.clone());
        let asked_by = ConnectionCutoff::current();
        let work = blocking(move || {
            let change = |keys: &mut Vec<NewAccessKey>| {
                let done = change(keys)?;
                if !without_administrator {
                    this.inner
                        .check_administrator_left(id, &After::Keys(keys))?;
                }
                Ok(done)
            };
            let ((given, facts), before, after) = this.inner.system.change_keys(id, change)?;
            before.cut_but(Some(&after), asked_by.as_ref());
            this.inner.followers.take_away();
            this.inner.expiries_changed.notify_one();
            let mut done = told;
            done.extend(facts);
            Ok(((this.inner.subject_info(&after), given), vec![done]))
        });
        self.act_telling(actor, role, act, vec![about], work).await
    }
}

/// Adds one at random.
fn add(keys: &mut Vec<NewAccessKey>, expires_ms: Option<i64>) -> Result<(NewAccessKey, Facts)> {
    check_key_expiry(expires_ms)?;
    let now = now_ms();
    let new = NewAccessKey::random(expires_ms, now);
    let mut facts = key_facts(&new.key);
    if keys.len() >= ACCESS_KEY_COUNT_MAX {
        let expired = (0..keys.len()).filter(|place| keys[*place].key.has_expired(now));
        let first = expired.min_by_key(|place| keys[*place].key.expires_ms);
        let limit = ACCESS_KEY_COUNT_MAX;
        let first = first.ok_or(AdministrationError::TooManyAccessKeys { limit })?;
        facts.insert("replaces", keys.remove(first).key.id);
    }
    keys.push(new.clone());
    Ok((new, facts))
}

fn place(keys: &[NewAccessKey], id: &str) -> Result<usize> {
    let is_meant = |NewAccessKey { key, .. }: &NewAccessKey| -> bool { key.id == id };
    let place = keys.iter().position(is_meant);
    Ok(place.ok_or(AdministrationError::NoSuchAccessKey)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: usize, expires_ms: Option<i64>) -> NewAccessKey {
        let mut new = NewAccessKey::random(expires_ms, 1);
        new.key.id = format!("key-{id}");
        new
    }

    #[test]
    fn a_new_key_takes_the_place_of_the_one_that_expired_first() {
        let mut keys: Vec<NewAccessKey> = (0..ACCESS_KEY_COUNT_MAX)
            .map(|id| key(id, (id % 2 == 1).then_some(100 - id as i64)))
            .collect();
        for replaced in ["key-7", "key-5", "key-3", "key-1"] {
            let (new, facts) = add(&mut keys, None).unwrap();
            assert_eq!(facts["replaces"], replaced);
            assert_eq!(keys.last().unwrap().key, new.key);
            assert_eq!(keys.len(), ACCESS_KEY_COUNT_MAX);
        }
        let refused = add(&mut keys, None).unwrap_err();
        assert!(matches!(
            refused,
            VaultError::Administration(AdministrationError::TooManyAccessKeys { .. })
        ));
    }

    #[test]
    fn only_keys_that_are_there_are_found() {
        let keys = [key(1, None), key(2, None)];
        assert_eq!(place(&keys, "key-2").unwrap(), 1);
        assert!(place(&keys, "key-3").is_err());
    }
}
