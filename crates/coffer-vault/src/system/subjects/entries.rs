//! Subjects with their access keys, as they are held in memory.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_seal::SubjectId;
use zeroize::Zeroizing;

use crate::access::{AccessKey, NewAccessKey, Subject};
use crate::cutoff::{ConnectionCutoff, SubjectCutoff};

/// All subjects, by id, by name and by access key id.
#[derive(Default)]
pub(in crate::system) struct Subjects {
    pub(super) by_id: HashMap<SubjectId, SubjectEntry>,
    pub(super) by_name: BTreeMap<String, SubjectId>,
    pub(super) by_access_key: HashMap<String, Arc<KeyEntry>>,
}

/// A subject with its access keys, in the order in which they were made.
#[derive(Clone)]
pub(crate) struct SubjectEntry {
    /// The subject as such.
    pub(crate) subject: Arc<Subject>,
    keys: Vec<Arc<KeyEntry>>,
    /// Whether it is not known what was last changed of it: none of its access keys counts then.
    pub(crate) is_in_doubt: bool,
}

/// An access key.
pub(super) struct KeyEntry {
    /// Its subject, as it asks with it.
    pub(super) holder: Arc<Subject>,
    key: NewAccessKey,
    /// Whether it is not known if it still counts: then it does not.
    pub(super) is_in_doubt: bool,
}

impl Subjects {
    pub(super) fn insert(&mut self, entry: SubjectEntry) {
        let id = entry.subject.id;
        self.remove(id);
        self.by_name.insert(entry.subject.name.to_string(), id);
        for key in &entry.keys {
            self.by_access_key
                .insert(key.key.key.id.clone(), key.clone());
        }
        self.by_id.insert(id, entry);
    }

    pub(super) fn remove(&mut self, id: SubjectId) {
        let Some(gone) = self.by_id.remove(&id) else {
            return;
        };
        self.by_name.remove(&*gone.subject.name);
        for key in &gone.keys {
            self.by_access_key.remove(&key.key.key.id);
        }
    }

    /// The subject of this name, or of this id, or that has the access key of this id.
    pub(super) fn find(&self, text: &str) -> Option<&SubjectEntry> {
        let by_key = || Some(self.by_access_key.get(text)?.holder.id);
        let id = self.by_name.get(text).copied();
        let id = id.or_else(|| SubjectId::from_hex(text)).or_else(by_key)?;
        self.by_id.get(&id)
    }
}

impl KeyEntry {
    pub(super) fn secret(&self) -> &Zeroizing<String> {
        &self.key.secret
    }
}

impl SubjectEntry {
    /// A subject with these access keys. What is under way with those that were there `before`
    /// goes on, as far as subject and key count and have the same cutoff.
    pub(super) fn new(subject: Subject, keys: Vec<NewAccessKey>, before: Option<&Self>) -> Self {
        let same = before.filter(|before| Arc::ptr_eq(&before.subject.cutoff, &subject.cutoff));
        let keys = keys.into_iter().map(|key| {
            let kept = same.and_then(|same| same.key(&key.key.id));
            let kept = kept.map(|kept| kept.holder.cutoff.clone());
            let kept = kept.filter(|cutoff| !cutoff.is_cut() && key.key.counts_at(now_ms));
            let cutoff = kept.unwrap_or_else(|| SubjectCutoff::below(&subject.cutoff));
            Arc::new(KeyEntry {
                holder: Arc::new(subject.asking_with(key.key.clone(), cutoff)),
                key,
                is_in_doubt: false,
            })
        });
        Self {
            keys: keys.collect(),
            subject: Arc::new(subject),
            is_in_doubt: false,
        }
    }

    fn key(&self, id: &str) -> Option<&Arc<KeyEntry>> {
        self.keys.iter().find(|key| key.key.key.id == id)
    }

    /// Its access keys with their secrets.
    pub(crate) fn keys(&self) -> Vec<NewAccessKey> {
        self.keys.iter().map(|key| key.key.clone()).collect()
    }

    /// Its access keys, but for their secrets.
    pub(crate) fn access_keys(&self) -> impl Iterator<Item = &AccessKey> + Clone {
        self.keys.iter().map(|key| &key.key.key)
    }

    /// When the subject or one of its access keys expires next, of those that are not cut off.
    pub(super) fn next_expiry_ms(&self) -> Option<i64> {
        let keys = self.keys.iter().map(|key| &key.holder);
        let ends = keys
            .filter(|holder| !holder.cutoff.is_cut())
            .flat_map(|holder| {
                let of_key = holder.access_key.as_ref().and_then(|key| key.expires_ms);
                [of_key, holder.expires_ms]
            });
        ends.flatten().min()
    }

    /// Cuts off what is under way with access keys that have expired, themselves or with their
    /// subject; gives out their ids.
    pub(crate) fn cut_expired(&self, now_ms: i64) -> Vec<&str> {
        let holders = self.keys.iter().filter(|key| {
            let holder = &key.holder;
            let subject_expired = holder.expires_ms.is_some_and(|ms| ms <= now_ms);
            let has_expired = subject_expired || key.key.key.has_expired(now_ms);
            has_expired && !holder.cutoff.is_cut()
        });
        let cut = holders.map(|key| {
            key.holder.cutoff.cut();
            key.key.key.id.as_str()
        });
        cut.collect()
    }

    /// Cuts off what is under way with this and not with what came `after` it, but for a
    /// connection.
    pub(crate) fn cut_but(&self, after: Option<&Self>, spared: Option<&ConnectionCutoff>) {
        let same = |after: &&Self| Arc::ptr_eq(&self.subject.cutoff, &after.subject.cutoff);
        let Some(after) = after.filter(same) else {
            self.subject.cutoff.cut_but(spared);
            return;
        };
        for key in &self.keys {
            let cutoff = &key.holder.cutoff;
            let goes_on = |key: &Arc<KeyEntry>| Arc::ptr_eq(cutoff, &key.holder.cutoff);
            if !after.keys.iter().any(goes_on) {
                cutoff.cut_but(spared);
            }
        }
    }

    /// The same, able to ask again: it may have been cut off while it was in doubt.
    pub(super) fn revived(&self) -> Self {
        let mut subject = Subject::clone(&self.subject);
        if subject.cutoff.is_cut() && subject.counts_at(now_ms) {
            subject.cutoff = Arc::default();
        }
        Self::new(subject, self.keys(), Some(self))
    }

    /// The same while it is in doubt: none of its access keys counts.
    pub(super) fn suspended(&self) -> Self {
        let subject = Subject {
            is_disabled: true,
            cutoff: Arc::default(),
            ..Subject::clone(&self.subject)
        };
        let mut entry = Self::new(subject, self.keys(), None);
        entry.is_in_doubt = true;
        for key in &mut entry.keys {
            if let Some(key) = Arc::get_mut(key) {
                key.is_in_doubt = true;
            }
        }
        entry
    }
}
