//! Booleans, which S3 takes in any letter case.

use http::{HeaderMap, HeaderName, HeaderValue, Uri};
use s3s::{S3Result, s3_error};

use crate::http::single;
use crate::parameters::lock;

/// Headers that are true or false, and the one parameter that is: in any letter case, as on S3.
const BOOLEANS: [&str; 4] = [
    lock::BYPASS,
    "x-amz-bucket-object-lock-enabled",
    "x-amz-confirm-remove-self-bucket-access",
    "x-amz-server-side-encryption-bucket-key-enabled",
];
const BOOLEAN_PARAMETER: &str = "fetch-owner=";

/// A boolean as s3s reads it, if it is one.
fn plain_boolean(text: &[u8]) -> Option<&'static str> {
    ["true", "false"]
        .into_iter()
        .find(|plain| text.eq_ignore_ascii_case(plain.as_bytes()))
}

/// Looks at values first: nearly no request has one that is true or false, let alone in capitals.
pub(super) fn make_booleans_plain(headers: &mut HeaderMap) {
    let is_odd = |(name, value): &(&HeaderName, &HeaderValue)| {
        let plain = plain_boolean(value.as_bytes());
        plain.is_some_and(|plain| *value != plain) && BOOLEANS.contains(&name.as_str())
    };
    let odd: Vec<_> = { headers.iter().filter(is_odd) }
        .map(|(name, _)| name.clone())
        .collect();
    for name in odd {
        let plain = single(headers, name.clone()).and_then(|text| plain_boolean(text.as_bytes()));
        if let Some(plain) = plain {
            headers.insert(name, HeaderValue::from_static(plain));
        }
    }
}

/// The address with its booleans as s3s reads them, where it has some.
pub(super) fn with_plain_booleans(uri: &Uri) -> S3Result<Option<Uri>> {
    let query = uri.query().unwrap_or("");
    if !query.contains(BOOLEAN_PARAMETER) {
        return Ok(None);
    }
    let plain = |pair: &str| match pair.strip_prefix(BOOLEAN_PARAMETER) {
        Some(value) => {
            let value = plain_boolean(value.as_bytes()).unwrap_or(value);
            format!("{BOOLEAN_PARAMETER}{value}")
        }
        None => pair.to_owned(),
    };
    let pairs: Vec<_> = query.split('&').map(plain).collect();
    let text = format!("{}?{}", uri.path(), pairs.join("&"));
    text.parse().map(Some).map_err(|_| s3_error!(InvalidURI))
}
