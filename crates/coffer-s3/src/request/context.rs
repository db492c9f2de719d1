//! One request and its answer: what its parts tell each other besides what s3s passes on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Instant;

use bytes::Bytes;

use crate::counters::{OPERATIONS, operation_index};
use crate::request::aws_chunked::{ChunkFault, ChunkStyle};
use crate::request::body_budget::{BudgetFault, Reservation};
use crate::request::ids::RequestIds;

/// Why a body could not be received, as seen below s3s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    /// The connection ended or broke.
    #[error("the connection ended before the body did")]
    Disconnected,
    /// The client sent too little in the time that it is allowed.
    #[error("the client was too slow")]
    TooSlow,
    /// The aws-chunked framing is none.
    #[error("the aws-chunked body is malformed")]
    Malformed,
    /// A signed chunk is too long.
    #[error("a signed chunk is too long")]
    ChunkTooLarge,
    /// The aws-chunked framing ends early.
    #[error("the aws-chunked body is incomplete")]
    Incomplete,
    /// It is longer than its operation needs.
    #[error("the body is too long")]
    TooLong,
    /// There is no room for it among the others.
    #[error("there is no room for the body")]
    NoRoom,
}

impl From<BudgetFault> for BodyFault {
    fn from(fault: BudgetFault) -> Self {
        match fault {
            BudgetFault::TooLong => Self::TooLong,
            BudgetFault::Full => Self::NoRoom,
        }
    }
}

impl From<ChunkFault> for BodyFault {
    fn from(fault: ChunkFault) -> Self {
        match fault {
            ChunkFault::Malformed => Self::Malformed,
            ChunkFault::TooLarge => Self::ChunkTooLarge,
        }
    }
}

/// What is known of a request under way. Shared by the service, the body and the operation.
#[derive(Debug)]
pub(crate) struct RequestContext {
    ids: RequestIds,
    began: Instant,
    operation: OnceLock<usize>,
    chunks: OnceLock<ChunkStyle>,
    fault: OnceLock<BodyFault>,
    is_signed_in: AtomicBool,
    body_withheld: AtomicBool,
    reservation: OnceLock<Reservation>,
    keep_body: AtomicBool,
    kept_body: Mutex<Vec<Bytes>>,
}

impl RequestContext {
    pub(crate) fn new() -> Self {
        Self {
            ids: RequestIds::draw(),
            began: Instant::now(),
            operation: OnceLock::new(),
            chunks: OnceLock::new(),
            fault: OnceLock::new(),
            is_signed_in: AtomicBool::new(false),
            body_withheld: AtomicBool::new(false),
            reservation: OnceLock::new(),
            keep_body: AtomicBool::new(false),
            kept_body: Mutex::default(),
        }
    }

    /// `x-amz-request-id`.
    pub(crate) fn request_id(&self) -> String {
        self.ids.request_id()
    }

    /// `x-amz-id-2`.
    pub(crate) fn host_id(&self) -> String {
        self.ids.host_id()
    }

    pub(crate) fn elapsed(&self) -> std::time::Duration {
        self.began.elapsed()
    }

    /// Notes what the request asks for, once it is known.
    pub(crate) fn set_operation(&self, name: &str) {
        // A request asks for one thing: a second note would be the same one.
        let _ = self.operation.set(operation_index(name));
    }

    /// The operation's place in [`OPERATIONS`].
    pub(crate) fn operation(&self) -> usize {
        self.operation.get().copied().unwrap_or(0)
    }

    pub(crate) fn operation_name(&self) -> &'static str {
        OPERATIONS[self.operation()]
    }

    /// Notes that the signature was right.
    pub(crate) fn set_signed_in(&self) {
        self.is_signed_in.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_signed_in(&self) -> bool {
        self.is_signed_in.load(Ordering::Relaxed)
    }

    /// Notes how the body is chunked.
    pub(crate) fn set_chunks(&self, style: ChunkStyle) {
        let _ = self.chunks.set(style);
    }

    pub(crate) fn chunks(&self) -> Option<ChunkStyle> {
        self.chunks.get().copied()
    }

    /// Notes what went wrong with the body; the first fault is the cause of the others.
    pub(crate) fn set_fault(&self, fault: BodyFault) {
        let _ = self.fault.set(fault);
    }

    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get().copied()
    }

    /// Notes that the client still waits to send its body: the answer ends the connection.
    pub(crate) fn set_body_withheld(&self) {
        self.body_withheld.store(true, Ordering::Relaxed);
    }

    pub(crate) fn body_withheld(&self) -> bool {
        self.body_withheld.load(Ordering::Relaxed)
    }

    /// Notes that the body will be held in memory, and where.
    pub(crate) fn set_reservation(&self, reservation: Reservation) {
        // A request that comes a second time has its place already.
        let _ = self.reservation.set(reservation);
    }

    /// Takes the room that bytes of the body need which have arrived.
    pub(crate) fn make_room(&self, bytes: usize) -> Result<(), BodyFault> {
        match self.reservation.get() {
            Some(reservation) => Ok(reservation.take(bytes)?),
            None => Ok(()),
        }
    }

    /// Asks for a copy of the (XML) body, to check its digests: s3s keeps it to itself.
    pub(crate) fn keep_body(&self) {
        self.keep_body.store(true, Ordering::Relaxed);
    }

    /// Keeps a piece of the body if it was asked for.
    pub(crate) fn pass(&self, bytes: &Bytes) {
        if self.keep_body.load(Ordering::Relaxed) {
            let mut kept = self
                .kept_body
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            kept.push(bytes.clone());
        }
    }

    pub(crate) fn take_body(&self) -> Vec<Bytes> {
        std::mem::take(
            &mut *self
                .kept_body
                .lock()
                .unwrap_or_else(PoisonError::into_inner),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_kept_only_when_asked_for() {
        let context = RequestContext::new();
        context.pass(&Bytes::from_static(b"a"));
        context.keep_body();
        context.pass(&Bytes::from_static(b"b"));
        assert_eq!(context.take_body(), [Bytes::from_static(b"b")]);
        assert!(context.take_body().is_empty());
    }
}
