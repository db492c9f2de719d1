//! XML bodies on their way to s3s: read whole, within their limits, and written anew in the little
//! XML that s3s reads as it is meant.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{CONTENT_LENGTH, TRANSFER_ENCODING};
use http::request::Parts;
use http::{Extensions, HeaderMap, Method, Uri};
use http_body::Body as _;
use s3s::{Body, S3Result, s3_error};

use crate::around_s3s::xml::{XmlFault, canonical};
use crate::checksums::elements::without_unknown;
use crate::http::hosts::Domains;
use crate::http::percent::form_pairs;
use crate::limits::XML_ELEMENT_BYTES;
use crate::request::caller::fault_error;
use crate::request::context::{BodyFault, RequestContext};
use crate::request::memory_budget::{MemoryBudget, Reservation, body_limit};

/// Names in the query of a PUT of an object whose body is XML, and not the object's.
const OF_OBJECTS: [&str; 7] = [
    "acl",
    "encryption",
    "legal-hold",
    "renameObject",
    "restore",
    "retention",
    "tagging",
];

/// An element of the configuration of a bucket's encryption, where s3s takes none but those that it
/// knows.
pub(crate) const BLOCKED_TYPES: &str = "BlockedEncryptionTypes";

/// What s3s is given where a document is malformed: it says so in its place, after all else that it
/// checks, and logs nothing of what the client sent.
const MALFORMED: &[u8] = b"<";

/// A document as it was written anew, and the room that it takes, also once it is read.
#[derive(Debug)]
pub(crate) struct CanonicalXml {
    pub(crate) text: Bytes,
    _reservation: Reservation,
}

impl CanonicalXml {
    /// The document that a request brings; empty where it brings none.
    pub(crate) fn of(extensions: &Extensions) -> &str {
        let document = extensions.get::<Arc<Self>>();
        document.map_or("", |document| {
            std::str::from_utf8(&document.text).unwrap_or("")
        })
    }
}

/// Reads XML bodies.
pub(crate) struct XmlBodies {
    pub(crate) budget: MemoryBudget,
    pub(crate) domains: Domains,
}

impl XmlBodies {
    /// How long the XML body of a request may be; none where its body is no XML.
    pub(crate) fn limit(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Option<usize> {
        let pairs = form_pairs(uri.query().unwrap_or("")).unwrap_or_default();
        let has = |name: &str| pairs.iter().any(|(given, _)| given == name);
        match *method {
            Method::POST if has("uploadId") => body_limit("CompleteMultipartUpload"),
            Method::POST if has("delete") => body_limit("DeleteObjects"),
            Method::POST => body_limit("Other"),
            Method::PUT if self.names_bucket(uri, headers) => body_limit(if has("lifecycle") {
                "PutBucketLifecycleConfiguration"
            } else {
                "CreateBucket"
            }),
            Method::PUT if OF_OBJECTS.into_iter().any(has) => body_limit("PutObjectTagging"),
            _ => None,
        }
    }

    /// Whether the body is the policy of a bucket, which is JSON.
    fn is_policy(&self, head: &Parts) -> bool {
        let pairs = form_pairs(head.uri.query().unwrap_or("")).unwrap_or_default();
        let is_of_policy = pairs.iter().any(|(name, _)| name == "policy");
        head.method == Method::PUT && is_of_policy && self.names_bucket(&head.uri, &head.headers)
    }

    /// Whether a request is for a bucket rather than for an object.
    fn names_bucket(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let (_, object) = self.domains.bucket_and_object(uri, headers);
        object.is_empty()
    }

    /// Reads a body of at most so many bytes and gives it written anew. What it was stays in the
    /// context, for the digests that came with it.
    pub(crate) async fn read(
        &self,
        limit_bytes: usize,
        mut body: Body,
        head: &mut Parts,
        context: &RequestContext,
    ) -> S3Result<Body> {
        if body.is_end_stream() {
            return Ok(body);
        }
        context.set_reservation(self.budget.reservation(limit_bytes));
        let received = body.store_all_limited(limit_bytes).await;
        let too_long = BodyFault::TooLong;
        let received = received.map_err(|_| fault_error(context.fault().unwrap_or(too_long)))?;
        if received.is_empty() {
            return Ok(body);
        }
        check_length(received.len(), &head.headers)?;
        context.set_xml(received.clone());
        if self.is_policy(head) {
            return Ok(policy_body(received, &mut head.headers));
        }

        let text = match canonical(&received, limit_bytes) {
            Ok(text) => Bytes::from(text),
            Err(XmlFault::Malformed) => Bytes::from_static(MALFORMED),
            Err(XmlFault::TooLong) => return Err(fault_error(too_long)),
        };
        let held_bytes = text.len() + elements(&text) * XML_ELEMENT_BYTES;
        let reservation = self.budget.reservation(held_bytes);
        let taken = reservation.take(held_bytes);
        taken.map_err(|fault| fault_error(fault.into()))?;
        head.headers.remove(TRANSFER_ENCODING);
        let for_s3s = if is_completion(head) {
            without_unknown_sums(&text)
        } else {
            without(&text, BLOCKED_TYPES)
        };
        head.headers.insert(CONTENT_LENGTH, for_s3s.len().into());
        head.extensions.insert(Arc::new(CanonicalXml {
            text,
            _reservation: reservation,
        }));
        Ok(Body::from(for_s3s))
    }
}

/// A policy as s3s is given it. What is no text it would refuse in words of its own; so it is given
/// what is no policy either.
fn policy_body(received: Bytes, headers: &mut HeaderMap) -> Body {
    if std::str::from_utf8(&received).is_ok() {
        return Body::from(received);
    }
    headers.insert(CONTENT_LENGTH, MALFORMED.len().into());
    Body::from(Bytes::from_static(MALFORMED))
}

/// How many elements a document has that was written anew: each has an end of its own.
fn elements(text: &[u8]) -> usize {
    let pairs = text.iter().zip(text.iter().skip(1));
    pairs.filter(|pair| *pair == (&b'<', &b'/')).count()
}

/// A document written anew without the elements of a name, which has each at most once. Where one
/// has no end, the document is malformed in any case.
fn without(text: &Bytes, name: &str) -> Bytes {
    let (start, end) = (format!("<{name}>"), format!("</{name}>"));
    let position = |part: &str| {
        let mut windows = text.windows(part.len());
        windows.position(|window| window == part.as_bytes())
    };
    match (position(&start), position(&end)) {
        (Some(from), Some(to)) if from < to => {
            Bytes::from([&text[..from], &text[to + end.len()..]].concat())
        }
        _ => text.clone(),
    }
}

/// Whether a request completes an upload.
fn is_completion(head: &Parts) -> bool {
    let pairs = form_pairs(head.uri.query().unwrap_or("")).unwrap_or_default();
    head.method == Method::POST && pairs.iter().any(|(name, _)| name == "uploadId")
}

fn without_unknown_sums(text: &Bytes) -> Bytes {
    match std::str::from_utf8(text).map(without_unknown) {
        Ok(Cow::Owned(left)) => Bytes::from(left),
        _ => text.clone(),
    }
}

/// As s3s does with the bodies that it collects itself.
fn check_length(length_bytes: usize, headers: &HeaderMap) -> S3Result {
    let declared = headers.get(CONTENT_LENGTH);
    let declared = declared.and_then(|length| length.to_str().ok()?.parse::<usize>().ok());
    match declared {
        Some(declared) if declared == length_bytes => Ok(()),
        Some(_) => Err(s3_error!(
            IncompleteBody,
            "You did not provide the number of bytes specified by the Content-Length HTTP header"
        )),
        None => Err(s3_error!(
            MissingContentLength,
            "You must provide the Content-Length HTTP header."
        )),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use http::header::HOST;

    use super::*;

    #[test]
    fn elements_are_taken_out() {
        let left = |text: &'static str| without(&Bytes::from_static(text.as_bytes()), "B");
        assert_eq!(left("<R><A>1</A><B><C>2</C></B></R>"), "<R><A>1</A></R>");
        for same in ["<R></R>", "<R></B><B></R>", "<R>&lt;B></R>"] {
            assert_eq!(left(same), same);
        }
    }

    #[test]
    fn elements_are_counted() {
        assert_eq!(elements(b"<"), 0);
        assert_eq!(elements(b"<A><B>/</B><C t=\"/\"></C></A>"), 3);
    }

    #[test]
    fn xml_bodies_are_told_from_objects() {
        let xml_bodies = XmlBodies {
            budget: MemoryBudget::bodies(),
            domains: Domains::new(&["s3.test".to_owned()]),
        };
        let is_xml = |method: Method, host: &'static str, uri: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, HeaderValue::from_static(host));
            xml_bodies
                .limit(&method, &uri.parse().unwrap(), &headers)
                .is_some()
        };
        let (path, virtual_host) = ("127.0.0.1:9000", "b.s3.test:9000");
        for (method, host, uri) in [
            (Method::POST, path, "/b?delete"),
            (Method::POST, path, "/b/k?uploadId=1"),
            (Method::PUT, path, "/b"),
            (Method::PUT, path, "/b/"),
            (Method::PUT, path, "/b?%74agging"),
            (Method::PUT, path, "/b/k?tagging="),
            (Method::PUT, virtual_host, "/"),
            (Method::PUT, virtual_host, "/k?tagging"),
        ] {
            assert!(is_xml(method, host, uri), "{host} {uri}");
        }
        for (method, host, uri) in [
            (Method::GET, path, "/b?delete"),
            (Method::PUT, path, "/b/k"),
            (Method::PUT, path, "/b%2Fk"),
            (Method::PUT, path, "/b/k?partNumber=1&uploadId=tagging"),
            (Method::PUT, path, "/b/k?x-id=PutObject"),
            (Method::PUT, virtual_host, "/k"),
        ] {
            assert!(!is_xml(method, host, uri), "{host} {uri}");
        }
    }
}
