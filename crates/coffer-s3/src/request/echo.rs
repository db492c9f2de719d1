//! What an error tells of the request that it answers (Amazon S3 API Reference, "Error responses"):
//! nothing but what its client has sent.

use std::fmt;

use coffer_vault::limits::OBJECT_NAME_MAX_BYTES;
use http::header::{CONTENT_LENGTH, CONTENT_RANGE, HOST, RANGE};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Uri};

use crate::http::hosts::Domains;
use crate::http::percent::form_pairs;
use crate::limits::ECHO_MAX_BYTES;

/// Elements and their texts.
pub(crate) type Elements = Vec<(&'static str, String)>;

const IF_MATCH: &str = "If-Match";
const IF_UNMODIFIED_SINCE: &str = "If-Unmodified-Since";

/// Conditions that a request may have, by their headers' names, and as errors call them.
const CONDITIONS: [(&str, &str); 14] = [
    ("if-match", IF_MATCH),
    ("if-none-match", "If-None-Match"),
    ("if-modified-since", "If-Modified-Since"),
    ("if-unmodified-since", IF_UNMODIFIED_SINCE),
    ("x-amz-copy-source-if-match", "x-amz-copy-source-If-Match"),
    (
        "x-amz-copy-source-if-none-match",
        "x-amz-copy-source-If-None-Match",
    ),
    (
        "x-amz-copy-source-if-modified-since",
        "x-amz-copy-source-If-Modified-Since",
    ),
    (
        "x-amz-copy-source-if-unmodified-since",
        "x-amz-copy-source-If-Unmodified-Since",
    ),
    (
        "x-amz-if-match-last-modified-time",
        "x-amz-if-match-last-modified-time",
    ),
    ("x-amz-if-match-size", "x-amz-if-match-size"),
    (
        "x-amz-rename-source-if-match",
        "x-amz-rename-source-if-match",
    ),
    (
        "x-amz-rename-source-if-none-match",
        "x-amz-rename-source-if-none-match",
    ),
    (
        "x-amz-rename-source-if-modified-since",
        "x-amz-rename-source-if-modified-since",
    ),
    (
        "x-amz-rename-source-if-unmodified-since",
        "x-amz-rename-source-if-unmodified-since",
    ),
];

/// Headers that name another object, which an error may be about.
const SOURCES: [&str; 2] = ["x-amz-copy-source", "x-amz-rename-source"];

/// Errors that are about the bucket which the address names.
const OF_BUCKETS: [&str; 16] = [
    "BucketAlreadyExists",
    "BucketAlreadyOwnedByYou",
    "BucketNotEmpty",
    "InvalidBucketName",
    "NoSuchBucket",
    "NoSuchBucketPolicy",
    "NoSuchCORSConfiguration",
    "NoSuchConfiguration",
    "NoSuchLifecycleConfiguration",
    "NoSuchPublicAccessBlockConfiguration",
    "NoSuchWebsiteConfiguration",
    "ObjectLockConfigurationNotFoundError",
    "OwnershipControlsNotFoundError",
    "ReplicationConfigurationNotFoundError",
    "ServerSideEncryptionConfigurationNotFoundError",
    "NoSuchTagSet",
];

/// What is kept of a request, which is cheap to keep, until it is known how it is answered.
pub(crate) struct Echo {
    method: Method,
    uri: Uri,
    domains: Domains,
    host: Option<HeaderValue>,
    range: Option<HeaderValue>,
    /// How much the request brings, where that is what it is to store.
    length: Option<HeaderValue>,
    conditions: Vec<&'static str>,
    has_source: bool,
}

impl fmt::Debug for Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Echo")
    }
}

impl Echo {
    pub(crate) fn of(parts: &Parts, domains: &Domains) -> Self {
        let mut echo = Self {
            method: parts.method.clone(),
            uri: parts.uri.clone(),
            domains: domains.clone(),
            host: parts.headers.get(HOST).cloned(),
            range: parts.headers.get(RANGE).cloned(),
            length: None,
            conditions: Vec::new(),
            has_source: false,
        };
        for name in parts.headers.keys().map(|name| name.as_str()) {
            if !name.starts_with("if-") && !name.starts_with("x-amz-") {
                continue;
            }
            echo.has_source |= SOURCES.contains(&name);
            let known = CONDITIONS.iter().find(|(known, _)| *known == name);
            echo.conditions.extend(known.map(|(_, told)| *told));
        }
        if parts.method == Method::PUT && !echo.has_source {
            let length = parts.headers.get("x-amz-decoded-content-length");
            let length = length.or_else(|| parts.headers.get(CONTENT_LENGTH));
            echo.length = length.cloned();
        }
        echo
    }

    /// What an error of this code tells, whose answer has these headers.
    pub(crate) fn elements(&self, code: &str, answer: &HeaderMap) -> Elements {
        let host = self.host.as_ref().and_then(|host| host.to_str().ok());
        let (bucket, object) = self.domains.named_by(&self.uri, host);
        let resource = match (bucket.as_str(), object.as_str()) {
            ("", _) => "/".to_owned(),
            (bucket, "") => format!("/{bucket}"),
            (bucket, object) => format!("/{bucket}/{object}"),
        };
        let mut told = self.by_code(code, answer, (bucket, object));
        told.push(("Resource", resource));
        told.retain(|(_, text)| text.len() <= ECHO_MAX_BYTES);
        told
    }

    fn by_code(
        &self,
        code: &str,
        answer: &HeaderMap,
        (bucket, object): (String, String),
    ) -> Elements {
        let told = |name, text: Option<String>| text.map(|text| (name, text));
        let [first, second] = match code {
            "NoSuchKey" if !self.has_source => [Some(("Key", object)), None],
            "NoSuchVersion" if !self.has_source => [
                Some(("Key", object)),
                told("VersionId", self.parameter("versionId")),
            ],
            "NoSuchUpload" | "InvalidPart" | "InvalidPartOrder" => {
                [told("UploadId", self.parameter("uploadId")), None]
            }
            "MethodNotAllowed" => {
                let kind = kind_of(&bucket, &object, answer);
                [
                    Some(("Method", self.method.to_string())),
                    Some(("ResourceType", kind.to_owned())),
                ]
            }
            "InvalidRange" => [
                told("ActualObjectSize", size_in(answer)),
                told("RangeRequested", self.range()),
            ],
            "InvalidPartNumber" => [
                told("PartNumberRequested", self.parameter("partNumber")),
                None,
            ],
            "KeyTooLongError" if !self.has_source && object.len() > OBJECT_NAME_MAX_BYTES => [
                Some(("Size", object.len().to_string())),
                Some(("MaxSizeAllowed", OBJECT_NAME_MAX_BYTES.to_string())),
            ],
            "EntityTooLarge" => [told("ProposedSize", self.length()), None],
            "PreconditionFailed" => [told("Condition", self.condition().map(str::to_owned)), None],
            code if OF_BUCKETS.contains(&code) && !self.has_source && !bucket.is_empty() => {
                [Some(("BucketName", bucket)), None]
            }
            _ => [None, None],
        };
        first.into_iter().chain(second).collect()
    }

    /// The condition that did not hold, where that is certain. Of a read, one that is asked for
    /// by dates does not count beside one by entity tags (RFC 9110, section 13.2.2).
    fn condition(&self) -> Option<&'static str> {
        let is_read = self.method == Method::GET || self.method == Method::HEAD;
        if is_read {
            let refusing = [IF_MATCH, IF_UNMODIFIED_SINCE];
            return refusing
                .into_iter()
                .find(|name| self.conditions.contains(name));
        }
        match self.conditions.as_slice() {
            [condition] => Some(*condition),
            _ => None,
        }
    }

    fn range(&self) -> Option<String> {
        let range = self.range.as_ref()?.to_str().ok()?;
        Some(range.to_owned())
    }

    fn length(&self) -> Option<String> {
        let length = self.length.as_ref()?.to_str().ok()?;
        length.parse::<u64>().ok().map(|bytes| bytes.to_string())
    }

    fn parameter(&self, name: &str) -> Option<String> {
        let pairs = form_pairs(self.uri.query()?)?;
        let found = pairs.into_iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value)
    }
}

/// What a method was not allowed of.
fn kind_of(bucket: &str, object: &str, answer: &HeaderMap) -> &'static str {
    match (bucket, object) {
        _ if answer.contains_key("x-amz-delete-marker") => "DeleteMarker",
        ("", _) => "SERVICE",
        (_, "") => "BUCKET",
        _ => "OBJECT",
    }
}

/// How long an object is of which no such range is there.
fn size_in(answer: &HeaderMap) -> Option<String> {
    let range = answer.get(CONTENT_RANGE)?.to_str().ok()?;
    range.strip_prefix("bytes */").map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn told(method: &str, uri: &str, headers: &[(&str, &str)], code: &str) -> Elements {
        let mut request = Request::builder().method(method).uri(uri);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        let domains = Domains::new(&["s3.test".to_owned()]);
        let mut answer = HeaderMap::new();
        answer.insert(CONTENT_RANGE, HeaderValue::from_static("bytes */7"));
        Echo::of(&parts, &domains).elements(code, &answer)
    }

    /// All but the resource.
    fn by_code(method: &str, uri: &str, headers: &[(&str, &str)], code: &str) -> String {
        let told = told(method, uri, headers, code);
        let texts = told.iter().filter(|(name, _)| *name != "Resource");
        let texts: Vec<_> = texts.map(|(name, text)| format!("{name}={text}")).collect();
        texts.join(" ")
    }

    #[test]
    fn the_resource_is_what_the_address_names() {
        for (uri, host, resource) in [
            ("/", "h", "/"),
            ("/b/", "h", "/b"),
            ("/b/a%20b/%C3%A4?x=y", "h", "/b/a b/ä"),
            ("/k", "b.s3.test", "/b/k"),
        ] {
            let told = told("GET", uri, &[("host", host)], "AccessDenied");
            assert_eq!(told, [("Resource", resource.to_owned())], "{uri}");
        }
        let long = format!("/b/{}", "k".repeat(ECHO_MAX_BYTES));
        assert!(told("GET", &long, &[], "AccessDenied").is_empty());
    }

    #[test]
    fn each_code_tells_what_it_is_about() {
        let version = "/b/k?versionId=v";
        for (uri, code, expected) in [
            ("/b/k", "NoSuchKey", "Key=k"),
            (version, "NoSuchVersion", "Key=k VersionId=v"),
            ("/b/k", "KeyTooLongError", ""),
            ("/b/k?uploadId=u", "NoSuchUpload", "UploadId=u"),
            (
                "/b/k?partNumber=9",
                "InvalidPartNumber",
                "PartNumberRequested=9",
            ),
            ("/b/k", "NoSuchBucket", "BucketName=b"),
            ("/", "NoSuchBucket", ""),
            ("/", "MethodNotAllowed", "Method=PUT ResourceType=SERVICE"),
            ("/b", "MethodNotAllowed", "Method=PUT ResourceType=BUCKET"),
            ("/b/k", "MethodNotAllowed", "Method=PUT ResourceType=OBJECT"),
            ("/b/k", "AccessDenied", ""),
        ] {
            assert_eq!(by_code("PUT", uri, &[], code), expected, "{uri} {code}");
        }
        let long = format!("/b/{}", "k".repeat(1025));
        assert_eq!(
            by_code("PUT", &long, &[], "KeyTooLongError"),
            "Size=1025 MaxSizeAllowed=1024"
        );
        let range = [("range", "bytes=9-")];
        assert_eq!(
            by_code("GET", "/b/k", &range, "InvalidRange"),
            "ActualObjectSize=7 RangeRequested=bytes=9-"
        );
    }

    #[test]
    fn what_is_too_large_is_told_by_the_length_that_was_sent() {
        let plain = ("content-length", "10");
        let chunked = [plain, ("x-amz-decoded-content-length", "7")];
        let told = |method: &str, headers: &[(&str, &str)]| {
            by_code(method, "/b/k", headers, "EntityTooLarge")
        };
        assert_eq!(told("PUT", &[plain]), "ProposedSize=10");
        assert_eq!(told("PUT", &chunked), "ProposedSize=7");
        assert_eq!(told("PUT", &[("content-length", "ten")]), "");
        // The length of a form is not that of its file.
        assert_eq!(told("POST", &[plain]), "");
        assert_eq!(told("PUT", &[plain, ("x-amz-copy-source", "b/other")]), "");
    }

    /// It may be about the source, and what may be wrong is not told.
    #[test]
    fn copies_tell_no_name() {
        let copy = [("x-amz-copy-source", "b/other")];
        for code in ["NoSuchKey", "NoSuchVersion", "NoSuchBucket"] {
            assert_eq!(by_code("PUT", "/b/k?versionId=v", &copy, code), "");
        }
    }

    #[test]
    fn a_condition_is_told_where_only_one_can_have_failed() {
        let told = |method: &str, names: &[&'static str]| {
            let headers: Vec<_> = names.iter().map(|name| (*name, "x")).collect();
            by_code(method, "/b/k", &headers, "PreconditionFailed")
        };
        assert_eq!(told("PUT", &["if-none-match"]), "Condition=If-None-Match");
        let both = ["if-unmodified-since", "if-match"];
        assert_eq!(told("GET", &both), "Condition=If-Match");
        assert_eq!(told("PUT", &both), "");
        assert_eq!(
            told("PUT", &["x-amz-copy-source-if-match"]),
            "Condition=x-amz-copy-source-If-Match"
        );
    }
}
