//! What has to be done for one name: which of the source's versions are at the target, and which of
//! the target's came from the source.

use crate::migrate::ledger::Ledger;
use crate::migrate::transfer::Seen;
use crate::s3::ListedVersion;

/// A name at both sides, the oldest version first.
pub(super) struct Both {
    pub(super) key: String,
    pub(super) from: Vec<ListedVersion>,
    pub(super) there: Vec<ListedVersion>,
    /// Whether the source can't be read there, so that nothing is known to be gone.
    pub(super) is_hidden: bool,
}

/// How the two sides belong together.
pub(super) struct Matched {
    /// Of each of the source's, its place at the target.
    pub(super) of: Vec<Option<usize>>,
    /// Of each of the target's, whether it is one of those.
    pub(super) used: Vec<bool>,
    /// What is the newest at the target.
    pub(super) seen: Seen,
    /// The newest place at the target of those that were looked at.
    newest_seen: Option<usize>,
}

impl Both {
    /// Matches by what the ledger says.
    pub(super) fn matched(&self, ledger: &Ledger) -> Matched {
        let mut used = vec![false; self.there.len()];
        // Mostly they lie beside each other in the same order.
        let mut at = 0;
        let of = { self.from.iter() }
            .map(|of| {
                let places = (at..self.there.len()).chain(0..at);
                let is_it = |place: &usize| {
                    let there = &self.there[*place];
                    !used[*place]
                        && there.is_marker == of.is_marker
                        && there.object.bytes == of.object.bytes
                        && ledger.came_of(&self.key, there, of)
                };
                let found = { places }.find(is_it);
                if let Some(found) = found {
                    used[found] = true;
                    at = found + 1;
                }
                found
            })
            .collect();
        let seen = Seen::listed(self.there.last());
        Matched {
            of,
            used,
            seen,
            newest_seen: None,
        }
    }
}

impl Matched {
    /// Whether all of the source is there, and nothing else.
    pub(super) fn is_all(&self) -> bool {
        self.of.iter().all(Option::is_some) && self.used.iter().all(|used| *used)
    }

    /// Whether one that is older at the source is newer at the target than this one, which is the
    /// next, and there.
    pub(super) fn is_behind(&mut self, index: usize) -> bool {
        let at = self.of[index];
        let is_behind = at < self.newest_seen;
        self.newest_seen = at.max(self.newest_seen);
        is_behind
    }

    /// Whether any that is newer than this one is there.
    pub(super) fn has_newer(&self, than: usize) -> bool {
        self.of[than + 1..].iter().any(Option::is_some)
    }
}
