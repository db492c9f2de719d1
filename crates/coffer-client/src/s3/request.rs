//! A request as it is thought of: what is asked of which object, before it is signed.

use std::borrow::Cow;

use http::{HeaderName, HeaderValue, Method};
use hyper::body::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::error::ClientError;
use crate::s3::body::Sent;

/// What stands in a path as it is (RFC 3986, section 2.3), and as signatures need it.
const UNRESERVED: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// The same for keys, whose slashes stand as they are.
const KEY: &AsciiSet = &UNRESERVED.remove(b'/');

/// A request to an S3 service.
#[derive(Clone)]
pub struct Request {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: Vec<(Cow<'static, str>, String)>,
    pub(super) headers: Vec<(Cow<'static, str>, String)>,
    pub(super) body: Bytes,
    pub(super) sent: Option<Sent>,
}

impl Request {
    /// Of the service itself.
    pub fn of_service(method: Method) -> Self {
        Self {
            method,
            path: "/".to_owned(),
            query: Vec::new(),
            headers: Vec::new(),
            body: Bytes::new(),
            sent: None,
        }
    }

    /// Of a bucket.
    pub fn of_bucket(method: Method, bucket: &str) -> Self {
        Self {
            path: format!("/{}", encoded(bucket)),
            ..Self::of_service(method)
        }
    }

    /// Of an object.
    pub fn of_object(method: Method, bucket: &str, key: &str) -> Self {
        Self {
            path: path(bucket, key),
            ..Self::of_service(method)
        }
    }

    /// With a parameter.
    #[must_use]
    pub fn query(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.query.push((Cow::Borrowed(name), value.into()));
        self
    }

    /// With a header, whose name is in lower case.
    #[must_use]
    pub fn header(mut self, name: impl Into<Cow<'static, str>>, value: impl Into<String>) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With these headers.
    #[must_use]
    pub fn headers(mut self, headers: &[(String, String)]) -> Self {
        let owned =
            { headers.iter() }.map(|(name, value)| (Cow::from(name.clone()), value.clone()));
        self.headers.extend(owned);
        self
    }

    /// With a body, and who is told as it goes out.
    #[must_use]
    pub fn body(mut self, body: Bytes, sent: Option<Sent>) -> Self {
        self.body = body;
        self.sent = sent;
        self
    }

    /// The bucket, where it is the only one: that of the source of a copy may be another.
    pub(super) fn only_bucket(&self) -> Option<String> {
        let is_copy = { self.headers.iter() }.any(|(name, _)| name == "x-amz-copy-source");
        let bucket = self.path.split('/').nth(1).unwrap_or_default();
        let decoded = || percent_decode_str(bucket).decode_utf8_lossy().into_owned();
        (!is_copy && !bucket.is_empty()).then(decoded)
    }

    /// The query, sorted and encoded, as it is both sent and signed.
    pub(super) fn encoded_query(&self) -> String {
        let pair = |(name, value): &(Cow<'_, str>, String)| (encoded(name), encoded(value));
        let mut pairs: Vec<_> = self.query.iter().map(pair).collect();
        pairs.sort_unstable();
        let pairs: Vec<_> = { pairs.iter() }
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        pairs.join("&")
    }
}

/// Which of these headers can't be sent.
pub(super) fn unsendable(headers: &[(&str, &str)]) -> ClientError {
    let is_wrong = |(name, value): &&(&str, &str)| {
        HeaderName::try_from(*name).is_err() || HeaderValue::try_from(*value).is_err()
    };
    let wrong = headers.iter().find(is_wrong);
    ClientError::Header {
        name: wrong.map_or_else(String::new, |(name, _)| name.escape_debug().to_string()),
    }
}

/// The path of an object, encoded: also what names the source of a copy.
pub(super) fn path(bucket: &str, key: &str) -> String {
    format!("/{}/{}", encoded(bucket), utf8_percent_encode(key, KEY))
}

/// A name or value, encoded.
pub(super) fn encoded(text: &str) -> String {
    utf8_percent_encode(text, UNRESERVED).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_not_be_sent_is_named() {
        let headers = [("host", "h"), ("x-amz-meta-a", "b\nc")];
        let told = unsendable(&headers).to_string();
        assert!(
            told.starts_with("the header x-amz-meta-a can't be sent"),
            "{told}"
        );
    }

    #[test]
    fn names_are_encoded_as_signatures_need_them() {
        let request = Request::of_object(Method::GET, "b", "/a b//ü+%/../~-_.")
            .query("prefix", "ä/&=")
            .query("list-type", "2")
            .query("uploads", "");
        assert_eq!(request.path, "/b//a%20b//%C3%BC%2B%25/../~-_.");
        assert_eq!(request.only_bucket().as_deref(), Some("b"));
        let query = "list-type=2&prefix=%C3%A4%2F%26%3D&uploads=";
        assert_eq!(request.encoded_query(), query);
    }

    #[test]
    fn a_copy_may_be_of_another_bucket() {
        let request = Request::of_object(Method::PUT, "b", "k");
        assert_eq!(request.only_bucket().as_deref(), Some("b"));
        let copy = request.header("x-amz-copy-source", "/c/k");
        assert_eq!(copy.only_bucket(), None);
        assert_eq!(Request::of_service(Method::GET).only_bucket(), None);
    }
}
