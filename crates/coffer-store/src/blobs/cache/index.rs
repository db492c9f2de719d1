//! What a cache of blobs knows of its files: which are in use, which no store has yet, and of the
//! others which was not used for longest.
//!
//! It may be wrong about a file: one that it knows may have been removed, and one that it does not
//! know may be there. Who opens a file finds out, and says so here.

use std::collections::HashMap;

use coffer_seal::{BlobId, BucketId};
use hashlink::LinkedHashMap;

/// Which blob of which bucket.
pub(super) type Key = (BucketId, BlobId);

/// `F` is what brings a blob that is on its way.
#[derive(Debug)]
pub(super) struct Index<F> {
    /// In use, on their way, or only here: none of them is evicted.
    held: HashMap<Key, Held<F>>,
    /// The others, with their lengths, in the order in which they were used.
    idle: LinkedHashMap<Key, u64>,
    bytes: u64,
    /// How often a blob began to be held.
    held_count: u64,
}

#[derive(Debug)]
struct Held<F> {
    /// Which time it is that a blob is held: users of an earlier one know nothing of this file.
    which: u64,
    /// As far as it counts.
    bytes: u64,
    users: usize,
    /// Whether no store has it yet.
    is_only_here: bool,
    coming: Option<F>,
}

/// What is known of a blob that one wants to use; it is held for them then.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Known<F> {
    /// Its file is there.
    There {
        /// Whether no store has it.
        is_only_here: bool,
    },
    /// It is on its way.
    Coming(F),
    /// Nothing; nothing is held.
    Nothing,
}

impl<F> Default for Index<F> {
    fn default() -> Self {
        Self {
            held: HashMap::new(),
            idle: LinkedHashMap::new(),
            bytes: 0,
            held_count: 0,
        }
    }
}

impl<F: Clone + PartialEq> Index<F> {
    /// How long all files are together, with those that are on their way and not only waited for.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// How long all are together that may be evicted.
    pub(super) fn idle_bytes(&self) -> u64 {
        self.idle.values().sum()
    }

    /// Holds a blob for one more user, if it is known.
    pub(super) fn hold(&mut self, key: Key) -> Known<F> {
        if let Some(bytes) = self.idle.remove(&key) {
            self.bytes -= bytes;
            self.insert(key, Held::of(bytes, 1));
        } else {
            match self.held.get_mut(&key) {
                Some(held) => held.users += 1,
                None => return Known::Nothing,
            }
        }
        match self.held.get(&key) {
            Some(Held {
                coming: Some(coming),
                ..
            }) => Known::Coming(coming.clone()),
            Some(held) => Known::There {
                is_only_here: held.is_only_here,
            },
            None => Known::Nothing,
        }
    }

    /// Which time it is that a blob is held, for who has just begun to use it.
    pub(super) fn which(&self, key: Key) -> u64 {
        self.held.get(&key).map_or(0, |held| held.which)
    }

    /// Takes a file that was found there, held for one user.
    pub(super) fn adopt(&mut self, key: Key, bytes: u64) {
        if matches!(self.hold(key), Known::Nothing) {
            self.insert(key, Held::of(bytes, 1));
        }
    }

    /// Takes files that a look at the folder found, those that were used last first: of those that
    /// are not known yet, they were used before all that are.
    pub(super) fn found(&mut self, files: impl Iterator<Item = (Key, u64)>) {
        for (key, bytes) in files {
            if !self.held.contains_key(&key) && !self.idle.contains_key(&key) {
                self.idle.insert(key, bytes);
                self.idle.to_front(&key);
                self.bytes += bytes;
            }
        }
    }

    /// Begins to bring a blob, held for what brings it and for one user. It counts when it has its
    /// turn: one that only waits for it is to push nothing out.
    pub(super) fn begin(&mut self, key: Key, coming: F) {
        let held = Held {
            coming: Some(coming),
            ..Held::of(0, 2)
        };
        self.insert(key, held);
    }

    /// It has its turn: so many bytes are to come.
    pub(super) fn comes(&mut self, key: Key, by: &F, bytes: u64) {
        if self.is_brought(key, by)
            && let Some(held) = self.held.get_mut(&key)
        {
            self.bytes += bytes - held.bytes.min(bytes);
            held.bytes = held.bytes.max(bytes);
        }
    }

    /// It has come as a whole: what brought it holds it no more. False, if it is not wanted any
    /// more: it was found to be bad, or was deleted.
    pub(super) fn came(&mut self, key: Key, by: &F) -> bool {
        let is_wanted = self.is_brought(key, by);
        if is_wanted {
            self.held.entry(key).and_modify(|held| held.coming = None);
            self.let_go(key, self.which(key));
        }
        is_wanted
    }

    /// It does not come.
    pub(super) fn failed(&mut self, key: Key, by: &F) {
        if self.is_brought(key, by) {
            self.forget(key);
        }
    }

    /// Forgets it, if none uses it but what brings it; whether that is so.
    pub(super) fn give_up(&mut self, key: Key, by: &F) -> bool {
        let users = self.held.get(&key).map_or(0, |held| held.users);
        if self.is_brought(key, by) && users > 1 {
            return false;
        }
        self.failed(key, by);
        true
    }

    /// Whether this still brings it: another may by now, for what did was found to be wrong; or
    /// none, for it was deleted.
    pub(super) fn is_brought(&self, key: Key, by: &F) -> bool {
        let coming = self.held.get(&key).and_then(|held| held.coming.as_ref());
        coming == Some(by)
    }

    /// Begins a blob that is made here: until a store has it, it is only here.
    pub(super) fn begin_own(&mut self, key: Key) {
        let held = Held {
            is_only_here: true,
            ..Held::of(0, 0)
        };
        self.insert(key, held);
    }

    /// A blob that is made here is whole, with so many bytes.
    pub(super) fn made(&mut self, key: Key, bytes: u64) {
        if let Some(held) = self.held.get_mut(&key) {
            self.bytes += bytes - held.bytes.min(bytes);
            held.bytes = held.bytes.max(bytes);
        }
    }

    /// A blob that was begun here was not made.
    pub(super) fn not_made(&mut self, key: Key) {
        if self.held.get(&key).is_some_and(|held| held.bytes == 0) {
            self.held.remove(&key);
        }
    }

    /// A store has it.
    pub(super) fn stored(&mut self, key: Key) {
        if let Some(held) = self.held.get_mut(&key) {
            held.is_only_here = false;
            self.rest(key);
        }
    }

    /// What no store has is of no log, and may go as well.
    pub(super) fn none_is_only_here(&mut self) {
        let only = self.held.iter().filter(|(_, held)| held.is_only_here);
        let only: Vec<_> = only.map(|(key, _)| *key).collect();
        for key in only {
            self.stored(key);
        }
    }

    /// One who used it at this time does so no more.
    pub(super) fn let_go(&mut self, key: Key, which: u64) {
        if let Some(held) = self.held.get_mut(&key).filter(|held| held.which == which) {
            held.users = held.users.saturating_sub(1);
            self.rest(key);
        }
    }

    /// The file that was used at this time is not there, or is to go. Whether that is news: another
    /// may have said so, and the next be there, or on its way.
    pub(super) fn forget_used(&mut self, key: Key, which: u64) -> bool {
        let is_it = self.held.get(&key).is_some_and(|held| held.which == which);
        if is_it {
            self.forget(key);
        }
        is_it
    }

    /// Its file is not there, or is to go.
    pub(super) fn forget(&mut self, key: Key) {
        let idle = self.idle.remove(&key);
        let held = self.held.remove(&key).map(|held| held.bytes);
        self.bytes -= idle.or(held).unwrap_or(0);
    }

    /// So are all of a bucket.
    pub(super) fn forget_bucket(&mut self, bucket: BucketId) {
        let keys = self.held.keys().chain(self.idle.keys());
        let keys: Vec<_> = keys.filter(|(of, _)| *of == bucket).copied().collect();
        for key in keys {
            self.forget(key);
        }
    }

    /// Forgets the one that was not used for longest, and says which it is, and how long.
    pub(super) fn pop(&mut self) -> Option<(Key, u64)> {
        let (key, bytes) = self.idle.pop_front()?;
        self.bytes -= bytes;
        Some((key, bytes))
    }

    fn insert(&mut self, key: Key, held: Held<F>) {
        self.forget(key);
        self.held_count += 1;
        self.bytes += held.bytes;
        let which = self.held_count;
        self.held.insert(key, Held { which, ..held });
    }

    /// It may be evicted from now on, if nothing holds it.
    fn rest(&mut self, key: Key) {
        let is_held = |held: &Held<F>| held.users > 0 || held.is_only_here;
        if self.held.get(&key).is_some_and(|held| !is_held(held))
            && let Some(held) = self.held.remove(&key)
        {
            self.idle.insert(key, held.bytes);
        }
    }
}

impl<F> Held<F> {
    fn of(bytes: u64, users: usize) -> Self {
        Self {
            which: 0,
            bytes,
            users,
            is_only_here: false,
            coming: None,
        }
    }
}

#[cfg(test)]
mod tests;
