//! Lists of buckets, objects and versions, page by page.

#[cfg(test)]
mod tests;

mod paging;

use http::Method;
use http::header::SERVER;
use percent_encoding::percent_decode_str;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::limits::OBJECT_BYTES_MAX;
use crate::s3::client::Client;
use crate::s3::error::S3Error;
use crate::s3::request::Request;
use crate::s3::xml::Element;

pub use self::paging::Paging;
pub(crate) use self::paging::is_truncated;
use self::paging::{COMES_TO_ITSELF, next_of};

/// A bucket of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BucketEntry {
    /// Its name.
    pub name: String,
    /// When it was made, as the server writes it.
    pub created: String,
}

/// An object of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedObject {
    /// Its name.
    pub key: String,
    /// How long it is.
    pub bytes: u64,
    /// What names its content.
    pub etag: String,
    /// When it was stored, as the server writes it.
    pub modified: String,
}

/// A part of a list of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Page {
    /// Objects.
    pub objects: Vec<ListedObject>,
    /// What several names begin with, up to the delimiter.
    pub prefixes: Vec<String>,
    /// Asks for the next part; none at the end.
    pub next: Option<String>,
}

impl Page {
    /// What it names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let objects = self.objects.iter().map(|object| object.key.as_str());
        objects.chain(self.prefixes.iter().map(String::as_str))
    }
}

/// A version, or a delete marker, of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedVersion {
    /// The object, as it is in the list.
    pub object: ListedObject,
    /// Its id.
    pub version_id: String,
    /// Whether it is the current one. Where the server does not tell, it may be.
    pub is_latest: bool,
    /// Whether it only says that the object was deleted.
    pub is_marker: bool,
}

impl ListedObject {
    /// When it was modified, if a time is told.
    pub(crate) fn modified_at(&self) -> Option<OffsetDateTime> {
        OffsetDateTime::parse(&self.modified, &Rfc3339).ok()
    }
}

/// A part of a list of versions, in the order of the server: of each name, the newest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionsPage {
    /// Versions and delete markers.
    pub versions: Vec<ListedVersion>,
    /// Asks for the next part, by name and version.
    pub next: Option<(String, String)>,
    /// Whether the server calls itself coffer.
    pub is_of_coffer: bool,
}

impl VersionsPage {
    /// Whether versions of its last name may be missing, for the next part goes on behind that
    /// name, and not behind a version.
    pub(crate) fn may_lack_versions(&self) -> bool {
        let last = self.versions.last().map(|version| &version.object.key);
        let have_ids = || self.versions.iter().any(|it| it.version_id != "null");
        let next = self.next.as_ref();
        next.is_some_and(|(key, id)| id.is_empty() && last == Some(key) && have_ids())
    }
}

impl VersionsPage {
    /// What it names, with the ids.
    pub fn names(&self) -> impl Iterator<Item = (&str, &str)> {
        let versions = self.versions.iter();
        versions.map(|version| (version.object.key.as_str(), version.version_id.as_str()))
    }
}

impl Client {
    /// All buckets that may be listed.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn list_buckets(&self) -> Result<Vec<BucketEntry>, S3Error> {
        let mut buckets = Vec::new();
        let mut token: Option<String> = None;
        let mut paging = Paging::default();
        loop {
            let mut request = Request::of_service(Method::GET);
            if let Some(token) = &token {
                request = request.query("continuation-token", token);
            }
            let (answer, _) = self.document(&request).await?;
            if answer.name != "ListAllMyBucketsResult" {
                return Err(self.unreadable("is no list of buckets"));
            }
            let entry = |bucket: &Element| {
                Some(BucketEntry {
                    name: bucket.value_of("Name")?.to_owned(),
                    created: bucket
                        .text_of("CreationDate")
                        .unwrap_or_default()
                        .to_owned(),
                })
            };
            let listed = answer.child("Buckets");
            let found: Vec<BucketEntry> = { listed.iter() }
                .flat_map(|all| all.all("Bucket"))
                .filter_map(entry)
                .collect();
            let next = answer.value_of("ContinuationToken").map(str::to_owned);
            let goes_on = is_truncated(&answer).map_err(|problem| self.unreadable(problem))?;
            if goes_on && next.is_none() {
                return Err(self.unreadable("is a part of a list without its rest"));
            }
            paging.follow(self, found.iter().map(|bucket| &bucket.name), next.as_ref())?;
            buckets.extend(found);
            if next.is_none() {
                return Ok(buckets);
            }
            token = next;
        }
    }

    /// A part of the objects whose names begin with `prefix`, those behind `delimiter` together.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn list_objects(
        &self,
        bucket: &str,
        prefix: &str,
        delimiter: Option<&str>,
        after: Option<&str>,
    ) -> Result<Page, S3Error> {
        let mut request = Request::of_bucket(Method::GET, bucket)
            .query("list-type", "2")
            .query("encoding-type", "url")
            .query("prefix", prefix);
        if let Some(delimiter) = delimiter {
            request = request.query("delimiter", delimiter);
        }
        if let Some(after) = after {
            request = request.query("continuation-token", after);
        }
        let (answer, _) = self.document(&request).await?;
        let page = objects_page(&answer).map_err(|problem| self.unreadable(problem))?;
        if after.is_some() && page.next.as_deref() == after {
            return Err(self.unreadable(COMES_TO_ITSELF));
        }
        let keys = page.objects.iter().map(|object| &object.key);
        self.all_begin(prefix, keys.chain(&page.prefixes))?;
        Ok(page)
    }

    /// A part of the versions of objects whose names begin with `prefix`.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn list_versions(
        &self,
        bucket: &str,
        prefix: &str,
        after: Option<&(String, String)>,
    ) -> Result<VersionsPage, S3Error> {
        let mut request = Request::of_bucket(Method::GET, bucket)
            .query("versions", "")
            .query("encoding-type", "url")
            .query("prefix", prefix);
        if let Some((key, version_id)) = after {
            request = request.query("key-marker", key);
            if !version_id.is_empty() {
                request = request.query("version-id-marker", version_id);
            }
        }
        let (answer, headers) = self.document(&request).await?;
        let mut page = versions_page(&answer).map_err(|problem| self.unreadable(problem))?;
        page.is_of_coffer = headers.get(SERVER).is_some_and(|name| name == "coffer");
        if after.is_some() && page.next.as_ref() == after {
            return Err(self.unreadable(COMES_TO_ITSELF));
        }
        let keys = page.versions.iter().map(|version| &version.object.key);
        self.all_begin(prefix, keys)?;
        Ok(page)
    }

    /// Sees that all names of a list are some that were asked for: others would be taken for what
    /// was meant, and deleted.
    fn all_begin<'a>(
        &self,
        prefix: &str,
        mut keys: impl Iterator<Item = &'a String>,
    ) -> Result<(), S3Error> {
        match keys.find(|key| !key.starts_with(prefix)) {
            None => Ok(()),
            Some(key) => Err(S3Error::Unasked {
                endpoint: self.endpoint().text().to_owned(),
                prefix: prefix.to_owned(),
                key: key.clone(),
            }),
        }
    }
}

/// A page of a list of objects. Answers are others' bytes.
///
/// # Errors
/// What is wrong with it, in words that go on from "an answer that".
pub(crate) fn objects_page(answer: &Element) -> Result<Page, &'static str> {
    if answer.name != "ListBucketResult" {
        return Err("is no list of objects");
    }
    let names = Names::of(answer);
    let mut page = Page::default();
    for object in answer.all("Contents") {
        page.objects.push(names.object(object)?);
    }
    for prefix in answer.all("CommonPrefixes") {
        let prefix = prefix
            .text_of("Prefix")
            .ok_or("has a prefix without text")?;
        page.prefixes.push(names.decoded(prefix)?);
    }
    let next = next_of(answer, "NextContinuationToken")?;
    page.next = next.map(|token| {
        names
            .token(token, &page)
            .unwrap_or_else(|| token.to_owned())
    });
    Ok(page)
}

/// A page of a list of versions.
///
/// # Errors
/// As of [`objects_page`].
pub(crate) fn versions_page(answer: &Element) -> Result<VersionsPage, &'static str> {
    if answer.name != "ListVersionsResult" {
        return Err("is no list of versions");
    }
    let names = Names::of(answer);
    let mut page = VersionsPage::default();
    for version in &answer.children {
        let is_marker = match version.name.as_str() {
            "Version" => false,
            "DeleteMarker" => true,
            _ => continue,
        };
        page.versions.push(ListedVersion {
            object: names.object(version)?,
            version_id: version.text_of("VersionId").unwrap_or("null").to_owned(),
            is_latest: version.child("IsLatest").is_none() || version.is_true("IsLatest"),
            is_marker,
        });
    }
    if let Some(marker) = next_of(answer, "NextKeyMarker")? {
        let last = page.versions.last().map(|version| &version.object.key);
        // Ceph encodes names, and not what the next page begins behind.
        let key = if last.is_some_and(|last| last == marker) {
            marker.to_owned()
        } else {
            names.decoded(marker)?
        };
        let version_id = answer.text_of("NextVersionIdMarker").unwrap_or_default();
        page.next = Some((key, version_id.to_owned()));
    }
    Ok(page)
}

/// How names are written in an answer.
struct Names {
    are_encoded: bool,
}

impl Names {
    fn of(answer: &Element) -> Self {
        Self {
            are_encoded: answer.text_of("EncodingType") == Some("url"),
        }
    }

    fn decoded(&self, text: &str) -> Result<String, &'static str> {
        if !self.are_encoded {
            return Ok(text.to_owned());
        }
        // As a form has it: a plus is a space.
        let spaced = text.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8();
        let decoded = decoded.map_err(|_| "has a name that is no text")?;
        Ok(decoded.into_owned())
    }

    /// What asks for the page behind this one, where its token is its last name as it is written
    /// in it: S3Proxy encodes that, and takes the name itself.
    fn token(&self, token: &str, page: &Page) -> Option<String> {
        let names = || {
            let last = page.objects.last().map(|object| &object.key);
            last.into_iter().chain(page.prefixes.last())
        };
        let name = self.decoded(token).ok()?;
        let is_last = names().all(|last| last != token) && names().any(|last| *last == name);
        is_last.then_some(name)
    }

    fn object(&self, object: &Element) -> Result<ListedObject, &'static str> {
        let text = |name| object.text_of(name).unwrap_or_default().to_owned();
        let size = object.value_of("Size").unwrap_or("0").parse().ok();
        let size = size.filter(|bytes| *bytes <= OBJECT_BYTES_MAX);
        Ok(ListedObject {
            key: self.decoded(
                object
                    .value_of("Key")
                    .ok_or("has an object without a name")?,
            )?,
            bytes: size.ok_or("has an object without a size")?,
            etag: text("ETag"),
            modified: text("LastModified"),
        })
    }
}
