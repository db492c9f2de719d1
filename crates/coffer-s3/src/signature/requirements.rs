//! What S3 requires of a signature besides that it is right, which s3s checks.
//!
//! s3s takes headers that the signature does not cover. Whoever holds a presigned URL could then
//! add `x-amz-copy-source` to it and read any object as the signer. S3 wants `host` and every
//! `x-amz-` header signed, and so do we.
//!
//! boto3 presigns by version 2 unless it is told otherwise, so URLs of that version are good, too,
//! within bounds that it does not have by itself: they live as long as others, and carry nothing
//! that selects another operation without being signed. Requests signed by version 2 in headers
//! are refused, for no client of today makes them; and so are HTML forms, which s3s holds in
//! memory whole.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue, Method, header};
use s3s::region::Region;
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::not_implemented;
use crate::http::percent::form_pairs;
use crate::limits::PRESIGNED_MAX_SECONDS;

/// Not covered by every signature: the payload's hash is part of what is signed in any case, and
/// content delivery networks add the other.
const UNSIGNED_HEADERS: [&str; 2] = ["x-amz-content-sha256", "x-amz-cf-id"];

/// What the query of a URL presigned by version 2 may hold: the signature itself, what it covers
/// (Amazon S3 User Guide, "Signing and authenticating REST requests", `CanonicalizedResource`), and
/// the parameters of listings, which it does not cover and which select no operation.
const VERSION_2_QUERY: [&str; 35] = [
    "AWSAccessKeyId",
    "Expires",
    "Signature",
    "acl",
    "continuation-token",
    "cors",
    "delete",
    "delimiter",
    "encoding-type",
    "fetch-owner",
    "key-marker",
    "lifecycle",
    "list-type",
    "location",
    "logging",
    "marker",
    "max-keys",
    "max-parts",
    "max-uploads",
    "notification",
    "part-number-marker",
    "partNumber",
    "policy",
    "prefix",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "start-after",
    "tagging",
    "upload-id-marker",
    "uploadId",
    "uploads",
];

/// What this server calls its region, where a client wants to know.
pub(crate) const REGION: &str = "us-east-1";

/// Refuses what s3s would let pass.
pub(crate) fn check(method: &Method, query: &str, headers: &HeaderMap) -> S3Result {
    refuse_forms(method, headers)?;
    let pairs = form_pairs(query).ok_or_else(|| {
        s3_error!(
            InvalidURI,
            "The query of the address is not percent-encoded UTF-8"
        )
    })?;
    let of_query = |name: &str| {
        let pair = pairs.iter().find(|(key, _)| key == name);
        pair.map(|(_, value)| value.as_str())
    };
    let authorization = authorization(headers)?;
    if of_query("Signature").is_some() {
        let is_alone = authorization.is_none() && of_query("X-Amz-Signature").is_none();
        return match is_alone {
            true => check_version_2(&pairs, headers, now_seconds()),
            false => Err(two_signatures()),
        };
    }
    match (authorization, of_query("X-Amz-Signature")) {
        (None, None) => Ok(()), // anonymous: refused once the operation is known
        (Some(text), None) => {
            check_region(field(text, "Credential="))?;
            covers(field(text, "SignedHeaders="), headers)
        }
        (None, Some(_)) => {
            check_region(of_query("X-Amz-Credential").unwrap_or(""))?;
            check_life(of_query("X-Amz-Expires").unwrap_or(""))?;
            covers(of_query("X-Amz-SignedHeaders").unwrap_or(""), headers)
        }
        (Some(_), Some(_)) => Err(two_signatures()),
    }
}

fn two_signatures() -> S3Error {
    s3_error!(
        InvalidArgument,
        "Only one auth mechanism allowed; only the X-Amz-Algorithm query parameter, the Signature \
         query parameter or the Authorization header should be specified"
    )
}

/// What must be true of a URL presigned by version 2, besides that it is signed and has not
/// expired, which s3s checks.
fn check_version_2(pairs: &[(String, String)], headers: &HeaderMap, now_seconds: u64) -> S3Result {
    for (place, (name, value)) in pairs.iter().enumerate() {
        // boto3 repeats in the query what headers it has signed; others come from who uses the URL.
        let is_covered = VERSION_2_QUERY.contains(&name.as_str())
            || (covered_by_version_2(name)
                && headers.get(name).is_some_and(|header| header == value));
        // What stands there twice is not covered.
        if !is_covered || pairs[..place].iter().any(|(other, _)| other == name) {
            return Err(s3_error!(
                AccessDenied,
                "A URL presigned by version 2 can't have this parameter, or not twice, or not \
                 without a header of the same name and value: {name}. Please use AWS4-HMAC-SHA256."
            ));
        }
        let expires = value.parse::<u64>().unwrap_or(0);
        if name == "Expires" && expires > now_seconds.saturating_add(PRESIGNED_MAX_SECONDS) {
            return Err(s3_error!(
                AccessDenied,
                "Expires must be less than a week from now"
            ));
        }
    }
    // s3s decodes no chunks without a signature that says how they are signed.
    let content_sha256 = headers
        .get("x-amz-content-sha256")
        .map(HeaderValue::as_bytes);
    match content_sha256.is_some_and(|hash| hash.starts_with(b"STREAMING-")) {
        true => Err(s3_error!(
            InvalidRequest,
            "A URL presigned by version 2 can't be sent a body in aws-chunked encoding"
        )),
        false => Ok(()),
    }
}

/// Whether a signature of version 2 covers a header of this name.
fn covered_by_version_2(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || ["content-md5", "content-type"].contains(&name.as_str())
}

fn now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

fn refuse_forms(method: &Method, headers: &HeaderMap) -> S3Result {
    const FORM: &[u8] = b"multipart/form-data";
    let content_type = headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes);
    let start = content_type.and_then(|kind| kind.trim_ascii_start().get(..FORM.len()));
    match method == Method::POST && start.is_some_and(|start| start.eq_ignore_ascii_case(FORM)) {
        true => Err(not_implemented("Uploading by an HTML form (POST Object)")),
        false => Ok(()),
    }
}

/// The `Authorization` header, if there is one.
fn authorization(headers: &HeaderMap) -> S3Result<Option<&str>> {
    let mut values = headers.get_all(header::AUTHORIZATION).iter();
    let Some(value) = values.next() else {
        return Ok(None);
    };
    if values.next().is_some() {
        return Err(s3_error!(
            InvalidRequest,
            "There may be only one Authorization header"
        ));
    }
    let text = value.to_str().unwrap_or("");
    match text
        .get(..4)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("AWS "))
    {
        true => Err(s3_error!(
            InvalidRequest,
            "The authorization mechanism you have provided is not supported. Please use \
             AWS4-HMAC-SHA256."
        )),
        false => Ok(Some(text)),
    }
}

/// How long a presigned URL is good for; what is no number, s3s refuses.
fn check_life(seconds: &str) -> S3Result {
    match seconds.parse::<u64>() {
        Ok(seconds) if seconds > PRESIGNED_MAX_SECONDS => Err(s3_error!(
            AuthorizationQueryParametersError,
            "X-Amz-Expires must be less than a week (in seconds); that is, the given X-Amz-Expires \
             must be less than 604800 seconds"
        )),
        _ => Ok(()),
    }
}

/// A field of an `Authorization` header.
pub(crate) fn field<'a>(authorization: &'a str, name: &str) -> &'a str {
    let rest = authorization.split_once(name).map_or("", |(_, rest)| rest);
    rest.split_once(',').map_or(rest, |(value, _)| value)
}

/// Any region will do that is spelled like one, but s3s can't take others. S3 answers a wrong
/// region so, and names the right one; s3cmd signs for `US` at first and relies on it.
fn check_region(credential: &str) -> S3Result {
    let region = credential.split('/').nth(2).unwrap_or("");
    if region.is_empty() || Region::new(region.into()).is_ok() {
        return Ok(());
    }
    Err(s3_error!(
        AuthorizationHeaderMalformed,
        "The authorization header is malformed; the region '{region}' is wrong; expecting \
         '{REGION}'"
    ))
}

fn covers(signed: &str, headers: &HeaderMap) -> S3Result {
    let is_signed = |name: &str| signed.split(';').any(|one| one == name);
    if !is_signed("host") && headers.contains_key(header::HOST) {
        return Err(s3_error!(
            AccessDenied,
            "'Host' must be a 'SignedHeader' in the AWS Authorization."
        ));
    }
    let is_exempt = |name: &str| !name.starts_with("x-amz-") || UNSIGNED_HEADERS.contains(&name);
    for name in headers.keys().map(|name| name.as_str()) {
        if !is_exempt(name) && !is_signed(name) {
            return Err(s3_error!(
                AccessDenied,
                "There were headers present in the request which were not signed: {name}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};

    use super::*;

    fn code(method: Method, query: &str, pairs: &[(&'static str, &str)]) -> Option<String> {
        let header = |(name, value): &(&'static str, &str)| {
            (
                HeaderName::from_static(name),
                HeaderValue::from_str(value).unwrap(),
            )
        };
        let headers = pairs.iter().map(header).collect();
        check(&method, query, &headers)
            .err()
            .map(|error| error.code().as_str().to_owned())
    }

    const SIGNED: &str = concat!(
        "AWS4-HMAC-SHA256 Credential=A/20260101/r/s3/aws4_request, ",
        "SignedHeaders=host;x-amz-date, Signature=0"
    );

    #[test]
    fn every_amz_header_must_be_signed() {
        let signed = ("authorization", SIGNED);
        let host = ("host", "h");
        assert_eq!(
            code(Method::GET, "", &[signed, host, ("x-amz-date", "d")]),
            None
        );
        assert_eq!(
            code(
                Method::GET,
                "",
                &[signed, host, ("x-amz-content-sha256", "e")]
            ),
            None
        );
        let denied = Some("AccessDenied".to_owned());
        assert_eq!(
            code(
                Method::PUT,
                "",
                &[signed, host, ("x-amz-copy-source", "b/k")]
            ),
            denied
        );
        let query = "X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Expires=60";
        assert_eq!(code(Method::PUT, query, &[host]), None);
        assert_eq!(
            code(Method::PUT, query, &[host, ("x-amz-copy-source", "b/k")]),
            denied
        );
        let query = "X-Amz-Signature=0&X-Amz-SignedHeaders=host%3Bx-amz-acl&X-Amz-Expires=60";
        assert_eq!(
            code(Method::PUT, query, &[host, ("x-amz-acl", "private")]),
            None
        );
        let query = "X-Amz-Signature=0&X-Amz-SignedHeaders=range&X-Amz-Expires=60";
        assert_eq!(code(Method::GET, query, &[host]), denied);
    }

    #[test]
    fn regions_that_are_none_are_told_as_s3_does() {
        let us = SIGNED.replace("/r/", "/US/");
        let error = code(Method::GET, "", &[("authorization", &us)]);
        assert_eq!(error.as_deref(), Some("AuthorizationHeaderMalformed"));
        let query = "X-Amz-Signature=0&X-Amz-Credential=A%2F20260101%2FEU%2Fs3%2Faws4_request";
        let error = code(Method::GET, query, &[]);
        assert_eq!(error.as_deref(), Some("AuthorizationHeaderMalformed"));
    }

    #[test]
    fn presigned_urls_live_a_week_at_most() {
        let query = |seconds: u32| {
            format!("X-Amz-Signature=0&X-Amz-SignedHeaders=host&X-Amz-Expires={seconds}")
        };
        assert_eq!(code(Method::GET, &query(604_800), &[]), None);
        let error = code(Method::GET, &query(604_801), &[]);
        assert_eq!(error.as_deref(), Some("AuthorizationQueryParametersError"));
    }

    #[test]
    fn other_ways_to_sign_are_refused() {
        let invalid = Some("InvalidRequest".to_owned());
        assert_eq!(
            code(Method::GET, "", &[("authorization", "AWS AK:sig")]),
            invalid
        );
        let form = ("content-type", "multipart/form-data; boundary=x");
        assert_eq!(
            code(Method::POST, "", &[form]).as_deref(),
            Some("NotImplemented")
        );
        let both = code(
            Method::GET,
            "X-Amz-Signature=0",
            &[("authorization", SIGNED)],
        );
        assert_eq!(both.as_deref(), Some("InvalidArgument"));
        let both = code(Method::GET, "Signatur%65=x&X-Amz-Signature=0", &[]);
        assert_eq!(both.as_deref(), Some("InvalidArgument"));
    }

    #[test]
    fn version_2_carries_only_what_it_covers_and_for_a_week_at_most() {
        let check = |query: &str, pairs: &[(&'static str, &'static str)]| {
            let header = |&(name, value)| {
                let value = HeaderValue::from_static(value);
                (HeaderName::from_static(name), value)
            };
            let headers = pairs.iter().map(header).collect();
            check_version_2(&form_pairs(query).unwrap(), &headers, 1_000)
                .err()
                .map(|error| error.code().as_str().to_owned())
        };
        let url = |rest: &str| format!("AWSAccessKeyId=A&Signature=x&Expires={rest}");
        for good in [
            "0",
            "605800",
            "2000&uploadId=u&partNumber=1",
            "2000&list-type=2&prefix=p",
        ] {
            assert_eq!(check(&url(good), &[]), None, "{good}");
        }
        let denied = Some("AccessDenied".to_owned());
        for bad in [
            "605801",
            "2000&attributes",
            "2000&tagging&tagging",
            "2000&Expires=3000",
        ] {
            assert_eq!(check(&url(bad), &[]), denied, "{bad}");
        }
        // Headers of the same name and value vouch for a parameter if they are signed.
        let signed = [("content-type", "a/b"), ("x-amz-meta-a", "1")];
        let repeated = url("2000&Content-Type=a/b&x-amz-meta-a=1");
        assert_eq!(check(&repeated, &signed), None);
        assert_eq!(check(&repeated, &signed[..1]), denied);
        for unsigned in ["attributes", "encryption", "retention", "x-id"] {
            let url = url(&format!("2000&{unsigned}=1"));
            assert_eq!(check(&url, &[(unsigned, "1")]), denied, "{unsigned}");
        }
        let chunked = [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")];
        let error = check(&url("2000"), &chunked);
        assert_eq!(error.as_deref(), Some("InvalidRequest"));
    }
}
