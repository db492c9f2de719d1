//! URLs presigned by version 2, as boto3 makes them unless it is told otherwise (Amazon S3 User
//! Guide, "Signing and authenticating REST requests").
//!
//! They are good within bounds that the version does not have by itself: they live as long as
//! others, and carry nothing that selects another operation without being signed.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method};
use s3s::{S3Error, S3Result, s3_error};
use zeroize::Zeroizing;

use crate::errors::details;
use crate::errors::mismatches::compared;
use crate::http::hosts::Domains;
use crate::http::number;
use crate::limits::PRESIGNED_MAX_SECONDS;
use crate::parameters::customer_key;
use crate::signature::requirements::{Pairs, does_not_match, refuse_own_headers, value_of};

/// What the query of a URL presigned by version 2 may hold: the signature itself, what it covers
/// (Amazon S3 User Guide, "Signing and authenticating REST requests", `CanonicalizedResource`), and
/// the parameters of listings, which it does not cover and which select no operation.
const VERSION_2_QUERY: [&str; 41] = [
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
    "requestPayment",
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
    "version-id-marker",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// The parameters of a query that the signature covers, in their order, of those that such a URL
/// may have.
const COVERED: [&str; 23] = [
    "acl",
    "cors",
    "delete",
    "lifecycle",
    "location",
    "logging",
    "notification",
    "partNumber",
    "policy",
    "requestPayment",
    "response-cache-control",
    "response-content-disposition",
    "response-content-encoding",
    "response-content-language",
    "response-content-type",
    "response-expires",
    "tagging",
    "uploadId",
    "uploads",
    "versionId",
    "versioning",
    "versions",
    "website",
];

/// Checks a presigned URL with the secret of its access key.
pub(crate) fn check_presigned(
    head: &Parts,
    query: &Pairs,
    domains: &Domains,
    now_seconds: i64,
    secret: impl FnOnce(&str) -> S3Result<Zeroizing<String>>,
) -> S3Result {
    check_query(query, &head.headers, now_seconds.unsigned_abs())?;
    let of_query = |name: &str| {
        value_of(query, name).ok_or_else(|| {
            s3_error!(
                AccessDenied,
                "Query-string authentication requires the Signature, Expires and AWSAccessKeyId \
                 parameters"
            )
        })
    };
    let (expires, access_key_id) = (of_query("Expires")?, of_query("AWSAccessKeyId")?);
    let until: i64 = number(expires).ok_or_else(|| {
        s3_error!(
            AccessDenied,
            "Invalid date (should be seconds since epoch): {expires}"
        )
    })?;
    if now_seconds > until {
        let told = vec![
            ("Expires", details::written(until)),
            ("ServerTime", details::written(now_seconds)),
        ];
        let error = s3_error!(AccessDenied, "Request has expired");
        return Err(details::with(error, told));
    }
    let secret = secret(access_key_id)?;
    let signature = of_query("Signature")?;
    let signed = |headers: &HeaderMap, path: &str| {
        string_to_sign((&head.method, headers), query, expires, path)
    };
    let to_sign = |path: &str| signed(&head.headers, path);
    let is_right = |path: &str| is_signature(signature, &secret, &to_sign(path));
    let host = head.headers.get("host").and_then(|host| host.to_str().ok());
    let path = match host.and_then(|host| domains.bucket(host)) {
        Some(bucket) => format!("/{bucket}{}", head.uri.path()),
        None => head.uri.path().to_owned(),
    };
    // A bucket is signed with a slash after it, whether its address has one or not.
    let names_bucket = path.len() > 1 && !path[1..].contains('/');
    if is_right(&path) || (names_bucket && is_right(&format!("{path}/"))) {
        return Ok(());
    }
    // A key that it has brought along is among what the client has signed.
    let is_told = !customer_key::is_sent(&head.headers, query);
    let to_sign = is_told.then(|| to_sign(&path));
    let claimed = (access_key_id, signature);
    let is_without = |names: &&[&str]| {
        let mut headers = head.headers.clone();
        let are_sent = { names.iter() }.all(|name| headers.remove(*name).is_some());
        are_sent && is_signature(signature, &secret, &signed(&headers, &path))
    };
    let unsigned = ADDED_BY_CLIENTS.into_iter().find(is_without);
    Err(compared(
        unsigned.map_or_else(does_not_match, signed_without),
        claimed,
        to_sign.as_deref(),
        None,
    ))
}

/// Headers that clients may add by themselves to what was signed without them: each, and both.
const ADDED_BY_CLIENTS: [&[&str]; 3] = [
    &["Content-Type"],
    &["Content-MD5"],
    &["Content-Type", "Content-MD5"],
];

fn signed_without(names: &[&str]) -> S3Error {
    let (names, sent) = match names {
        [name] => ((*name).to_owned(), "one"),
        names => (names.join(" and a "), "both"),
    };
    s3_error!(
        SignatureDoesNotMatch,
        "The request signature we calculated does not match the signature you provided. The URL \
         was signed without a {names}, and the request has {sent}: send none, or sign that, too."
    )
}

/// Whether this is the signature of a text by version 2.
pub(crate) fn is_signature(signature: &str, secret: &str, text: &[u8]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, secret.as_bytes());
    let expected = BASE64.encode(hmac::sign(&key, text));
    verify_slices_are_equal(expected.as_bytes(), signature.as_bytes()).is_ok()
}

/// What must be true of a URL presigned by version 2, besides that it is signed and has not
/// expired.
fn check_query(pairs: &Pairs, headers: &HeaderMap, now_seconds: u64) -> S3Result {
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
        let expires = number(value).unwrap_or(0);
        if name == "Expires" && expires > now_seconds.saturating_add(PRESIGNED_MAX_SECONDS) {
            return Err(s3_error!(
                AccessDenied,
                "Expires must be less than a week from now"
            ));
        }
    }
    refuse_own_headers(headers)?;
    // Nothing that is signed says how chunks are.
    let content_sha256 = headers
        .get("x-amz-content-sha256")
        .map(HeaderValue::as_bytes);
    if content_sha256.is_some_and(|hash| hash.starts_with(b"STREAMING-")) {
        return Err(s3_error!(
            InvalidRequest,
            "A URL presigned by version 2 can't be sent a body in aws-chunked encoding"
        ));
    }
    Ok(())
}

/// Whether a signature of version 2 covers a header of this name.
fn covered_by_version_2(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.starts_with("x-amz-") || ["content-md5", "content-type"].contains(&name.as_str())
}

fn string_to_sign(
    (method, headers): (&Method, &HeaderMap),
    query: &Pairs,
    expires: &str,
    path: &str,
) -> Vec<u8> {
    let mut text = format!("{method}\n").into_bytes();
    for name in ["content-md5", "content-type"] {
        let value = { headers.get(name) }.map_or(&b""[..], |value| value.as_bytes());
        text.extend_from_slice(value);
        text.push(b'\n');
    }
    text.extend_from_slice(format!("{expires}\n").as_bytes());
    let mut names: Vec<_> = headers.keys().map(|name| name.as_str()).collect();
    names.retain(|name| name.starts_with("x-amz-"));
    names.sort_unstable();
    for name in names {
        let values = headers.get_all(name).iter();
        let values: Vec<_> = values.map(|value| value.as_bytes().trim_ascii()).collect();
        text.extend_from_slice(format!("{name}:").as_bytes());
        text.extend_from_slice(&values.join(&b','));
        text.push(b'\n');
    }
    text.extend_from_slice(path.as_bytes());
    let mut separator = '?';
    for name in COVERED {
        if let Some(value) = value_of(query, name) {
            let equals = if value.is_empty() { "" } else { "=" };
            text.extend_from_slice(format!("{separator}{name}{equals}{value}").as_bytes());
            separator = '&';
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, Request};

    use super::*;
    use crate::http::percent::form_pairs;
    use crate::signature::signer::tests::{ID, SECRET};

    fn check(host: &str, path: &str, signature: &str, now_seconds: i64) -> Option<String> {
        let query = format!("AWSAccessKeyId={ID}&Signature={signature}&Expires=1175139620");
        let request = Request::get(format!("{path}?{query}")).header("host", host);
        let head = request.body(()).unwrap().into_parts().0;
        let domains = Domains::new(&["s3.us-west-1.amazonaws.com".to_owned()]);
        let secret = |_: &str| Ok(Zeroizing::new(SECRET.to_owned()));
        let pairs = form_pairs(&query).unwrap();
        check_presigned(&head, &pairs, &domains, now_seconds, secret)
            .err()
            .map(|error| error.code().as_str().to_owned())
    }

    /// A moment before the URLs below expire.
    const NOW: i64 = 1_175_139_600;

    fn sign(text: &str) -> String {
        let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
        let signature = BASE64.encode(hmac::sign(&key, text.as_bytes()));
        signature.replace('+', "%2B")
    }

    #[test]
    fn urls_are_presigned_in_both_styles() {
        let signature = sign("GET\n\n\n1175139620\n/buc/photos/puppy.jpg");
        let virtual_host = "buc.s3.us-west-1.amazonaws.com";
        let refused = |code: &str| Some(code.to_owned());
        assert_eq!(
            check(virtual_host, "/photos/puppy.jpg", &signature, NOW),
            None
        );
        assert_eq!(check("h", "/buc/photos/puppy.jpg", &signature, NOW), None);
        let wrong = check("h", "/buc/photos/puppy.png", &signature, NOW);
        assert_eq!(wrong, refused("SignatureDoesNotMatch"));
        let late = check("h", "/buc/photos/puppy.jpg", &signature, 1_175_139_621);
        assert_eq!(late, refused("AccessDenied"));
    }

    #[test]
    fn a_header_that_is_there_and_was_not_signed_is_named() {
        let told = |signature: &str| {
            let query = format!("AWSAccessKeyId={ID}&Signature={signature}&Expires=1175139620");
            let request = Request::put(format!("/buc/k?{query}")).header("host", "h");
            let request = request.header("content-type", "text/plain").body(());
            let head = request.unwrap().into_parts().0;
            let secret = |_: &str| Ok(Zeroizing::new(SECRET.to_owned()));
            let pairs = form_pairs(&query).unwrap();
            let checked = check_presigned(&head, &pairs, &Domains::new(&[]), NOW, secret);
            checked.err().map(|error| {
                let message = error.message().unwrap_or_default().to_owned();
                (error.code().as_str().to_owned(), message)
            })
        };
        assert_eq!(told(&sign("PUT\n\ntext/plain\n1175139620\n/buc/k")), None);
        let (code, message) = told(&sign("PUT\n\n\n1175139620\n/buc/k")).unwrap();
        assert_eq!(code, "SignatureDoesNotMatch");
        assert!(
            message.contains("signed without a Content-Type"),
            "{message}"
        );
        let (_, message) = told(&sign("PUT\n\na/b\n1175139620\n/buc/k")).unwrap();
        assert!(!message.contains("Content-Type"), "{message}");
    }

    #[test]
    fn a_bucket_is_signed_with_its_slash() {
        let signature = sign("GET\n\n\n1175139620\n/buc/");
        for path in ["/buc", "/buc/"] {
            assert_eq!(check("h", path, &signature, NOW), None, "{path}");
        }
        let object = sign("GET\n\n\n1175139620\n/buc/k/");
        let wrong = check("h", "/buc/k", &object, NOW);
        assert_eq!(wrong.as_deref(), Some("SignatureDoesNotMatch"));
    }

    #[test]
    fn version_2_carries_only_what_it_covers_and_for_a_week_at_most() {
        let refused = |query: &str, pairs: &[(&'static str, &'static str)]| {
            let header = |&(name, value)| {
                let value = HeaderValue::from_static(value);
                (HeaderName::from_static(name), value)
            };
            let headers = pairs.iter().map(header).collect();
            check_query(&form_pairs(query).unwrap(), &headers, 1_000)
                .err()
                .map(|error| error.code().as_str().to_owned())
        };
        let url = |rest: &str| format!("AWSAccessKeyId=A&Signature=x&Expires={rest}");
        for good in [
            "0",
            "605800",
            "2000&uploadId=u&partNumber=1",
            "2000&list-type=2&prefix=p",
            "2000&versionId=v",
            "2000&versions&version-id-marker=v",
            "2000&versioning",
        ] {
            assert_eq!(refused(&url(good), &[]), None, "{good}");
        }
        let denied = Some("AccessDenied".to_owned());
        for bad in [
            "605801",
            "2000&attributes",
            "2000&tagging&tagging",
            "2000&Expires=3000",
        ] {
            assert_eq!(refused(&url(bad), &[]), denied, "{bad}");
        }
        // Headers of the same name and value vouch for a parameter if they are signed.
        let signed = [("content-type", "a/b"), ("x-amz-meta-a", "1")];
        let repeated = url("2000&Content-Type=a/b&x-amz-meta-a=1");
        assert_eq!(refused(&repeated, &signed), None);
        assert_eq!(refused(&repeated, &signed[..1]), denied);
        for unsigned in ["attributes", "encryption", "retention", "x-id"] {
            let url = url(&format!("2000&{unsigned}=1"));
            assert_eq!(refused(&url, &[(unsigned, "1")]), denied, "{unsigned}");
        }
        let chunked = [("x-amz-content-sha256", "STREAMING-UNSIGNED-PAYLOAD-TRAILER")];
        let error = refused(&url("2000"), &chunked);
        assert_eq!(error.as_deref(), Some("InvalidRequest"));
    }
}
