//! BodyBudget for bodies that are held in memory whole: XML, which s3s collects before it reads it.
//!
//! Each operation has its limit, and all bodies together have one. What is small gets in always,
//! so that a client that holds large ones open keeps no other from tagging an object.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::limits::{
    DELETE_BODY_MAX_BYTES, PARTS_BODY_MAX_BYTES, XML_BODIES_MAX_BYTES, XML_BODY_FREE_BYTES,
    XML_BODY_MAX_BYTES,
};

/// Why a body is not held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BudgetFault {
    /// It is longer than any that its operation needs.
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
        _ => Some(XML_BODY_MAX_BYTES),
    }
}

/// The room of all bodies together.
#[derive(Clone, Debug)]
pub(crate) struct BodyBudget(Arc<Semaphore>);

impl BodyBudget {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Semaphore::new(XML_BODIES_MAX_BYTES)))
    }

    /// The place of one body, which is given back when it is dropped.
    pub(crate) fn reservation(&self, limit_bytes: usize) -> Reservation {
        Reservation {
            budget: self.clone(),
            limit_bytes,
            taken: Mutex::default(),
        }
    }
}

/// What one body takes of the budget.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: BodyBudget,
    limit_bytes: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    bytes: usize,
    permit: Option<OwnedSemaphorePermit>,
}

impl Reservation {
    /// Takes room for so many bytes more. No body waits for room: it would hold what others
    /// wait for.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), BudgetFault> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let total = taken.bytes.saturating_add(bytes);
        if total > self.limit_bytes {
            return Err(BudgetFault::TooLong);
        }
        let held = taken
            .permit
            .as_ref()
            .map_or(0, OwnedSemaphorePermit::num_permits);
        let missing = total.saturating_sub(XML_BODY_FREE_BYTES).max(held) - held;
        let missing = u32::try_from(missing).map_err(|_| BudgetFault::TooLong)?;
        let more = self.budget.0.clone().try_acquire_many_owned(missing);
        let more = more.map_err(|_| BudgetFault::Full)?;
        match &mut taken.permit {
            Some(permit) => permit.merge(more),
            None => taken.permit = Some(more),
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
        let reservation = BodyBudget::new().reservation(10);
        assert_eq!(reservation.take(4), Ok(()));
        assert_eq!(reservation.take(6), Ok(()));
        assert_eq!(reservation.take(1), Err(BudgetFault::TooLong));
        assert_eq!(body_limit("PutObject"), None);
        assert!(body_limit("PutObjectTagging") < body_limit("DeleteObjects"));
    }

    #[test]
    fn large_bodies_share_the_room_and_small_ones_always_get_in() {
        let budget = BodyBudget::new();
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
