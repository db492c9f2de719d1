//! What is known of one connection while it has a slot.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use coffer_vault::Seat;
use tokio::sync::Notify;

/// What is known of one connection.
#[derive(Debug, Default)]
pub struct Activity {
    began: AtomicU64,
    ended: AtomicU64,
    is_sending: AtomicBool,
    is_signed_in: AtomicBool,
    is_reserved: bool,
    is_asked: AtomicBool,
    asked: Notify,
    tls_version: OnceLock<&'static str>,
}

impl Activity {
    /// One that has asked nothing yet.
    pub fn new(is_reserved: bool) -> Self {
        Self {
            is_reserved,
            ..Self::default()
        }
    }

    /// Whether its slot was given from the reserve.
    pub fn is_reserved(&self) -> bool {
        self.is_reserved
    }

    /// Notes the version of TLS, such as `1.3`.
    pub fn set_tls_version(&self, version: &'static str) {
        let _ = self.tls_version.set(version);
    }

    /// The version of TLS, once hands are shaken.
    pub fn tls_version(&self) -> Option<&'static str> {
        self.tls_version.get().copied()
    }

    /// A request begins.
    pub fn begin(&self) {
        self.began.fetch_add(1, Ordering::Relaxed);
    }

    /// A request has been answered.
    pub fn end(&self) {
        self.ended.fetch_add(1, Ordering::Relaxed);
    }

    /// How many requests began.
    pub fn requests(&self) -> u64 {
        self.began.load(Ordering::Relaxed)
    }

    /// Whether bytes of an answer wait for the peer to take them.
    pub fn set_sending(&self, is_sending: bool) {
        self.is_sending.store(is_sending, Ordering::Relaxed);
    }

    /// Whether there is neither a request nor an answer under way.
    pub fn is_idle(&self) -> bool {
        self.is_between_requests() && !self.is_sending.load(Ordering::Relaxed)
    }

    /// Whether all requests are answered, be the last answer sent or not.
    pub fn is_between_requests(&self) -> bool {
        self.began.load(Ordering::Relaxed) == self.ended.load(Ordering::Relaxed)
    }

    /// Whether a request of it was signed rightly.
    pub fn is_signed_in(&self) -> bool {
        self.is_signed_in.load(Ordering::Relaxed)
    }

    /// Notes that one was; says whether it is the first.
    pub fn sign_in(&self) -> bool {
        !self.is_signed_in.swap(true, Ordering::Relaxed)
    }

    /// Waits until it must leave.
    pub async fn asked_to_leave(&self) {
        let asked = self.asked.notified();
        tokio::pin!(asked);
        // First the place in the queue, then the look: so it can't be missed.
        asked.as_mut().enable();
        if !self.is_asked.load(Ordering::SeqCst) {
            asked.await;
        }
    }

    /// Asks it to leave.
    pub fn ask_to_leave(&self) {
        self.is_asked.store(true, Ordering::SeqCst);
        self.asked.notify_waiters();
    }
}

impl Seat for Activity {
    fn leave_if_idle(&self) -> bool {
        let is_idle = self.is_idle();
        if is_idle {
            self.ask_to_leave();
        }
        is_idle
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_connection_is_idle_between_requests_and_hears_that_it_must_leave() {
        let activity = Activity::new(false);
        assert!(activity.is_idle());
        activity.begin();
        assert!(!activity.is_idle());
        activity.end();
        activity.set_sending(true);
        assert!(!activity.is_idle());
        activity.set_sending(false);
        assert!(activity.is_idle() && activity.requests() == 1);
        assert!(activity.sign_in() && !activity.sign_in() && activity.is_signed_in());
        let short = Duration::from_millis(5);
        assert!(timeout(short, activity.asked_to_leave()).await.is_err());
        activity.begin();
        assert!(!activity.leave_if_idle());
        activity.end();
        assert!(timeout(short, activity.asked_to_leave()).await.is_err());
        assert!(activity.leave_if_idle());
        activity.asked_to_leave().await;
    }
}
