//! How long a request's head may take, as hyper asks for it.
//!
//! hyper makes a timer for each head and drops it when that has come; to set one of the runtime's
//! timers, and to take it back, takes a lock each. Here a connection has one alarm for all of its
//! heads, which is set anew only when it rings too early.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt;
use parking_lot::Mutex;
use tokio::time::{Instant, Sleep, sleep_until};

/// The timer of one connection.
#[derive(Debug, Default)]
pub struct HeadTimer(Arc<Mutex<Option<Pin<Box<Sleep>>>>>);

/// Sleeps until its time, by the connection's alarm: there is one at a time that is waited for.
struct HeadSleep {
    alarm: Arc<Mutex<Option<Pin<Box<Sleep>>>>>,
    deadline: Instant,
}

impl rt::Timer for HeadTimer {
    fn sleep(&self, duration: Duration) -> Pin<Box<dyn rt::Sleep>> {
        self.sleep_until(self.now() + duration)
    }

    fn sleep_until(&self, deadline: std::time::Instant) -> Pin<Box<dyn rt::Sleep>> {
        Box::pin(HeadSleep {
            alarm: self.0.clone(),
            deadline: deadline.into(),
        })
    }

    fn now(&self) -> std::time::Instant {
        Instant::now().into()
    }
}

impl rt::Sleep for HeadSleep {}

impl Future for HeadSleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        let mut alarm = self.alarm.lock();
        let alarm = alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        if deadline < alarm.deadline() {
            alarm.as_mut().reset(deadline);
        }
        loop {
            ready!(alarm.as_mut().poll(cx));
            if deadline <= Instant::now() {
                return Poll::Ready(());
            }
            alarm.as_mut().reset(deadline);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use hyper::rt::Timer;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    async fn seconds(sleep: Pin<Box<dyn rt::Sleep>>) -> u64 {
        let start = Instant::now();
        sleep.await;
        start.elapsed().as_secs()
    }

    #[tokio::test(start_paused = true)]
    async fn each_sleep_ends_in_its_own_time_by_the_same_alarm() {
        let (timer, start) = (HeadTimer::default(), Instant::now());
        for _ in 0..10 {
            let mut sleep = timer.sleep(10 * SECOND);
            assert!((&mut sleep).now_or_never().is_none());
            tokio::time::sleep(SECOND).await;
        }
        let set = timer.0.lock().as_ref().unwrap().deadline();
        assert_eq!((set - start).as_secs(), 10, "not set anew for each");
        // Though it rang before.
        assert_eq!(seconds(timer.sleep(10 * SECOND)).await, 10);
        let mut dropped = timer.sleep(100 * SECOND);
        assert!((&mut dropped).now_or_never().is_none());
        drop(dropped);
        // Earlier than what it was set to.
        assert_eq!(seconds(timer.sleep(SECOND)).await, 1);
    }
}
