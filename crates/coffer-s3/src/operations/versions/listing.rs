//! Listings of versions. Their XML is written here: see [`AnswerXml`].

use coffer_vault::version::VersionId;
use coffer_vault::{ListedVersion, Vault, VersionsPage, VersionsQuery};
use s3s::dto::{ListObjectVersionsInput, ListObjectVersionsOutput};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::answer_xml::{AnswerXml, Written, escape};
use crate::checksums::algorithms;
use crate::errors::details::of_argument;
use crate::http::dates::Times;
use crate::limits::{LIST_MAX, PAGE_ROW_BYTES};
use crate::operations::acl::owners::Owners;
use crate::operations::listing::{Writing, page_size};
use crate::operations::page_length::cut_versions;
use crate::parameters::names;
use crate::request::caller::Caller;

const ROOT: &str = "ListVersionsResult";

const MARKER: &str = "version-id-marker";

/// `ListObjectVersions`: of a bucket that was never versioned, the objects, whose version S3 calls
/// `null`.
pub(crate) async fn list_object_versions(
    vault: &Vault,
    request: S3Request<ListObjectVersionsInput>,
) -> S3Result<S3Response<ListObjectVersionsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let writing = Writing::asked(input.encoding_type.as_ref())?;
    let rows = page_size(input.max_keys, "max-keys", LIST_MAX)?;
    let delimiter = { input.delimiter }.filter(|text| !text.is_empty());
    let query = VersionsQuery {
        prefix: input.prefix.clone().unwrap_or_default(),
        delimiter: delimiter.clone(),
        start_after: start(
            input.key_marker.as_deref(),
            input.version_id_marker.as_deref(),
        )?,
        limit: usize::try_from(rows).unwrap_or(0).max(1),
    };
    let listed = vault.list_versions(&caller.subject, &bucket, query);
    let mut page = listed.await.map_err(|error| caller.refused(error))?;
    // Without rows, the question is whether the bucket may be listed, which the vault answers.
    match rows {
        0 => page = VersionsPage::default(),
        _ => cut_versions(&mut page, caller.context.answer()),
    }
    let owners = Owners::within(vault, &caller, &bucket).await?;
    let asked = Asked {
        bucket: input.bucket,
        prefix: input.prefix.unwrap_or_default(),
        delimiter,
        key_marker: input.key_marker.unwrap_or_default(),
        version_id_marker: input.version_id_marker.unwrap_or_default(),
        rows,
        writing,
    };
    let mut response = S3Response::new(ListObjectVersionsOutput::default());
    response.extensions.insert(asked.answered(&page, &owners));
    Ok(response)
}

/// Where a page begins: after a name, or after a version of it.
fn start(
    key: Option<&str>,
    version: Option<&str>,
) -> S3Result<Option<(String, Option<VersionId>)>> {
    let key = key.filter(|key| !key.is_empty());
    let Some(version) = version.filter(|version| !version.is_empty()) else {
        return Ok(key.map(|key| (key.to_owned(), None)));
    };
    let Some(key) = key else {
        let error = s3_error!(
            InvalidArgument,
            "A version-id marker cannot be specified without a key marker."
        );
        return Err(of_argument(error, MARKER, version));
    };
    let parsed = version.parse::<VersionId>();
    let version = parsed.map_err(|_| names::no_version_id(MARKER, version))?;
    Ok(Some((key.to_owned(), Some(version))))
}

/// What an answer tells of the question.
struct Asked {
    bucket: String,
    prefix: String,
    delimiter: Option<String>,
    key_marker: String,
    version_id_marker: String,
    rows: i32,
    writing: Writing,
}

impl Asked {
    fn answered(&self, page: &VersionsPage, owners: &Owners) -> Written {
        let rows = page.versions.len() + page.prefixes.len();
        let mut xml = AnswerXml::begin(ROOT, (rows + 2) * PAGE_ROW_BYTES);
        for prefix in &page.prefixes {
            xml.open("CommonPrefixes");
            self.name(&mut xml, "Prefix", prefix);
            xml.close("CommonPrefixes");
        }
        if let Some(delimiter) = &self.delimiter {
            self.name(&mut xml, "Delimiter", delimiter);
        }
        if let Some(encoding) = self.writing.told() {
            xml.element("EncodingType", encoding.as_str());
        }
        xml.plain("IsTruncated", page.next.is_some());
        self.name(&mut xml, "KeyMarker", &self.key_marker);
        xml.plain("MaxKeys", self.rows);
        xml.element("Name", &self.bucket);
        if let Some((name, version)) = &page.next {
            self.name(&mut xml, "NextKeyMarker", name);
            if let Some(version) = version {
                xml.plain("NextVersionIdMarker", version);
            }
        }
        self.name(&mut xml, "Prefix", &self.prefix);
        xml.element("VersionIdMarker", &self.version_id_marker);
        let (owner_begin, bucket_owner) = owners.in_xml();
        let mut rows = Rows {
            xml,
            writing: self.writing,
            times: Times::default(),
            owner_begin,
            bucket_owner,
        };
        // Versions and delete markers in one order, as S3 has them.
        for version in &page.versions {
            rows.row(version);
        }
        rows.xml.end(ROOT)
    }

    fn name(&self, xml: &mut AnswerXml, element: &'static str, name: &str) {
        xml.with(element, |xml| self.writing.write_to(xml, name));
    }
}

/// Rows of a page, as they are written.
struct Rows<'a> {
    xml: AnswerXml,
    writing: Writing,
    times: Times,
    owner_begin: String,
    bucket_owner: &'a str,
}

impl Rows<'_> {
    fn row(&mut self, listed: &ListedVersion) {
        let xml = &mut self.xml;
        let Some(content) = &listed.content else {
            xml.open("DeleteMarker");
            self.in_all_rows(listed);
            self.xml.plain("VersionId", listed.version);
            return self.xml.close("DeleteMarker");
        };
        xml.open("Version");
        if let Some((algorithm, kind)) = content.checksum {
            xml.copied("<ChecksumAlgorithm>");
            xml.copied(algorithms::name(algorithm));
            xml.copied("</ChecksumAlgorithm>");
            xml.element("ChecksumType", algorithms::kind(kind).as_str());
        }
        // With quotation marks as they are, which s3s's entity tags have as well.
        xml.copied("<ETag>\"");
        xml.with_text(|xml| escape(xml, &content.etag));
        xml.copied("\"</ETag>");
        self.in_all_rows(listed);
        self.xml.plain("Size", content.size_bytes);
        self.xml.copied("<StorageClass>STANDARD</StorageClass>");
        self.xml.plain("VersionId", listed.version);
        self.xml.close("Version");
    }

    /// What is told of versions and of delete markers.
    fn in_all_rows(&mut self, listed: &ListedVersion) {
        let Self { xml, times, .. } = self;
        xml.plain("IsLatest", listed.is_latest);
        xml.with("Key", |xml| {
            self.writing.write_to(xml, listed.name.expose())
        });
        xml.with("LastModified", |xml| times.write(xml, listed.modified_ms));
        xml.copied(&self.owner_begin);
        let owner = listed.owner.as_deref().unwrap_or(self.bucket_owner);
        xml.with_text(|xml| escape(xml, owner));
        xml.copied("</ID></Owner>");
    }
}

#[cfg(test)]
mod tests;
