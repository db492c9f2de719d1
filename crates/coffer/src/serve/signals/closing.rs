//! Closing what was served: a disk that hangs may keep it from ending, and must not keep the
//! process.

use std::future::pending;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

use crate::error::Error;
use crate::limits::GATEWAY_UNFIT_AFTER;
use crate::serve::signals::Signals;

/// Waits until this has closed what was served. With a patience the process is to end: it does not
/// wait for longer, nor where a signal asks again. Without one the first signal asks for the end.
/// Gives whether one did.
///
/// Nothing is lost by ending without it: what was acknowledged is durable.
///
/// # Errors
/// [`Error::Unclosed`]: it takes too long, or panicked.
pub async fn close_in_time(
    closing: impl Future<Output = ()> + Send + 'static,
    signals: &mut Signals,
    patience: Option<Duration>,
) -> Result<bool, Error> {
    // A task of its own: what hangs in it keeps this one from nothing.
    let mut closing = tokio::spawn(closing);
    let mut end = patience.map(|patience| Instant::now() + patience);
    let mut is_asked = false;
    loop {
        let over = async {
            match end {
                Some(end) => sleep_until(end).await,
                None => pending().await,
            }
        };
        tokio::select! {
            closed = &mut closing => {
                let unclosed = |error| Error::Unclosed { why: format!("that failed: {error}") };
                return closed.map(|()| is_asked).map_err(unclosed);
            }
            () = over => {
                let why = "it took too long, as where a disk hangs".to_owned();
                return Err(Error::Unclosed { why });
            }
            name = signals.next() => {
                if end.is_some() {
                    let why = format!("{name} asked again for the end before it was");
                    return Err(Error::Unclosed { why });
                }
                tracing::info!(signal = name, "stopping: what was served is being closed");
                is_asked = true;
                end = Some(Instant::now() + GATEWAY_UNFIT_AFTER);
            }
        }
    }
}

/// How long closing may take where requests might take so long to end.
pub fn patience_of(shutdown_timeout: Duration) -> Duration {
    shutdown_timeout.max(GATEWAY_UNFIT_AFTER)
}

#[cfg(test)]
mod tests {
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    async fn told(
        closing: impl Future<Output = ()> + Send + 'static,
        patience: Option<Duration>,
    ) -> Result<bool, String> {
        let mut signals = Signals::catch().expect("they are caught");
        let closed = close_in_time(closing, &mut signals, patience).await;
        closed.map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn what_fails_or_hangs_as_it_is_closed_is_told_and_can_be_ended() {
        let patience = Some(Duration::from_millis(50));
        assert_eq!(told(async {}, patience).await, Ok(false));
        assert_eq!(told(async {}, None).await, Ok(false));
        let failed = told(async { panic!("of a test") }, None).await;
        assert!(failed.is_err_and(|told| told.contains("panicked") && told.contains("kept")));
        let hung = told(pending(), patience).await;
        assert!(hung.is_err_and(|told| told.contains("too long")));
        // Here as well, for signals reach all tests of the process.
        let mut signals = Signals::catch().expect("they are caught");
        kill_process(getpid(), Signal::TERM).expect("it is sent");
        let patience = Some(Duration::from_secs(60));
        let closed = close_in_time(pending(), &mut signals, patience).await;
        assert!(closed.is_err_and(|error| error.to_string().contains("SIGTERM asked again")));
        // Where nothing had asked for the end, the first one does.
        kill_process(getpid(), Signal::TERM).expect("it is sent");
        let closing = tokio::time::sleep(Duration::from_millis(500));
        let closed = close_in_time(closing, &mut signals, None).await;
        assert_eq!(closed.ok(), Some(true));
    }
}
