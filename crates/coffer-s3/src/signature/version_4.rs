//! Signatures by version 4, in the `Authorization` header or in the query of a presigned URL.

use std::borrow::Cow;

use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, header};
use s3s::{S3Error, S3ErrorCode, S3Result, s3_error};

use crate::errors::mismatches::compared;
use crate::errors::{details, not_implemented};
use crate::http::dates::parse_http_date;
use crate::http::percent::{self, decode_path};
use crate::http::{number, text_of};
use crate::limits::CLOCK_SKEW_MAX_SECONDS;
use crate::parameters::customer_key;
use crate::signature::payload::{CONTENT_SHA256, ContentSha256, Payload};
use crate::signature::requirements::{
    Authorization, Pairs, does_not_match, lacks_parameters, malformed, value_of,
};
use crate::signature::signer::{ChunkSignatures, DateTime, REQUEST, Scope, Signer};

/// When a request was signed.
const DATE: HeaderName = HeaderName::from_static("x-amz-date");

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
    let scope = Scope::parse(credential).map_err(|told| match credential.split('/').nth(3) {
        Some("s3express") => not_implemented("What directory buckets have (s3express)"),
        _ => malformed(&told),
    })?;
    let date = signed_date(&head.headers, said.signed_headers);
    let at = date.as_deref().and_then(DateTime::parse).ok_or_else(|| {
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
    let claimed = (scope.access_key_id, signature);
    check_signature(&signer, claimed, head, query, signed, content_text)?;
    match content {
        ContentSha256::Unsigned => Ok(Payload::Unsigned),
        ContentSha256::Hash(hash) => Ok(Payload::Hash(hash)),
        ContentSha256::Streaming { is_signed } => {
            let signatures = is_signed.then(|| ChunkSignatures::new(signer, signature));
            Ok(Payload::Chunks(signatures.map(Box::new)))
        }
    }
}

/// When a request was signed, as the text to sign has it: `x-amz-date`, and only where there is
/// none `Date`, in the same form or that of HTTP. One that is not signed says nothing.
fn signed_date<'a>(headers: &'a HeaderMap, signed: &str) -> Option<Cow<'a, str>> {
    let (header, value) = date_header(headers)?;
    let is_signed = || signed.trim().split(';').any(|name| name == "date");
    let says = header == DateHeader::Amz || is_signed();
    says.then(|| date_in(header, value)).flatten()
}

/// Which header says when a request was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DateHeader {
    /// `x-amz-date`, which comes first.
    Amz,
    /// `Date`.
    Http,
}

/// The header that says when a request was signed; none where it is there several times.
pub(crate) fn date_header(headers: &HeaderMap) -> Option<(DateHeader, &HeaderValue)> {
    let mut values = headers.get_all(DATE).iter();
    if let Some(value) = values.next() {
        return values.next().is_none().then_some((DateHeader::Amz, value));
    }
    let mut values = headers.get_all(header::DATE).iter();
    let value = values.next()?;
    values.next().is_none().then_some((DateHeader::Http, value))
}

/// What such a header says.
pub(crate) fn date_in(header: DateHeader, value: &HeaderValue) -> Option<Cow<'_, str>> {
    let date = value.to_str().ok()?;
    if header == DateHeader::Amz || DateTime::parse(date).is_some() {
        return Some(Cow::Borrowed(date));
    }
    let seconds = parse_http_date(date)?.div_euclid(1_000);
    DateTime::write(seconds).map(Cow::Owned)
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
            scope.date,
            at.text.split('T').next().unwrap_or(at.text)
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
    // S3 presigns for a second at least: one for none has expired with the second it was made in.
    if now_seconds > ends || life == 0 {
        return Err(told(s3_error!(AccessDenied, "Request has expired")));
    }
    let signer = signed_by(scope, at)?;
    let signature = of_query("X-Amz-Signature")?;
    let covered: Pairs = query
        .iter()
        .filter(|(name, _)| name != "X-Amz-Signature")
        .cloned()
        .collect();
    // All others are covered by it, so that none can be added.
    if query.len() - covered.len() > 1 {
        return Err(does_not_match());
    }
    let signed = of_query("X-Amz-SignedHeaders")?;
    check_signature(
        &signer,
        (scope.access_key_id, signature),
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
    let seconds: Option<i64> = number(text);
    let seconds = seconds.ok_or_else(|| parameters("X-Amz-Expires should be a number"))?;
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

/// Clients sign a path either as they send it or in its one canonical encoding; and headers that
/// they send in ISO-8859-1 as that or as UTF-8, in which most of them sign.
fn check_signature(
    signer: &Signer,
    (access_key_id, signature): (&str, &str),
    head: &Parts,
    query: &Pairs,
    signed: &str,
    content: &str,
) -> S3Result {
    let sent = head.uri.path();
    let meant = (!percent::is_plain(sent))
        .then(|| decode_path(sent))
        .flatten();
    let meant = meant.map(|path| percent::encode(&path));
    let meant = meant.as_deref().unwrap_or(sent);
    let canonical = |headers: &HeaderMap, path: &str| {
        canonical_request((head, headers), path, query, signed, content)
    };
    let is_of = |headers: &HeaderMap, path: &str| {
        signer.is_of_request(signature, &canonical(headers, path))
    };
    let is_right =
        |headers: &HeaderMap| is_of(headers, meant) || (meant != sent && is_of(headers, sent));
    if is_right(&head.headers) || in_utf_8(&head.headers).is_some_and(|text| is_right(&text)) {
        return Ok(());
    }
    let canonical = canonical(&head.headers, meant);
    let to_sign = signer.string_to_sign(&canonical);
    // A key that it has brought along is among what the client has signed.
    let is_told = !customer_key::is_sent(&head.headers, query);
    Err(compared(
        does_not_match(),
        (access_key_id, signature),
        Some(to_sign.as_bytes()),
        is_told.then_some(&canonical[..]),
    ))
}

/// The headers with UTF-8 in the place of what is none; `None` where all of them are.
fn in_utf_8(headers: &HeaderMap) -> Option<HeaderMap> {
    let is_text = |value: &HeaderValue| std::str::from_utf8(value.as_bytes()).is_ok();
    if headers.values().all(is_text) {
        return None;
    }
    let mut written = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        let text = text_of(value.as_bytes());
        written.append(name, HeaderValue::from_bytes(text.as_bytes()).ok()?);
    }
    Some(written)
}

fn canonical_request(
    (head, headers): (&Parts, &HeaderMap),
    path: &str,
    query: &Pairs,
    signed: &str,
    content: &str,
) -> Vec<u8> {
    let values: usize = headers.values().map(HeaderValue::len).sum();
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
        canonical_value((head, headers), name, &mut canonical);
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
fn canonical_value((head, headers): (&Parts, &HeaderMap), name: &str, canonical: &mut Vec<u8>) {
    if name == "host" && !headers.contains_key(header::HOST) {
        // HTTP/2 has it elsewhere.
        let authority = head
            .uri
            .authority()
            .map_or("", |authority| authority.as_str());
        canonical.extend_from_slice(authority.as_bytes());
    }
    // Those that nearly all clients sign need not be read as names first.
    let values = match name {
        "host" => headers.get_all(header::HOST),
        "x-amz-content-sha256" => headers.get_all(CONTENT_SHA256),
        "x-amz-date" => headers.get_all(DATE),
        other => headers.get_all(other),
    };
    for (place, value) in values.iter().enumerate() {
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
mod tests;
