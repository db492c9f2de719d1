//! Budgets for what is held in memory whole: XML bodies, which s3s collects before it reads them,
//! and answers, which stay until the client has read them.
//!
//! Each kind has one budget for all requests together. What is small gets in always, so that who
//! holds large ones open keeps no one else from tagging an object or reading a page.

use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{
    ANSWER_FREE_BYTES, ANSWERS_MAX_BYTES, DELETE_BODY_MAX_BYTES, LIFECYCLE_MAX_BYTES,
    PARTS_BODY_MAX_BYTES, XML_BODIES_MAX_BYTES, XML_BODY_FREE_BYTES, XML_BODY_MAX_BYTES,
};

/// Why bytes are not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetFault {
    /// They are more than any that the operation needs.
    TooLong,
    /// Others take up all the budget.
    Full,
}

/// Bytes that the body of an operation may have; `None` where it is not held in memory.
pub(crate) fn body_limit(operation: &str) -> Option<usize> {
    match operation {
        "PutObject" | "UploadPart" => None,
        "CompleteMultipartUpload" => Some(PARTS_BODY_MAX_BYTES),
        "DeleteObjects" => Some(DELETE_BODY_MAX_BYTES),
        "PutBucketLifecycleConfiguration" => Some(LIFECYCLE_MAX_BYTES),
        _ => Some(XML_BODY_MAX_BYTES),
    }
}

/// The room of all that is of one kind.
#[derive(Clone, Debug)]
pub(crate) struct MemoryBudget {
    room: Arc<Semaphore>,
    max_bytes: usize,
    /// Bytes of each reservation that take no room.
    free_bytes: usize,
}

impl MemoryBudget {
    fn new(max_bytes: usize, free_bytes: usize) -> Self {
        Self {
            room: Arc::new(Semaphore::new(max_bytes)),
            max_bytes,
            free_bytes,
        }
    }

    /// Of XML bodies.
    pub(crate) fn bodies() -> Self {
        Self::new(XML_BODIES_MAX_BYTES, XML_BODY_FREE_BYTES)
    }

    /// Of answers.
    pub(crate) fn answers() -> Self {
        Self::new(ANSWERS_MAX_BYTES, ANSWER_FREE_BYTES)
    }

    /// The place of one body or answer, which is given back when it is dropped.
    pub(crate) fn reservation(&self, limit_bytes: usize) -> Reservation {
        Reservation {
            budget: self.clone(),
            limit_bytes,
            taken: Mutex::default(),
        }
    }
}

/// What one body or answer takes of the budget.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: MemoryBudget,
    limit_bytes: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Takes room for so many bytes more. Nothing waits for budget: what waits would hold what
    /// others wait for.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), BudgetFault> {
        let mut taken = self.taken.lock();
        let total = taken.bytes.saturating_add(bytes);
        self.hold(&mut taken, total)
    }

    /// Takes room for so many bytes in all, and gives back what is more than that.
    pub(crate) fn set(&self, bytes: usize) -> Result<(), BudgetFault> {
        let mut taken = self.taken.lock();
        self.hold(&mut taken, bytes)
    }

    /// Whether so many bytes take no room, or more than half of it is left.
    pub(crate) fn has_plenty_for(&self, bytes: usize) -> bool {
        bytes <= self.budget.free_bytes
            || self.budget.room.available_permits() > self.budget.max_bytes / 2
    }

    fn hold(&self, taken: &mut Taken, total: usize) -> Result<(), BudgetFault> {
        if total > self.limit_bytes {
            return Err(BudgetFault::TooLong);
        }
        let held = taken
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let wanted = total.saturating_sub(self.budget.free_bytes);
        if wanted > held {
            let missing = u32::try_from(wanted - held).map_err(|_| BudgetFault::TooLong)?;
            let more = self.budget.room.clone().try_acquire_many_owned(missing);
            let more = more.map_err(|_| BudgetFault::Full)?;
            match &mut taken.permit {
                Some(permit) => permit.merge(more),
                None => taken.permit = Some(more),
            }
        } else if let Some(permit) = &mut taken.permit {
            drop(permit.split(held - wanted));
        }
        taken.bytes = total;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_bounded_by_their_operation() {
        let reservation = MemoryBudget::bodies().reservation(10);
        assert_eq!(reservation.take(4), Ok(()));
        assert_eq!(reservation.take(6), Ok(()));
        assert_eq!(reservation.take(1), Err(BudgetFault::TooLong));
        assert_eq!(body_limit("PutObject"), None);
        assert!(body_limit("PutObjectTagging") < body_limit("DeleteObjects"));
    }

    #[test]
    fn what_is_not_needed_is_given_back() {
        let budget = MemoryBudget::answers();
        let answer = budget.reservation(usize::MAX);
        assert_eq!(answer.set(ANSWERS_MAX_BYTES), Ok(()));
        let other = budget.reservation(usize::MAX);
        assert_eq!(other.set(3 * ANSWER_FREE_BYTES), Err(BudgetFault::Full));
        assert!(!other.has_plenty_for(2 * ANSWER_FREE_BYTES));
        assert!(other.has_plenty_for(ANSWER_FREE_BYTES));
        assert_eq!(answer.set(ANSWER_FREE_BYTES), Ok(()));
        assert!(other.has_plenty_for(2 * ANSWER_FREE_BYTES));
        assert_eq!(other.set(ANSWERS_MAX_BYTES), Ok(()));
        drop(other);
        assert_eq!(answer.set(ANSWERS_MAX_BYTES), Ok(()));
    }

    #[test]
    fn large_bodies_share_the_room_and_small_ones_always_get_in() {
        let budget = MemoryBudget::bodies();
        let large: Vec<_> = (0..)
            .map(|_| budget.reservation(DELETE_BODY_MAX_BYTES))
            .take_while(|reservation| reservation.take(DELETE_BODY_MAX_BYTES).is_ok())
            .collect();
        let held = large.len() * (DELETE_BODY_MAX_BYTES - XML_BODY_FREE_BYTES);
        assert!(held <= XML_BODIES_MAX_BYTES && large.len() > 3, "{held}");
        let small = budget.reservation(DELETE_BODY_MAX_BYTES);
        let rest = DELETE_BODY_MAX_BYTES - XML_BODY_FREE_BYTES;
        assert_eq!(small.take(XML_BODY_FREE_BYTES), Ok(()));
        assert_eq!(small.take(rest), Err(BudgetFault::Full));
        drop(large);
        assert_eq!(small.take(rest), Ok(()));
    }
}
