//! When something was begun, by clocks that are not set meanwhile: an hour that a machine's clock
//! jumped over would let what was stored within it pass for what was sent.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use crate::limits::COMMIT_AGE_SLACK;
use crate::s3::error::date_of;
use crate::s3::objects::ObjectHead;

/// When a request was begun that stores something: what is older was there before.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Since {
    /// By the time that this machine has run for, asleep or not.
    Start(Duration),
    /// By the server's clock, in seconds since 1970: for uploads, which outlive a command.
    Server(u64),
}

impl Since {
    /// From now on.
    pub(crate) fn now() -> Self {
        Self::Start(since_start())
    }

    /// Whether an object was stored then or later. It was not if its head does not tell.
    pub(crate) fn is_before(self, head: &ObjectHead) -> bool {
        let Some(age) = head.age() else {
            return false;
        };
        match self {
            Self::Start(began) => age <= since_start().saturating_sub(began) + COMMIT_AGE_SLACK,
            Self::Server(seconds) => {
                let slack = COMMIT_AGE_SLACK.as_secs();
                let stored = date_of(&head.headers, "last-modified");
                let stored = stored.and_then(|at| u64::try_from(at.unix_timestamp()).ok());
                stored.is_some_and(|stored| stored.saturating_add(slack) >= seconds)
            }
        }
    }
}

/// A time that can be kept, for as long as this machine is not started anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct KeptTime {
    /// Which of the machine's starts it is of.
    start: String,
    /// Milliseconds after that.
    ms: u64,
}

impl KeptTime {
    /// Now; none, where the machine's start has no name.
    pub(crate) fn now() -> Option<Self> {
        Some(Self {
            start: start()?,
            ms: u64::try_from(since_start().as_millis()).ok()?,
        })
    }

    /// From then on; none of another start.
    pub(crate) fn since(&self) -> Option<Since> {
        (Some(&self.start) == start().as_ref())
            .then(|| Since::Start(Duration::from_millis(self.ms)))
    }
}

/// What names the machine's start (random(4)).
fn start() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(name.trim().to_owned()).filter(|name| !name.is_empty())
}

/// When a request was asked, in seconds since 1970 by the clock of the server that has just
/// answered it; by this machine's where it tells no date.
pub(super) fn asked_at(asked: Instant, headers: &HeaderMap) -> u64 {
    let answered = date_of(headers, "date").and_then(|at| u64::try_from(at.unix_timestamp()).ok());
    let answered = answered.unwrap_or_else(|| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.unwrap_or_default().as_secs()
    });
    answered.saturating_sub(asked.elapsed().as_secs())
}

/// Since the machine was started, also while it slept.
fn since_start() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const STORED: &str = "Tue, 14 Nov 2023 22:13:20 GMT";
    const STORED_SECONDS: u64 = 1_700_000_000;

    fn head(date: &'static str) -> ObjectHead {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("content-length", "1"),
            ("date", date),
            ("last-modified", STORED),
        ] {
            headers.insert(name, HeaderValue::from_static(value));
        }
        ObjectHead::of_headers(headers).unwrap()
    }

    #[test]
    fn what_a_server_stored_since_is_told_by_its_own_clock() {
        let a_year_later = head("Thu, 14 Nov 2024 22:13:20 GMT");
        for (began, is_before) in [
            (0, true),
            (STORED_SECONDS, true),
            (STORED_SECONDS + 2, true),
            (STORED_SECONDS + 3, false),
        ] {
            assert_eq!(
                Since::Server(began).is_before(&a_year_later),
                is_before,
                "{began}"
            );
        }
        // Stored an hour after its answer: its clock was set back.
        assert!(!Since::Server(0).is_before(&head("Tue, 14 Nov 2023 21:13:20 GMT")));
    }

    #[test]
    fn what_is_older_than_a_request_was_there_before() {
        assert!(Since::now().is_before(&head(STORED)));
        assert!(!Since::now().is_before(&head("Tue, 14 Nov 2023 22:13:24 GMT")));
        let Since::Start(now) = Since::now() else {
            panic!()
        };
        let a_minute_ago = now.saturating_sub(Duration::from_secs(60));
        let earlier = Since::Start(a_minute_ago);
        let was_running = now.as_secs() >= 60;
        assert!(!was_running || earlier.is_before(&head("Tue, 14 Nov 2023 22:13:50 GMT")));
    }

    #[test]
    fn a_kept_time_is_of_one_start() {
        let kept = KeptTime::now().unwrap();
        let text = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<KeptTime>(&text).unwrap(), kept);
        assert!(kept.since().unwrap().is_before(&head(STORED)));
        let of_another = KeptTime {
            start: "before".to_owned(),
            ..kept
        };
        assert!(of_another.since().is_none());
    }

    #[test]
    fn an_upload_begins_as_it_is_asked_for() {
        let told = HeaderMap::from_iter([(http::header::DATE, HeaderValue::from_static(STORED))]);
        assert_eq!(asked_at(Instant::now(), &told), STORED_SECONDS);
        let Some(earlier) = Instant::now().checked_sub(Duration::from_secs(7)) else {
            return;
        };
        assert!((7..=8).contains(&(STORED_SECONDS - asked_at(earlier, &told))));
    }
}
