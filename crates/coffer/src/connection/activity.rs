//! What is known of one connection while it has a slot.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tokio::sync::Notify;

/// What is known of one connection.
#[derive(Debug, Default)]
pub struct Seat {
    began: AtomicU64,
    ended: AtomicU64,
    is_sending: AtomicBool,
    is_signed_in: AtomicBool,
    is_reserved: bool,
    is_told: AtomicBool,
    told: Notify,
}

impl Seat {
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
        self.began.load(Ordering::Relaxed) == self.ended.load(Ordering::Relaxed)
            && !self.is_sending.load(Ordering::Relaxed)
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
    pub async fn told_to_leave(&self) {
        let told = self.told.notified();
        tokio::pin!(told);
        // First the place in the queue, then the look: so it can't be missed.
        told.as_mut().enable();
        if !self.is_told.load(Ordering::SeqCst) {
            told.await;
        }
    }

    /// Tells it to leave.
    pub fn tell(&self) {
        self.is_told.store(true, Ordering::SeqCst);
        self.told.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::time::timeout;

    #[tokio::test]
    async fn a_seat_is_idle_between_requests_and_hears_that_it_must_leave() {
        let seat = Seat::new(false);
        assert!(seat.is_idle());
        seat.begin();
        assert!(!seat.is_idle());
        seat.end();
        seat.set_sending(true);
        assert!(!seat.is_idle());
        seat.set_sending(false);
        assert!(seat.is_idle() && seat.requests() == 1);
        assert!(seat.sign_in() && !seat.sign_in() && seat.is_signed_in());
        let short = Duration::from_millis(5);
        assert!(timeout(short, seat.told_to_leave()).await.is_err());
        seat.tell();
        seat.told_to_leave().await;
    }
}
