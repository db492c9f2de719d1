//! Who asks is not let in: a session has ended, or what stands before the service wants a login.

use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};

use super::S3Error;

/// What is wrong with the answer of what stands before a service.
pub(in crate::s3) const PAGE: &str = "is no S3 answer: it is a page, or leads to one";

/// What is said of an access key, its session, or how it signs, whatever is asked.
const OF_KEYS: [&str; 10] = [
    "ExpiredToken",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "InvalidTokenId",
    "RequestExpired",
    "RequestInTheFuture",
    "RequestTimeTooSkewed",
    "SignatureDoesNotMatch",
    "TokenRefreshRequired",
];

impl S3Error {
    /// Whether nothing is answered to this access key, or to this session of it, any more.
    pub(crate) fn is_of_key(&self) -> bool {
        self.code().is_some_and(|code| OF_KEYS.contains(&code))
    }

    /// Whether who asks is not let in, by the service or by what stands before it. That says
    /// nothing of what was asked about.
    pub(crate) fn is_of_access(&self) -> bool {
        let is_denied = self.code() == Some("AccessDenied");
        // Whatever code it has: who asks is to sign in.
        let is_unauthorized = matches!(self, Self::Refused { status: 401, .. });
        is_denied || is_unauthorized || self.is_of_key() || matches!(self, Self::Unreadable { .. })
    }
}

/// Whether an answer that is no success is none of S3's, but leads to a login, or is the page of
/// one. Pages about what is missing, or about failures, are of services and what balances them.
pub(in crate::s3) fn is_login(status: StatusCode, headers: &HeaderMap, body: &[u8]) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(|kind| kind.as_bytes());
    let kind = kind.unwrap_or_default().to_ascii_lowercase();
    let is_page = kind.starts_with(b"text/html") && !body.starts_with(b"<?xml");
    match status.as_u16() {
        302 | 303 | 407 | 511 => true,
        301 | 307 | 308 | 401 | 403 => is_page,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn a_demand_to_sign_in_says_nothing_of_what_was_asked_about() {
        let refused = S3Error::refused;
        assert!(refused(401, "Unauthorized").is_of_access());
        assert!(refused(403, "AccessDenied").is_of_access());
        assert!(!refused(403, "InvalidObjectState").is_of_access());
    }

    #[test]
    fn logins_are_told_from_refusals() {
        let page = b"<!DOCTYPE html><title>Log in</title>".as_slice();
        let refusal = b"<?xml version=\"1.0\"?><Error><Code>AccessDenied</Code></Error>".as_slice();
        for (status, kind, body, expected) in [
            (302, "", b"".as_slice(), true),
            (511, "text/html", page, true),
            (403, "Text/HTML; charset=utf-8", page, true),
            (307, "text/html", page, true),
            (403, "application/xml", refusal, false),
            (403, "text/html", refusal, false),
            (403, "", b"", false),
            (404, "text/html", page, false),
            (503, "text/html", page, false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
            let status = StatusCode::from_u16(status).unwrap();
            assert_eq!(
                is_login(status, &headers, body),
                expected,
                "{status} {kind}"
            );
        }
    }
}
