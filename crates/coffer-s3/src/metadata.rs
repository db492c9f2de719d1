//! What describes an object: content headers and user metadata.

use coffer_vault::record::{ContentHeaders, Details};
use http::header::{
    CACHE_CONTROL, CONTENT_DISPOSITION, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_TYPE, EXPIRES,
    HeaderName,
};
use http::{HeaderMap, HeaderValue};
use s3s::dto::{Metadata, Timestamp, TimestampFormat};
use s3s::{S3Result, s3_error};

use crate::limits::USER_METADATA_MAX_BYTES;

/// What an object has that was put without a content type (S3).
pub(crate) const DEFAULT_CONTENT_TYPE: &str = "binary/octet-stream";

/// Reads the description from the headers of a put, copy or new upload.
pub(crate) fn of_headers(headers: &HeaderMap, metadata: Option<Metadata>) -> S3Result<Details> {
    let headers = ContentHeaders {
        cache_control: text(headers, CACHE_CONTROL),
        content_disposition: text(headers, CONTENT_DISPOSITION),
        content_encoding: text(headers, CONTENT_ENCODING).and_then(|list| without_chunking(&list)),
        content_language: text(headers, CONTENT_LANGUAGE),
        content_type: text(headers, CONTENT_TYPE),
        expires: text(headers, EXPIRES),
    };
    let user_metadata = metadata.unwrap_or_default();
    let length = |(name, value): (&String, &String)| name.len() + value.len();
    if user_metadata.iter().map(length).sum::<usize>() > USER_METADATA_MAX_BYTES {
        return Err(s3_error!(
            MetadataTooLarge,
            "Your metadata headers exceed the maximum allowed metadata size of \
             {USER_METADATA_MAX_BYTES} bytes"
        ));
    }
    Ok(Details {
        headers,
        user_metadata: user_metadata.into_iter().collect(),
        checksum: None,
    })
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<String> {
    let value = headers.get(name)?.to_str().ok()?;
    (!value.is_empty()).then(|| value.to_owned())
}

/// `aws-chunked` is how the body came, not what the object is.
fn without_chunking(list: &str) -> Option<String> {
    let codings = list.split(',').map(str::trim);
    let kept: Vec<_> = codings
        .filter(|coding| !coding.eq_ignore_ascii_case("aws-chunked"))
        .collect();
    (!kept.concat().is_empty()).then(|| kept.join(","))
}

/// User metadata as s3s writes it.
pub(crate) fn user_metadata(details: &Details) -> Option<Metadata> {
    let pairs = details.user_metadata.iter();
    (pairs.len() > 0).then(|| {
        pairs
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    })
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
        assert_eq!(without_chunking("aws-chunked"), None);
        assert_eq!(
            without_chunking("gzip, aws-chunked").as_deref(),
            Some("gzip")
        );
        assert_eq!(without_chunking("gzip, br").as_deref(), Some("gzip,br"));
        assert_eq!(without_chunking("gzip").as_deref(), Some("gzip"));
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
