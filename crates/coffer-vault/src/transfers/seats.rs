//! How many transfers there are, and whose.

use std::collections::HashMap;
use std::sync::Arc;

use coffer_seal::SubjectId;
use parking_lot::Mutex;

use crate::limits::{TRANSFERS_MAX, TRANSFERS_PER_SUBJECT};

/// Counts the transfers of all subjects.
#[derive(Default)]
pub(super) struct Seats(Arc<Mutex<Counts>>);

#[derive(Default)]
struct Counts {
    /// Transfers that began and have not ended, by subject; there is no row of none.
    by_subject: HashMap<SubjectId, usize>,
    total: usize,
}

/// A transfer that counts, until it is dropped.
pub(crate) struct Seat {
    counts: Arc<Mutex<Counts>>,
    subject: SubjectId,
}

impl Seats {
    /// Counts one more of a subject; none where it has as many as it may, or all have.
    pub(super) fn take(&self, subject: SubjectId) -> Option<Seat> {
        let mut counts = self.0.lock();
        let own = counts.by_subject.get(&subject).copied().unwrap_or(0);
        if counts.total >= TRANSFERS_MAX || own >= TRANSFERS_PER_SUBJECT {
            return None;
        }
        counts.total += 1;
        counts.by_subject.insert(subject, own + 1);
        Some(Seat {
            counts: self.0.clone(),
            subject,
        })
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.0.lock().total
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        counts.total -= 1;
        if let Some(count) = counts.by_subject.get_mut(&self.subject) {
            *count -= 1;
            if *count == 0 {
                counts.by_subject.remove(&self.subject);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_subject_has_so_many_and_all_together_so_many() {
        let seats = Seats::default();
        let subject = |number: usize| SubjectId((number as u128).to_be_bytes());
        let mut taken = Vec::new();
        for number in 0..TRANSFERS_MAX / TRANSFERS_PER_SUBJECT {
            for _ in 0..TRANSFERS_PER_SUBJECT {
                taken.push(seats.take(subject(number)).unwrap());
            }
            assert!(seats.take(subject(number)).is_none());
        }
        assert_eq!(seats.count(), TRANSFERS_MAX);
        assert!(seats.take(subject(99)).is_none());
        taken.truncate(TRANSFERS_MAX - 1);
        assert!(seats.take(subject(99)).is_some());
        taken.clear();
        assert!(seats.count() == 0 && seats.0.lock().by_subject.is_empty());
    }
}
