//! What describes an object: content headers and user metadata.

use std::collections::BTreeMap;

use coffer_vault::record::{ContentHeaders, Details};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName,
};
use http::{HeaderMap, HeaderValue, StatusCode};
use s3s::dto::{Metadata, Timestamp, TimestampFormat};
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::custom;
use crate::errors::details::carried;
use crate::http::{encoded_words, text_of};
use crate::limits::{REDIRECT_MAX_BYTES, USER_METADATA_MAX_BYTES};

/// What an object has that was put without a content type (S3).
pub(crate) const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";

const REDIRECT: HeaderName = HeaderName::from_static("x-amz-website-redirect-location");

/// How the names of user metadata begin.
pub(crate) const USER_METADATA: &str = "x-amz-meta-";

/// Reads the description from the headers of a put, copy or new upload.
pub(crate) fn of_headers(headers: &HeaderMap) -> S3Result<Details> {
    let user_metadata = user_metadata_of(headers);
    let redirect = redirect_of(headers)?;
    let headers = ContentHeaders {
        cache_control: text(headers, CACHE_CONTROL),
        content_disposition: text(headers, CONTENT_DISPOSITION),
        content_encoding: text(headers, CONTENT_ENCODING).and_then(without_chunking),
        content_language: text(headers, CONTENT_LANGUAGE),
        content_type: text(headers, CONTENT_TYPE),
        expires: text(headers, EXPIRES),
    };
    let length = |(name, value): (&String, &String)| name.len() + value.len();
    let size_bytes = user_metadata.iter().map(length).sum::<usize>();
    if size_bytes > USER_METADATA_MAX_BYTES {
        return Err(too_large(size_bytes));
    }
    Ok(Details {
        headers,
        user_metadata,
        redirect,
        ..Details::default()
    })
}

fn too_large(size_bytes: usize) -> S3Error {
    let error = s3_error!(
        MetadataTooLarge,
        "Your metadata headers exceed the maximum allowed metadata size"
    );
    let told = [
        ("Size", size_bytes.to_string()),
        ("MaxSizeAllowed", USER_METADATA_MAX_BYTES.to_string()),
    ];
    carried(error, &told)
}

/// Where a website that serves the object would send its visitors on to (S3).
pub(crate) fn redirect_of(headers: &HeaderMap) -> S3Result<Option<String>> {
    let Some(value) = headers.get(REDIRECT) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or("");
    let is_place = ["/", "http://", "https://"]
        .iter()
        .any(|start| text.starts_with(start));
    let wrong = match (is_place, text.len() <= REDIRECT_MAX_BYTES) {
        (true, true) => return Ok(Some(text.to_owned())),
        (false, _) => {
            "The website redirect location must have a prefix of 'http://' or 'https://' or '/'."
        }
        (true, false) => "The length of website redirect location cannot exceed 2,048 characters.",
    };
    let status = StatusCode::BAD_REQUEST;
    Err(custom("InvalidRedirectLocation", status, wrong))
}

/// User metadata from the headers as the client sent them. What was sent twice becomes one value
/// (RFC 9110, section 5.3). What has no name is kept with none, to be counted.
fn user_metadata_of(headers: &HeaderMap) -> BTreeMap<String, String> {
    let mut metadata = BTreeMap::new();
    for name in headers.keys() {
        let Some(key) = name.as_str().strip_prefix(USER_METADATA) else {
            continue;
        };
        let mut values = Vec::new();
        for value in headers.get_all(name) {
            values.push(encoded_words::decode(&text_of(value.as_bytes())));
        }
        metadata.insert(key.to_owned(), values.join(","));
    }
    metadata
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = text_of(headers.get(name)?.as_bytes());
    (!value.is_empty()).then(|| value.into_owned())
}

/// `aws-chunked` is how the body came, not what the object is. A list without it stays as it was
/// sent.
fn without_chunking(list: String) -> Option<String> {
    let is_framing = |coding: &str| coding.eq_ignore_ascii_case("aws-chunked");
    let codings = || list.split(',').map(str::trim);
    if !codings().any(is_framing) {
        return Some(list);
    }
    let kept: Vec<_> = codings().filter(|coding| !is_framing(coding)).collect();
    (!kept.concat().is_empty()).then(|| kept.join(","))
}

/// User metadata as s3s writes it, but for what has no name and so no header.
pub(crate) fn user_metadata(details: &Details) -> Option<Metadata> {
    let pairs = details.user_metadata.iter();
    let named = pairs.filter(|(name, _)| !name.is_empty());
    let metadata: Metadata = named
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    (!metadata.is_empty()).then_some(metadata)
}

/// How much of it no header tells, as S3 says in `x-amz-missing-meta`.
pub(crate) fn missing(details: &Details) -> Option<i32> {
    details.user_metadata.contains_key("").then_some(1)
}

/// `Expires` as s3s writes it: a time, or, when it is no date, a header of its own.
pub(crate) fn expires(headers: &ContentHeaders) -> (Option<Timestamp>, HeaderMap) {
    let mut odd = HeaderMap::new();
    let Some(text) = &headers.expires else {
        return (None, odd);
    };
    match Timestamp::parse(TimestampFormat::HttpDate, text) {
        Ok(time) => (Some(time), odd),
        Err(_) => {
            if let Ok(value) = HeaderValue::from_str(text) {
                odd.insert(EXPIRES, value);
            }
            (None, odd)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunking_is_no_encoding_of_the_object() {
        let kept = |list: &str| without_chunking(list.to_owned());
        assert_eq!(kept("aws-chunked"), None);
        assert_eq!(kept("aws-chunked,"), None);
        assert_eq!(kept("gzip, aws-chunked").as_deref(), Some("gzip"));
        assert_eq!(kept("gzip, AWS-Chunked, br").as_deref(), Some("gzip,br"));
        for list in ["gzip, br", "gzip", "gzip ,br"] {
            assert_eq!(kept(list).as_deref(), Some(list));
        }
    }

    #[test]
    fn user_metadata_is_read_as_it_was_sent() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("x-amz-meta-plain", &b"a  b"[..]),
            ("x-amz-meta-words", b"=?UTF-8?B?w6Q=?= and =?UTF-8?B?w7Y=?="),
            ("x-amz-meta-broken", b"=?="),
            ("x-amz-meta-raw", "ä".as_bytes()),
            ("x-amz-meta-twice", b"=?UTF-8?B?w6Q=?="),
            ("x-amz-meta-twice", "ö".as_bytes()),
            ("x-amz-meta-", b"nameless"),
            ("x-amz-acl", b"private"),
        ] {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        let details = of_headers(&headers).unwrap();
        let metadata = &details.user_metadata;
        let pairs: Vec<_> = metadata.iter().map(|(k, v)| (&**k, &**v)).collect();
        let expected = [
            ("", "nameless"),
            ("broken", "=?="),
            ("plain", "a  b"),
            ("raw", "ä"),
            ("twice", "ä,ö"),
            ("words", "ä and ö"),
        ];
        assert_eq!(pairs, expected);
        let told = user_metadata(&details).unwrap();
        assert!(told.len() == 5 && !told.contains_key(""), "{told:?}");
        assert_eq!(missing(&details), Some(1));
        assert_eq!(missing(&Details::default()), None);
        headers.insert("x-amz-meta-a", HeaderValue::from_bytes(b"\xe4").unwrap());
        assert_eq!(of_headers(&headers).unwrap().user_metadata["a"], "ä");
    }

    #[test]
    fn content_headers_are_text_in_any_script() {
        for value in [
            "a; filename=\"\u{dc}.pdf\"".as_bytes(),
            &b"a; filename=\"\xdc.pdf\""[..],
        ] {
            let value = HeaderValue::from_bytes(value).unwrap();
            let mut headers = HeaderMap::new();
            for name in [CONTENT_DISPOSITION, CONTENT_TYPE, EXPIRES] {
                headers.insert(name, value.clone());
            }
            let kept = of_headers(&headers).unwrap().headers;
            let text = Some("a; filename=\"Ü.pdf\"".to_owned());
            assert_eq!(kept.content_disposition, text);
            assert_eq!(kept.content_type, text);
            assert_eq!(kept.expires, text);
            assert_eq!(expires(&kept).1[EXPIRES], "a; filename=\"Ü.pdf\"");
        }
    }

    #[test]
    fn expires_that_is_no_date_comes_back_as_it_was() {
        let of = |text: &str| {
            expires(&ContentHeaders {
                expires: Some(text.into()),
                ..ContentHeaders::default()
            })
        };
        assert!(of("Sun, 06 Nov 1994 08:49:37 GMT").0.is_some());
        assert_eq!(of("-1").1[EXPIRES], "-1");
    }
}
