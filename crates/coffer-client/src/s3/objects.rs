//! Objects: what is known of one, reading and deleting.

mod reading;

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, Method};
use hyper::body::Bytes;
use time::OffsetDateTime;

use crate::limits::{COMMIT_AGE_SLACK, OBJECT_BYTES_MAX};
use crate::s3::checksum::{Algorithm, Checksum, checksum};
use crate::s3::client::Client;
use crate::s3::composite::Composite;
use crate::s3::error::{S3Error, date_of};
use crate::s3::request::{Request, encoded, path};
use crate::s3::xml::Element;
use crate::sealed::{LENGTH_HEADER, STORED_HEADER, TRANSFER_HEADER};

pub(crate) use self::reading::{EARLY, LONGER, UNMARKED, Wanted};

/// What is said of an object beside metadata, and told with it as it was said.
pub(crate) const DESCRIPTION: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    REDIRECT_HEADER,
];

/// Of these, what a copy in one piece leaves behind.
pub(crate) const REDIRECT_HEADER: &str = "x-amz-website-redirect-location";

/// How the headers of metadata begin.
pub(crate) const METADATA: &str = "x-amz-meta-";

/// Which object, and which of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// The bucket.
    pub bucket: String,
    /// The name in it.
    pub key: String,
    /// A version; the current one if none is named.
    pub version_id: Option<String>,
}

impl ObjectName {
    /// The current version of an object.
    pub fn new(bucket: impl Into<String>, key: impl Into<String>) -> Self {
        Self {
            bucket: bucket.into(),
            key: key.into(),
            version_id: None,
        }
    }

    /// A request of it.
    pub fn request(&self, method: Method) -> Request {
        let request = Request::of_object(method, &self.bucket, &self.key);
        match &self.version_id {
            Some(version_id) => request.query("versionId", version_id),
            None => request,
        }
    }

    /// What names it as the source of a copy.
    pub fn copy_source(&self) -> String {
        let path = path(&self.bucket, &self.key);
        match &self.version_id {
            Some(version_id) => format!("{path}?versionId={version_id}"),
            None => path,
        }
    }
}

/// What the head of an answer says of an object.
#[derive(Debug, Clone)]
pub struct ObjectHead {
    /// How long it is.
    pub bytes: u64,
    /// What names this content of it.
    pub etag: String,
    /// Its version, in buckets that have versions.
    pub version_id: Option<String>,
    /// A checksum of all of it, where the server tells one.
    pub checksum: Option<Checksum>,
    /// A checksum of its parts' checksums, where the server tells one.
    pub composite: Option<Composite>,
    /// All that was said.
    pub headers: HeaderMap,
}

impl ObjectHead {
    /// Reads the head of an answer about a whole object.
    pub fn of_headers(headers: HeaderMap) -> Option<Self> {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        // An offer of sealed transfer has a body of its own.
        let length = if headers.contains_key(TRANSFER_HEADER) {
            LENGTH_HEADER
        } else {
            "content-length"
        };
        let bytes = text(length)?.parse().ok();
        Some(Self {
            bytes: bytes.filter(|bytes| *bytes <= OBJECT_BYTES_MAX)?,
            etag: text("etag").unwrap_or_default(),
            version_id: text("x-amz-version-id").filter(|id| id != "null"),
            checksum: Checksum::of_headers(&headers),
            composite: Composite::of_headers(&headers),
            headers,
        })
    }

    /// A header that is text.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    /// How old it was when this was said, by the clock of the server alone.
    pub(crate) fn age(&self) -> Option<Duration> {
        let date = |name| date_of(&self.headers, name);
        let age = date("date")? - date("last-modified")?;
        // Older than its clock, which was set back: nothing is known of when.
        let is_known = !(age + COMMIT_AGE_SLACK).is_negative();
        is_known.then(|| age.try_into().unwrap_or_default())
    }

    /// What users have said of it: names without their prefix, and values.
    pub fn metadata(&self) -> Vec<(String, String)> {
        let pair = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            let name = name.as_str().strip_prefix(METADATA)?;
            let value = String::from_utf8_lossy(value.as_bytes());
            Some((name.to_owned(), value.into_owned()))
        };
        self.headers.iter().filter_map(pair).collect()
    }

    /// The headers that describe it, metadata among them, in whatever script.
    pub(crate) fn description(&self) -> Vec<(String, String)> {
        let described = DESCRIPTION.into_iter().filter_map(|name| {
            let value = String::from_utf8_lossy(self.headers.get(name)?.as_bytes());
            Some((name.to_owned(), value.into_owned()))
        });
        let metadata = self.metadata().into_iter();
        let metadata = metadata.map(|(name, value)| (format!("{METADATA}{name}"), value));
        described.chain(metadata).collect()
    }
}

/// What the server says of what it stored.
#[derive(Debug, Clone, Default)]
pub struct Stored {
    /// What names this content.
    pub etag: String,
    /// Its version, in buckets that have versions.
    pub version_id: Option<String>,
    /// The checksum that the server compared, where it tells it.
    pub checksum: Option<Checksum>,
    /// Whether it came sealed, and the server has not opened it yet.
    pub is_unverified: bool,
    /// When the server said so, in seconds since 1970 by its clock.
    pub(crate) told_at: Option<i64>,
}

impl Stored {
    pub(crate) fn of_headers(headers: &HeaderMap) -> Self {
        let text = |name: &str| headers.get(name)?.to_str().ok().map(str::to_owned);
        Self {
            etag: text("etag").unwrap_or_default(),
            version_id: text("x-amz-version-id"),
            checksum: Checksum::of_headers(headers),
            is_unverified: text(STORED_HEADER).is_some(),
            told_at: date_of(headers, "date").map(OffsetDateTime::unix_timestamp),
        }
    }
}

/// What became of an object that was to be deleted with others.
#[derive(Debug, Clone)]
pub struct Deleted {
    /// Its name.
    pub name: ObjectName,
    /// Why it is still there.
    pub failure: Option<(String, String)>,
}

/// What the answer to a DeleteObjects says of each object. It names those that failed: one that is
/// something else, or names what was not asked for, would have all pass for deleted.
fn outcomes(names: &[ObjectName], answer: &Element) -> Result<Vec<Deleted>, &'static str> {
    if answer.name != "DeleteResult" {
        return Err("is none to a deletion of many objects");
    }
    // Some name no version where one was asked for.
    let is_of = |error: &Element, name: &ObjectName| {
        let versions = (name.version_id.as_deref(), error.value_of("VersionId"));
        let is_version = !matches!(versions, (Some(asked), Some(told)) if asked != told);
        error.text_of("Key") == Some(name.key.as_str()) && is_version
    };
    let failures: Vec<&Element> = answer.all("Error").collect();
    if { failures.iter() }.any(|error| !names.iter().any(|name| is_of(error, name))) {
        return Err("says of others than were to be deleted that they were not");
    }
    let outcome = |name: &ObjectName| {
        let failure = failures.iter().find(|error| is_of(error, name));
        let failure = failure.map(|error| {
            let text = |part| error.text_of(part).unwrap_or_default().to_owned();
            (text("Code"), text("Message"))
        });
        Deleted {
            name: name.clone(),
            failure,
        }
    };
    Ok(names.iter().map(outcome).collect())
}

/// Tags of a document, as a header has them.
pub(crate) fn tags_of(answer: &Element) -> String {
    let set = answer.child("TagSet");
    let pair = |tag: &Element| {
        let text = |name| encoded(tag.text_of(name).unwrap_or_default());
        format!("{}={}", text("Key"), text("Value"))
    };
    let tags: Vec<_> = { set.iter() }
        .flat_map(|set| set.all("Tag"))
        .map(pair)
        .collect();
    tags.join("&")
}

impl Client {
    /// What is known of an object.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn head_object(&self, name: &ObjectName) -> Result<ObjectHead, S3Error> {
        let request = name.request(Method::HEAD);
        let comparing = { request.clone() }.header("x-amz-checksum-mode", "ENABLED");
        let answer = match self.send(&comparing).await {
            // A server that knows no checksums.
            Err(error) if error.is_about_checksums() => self.send(&request).await?,
            answered => answered?,
        };
        let head = ObjectHead::of_headers(answer.of_object()?.headers);
        head.ok_or_else(|| self.unreadable("tells no length that an object can have"))
    }

    /// Whether nothing is there any more.
    async fn is_gone(&self, name: &ObjectName) -> Result<bool, S3Error> {
        match self.head_object(name).await {
            Ok(_) => Ok(false),
            Err(S3Error::Refused { status: 404, .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    async fn are_gone(&self, names: &[ObjectName]) -> Result<bool, S3Error> {
        for name in names {
            if !self.is_gone(name).await? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Deletes an object, or a version of it. Where the answer is lost, it is looked whether an
    /// object is there before it is asked for again: in a bucket with versions that would put
    /// another delete marker.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn delete_object(&self, name: &ObjectName) -> Result<(), S3Error> {
        let request = name.request(Method::DELETE);
        let mut attempt = 0;
        loop {
            let error = match self.delete_once(&request, name).await {
                Ok(()) => return Ok(()),
                Err(error) => error,
            };
            attempt += 1;
            // Another may be the null version by now, but no other has an id of its own.
            let may_be_another = name.version_id.as_deref().is_none_or(|id| id == "null");
            let is_unknown = error.is_without_answer() && may_be_another;
            let waited = self.pause(attempt, error).await;
            if is_unknown {
                match self.head_object(name).await {
                    Err(looked) if looked.is_absent() => return Ok(()),
                    // It was asked often enough, and is not deleted again.
                    Err(looked) if looked.is_passing() => {
                        return Err(waited.err().unwrap_or(looked));
                    }
                    _ => {}
                }
            }
            waited?;
        }
    }

    /// S3 answers nothing. Where there is something, it is looked whether the object is gone: a
    /// login page deletes nothing.
    async fn delete_once(&self, request: &Request, name: &ObjectName) -> Result<(), S3Error> {
        let told = self.send_once(request).await?.of_deletion();
        match told {
            Err(_) if matches!(self.is_gone(name).await, Ok(true)) => Ok(()),
            told => told,
        }
    }

    /// Deletes up to 1,000 objects of a bucket at once.
    ///
    /// # Errors
    /// Those of [`send`](Self::send); what could not be deleted is no error here. It is not sent
    /// again where no answer came: a list tells what is left.
    pub async fn delete_objects(
        &self,
        bucket: &str,
        names: &[ObjectName],
    ) -> Result<Vec<Deleted>, S3Error> {
        let leaf = |name: &str, text: &str| Element {
            name: name.to_owned(),
            text: text.to_owned(),
            ..Element::default()
        };
        let object = |name: &ObjectName| {
            let mut children = vec![leaf("Key", &name.key)];
            children.extend({ name.version_id.iter() }.map(|id| leaf("VersionId", id)));
            Element {
                name: "Object".to_owned(),
                children,
                ..Element::default()
            }
        };
        let mut children: Vec<Element> = names.iter().map(object).collect();
        children.push(leaf("Quiet", "true"));
        let document = Element {
            name: "Delete".to_owned(),
            children,
            ..Element::default()
        };
        let body = Bytes::from(document.to_xml());
        let md5 = checksum(Algorithm::Md5, &body).value;
        let request = Request::of_bucket(Method::POST, bucket)
            .query("delete", "")
            .header("content-md5", BASE64.encode(md5))
            .body(body, None);
        let (mut answer, _) = self.document_if_answered(&request).await?;
        // Some services answer nothing where nothing failed: all are gone then.
        if answer.name.is_empty() && self.are_gone(names).await? {
            answer.name = "DeleteResult".to_owned();
        }
        outcomes(names, &answer).map_err(|problem| self.unreadable(problem))
    }

    /// Sends, and reads the answer as XML; one that is lost ends it, for what was asked for may
    /// have been done.
    async fn document_if_answered(
        &self,
        request: &Request,
    ) -> Result<(Element, HeaderMap), S3Error> {
        let mut attempt = 0;
        loop {
            let error = match self.document_once(request).await {
                Err(error) if !error.is_without_answer() => error,
                answered => return answered,
            };
            attempt += 1;
            self.pause(attempt, error).await?;
        }
    }

    /// The tags of an object, as the header `x-amz-tagging` has them.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn tags(&self, name: &ObjectName) -> Result<String, S3Error> {
        let request = name.request(Method::GET).query("tagging", "");
        let (answer, _) = self.document(&request).await?;
        Ok(tags_of(&answer))
    }

    /// What HeadBucket says of a bucket.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn head_bucket(&self, bucket: &str) -> Result<HeaderMap, S3Error> {
        let request = Request::of_bucket(Method::HEAD, bucket);
        Ok(self.send(&request).await?.headers)
    }
}
