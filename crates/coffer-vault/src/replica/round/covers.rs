//! Up to which record a head has all: as far as the log had come when its round began, if what the
//! round read of each catalog is as far.

use std::collections::{HashMap, HashSet};

use coffer_seal::BucketId;

use super::records::Records;

/// How far the log had come when a round began.
pub(crate) struct Recorded {
    number: u64,
    /// How many commits of each catalog it had.
    commits: HashMap<BucketId, u64>,
}

impl Recorded {
    /// As it is now, `number` being that of its last entry.
    pub(crate) fn now(number: u64, records: Option<&Records>) -> Self {
        Self {
            number,
            commits: records.map(Records::commits).unwrap_or_default(),
        }
    }

    /// Whether the log had more of a catalog than a head that has so many commits of it.
    pub(crate) fn has_more(&self, id: BucketId, commits: u64) -> bool {
        let recorded = self.commits.get(&id);
        recorded.is_some_and(|recorded| commits < *recorded)
    }

    /// Up to which number records are in a head that has so many commits of these catalogs, which
    /// are all that there are; none, where it lacks what records have of one of them, which was out
    /// of use and could not be read.
    pub(crate) fn covered_by(&self, has: impl IntoIterator<Item = (BucketId, u64)>) -> Option<u64> {
        let mut has = has.into_iter();
        let is_behind = has.any(|(id, commits)| self.has_more(id, commits));
        (!is_behind).then_some(self.number)
    }

    /// Those of these catalogs of which the log had more than a head that has so many commits.
    pub(crate) fn behind(
        &self,
        has: impl IntoIterator<Item = (BucketId, u64)>,
    ) -> HashSet<BucketId> {
        let has = has.into_iter();
        let behind = has.filter(|(id, commits)| self.has_more(*id, *commits));
        behind.map(|(id, _)| id).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: BucketId = BucketId([1; 16]);
    const TWO: BucketId = BucketId([2; 16]);
    const NEW: BucketId = BucketId([3; 16]);

    #[test]
    fn a_head_covers_no_records_of_a_catalog_that_it_has_not_read() {
        let recorded = Recorded {
            number: 9,
            commits: HashMap::from([(ONE, 5), (TWO, 7)]),
        };
        // What came meanwhile, and what was made meanwhile, is in it as well.
        assert_eq!(recorded.covered_by([(ONE, 5), (TWO, 8), (NEW, 1)]), Some(9));
        assert_eq!(recorded.covered_by([(ONE, 4), (TWO, 8)]), None);
        assert_eq!(recorded.behind([(ONE, 4), (TWO, 8)]), HashSet::from([ONE]));
        // One that no head has yet, and records do.
        assert_eq!(recorded.covered_by([(ONE, 5), (TWO, 0)]), None);
        // One that is gone is read by none.
        assert_eq!(recorded.covered_by([(TWO, 7)]), Some(9));
    }

    #[test]
    fn a_head_that_has_less_than_a_log_that_was_taken_over_covers_none_of_its_records() {
        let records = Records::default();
        records.taken_over(HashMap::from([(ONE, 10)]));
        let recorded = Recorded::now(9, Some(&records));
        // As where its newest head had it, and it could not be read here.
        assert_eq!(recorded.covered_by([(ONE, 8)]), None);
        assert_eq!(recorded.covered_by([(ONE, 10)]), Some(9));
    }
}
