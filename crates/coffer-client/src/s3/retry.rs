//! When a request is sent again.

use std::time::Duration;

use aws_lc_rs::rand;
use http::HeaderMap;

use crate::limits::{S3_RETRY_FIRST, S3_RETRY_LONGEST};
use crate::s3::error::S3Error;

/// What a server says became of a request that it could not answer as done, where asking again does
/// not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done there, and may not be kept: asked again, it would be done twice.
    InDoubt,
    /// Nothing was done, and nothing will be before an operator acts.
    Refused,
}

impl Outcome {
    /// What the header of a coffer says. Other servers have none.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        match headers.get("x-coffer-outcome")?.as_bytes() {
            b"in-doubt" => Some(Self::InDoubt),
            b"refused" => Some(Self::Refused),
            _ => None,
        }
    }
}

impl S3Error {
    /// Whether to send the same request again: it may go well after a while, and the server does
    /// not say that asking does not help.
    pub(super) fn is_worth_asking_again(&self) -> bool {
        self.is_passing() && self.outcome().is_none()
    }

    /// Whether the server says that it does no such thing before an operator acts.
    pub(crate) fn is_refused_for_good(&self) -> bool {
        self.outcome() == Some(Outcome::Refused)
    }

    fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Refused { outcome, .. } => *outcome,
            _ => None,
        }
    }
}

/// How long to wait before the attempt of this number, counted from one: at most twice as long as
/// before the last, and any time up to that, so that clients who were refused together don't come
/// back together. What the server asks for is added.
pub(super) fn pause(attempt: u32, error: &S3Error) -> Duration {
    let doubled = 2u32.saturating_pow(attempt.saturating_sub(1).min(16));
    let longest = S3_RETRY_FIRST.saturating_mul(doubled).min(S3_RETRY_LONGEST);
    let asked = match error {
        S3Error::Refused {
            retry_after: Some(asked),
            ..
        } => (*asked).min(S3_RETRY_LONGEST),
        _ => Duration::ZERO,
    };
    asked + longest.mul_f64(0.5 + chance() / 2.0)
}

/// Any number from zero to one.
fn chance() -> f64 {
    let mut bytes = [0; 4];
    // Without chance it is the longest.
    match rand::fill(&mut bytes) {
        Ok(()) => f64::from(u32::from_le_bytes(bytes)) / f64::from(u32::MAX),
        Err(_) => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, StatusCode};
    use time::OffsetDateTime;

    use super::*;

    #[test]
    fn what_a_server_says_is_settled_is_not_asked_again() {
        let refused = |outcome: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert("x-coffer-outcome", HeaderValue::from_static(outcome));
            let now = OffsetDateTime::UNIX_EPOCH;
            let status = StatusCode::SERVICE_UNAVAILABLE;
            let body = b"<Error><Code>ServiceUnavailable</Code></Error>";
            S3Error::of_answer(status, &headers, body, now)
        };
        for (outcome, is_asked_again, is_doubtful) in [
            ("in-doubt", false, true),
            ("refused", false, false),
            ("another", true, true),
        ] {
            let error = refused(outcome);
            assert_eq!(error.is_worth_asking_again(), is_asked_again, "{outcome}");
            assert_eq!(error.is_doubtful(), is_doubtful, "{outcome}");
            assert!(error.is_passing(), "what was begun is kept");
        }
    }

    #[test]
    fn pauses_grow_have_an_end_and_differ() {
        let broken = S3Error::Broken {
            endpoint: String::new(),
            problem: String::new(),
        };
        for attempt in [1, 2, 3, 10, 1000] {
            let longest = S3_RETRY_FIRST * 2u32.pow((attempt - 1).min(10));
            let longest = longest.min(S3_RETRY_LONGEST);
            let pauses: Vec<_> = (0..20).map(|_| pause(attempt, &broken)).collect();
            for pause in &pauses {
                assert!(*pause >= longest / 2 && *pause <= longest, "{pause:?}");
            }
            assert!(pauses.iter().any(|pause| *pause != pauses[0]));
        }
        let asked = S3Error::Refused {
            status: 503,
            code: String::new(),
            message: String::new(),
            advice: String::new(),
            retry_after: Some(Duration::from_secs(3600)),
            outcome: None,
        };
        assert!(pause(1, &asked) >= S3_RETRY_LONGEST);
        assert!(pause(1, &asked) <= S3_RETRY_LONGEST + S3_RETRY_FIRST);
    }
}
