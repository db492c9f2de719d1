//! Signatures by version 4, in the `Authorization` header or in the query of a presigned URL.

use std::borrow::Cow;

use http::HeaderValue;
use http::request::Parts;
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::errors::{details, not_implemented};
use crate::http::percent::{self, decode_path};
use crate::http::single;
use crate::limits::CLOCK_SKEW_MAX_SECONDS;
use crate::signature::payload::{ContentSha256, Payload};
use crate::signature::requirements::{
    Authorization, Pairs, does_not_match, lacks_parameters, malformed, value_of,
};
use crate::signature::signer::{ChunkSignatures, DateTime, REQUEST, Scope, Signer};

/// Bytes of a canonical request for its method, ends of lines and colons, as a rule.
const MORE_BYTES: usize = 64;

/// Checks an `Authorization` header by what signs in its scope.
pub(crate) fn check_header(
    said: Authorization<'_>,
    head: &Parts,
    query: &Pairs,
    now_seconds: i64,
    signed_by: impl FnOnce(Scope<'_>, DateTime<'_>) -> S3Result<Signer>,
) -> S3Result<Payload> {
    let credential = said.credential;
    if credential.split('/').nth(3) == Some("s3express") {
        return Err(not_implemented("What directory buckets have (s3express)"));
    }
    let scope = Scope::parse(credential).map_err(|told| malformed(&told))?;
    let date = single(&head.headers, "x-amz-date").and_then(DateTime::parse);
    let at = date.ok_or_else(|| {
        s3_error!(
            AccessDenied,
            "AWS authentication requires a valid Date or x-amz-date header."
        )
    })?;
    if !is_of_day(scope, at) {
        let what = "Invalid credential date. Date is not the same as X-Amz-Date.";
        return Err(malformed(what));
    }
    if at.unix_seconds.abs_diff(now_seconds) > u64::from(CLOCK_SKEW_MAX_SECONDS) {
        return Err(too_skewed(at, now_seconds));
    }
    let content = ContentSha256::of(&head.headers)?;
    let (content, content_text) =
        content.ok_or_else(|| s3_error!(InvalidRequest, "x-amz-content-sha256 is missing"))?;
    let signer = signed_by(scope, at)?;
    let (signature, signed) = (said.signature.trim(), said.signed_headers.trim());
    check_signature(&signer, signature, head, query, signed, content_text)?;
    match content {
        ContentSha256::Unsigned => Ok(Payload::Unsigned),
        ContentSha256::Hash(hash) => Ok(Payload::Hash(hash)),
        ContentSha256::Streaming { is_signed } => {
            let signatures = is_signed.then(|| ChunkSignatures::new(signer, signature));
            Ok(Payload::Chunks(signatures.map(Box::new)))
        }
    }
}

/// Checks a presigned URL with the secret of its access key.
pub(crate) fn check_presigned(
    head: &Parts,
    query: &Pairs,
    now_seconds: i64,
    signed_by: impl FnOnce(Scope<'_>, DateTime<'_>) -> S3Result<Signer>,
) -> S3Result<Payload> {
    let of_query = |name: &str| value_of(query, name).ok_or_else(lacks_parameters);
    if of_query("X-Amz-Algorithm")? != REQUEST {
        return Err(parameters(
            "X-Amz-Algorithm only supports \"AWS4-HMAC-SHA256\"",
        ));
    }
    let credential = of_query("X-Amz-Credential")?;
    let scope = Scope::parse(credential).map_err(|told| {
        let told = format!("Error parsing the X-Amz-Credential parameter; {told}");
        parameters(told)
    })?;
    let date = DateTime::parse(of_query("X-Amz-Date")?);
    let at = date.ok_or_else(|| {
        parameters("X-Amz-Date must be in the ISO8601 Long Format \"yyyyMMdd'T'HHmmss'Z'\"")
    })?;
    let life = life_of(of_query("X-Amz-Expires")?)?;
    if !is_of_day(scope, at) {
        return Err(parameters(format!(
            "Invalid credential date \"{}\". This date is not the same as X-Amz-Date: \"{}\".",
            scope.date, at.text
        )));
    }
    let content = content_of(head)?;
    // A clock that is behind the client's shortens the life of no URL, and lengthens that of none.
    let (begins, ends) = (at.unix_seconds, at.unix_seconds.saturating_add(life.into()));
    let told = |error| {
        let details = vec![
            ("X-Amz-Expires", life.to_string()),
            ("Expires", details::written(ends)),
            ("ServerTime", details::written(now_seconds)),
        ];
        details::with(error, details)
    };
    if begins.saturating_sub(now_seconds) > i64::from(CLOCK_SKEW_MAX_SECONDS) {
        return Err(told(s3_error!(AccessDenied, "Request is not yet valid")));
    }
    if now_seconds > ends {
        return Err(told(s3_error!(AccessDenied, "Request has expired")));
    }
    let signer = signed_by(scope, at)?;
    let signature = of_query("X-Amz-Signature")?;
    let covered: Pairs = query
        .iter()
        .filter(|(name, _)| name != "X-Amz-Signature")
        .cloned()
        .collect();
    let signed = of_query("X-Amz-SignedHeaders")?;
    check_signature(
        &signer,
        signature,
        head,
        &covered,
        signed,
        "UNSIGNED-PAYLOAD",
    )?;
    Ok(content)
}

/// What a presigned request says of its body.
fn content_of(head: &Parts) -> S3Result<Payload> {
    match ContentSha256::of(&head.headers)? {
        Some((ContentSha256::Streaming { .. }, _)) => Err(not_implemented(
            "Sending a body in aws-chunked encoding to a presigned URL",
        )),
        Some((ContentSha256::Hash(hash), _)) => Ok(Payload::Hash(hash)),
        Some((ContentSha256::Unsigned, _)) | None => Ok(Payload::Unsigned),
    }
}

/// Whether a credential is of the day of the request.
pub(crate) fn is_of_day(scope: Scope<'_>, at: DateTime<'_>) -> bool {
    at.text.starts_with(scope.date)
}

/// How many seconds a presigned URL is good for.
fn life_of(text: &str) -> S3Result<u32> {
    let seconds = text
        .parse::<i64>()
        .map_err(|_| parameters("X-Amz-Expires should be a number"))?;
    u32::try_from(seconds).map_err(|_| parameters("X-Amz-Expires must be non-negative"))
}

fn parameters(message: impl Into<Cow<'static, str>>) -> S3Error {
    S3Error::with_message(S3ErrorCode::AuthorizationQueryParametersError, message)
}

fn too_skewed(at: DateTime<'_>, now_seconds: i64) -> S3Error {
    let error = s3_error!(
        RequestTimeTooSkewed,
        "The difference between the request time and the current time is too large."
    );
    let allowed_ms = u64::from(CLOCK_SKEW_MAX_SECONDS) * 1_000;
    let told = vec![
        ("RequestTime", at.text.to_owned()),
        ("ServerTime", details::written(now_seconds)),
        ("MaxAllowedSkewMilliseconds", allowed_ms.to_string()),
    ];
    details::with(error, told)
}

/// Clients sign a path either as they send it or in its one canonical encoding.
fn check_signature(
    signer: &Signer,
    signature: &str,
    head: &Parts,
    query: &Pairs,
    signed: &str,
    content: &str,
) -> S3Result {
    let sent = head.uri.path();
    let is_right = |path: &str| {
        let canonical = canonical_request(head, path, query, signed, content);
        signer.is_of_request(signature, &canonical)
    };
    if percent::is_plain(sent) {
        return is_right(sent).then_some(()).ok_or_else(does_not_match);
    }
    let meant = decode_path(sent).map(|path| percent::encode(&path));
    let meant = meant.as_deref().unwrap_or(sent);
    if is_right(meant) || (meant != sent && is_right(sent)) {
        return Ok(());
    }
    Err(does_not_match())
}

fn canonical_request(
    head: &Parts,
    path: &str,
    query: &Pairs,
    signed: &str,
    content: &str,
) -> Vec<u8> {
    let values: usize = head.headers.values().map(HeaderValue::len).sum();
    let bytes = path.len() + values + 2 * signed.len() + content.len() + MORE_BYTES;
    let mut canonical = Vec::with_capacity(bytes);
    canonical.extend_from_slice(head.method.as_str().as_bytes());
    canonical.push(b'\n');
    canonical.extend_from_slice(path.as_bytes());
    canonical.push(b'\n');
    canonical.extend_from_slice(canonical_query(query).as_bytes());
    canonical.push(b'\n');
    let mut names: Vec<_> = signed.split(';').collect();
    names.sort_unstable();
    for name in &names {
        canonical.extend_from_slice(name.as_bytes());
        canonical.push(b':');
        canonical_value(head, name, &mut canonical);
        canonical.push(b'\n');
    }
    for (place, name) in names.iter().enumerate() {
        canonical.push(if place == 0 { b'\n' } else { b';' });
        canonical.extend_from_slice(name.as_bytes());
    }
    canonical.push(b'\n');
    canonical.extend_from_slice(content.as_bytes());
    canonical
}

/// The pairs of a query, encoded and sorted.
fn canonical_query(query: &Pairs) -> String {
    let encoded = |(name, value): &(String, String)| {
        let (name, value) = (percent::encode_all(name), percent::encode_all(value));
        format!("{name}={value}")
    };
    let mut pairs: Vec<_> = query.iter().map(encoded).collect();
    pairs.sort_by(|one, other| one.split('=').cmp(other.split('=')));
    pairs.join("&")
}

/// The values of a header, separated by commas, each with one space where it has any.
fn canonical_value(head: &Parts, name: &str, canonical: &mut Vec<u8>) {
    if name == "host" && !head.headers.contains_key(name) {
        // HTTP/2 has it elsewhere.
        let authority = head
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        canonical.extend_from_slice(authority.as_bytes());
    }
    for (place, value) in head.headers.get_all(name).iter().enumerate() {
        if place > 0 {
            canonical.push(b',');
        }
        let words = value.as_bytes().split(u8::is_ascii_whitespace);
        for (place, word) in words.filter(|word| !word.is_empty()).enumerate() {
            if place > 0 {
                canonical.push(b' ');
            }
            canonical.extend_from_slice(word);
        }
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;
    use crate::http::percent::form_pairs;
    use crate::signature::signer::tests::{ID, SECRET};

    const AT: i64 = 1_369_353_600;
    const NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    fn signed_by(scope: Scope<'_>, at: DateTime<'_>) -> S3Result<Signer> {
        assert_eq!(scope.access_key_id, ID);
        Ok(Signer::new(SECRET, scope, at))
    }

    fn code<T>(result: S3Result<T>) -> Option<String> {
        result.err().map(|error| error.code().as_str().to_owned())
    }

    /// AWS's example "GET Object", with its headers or others.
    fn get_object(range: &str, now: i64) -> Option<String> {
        let request = Request::get("/test.txt")
            .header("host", "examplebucket.s3.amazonaws.com")
            .header("range", range)
            .header("x-amz-content-sha256", NOTHING)
            .header("x-amz-date", "20130524T000000Z");
        let head = request.body(()).unwrap().into_parts().0;
        let authorization = format!(
            "AWS4-HMAC-SHA256 Credential={ID}/20130524/us-east-1/s3/aws4_request,\
             SignedHeaders=host;range;x-amz-content-sha256;x-amz-date,Signature=\
             f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"
        );
        code(check_header(
            Authorization::parse(&authorization).unwrap(),
            &head,
            &Pairs::new(),
            now,
            signed_by,
        ))
    }

    #[test]
    fn headers_are_signed_as_in_the_example_of_aws() {
        assert_eq!(get_object("bytes=0-9", AT), None);
        assert_eq!(get_object(" bytes=0-9 ", AT + 900), None);
        let wrong = get_object("bytes=0-8", AT);
        assert_eq!(wrong.as_deref(), Some("SignatureDoesNotMatch"));
        for late in [AT + 901, AT - 901] {
            let skewed = get_object("bytes=0-9", late);
            assert_eq!(skewed.as_deref(), Some("RequestTimeTooSkewed"));
        }
    }

    #[test]
    fn urls_are_presigned_as_in_the_example_of_aws() {
        let check = |more: &str, now: i64| {
            let query = format!(
                "X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential={ID}%2F20130524%2Fus-east-1%2F\
                 s3%2Faws4_request&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&\
                 X-Amz-SignedHeaders=host&X-Amz-Signature=\
                 aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404{more}"
            );
            let request = Request::get(format!("/test.txt?{query}"))
                .header("host", "examplebucket.s3.amazonaws.com");
            let head = request.body(()).unwrap().into_parts().0;
            code(check_presigned(
                &head,
                &form_pairs(&query).unwrap(),
                now,
                signed_by,
            ))
        };
        assert_eq!(check("", AT + 86_400), None);
        assert_eq!(check("", AT + 86_401).as_deref(), Some("AccessDenied"));
        assert_eq!(check("", AT - 901).as_deref(), Some("AccessDenied"));
        let more = check("&versionId=null", AT);
        assert_eq!(more.as_deref(), Some("SignatureDoesNotMatch"));
    }

    #[test]
    fn queries_and_headers_have_one_form() {
        let request = Request::get("/a")
            .header("x-amz-meta-a", "  one   two ")
            .header("x-amz-meta-a", "three");
        let head = request.body(()).unwrap().into_parts().0;
        let query = form_pairs("b=/+&a-=1&a=2&a=1&c").unwrap();
        let canonical = canonical_request(&head, "/a", &query, "x-amz-meta-a;host", "x");
        let expected = "GET\n/a\na=1&a=2&a-=1&b=%2F%20&c=\nhost:\nx-amz-meta-a:one two,three\n\n\
                        host;x-amz-meta-a\nx";
        assert_eq!(String::from_utf8(canonical).unwrap(), expected);
    }
}
