//! What the routes answer from.

use std::path::PathBuf;
use std::sync::Arc;

use coffer_vault::{SignInFailures, Vault};
use tokio::sync::Semaphore;

use crate::limits::VERIFICATIONS;
use crate::metrics::s3_metrics::S3Metrics;
use crate::metrics::traffic::Traffic;
use crate::status::Status;

/// What the routes answer from.
#[derive(Clone)]
pub struct Admin {
    pub(crate) vault: Vault,
    /// Held for as long as something of the vault is under way.
    pub(crate) _lease: Arc<()>,
    pub(crate) data: PathBuf,
    pub(crate) status: Status,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) s3_metrics: Arc<dyn Fn() -> S3Metrics + Send + Sync>,
    pub(crate) verifications: Arc<Semaphore>,
    pub(crate) audit_verifications: Arc<Semaphore>,
    pub(crate) sign_in_throttle: Arc<SignInFailures>,
}

impl Admin {
    /// Whether this is a gateway of an engine that follows the one that serves.
    pub(crate) fn follows_engine(&self) -> bool {
        self.vault.is_gateway() && self.vault.standby_now().is_some()
    }

    /// Whether the engine that is followed has ended: a standby was promoted in its place.
    pub(crate) fn engine_has_ended(&self) -> bool {
        let standby = self.vault.standby_now();
        self.vault.is_gateway() && standby.is_some_and(|standby| standby.ended_by.is_some())
    }

    /// With failed sign-ins counted here.
    pub fn with_sign_in_throttle(self, throttle: SignInFailures) -> Self {
        Self {
            sign_in_throttle: Arc::new(throttle),
            ..self
        }
    }

    /// Answers from this vault in the folder `data`, and from what the S3 listener and the S3 front
    /// door count.
    pub fn new(
        vault: Vault,
        data: PathBuf,
        status: Status,
        traffic: Arc<Traffic>,
        s3_metrics: impl Fn() -> S3Metrics + Send + Sync + 'static,
    ) -> Self {
        Self {
            vault,
            _lease: Arc::default(),
            data,
            status,
            traffic,
            s3_metrics: Arc::new(s3_metrics),
            verifications: Arc::new(Semaphore::new(VERIFICATIONS)),
            audit_verifications: Arc::new(Semaphore::new(VERIFICATIONS)),
            sign_in_throttle: Arc::default(),
        }
    }
}
