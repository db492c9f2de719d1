//! What a server says became of what it could not answer as done.

use http::HeaderMap;

use super::S3Error;

/// What a server says became of a request that it could not answer as done, where asking again does
/// not help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is done, and what is to be written of it beside is not: asked again, it would be done
    /// twice.
    Done,
    /// It is done there, and may not be kept: asked again, it would be done twice.
    InDoubt,
    /// Nothing was done, and nothing will be before an operator acts.
    Refused,
}

impl Outcome {
    /// What the header of a coffer says. Other servers have none.
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        match headers.get("x-coffer-outcome")?.as_bytes() {
            b"done" => Some(Self::Done),
            b"in-doubt" => Some(Self::InDoubt),
            b"refused" => Some(Self::Refused),
            _ => None,
        }
    }
}

impl S3Error {
    /// Whether to send the same request again: it may go well after a while, and the server does
    /// not say that asking does not help.
    pub(in crate::s3) fn is_worth_asking_again(&self) -> bool {
        self.is_passing() && self.outcome().is_none()
    }

    /// Whether the server says that it does no such thing before an operator acts.
    pub(crate) fn is_refused_for_good(&self) -> bool {
        self.outcome() == Some(Outcome::Refused)
    }

    /// Whether the server says what became of it for certain.
    pub(in crate::s3) fn is_certain(&self) -> bool {
        matches!(self.outcome(), Some(Outcome::Done | Outcome::Refused))
    }

    fn outcome(&self) -> Option<Outcome> {
        match self {
            Self::Refused { outcome, .. } => *outcome,
            _ => None,
        }
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
            ("done", false, false),
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
}
