//! What S3 takes and s3s refuses or passes over: several ranges, dates in old forms or none,
//! booleans in capital letters, lists of entity tags, an `Expires` that is no date, metadata sent
//! twice, in encoded words or no UTF-8, copies from buckets whose names s3s would not give; headers
//! that SDKs move into the query of a presigned URL; and a `+` in a path that version 2 signed.
//!
//! Headers may be signed, so they are changed after the signature has been checked. Operations read
//! conditions, metadata and sources of copies from the headers as they came.

use std::borrow::Cow;

use http::header::{
    AUTHORIZATION, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LENGTH, GetAll,
    HeaderName, RANGE,
};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Uri};
use s3s::dto::{CopySource, ETagCondition, Range, Timestamp, TimestampFormat};
use s3s::{S3Result, s3_error};

use crate::checksums::headers::NOT_VALUES;
use crate::http::dates::without_fraction;
use crate::http::encoded_words;
use crate::http::percent::{decode_form, form_pairs};
use crate::http::ranges;
use crate::http::{number, single};
use crate::parameters::copy_source;
use crate::parameters::customer_key;
use crate::parameters::lock;
use crate::parameters::metadata::USER_METADATA;
use crate::request::caller::Original;

mod booleans;
mod numbers;

use self::booleans::{make_booleans_plain, with_plain_booleans};
pub(super) use self::numbers::NUMBERS;
use self::numbers::{refuse_plus, without_empty_numbers};

/// Lists, which may come in several headers: the SDK for Go sends its `aws-chunked` in one of its
/// own beside the object's own coding.
const LISTS: [HeaderName; 3] = [CONTENT_ENCODING, CONTENT_LANGUAGE, CACHE_CONTROL];

/// Tells a copy from an upload, so s3s must see one that it reads.
const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");
const ANY_SOURCE: &str = "bucket/name";

/// The time of the object that a deletion is for.
const IF_MATCH_TIME: HeaderName = HeaderName::from_static("x-amz-if-match-last-modified-time");

/// Headers that belong to the signature and the framing that it covers.
const OF_THE_SIGNATURE: [HeaderName; 2] = [
    AUTHORIZATION,
    HeaderName::from_static("x-amz-content-sha256"),
];

/// The length of a body without its aws-chunked framing.
const DECODED_LENGTH: HeaderName = HeaderName::from_static("x-amz-decoded-content-length");

/// Parameters of a presigned URL that are no headers.
const OF_THE_QUERY: [&str; 8] = [
    "x-amz-algorithm",
    "x-amz-content-sha256",
    "x-amz-credential",
    "x-amz-date",
    "x-amz-expires",
    "x-amz-signature",
    "x-amz-signedheaders",
    "x-amz-user-agent",
];

/// Parameters of a URL that version 2 signed; it has no other form here.
const OF_VERSION_2: [&str; 3] = ["AWSAccessKeyId", "Expires", SIGNATURE_2];

/// The one of them by which such a URL is told from others: what else a query has may be anything.
const SIGNATURE_2: &str = "Signature";

/// Checksums that AWS passes over in the query of a presigned URL. SDKs put there what they formed
/// over the body that they had when they signed: none.
const NOT_OF_THE_QUERY: [&str; 2] = ["x-amz-checksum-", "x-amz-sdk-checksum-algorithm"];

/// Brings the head of a request whose signature was right into a form that s3s reads, without the
/// signature.
pub(crate) fn adapt(head: &mut Parts, is_chunked: bool) -> S3Result {
    let moved = moved_headers(&head.uri, &head.headers)?;
    head.uri = unsigned(&head.uri)?;
    refuse_plus(&head.uri)?;
    if let Some(uri) = without_empty_numbers(&head.uri)? {
        head.uri = uri;
    }
    if let Some(uri) = with_plain_booleans(&head.uri)? {
        head.uri = uri;
    }
    for name in OF_THE_SIGNATURE {
        head.headers.remove(name);
    }
    let length = head.headers.remove(DECODED_LENGTH);
    if is_chunked {
        let length = length.filter(is_length).ok_or_else(|| {
            s3_error!(
                MissingContentLength,
                "You must provide the x-amz-decoded-content-length HTTP header."
            )
        })?;
        head.headers.insert(CONTENT_LENGTH, length);
    } else if let Some(length) = length.filter(is_length)
        && head
            .headers
            .get(CONTENT_LENGTH)
            .is_some_and(|whole| !is_same(whole, &length))
    {
        // The frames of a body that no signature says is framed would be stored with it.
        return Err(s3_error!(
            InvalidRequest,
            "x-amz-decoded-content-length is not the Content-Length: a body in signed or unsigned \
             chunks needs an x-amz-content-sha256 that begins with STREAMING-."
        ));
    }
    for (name, value) in moved {
        head.headers.entry(name).or_insert(value);
    }
    join_lists(&mut head.headers);
    drop_fraction(&mut head.headers);
    make_booleans_plain(&mut head.headers);
    let odd = odd_headers(&head.headers);
    if !odd.is_empty() {
        let plain = plain(&head.headers, odd);
        let original = std::mem::replace(&mut head.headers, plain);
        head.extensions.insert(Original(original));
    }
    Ok(())
}

/// Whether a header is a number of bytes. What is none counts as if it were not there, as on AWS.
fn is_length(length: &HeaderValue) -> bool {
    let is_number = |text: &str| {
        let is_digits = text.bytes().all(|byte| byte.is_ascii_digit());
        is_digits && text.parse::<i64>().is_ok()
    };
    length.to_str().is_ok_and(is_number)
}

/// Whether both are the same number.
fn is_same(one: &HeaderValue, other: &HeaderValue) -> bool {
    let number = |value: &HeaderValue| value.to_str().ok()?.parse::<u64>().ok();
    number(one) == number(other)
}

/// Puts lists that came in several headers into one each (RFC 9110, section 5.3).
fn join_lists(headers: &mut HeaderMap) {
    for name in LISTS {
        let values: Vec<_> = headers.get_all(&name).iter().collect();
        if values.len() < 2 {
            continue;
        }
        let values: Vec<_> = values.into_iter().map(HeaderValue::as_bytes).collect();
        if let Ok(joined) = HeaderValue::from_bytes(&values.join(&b", "[..])) {
            headers.insert(name, joined);
        }
    }
}

/// Takes the fraction of a second from the one date that only s3s reads.
fn drop_fraction(headers: &mut HeaderMap) {
    let plain = match single(headers, IF_MATCH_TIME).map(without_fraction) {
        Some(Cow::Owned(plain)) => HeaderValue::try_from(plain).ok(),
        _ => None,
    };
    if let Some(plain) = plain {
        headers.insert(IF_MATCH_TIME, plain);
    }
}

/// What a header tells, as far as s3s may refuse it.
#[derive(Clone, Copy)]
enum Tells {
    Range,
    Date,
    /// Until when an object is to be locked, which operations read from the header as it came.
    LockEnd,
    Etags,
    CopySource,
    ContentType,
    /// What s3s refuses where it is no ASCII.
    Text,
    /// S3 passes over one that is none.
    Number,
    Metadata,
    Key,
}

impl Tells {
    /// By its name, for each request has some that tell nothing of these.
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "range" => Self::Range,
            "if-modified-since"
            | "if-unmodified-since"
            | "expires"
            | "x-amz-copy-source-if-modified-since"
            | "x-amz-copy-source-if-unmodified-since" => Self::Date,
            lock::UNTIL => Self::LockEnd,
            "if-match"
            | "if-none-match"
            | "x-amz-copy-source-if-match"
            | "x-amz-copy-source-if-none-match" => Self::Etags,
            "x-amz-copy-source" => Self::CopySource,
            "content-type" => Self::ContentType,
            "cache-control" | "content-disposition" | "content-encoding" | "content-language" => {
                Self::Text
            }
            "x-amz-max-parts" | "x-amz-part-number-marker" => Self::Number,
            name if name.starts_with(USER_METADATA) => Self::Metadata,
            name if customer_key::holds_a_key(name) => Self::Key,
            _ => return None,
        })
    }
}

/// The headers that s3s would refuse. Nearly always none.
pub(crate) fn odd_headers(headers: &HeaderMap) -> Vec<HeaderName> {
    let is_odd = |name: &&HeaderName| {
        let tells = Tells::of(name.as_str());
        tells.is_some_and(|tells| is_odd(tells, headers.get_all(*name)))
    };
    headers.keys().filter(is_odd).cloned().collect()
}

fn is_odd(tells: Tells, values: GetAll<'_, HeaderValue>) -> bool {
    let mut values = values.iter();
    let Some(first) = values.next() else {
        return false;
    };
    let is_twice = values.next().is_some();
    let is_text = |reads: fn(&str) -> bool| first.to_str().is_ok_and(reads);
    let is_odd = match tells {
        // s3s reads `bytes=-`, which is no range.
        Tells::Range => {
            let is_range = |text: &str| Range::parse(text).is_ok() && ranges::parse(text).is_some();
            is_twice || !is_text(is_range)
        }
        Tells::Date => {
            let is_date = |text: &str| Timestamp::parse(TimestampFormat::HttpDate, text).is_ok();
            is_twice || !is_text(is_date)
        }
        Tells::LockEnd => {
            let is_time = |text: &str| Timestamp::parse(TimestampFormat::DateTime, text).is_ok();
            !is_twice && !is_text(is_time)
        }
        Tells::Etags => is_twice || ETagCondition::parse_http_header(first.as_bytes()).is_err(),
        Tells::CopySource => !is_twice && is_ours_alone(first),
        // s3s would read any POST as a form; what is one does not come here.
        Tells::ContentType => {
            let form = b"multipart/form-data";
            let start = first.as_bytes().get(..form.len());
            let is_form = start.is_some_and(|start| start.eq_ignore_ascii_case(form));
            is_form || !is_text(|_| true)
        }
        Tells::Text => !is_twice && !is_text(|_| true),
        Tells::Number => is_twice || !is_text(|text| number::<i32>(text).is_some()),
        Tells::Metadata => {
            let is_utf_8 = std::str::from_utf8(first.as_bytes()).is_ok();
            is_twice || !is_utf_8 || encoded_words::may_hold(first.as_bytes())
        }
        Tells::Key => true,
    };
    // s3s takes an empty header for none.
    is_odd && (is_twice || !first.is_empty())
}

/// Whether we read a copy's source that s3s doesn't.
fn is_ours_alone(source: &HeaderValue) -> bool {
    let is_ours = |text| CopySource::parse(text).is_err() && copy_source::locate(text).is_ok();
    source.to_str().is_ok_and(is_ours)
}

/// The headers in a form that s3s reads, without those that are odd.
pub(crate) fn plain(headers: &HeaderMap, odd: Vec<HeaderName>) -> HeaderMap {
    let mut plain = headers.clone();
    for name in odd {
        let replacement = if name == RANGE {
            let range = headers.get(RANGE).and_then(|value| value.to_str().ok());
            range.and_then(ranges::parse).and_then(ranges::to_header)
        } else if name == COPY_SOURCE {
            Some(ANY_SOURCE.to_owned())
        } else {
            None
        };
        match replacement.and_then(|text| HeaderValue::try_from(text).ok()) {
            Some(value) => plain.insert(name, value),
            None => plain.remove(name),
        };
    }
    plain
}

/// The headers in the query of a presigned URL. The signature covers the query, however it is
/// percent-encoded: a client must not get rid of them by encoding the URL otherwise.
///
/// # Errors
/// `InvalidArgument` for what no header can hold: left out, a lock that was asked for would be
/// missing from what is stored.
pub(crate) fn moved_headers(
    uri: &Uri,
    headers: &HeaderMap,
) -> S3Result<Vec<(HeaderName, HeaderValue)>> {
    let query = uri.query().unwrap_or("");
    if headers.contains_key(AUTHORIZATION) || query.is_empty() {
        return Ok(Vec::new());
    }
    let header = |(name, value): (String, String)| {
        let name = name.to_ascii_lowercase();
        let is_none = OF_THE_QUERY.contains(&name.as_str()) || is_checksum(&name);
        if !name.starts_with("x-amz-") || is_none {
            return None;
        }
        let header = HeaderName::try_from(name).ok();
        let header = header.zip(HeaderValue::try_from(value).ok());
        Some(header.ok_or_else(|| {
            let what = "A parameter of the query stands for a header, and is none";
            s3_error!(InvalidArgument, "{what}")
        }))
    };
    form_pairs(query)
        .unwrap_or_default()
        .into_iter()
        .filter_map(header)
        .collect()
}

/// Whether a parameter of the query tells of a checksum of the body.
fn is_checksum(name: &str) -> bool {
    NOT_OF_THE_QUERY.iter().any(|start| name.starts_with(start)) && !NOT_VALUES.contains(&name)
}

/// The address without the parameters of a presigned one. A `+` in a path that version 2 signed is
/// a space for AWS: it signs the path as it came. Version 4 signs the name that is meant, and `+`
/// means itself there.
fn unsigned(uri: &Uri) -> S3Result<Uri> {
    let Some(query) = uri.query() else {
        return Ok(uri.clone());
    };
    let name_of = |pair: &str| decode_form(pair.split('=').next().unwrap_or(""));
    let names = || query.split('&').filter_map(name_of);
    let is_version_2 = names().any(|name| name == SIGNATURE_2);
    if !is_version_2 && !names().any(|name| name.starts_with("X-Amz-")) {
        return Ok(uri.clone());
    }
    let is_kept = |pair: &&str| {
        let name = name_of(pair).unwrap_or_default();
        let is_of_version_2 = is_version_2 && OF_VERSION_2.contains(&name.as_str());
        !name.starts_with("X-Amz-") && !is_of_version_2
    };
    let kept: Vec<_> = query.split('&').filter(is_kept).collect();
    let path = if is_version_2 {
        uri.path().replace('+', "%20")
    } else {
        uri.path().to_owned()
    };
    let text = format!("{path}?{}", kept.join("&"));
    text.parse().map_err(|_| s3_error!(InvalidURI))
}

#[cfg(test)]
mod tests;
