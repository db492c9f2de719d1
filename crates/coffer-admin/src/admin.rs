//! What the routes answer from.

use std::sync::Arc;

use coffer_vault::{SignInFailures, Vault};
use tokio::sync::Semaphore;

use crate::limits::VERIFICATIONS;
use crate::requests::Requests;
use crate::status::Status;
use crate::traffic::Traffic;

/// What the routes answer from.
#[derive(Clone)]
pub struct Admin {
    pub(crate) vault: Vault,
    pub(crate) status: Status,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) requests: Arc<dyn Fn() -> Requests + Send + Sync>,
    pub(crate) verifications: Arc<Semaphore>,
    pub(crate) audit_verifications: Arc<Semaphore>,
    pub(crate) failures: Arc<SignInFailures>,
}

impl Admin {
    /// With failed sign-ins counted here.
    pub fn with_failures(self, failures: SignInFailures) -> Self {
        Self {
            failures: Arc::new(failures),
            ..self
        }
    }

    /// Answers from this vault, and from what the S3 listener and the S3 front door count.
    pub fn new(
        vault: Vault,
        status: Status,
        traffic: Arc<Traffic>,
        requests: impl Fn() -> Requests + Send + Sync + 'static,
    ) -> Self {
        Self {
            vault,
            status,
            traffic,
            requests: Arc::new(requests),
            verifications: Arc::new(Semaphore::new(VERIFICATIONS)),
            audit_verifications: Arc::new(Semaphore::new(VERIFICATIONS)),
            failures: Arc::default(),
        }
    }
}
