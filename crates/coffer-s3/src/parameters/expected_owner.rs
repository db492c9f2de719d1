//! `x-amz-expected-bucket-owner` and its like for the source of a copy: whom a client takes a
//! bucket to belong to. All buckets belong to the server's account.

use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Result, s3_error};

const HEADERS: [&str; 2] = [
    "x-amz-expected-bucket-owner",
    "x-amz-source-expected-bucket-owner",
];

/// Refuses a request that expects another account than the one that there is, whatever bucket it
/// is about.
pub(crate) fn check(headers: &HeaderMap, account: &str) -> S3Result {
    let of_another = |(name, expected): (&HeaderName, &HeaderValue)| {
        HEADERS.contains(&name.as_str()) && expected.as_bytes() != account.as_bytes()
    };
    if headers.iter().any(of_another) {
        return Err(s3_error!(AccessDenied, "Access Denied"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn another_account_is_refused() {
        for name in HEADERS {
            let is_let_in = |account: &'static str| {
                let mut headers = HeaderMap::new();
                headers.insert(name, HeaderValue::from_static(account));
                check(&headers, "111122223333").is_ok()
            };
            assert!(is_let_in("111122223333"));
            for other in ["444455556666", "", "coffer"] {
                assert!(!is_let_in(other), "{name}: {other}");
            }
        }
        assert!(check(&HeaderMap::new(), "111122223333").is_ok());
    }
}
