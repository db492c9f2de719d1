//! `x-amz-expected-bucket-owner` and its like for the source of a copy: whom a client takes a
//! bucket to belong to. All buckets belong to the server's account.

use http::{HeaderMap, HeaderName, HeaderValue};
use s3s::{S3Result, s3_error};

const HEADERS: [&str; 2] = [
    "x-amz-expected-bucket-owner",
    "x-amz-source-expected-bucket-owner",
];

/// How many digits an account's id has.
const ACCOUNT_ID_BYTES: usize = 12;

/// Refuses a request that expects another account than the one that there is, whatever bucket it
/// is about, or what is no account's id.
///
/// # Errors
/// `AccessDenied`, `InvalidBucketOwnerAWSAccountID`.
pub(crate) fn check(headers: &HeaderMap, account: &str) -> S3Result {
    let is_asked = |(name, _): &(&HeaderName, &HeaderValue)| HEADERS.contains(&name.as_str());
    for (_, expected) in headers.iter().filter(is_asked) {
        let expected = expected.as_bytes();
        if expected == account.as_bytes() {
            continue;
        }
        if expected.len() == ACCOUNT_ID_BYTES && expected.iter().all(u8::is_ascii_digit) {
            return Err(s3_error!(AccessDenied, "Access Denied"));
        }
        return Err(s3_error!(
            InvalidBucketOwnerAWSAccountID,
            "The value of the expected bucket owner parameter must be an AWS account ID."
        ));
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
            let code = |account: &'static str| {
                let mut headers = HeaderMap::new();
                headers.insert(name, HeaderValue::from_static(account));
                let refused = check(&headers, "111122223333").err();
                refused.map(|error| error.code().as_str().to_owned())
            };
            assert_eq!(code("111122223333"), None);
            assert_eq!(code("444455556666").as_deref(), Some("AccessDenied"));
            for other in ["", "coffer", "44445555666a", "4444555566667", "1111222233"] {
                let expected = Some("InvalidBucketOwnerAWSAccountID");
                assert_eq!(code(other).as_deref(), expected, "{name}: {other}");
            }
        }
        assert!(check(&HeaderMap::new(), "111122223333").is_ok());
    }
}
