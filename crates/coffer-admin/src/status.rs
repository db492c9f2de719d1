//! What the server is doing, and how long clients will accept it.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

/// What the server is doing. Clones are the same.
#[derive(Debug, Clone, Default)]
pub struct Status(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    phase: AtomicU8,
    /// When the certificate expires, in seconds since 1970; 0: not known.
    certificate_expiry_seconds: AtomicU64,
    /// Where S3 is served: a URL.
    s3: OnceLock<String>,
    /// Where the data port is: a URL.
    data: OnceLock<String>,
    /// At which address a gateway serves that this one follows.
    gateway: Mutex<Option<String>>,
}

const STARTING: u8 = 0;
const SERVING: u8 = 1;
const STOPPING: u8 = 2;
const WAITING: u8 = 3;

impl Status {
    /// It serves from now on.
    pub fn serves(&self) {
        self.0.phase.store(SERVING, Ordering::Release);
    }

    /// It takes no new work from now on.
    pub fn stops(&self) {
        self.0.phase.store(STOPPING, Ordering::Release);
    }

    /// It answers nothing until the store of its engine is there again.
    pub fn waits(&self) {
        self.0.phase.store(WAITING, Ordering::Release);
    }

    /// Whether it takes new work.
    pub fn is_ready(&self) -> bool {
        self.0.phase.load(Ordering::Acquire) == SERVING
    }

    /// In a word.
    pub fn word(&self) -> &'static str {
        match self.0.phase.load(Ordering::Acquire) {
            STARTING => "starting",
            SERVING => "ready",
            WAITING => "not ready: the store of the engine is away",
            _ => "stopping",
        }
    }

    /// Where S3 is served, as a URL that reaches it from this machine.
    pub fn serves_s3_at(&self, url: String) {
        let _ = self.0.s3.set(url);
    }

    /// Where the data port is, as a URL that reaches it from this machine.
    pub fn serves_data_at(&self, url: String) {
        let _ = self.0.data.set(url);
    }

    /// Another gateway of the engine serves, at this address; none, where that is not known.
    pub fn follows_gateway(&self, address: Option<String>) {
        *self
            .0
            .gateway
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = address;
    }

    /// At which address another gateway serves.
    pub(crate) fn gateway(&self) -> Option<String> {
        let gateway = self.0.gateway.lock();
        gateway.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where the data port is, if there is one.
    pub(crate) fn data(&self) -> Option<&str> {
        self.0.data.get().map(String::as_str)
    }

    /// Where S3 is served.
    pub(crate) fn s3(&self) -> Option<&str> {
        self.0.s3.get().map(String::as_str)
    }

    /// When the server's certificate expires, as far as that is known.
    pub fn certificate_expires(&self, at: Option<SystemTime>) {
        let since = at.and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        let seconds = since.map_or(0, |since| since.as_secs());
        let expiry = &self.0.certificate_expiry_seconds;
        expiry.store(seconds, Ordering::Relaxed);
    }

    /// When the server's certificate expires.
    pub(crate) fn certificate_expiry(&self) -> Option<SystemTime> {
        let expiry = &self.0.certificate_expiry_seconds;
        match expiry.load(Ordering::Relaxed) {
            0 => None,
            seconds => Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        }
    }
}
