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
}

#[derive(Debug)]
struct Held<F> {
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
        }
    }
}

impl<F: Clone + PartialEq> Index<F> {
    /// How long all files are together, with those that are on their way.
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
            self.held.insert(key, Held::of(bytes, 1));
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

    /// Begins to bring a blob of so many bytes, held for what brings it and for one user.
    pub(super) fn begin(&mut self, key: Key, bytes: u64, coming: F) {
        let held = Held {
            coming: Some(coming),
            ..Held::of(bytes, 2)
        };
        self.insert(key, held);
    }

    /// It has come as a whole: what brought it holds it no more. False, if it is not wanted any
    /// more: it was found to be bad, or was deleted.
    pub(super) fn came(&mut self, key: Key, by: &F) -> bool {
        let is_wanted = self.is_brought(key, by);
        if is_wanted {
            self.held.entry(key).and_modify(|held| held.coming = None);
            self.let_go(key);
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

    /// Another may bring it by now: what did before was found to be wrong.
    fn is_brought(&self, key: Key, by: &F) -> bool {
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

    /// One who used it does so no more.
    pub(super) fn let_go(&mut self, key: Key) {
        if let Some(held) = self.held.get_mut(&key) {
            held.users = held.users.saturating_sub(1);
            self.rest(key);
        }
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
        self.bytes += held.bytes;
        self.held.insert(key, held);
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
            bytes,
            users,
            is_only_here: false,
            coming: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn key(number: u8) -> Key {
        (BucketId([1; 16]), BlobId([number; 16]))
    }

    fn there(number: u8, index: &mut Index<u8>) -> bool {
        index.hold(key(number)) != Known::Nothing
    }

    fn evicted(index: &mut Index<u8>) -> Vec<u8> {
        std::iter::from_fn(|| index.pop())
            .map(|((_, id), _)| id.0[0])
            .collect()
    }

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut index = Index::default();
        // As a look finds them: 1 was used last.
        index.found([(key(1), 10), (key(2), 10), (key(3), 10)].into_iter());
        assert_eq!(index.bytes(), 30);
        assert!(there(3, &mut index));
        index.let_go(key(3));
        index.adopt(key(4), 10);
        index.let_go(key(4));
        // One that is known is not taken twice.
        index.found([(key(4), 10), (key(5), 10)].into_iter());
        assert_eq!(
            (evicted(&mut index), index.bytes()),
            (vec![5, 2, 1, 3, 4], 0)
        );
    }

    #[test]
    fn what_is_in_use_or_only_here_is_not_evicted() {
        let mut index = Index::default();
        index.found([(key(1), 10)].into_iter());
        assert!(there(1, &mut index) && there(1, &mut index));
        index.let_go(key(1));
        assert!(evicted(&mut index).is_empty());
        index.begin_own(key(2));
        index.made(key(2), 7);
        assert_eq!(index.bytes(), 17);
        assert!(there(2, &mut index));
        index.let_go(key(2));
        assert!(evicted(&mut index).is_empty());
        index.let_go(key(1));
        index.stored(key(2));
        assert_eq!((evicted(&mut index), index.bytes()), (vec![1, 2], 0));
        index.begin_own(key(3));
        index.not_made(key(3));
        index.begin_own(key(4));
        index.made(key(4), 1);
        index.not_made(key(4));
        assert!(!there(3, &mut index));
        index.none_is_only_here();
        assert_eq!(evicted(&mut index), [4]);
    }

    #[test]
    fn what_is_on_its_way_is_shared_and_stays_until_it_came() {
        let mut index = Index::default();
        index.begin(key(1), 10, 77);
        assert_eq!(index.hold(key(1)), Known::Coming(77));
        index.let_go(key(1));
        index.let_go(key(1));
        assert_eq!((evicted(&mut index), index.bytes()), (vec![], 10));
        assert!(index.came(key(1), &77));
        assert_eq!(evicted(&mut index), [1]);
        index.begin(key(2), 10, 78);
        assert!(!index.give_up(key(2), &78));
        index.failed(key(2), &77);
        assert_eq!(index.bytes(), 10, "another brings it");
        assert!(!index.came(key(2), &77));
        index.let_go(key(2));
        assert!(index.give_up(key(2), &78));
        index.let_go(key(2));
        assert_eq!((there(2, &mut index), index.bytes()), (false, 0));
    }

    #[test]
    fn a_bucket_goes_as_a_whole() {
        let mut index = Index::<u8>::default();
        let other = (BucketId([2; 16]), BlobId([9; 16]));
        index.found([(key(1), 10), (other, 5)].into_iter());
        index.begin_own(key(2));
        index.made(key(2), 3);
        index.forget_bucket(BucketId([1; 16]));
        assert_eq!(index.bytes(), 5);
        assert_eq!(evicted(&mut index), [9]);
    }

    proptest! {
        /// Whatever is called in whatever order, the sum is that of what is there.
        #[test]
        fn the_sum_is_right(steps in prop::collection::vec((0..9_u8, 0..4_u8), 0..200)) {
            let mut index = Index::default();
            for (step, number) in steps {
                let key = key(number);
                match step {
                    0 => drop(index.hold(key)),
                    1 => index.adopt(key, 10),
                    2 => index.found([(key, 10)].into_iter()),
                    3 => index.begin(key, 10, 0),
                    4 => drop(index.came(key, &0)),
                    5 => {
                        index.begin_own(key);
                        index.made(key, 10);
                    }
                    6 => index.stored(key),
                    7 => index.let_go(key),
                    _ => drop(index.pop()),
                }
                let held: u64 = index.held.values().map(|held| held.bytes).sum();
                let idle: u64 = index.idle.values().sum();
                prop_assert_eq!(held + idle, index.bytes());
                prop_assert!(!index.held.keys().any(|held| index.idle.contains_key(held)));
            }
        }
    }
}
