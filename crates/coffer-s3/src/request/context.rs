//! One request and its answer: what its parts tell each other besides what s3s passes on.

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue};

use crate::checksums::expected::Trailers;
use crate::counters::{OPERATIONS, operation_index};
use crate::request::aws_chunked::ChunkFault;
use crate::request::echo::Echo;
use crate::request::ids::RequestIds;
use crate::request::memory_budget::{BudgetFault, MemoryBudget, Reservation};
use crate::request::signed::Signed;
use crate::signature::claimed_key::ClaimedKey;

/// Why a body could not be received, as seen below s3s.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BodyFault {
    /// The connection ended or broke.
    #[error("the connection ended before the body did")]
    Disconnected,
    /// The client sent too little in the time that it is allowed.
    #[error("the client was too slow")]
    TooSlow,
    /// It has another hash than the one that was signed.
    #[error("the body has another hash")]
    Sha256,
    /// A chunk has another signature.
    #[error("a chunk has another signature")]
    ChunkSignature,
    /// The trailers are none, or others than were announced.
    #[error("the trailers are not those that were announced")]
    Trailers,
    /// A signed chunk is too small to have another behind it.
    #[error("a signed chunk is too small")]
    ChunkTooSmall,
    /// The aws-chunked framing is none.
    #[error("the aws-chunked body is malformed")]
    Malformed,
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
            ChunkFault::Signature => Self::ChunkSignature,
            ChunkFault::Incomplete => Self::Incomplete,
            ChunkFault::Trailers => Self::Trailers,
            ChunkFault::TooSmall => Self::ChunkTooSmall,
        }
    }
}

/// What is known of a request under way. Shared by the service, the body and the operation.
#[derive(Debug)]
pub(crate) struct RequestContext {
    ids: RequestIds,
    began: Instant,
    operation: OnceLock<usize>,
    trailers: OnceLock<HeaderMap>,
    fault: OnceLock<BodyFault>,
    is_signed_in: AtomicBool,
    body_withheld: AtomicBool,
    reservation: OnceLock<Reservation>,
    xml: OnceLock<Bytes>,
    answer: Arc<Reservation>,
    claim: OnceLock<ClaimedKey>,
    signed: OnceLock<Signed>,
    client: OnceLock<Client>,
    echo: OnceLock<Echo>,
    /// The SHA-256 that was announced for the body, and that of what came.
    other_sha256: OnceLock<Box<[[u8; 32]; 2]>>,
}

/// Who is at the other end of the connection.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Client {
    pub(crate) address: Option<IpAddr>,
    /// The version of TLS, such as `1.3`.
    pub(crate) tls_version: Option<&'static str>,
}

impl RequestContext {
    /// A context whose answer takes its room from this budget.
    pub(crate) fn new(answers: &MemoryBudget) -> Self {
        Self {
            ids: RequestIds::draw(),
            began: Instant::now(),
            operation: OnceLock::new(),
            trailers: OnceLock::new(),
            fault: OnceLock::new(),
            is_signed_in: AtomicBool::new(false),
            body_withheld: AtomicBool::new(false),
            reservation: OnceLock::new(),
            xml: OnceLock::new(),
            answer: Arc::new(answers.reservation(usize::MAX)),
            claim: OnceLock::new(),
            signed: OnceLock::new(),
            client: OnceLock::new(),
            echo: OnceLock::new(),
            other_sha256: OnceLock::new(),
        }
    }

    /// Notes whom a request claims to be of, where its head does not say.
    pub(crate) fn set_claim(&self, claim: ClaimedKey) {
        let _ = self.claim.set(claim);
    }

    /// What was noted of that.
    pub(crate) fn claim(&self) -> Option<&ClaimedKey> {
        self.claim.get()
    }

    /// The two names of the request.
    pub(crate) fn ids(&self) -> &RequestIds {
        &self.ids
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

    /// Whether the operation was told, be it one that is counted under its name or not.
    pub(crate) fn has_operation(&self) -> bool {
        self.operation.get().is_some()
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

    /// Notes how it was signed.
    pub(crate) fn set_signed(&self, signed: Signed) {
        let _ = self.signed.set(signed);
    }

    /// How it was signed; none for who signed nothing.
    pub(crate) fn signed(&self) -> Option<&Signed> {
        self.signed.get()
    }

    /// Notes who is at the other end.
    pub(crate) fn set_client(&self, client: Client) {
        let _ = self.client.set(client);
    }

    pub(crate) fn client(&self) -> Client {
        self.client.get().copied().unwrap_or_default()
    }

    /// Notes what an error is to tell of the request.
    pub(crate) fn set_echo(&self, echo: Echo) {
        let _ = self.echo.set(echo);
    }

    /// What was noted of that.
    pub(crate) fn echo(&self) -> Option<&Echo> {
        self.echo.get()
    }

    /// Notes the trailers that came after the body.
    pub(crate) fn set_trailers(&self, trailers: HeaderMap) {
        let _ = self.trailers.set(trailers);
    }

    /// Notes what went wrong with the body; the first fault is the cause of the others.
    pub(crate) fn set_fault(&self, fault: BodyFault) {
        let _ = self.fault.set(fault);
    }

    pub(crate) fn fault(&self) -> Option<BodyFault> {
        self.fault.get().copied()
    }

    /// Notes that the body has another SHA-256 than was announced for it.
    pub(crate) fn set_other_sha256(&self, announced: [u8; 32], computed: [u8; 32]) {
        let _ = self.other_sha256.set(Box::new([announced, computed]));
    }

    /// The one that was announced, and the one that it has.
    pub(crate) fn other_sha256(&self) -> Option<&[[u8; 32]; 2]> {
        self.other_sha256.get().map(|hashes| &**hashes)
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
        // XML has its reservation before s3s tells the operation.
        let _ = self.reservation.set(reservation);
    }

    /// Takes the room that bytes of the body need which have arrived.
    pub(crate) fn make_room(&self, bytes: usize) -> Result<(), BodyFault> {
        match self.reservation.get() {
            Some(reservation) => Ok(reservation.take(bytes)?),
            None => Ok(()),
        }
    }

    /// The room that the answer takes.
    pub(crate) fn answer(&self) -> &Arc<Reservation> {
        &self.answer
    }

    /// Notes the XML body as the client sent it, to check its digests.
    pub(crate) fn set_xml(&self, body: Bytes) {
        let _ = self.xml.set(body);
    }

    pub(crate) fn xml(&self) -> &[u8] {
        self.xml.get().map_or(&[], |body| body)
    }
}

impl Trailers for Arc<RequestContext> {
    fn trailer(&self, name: &str) -> Option<&HeaderValue> {
        self.trailers.get()?.get(name)
    }
}
