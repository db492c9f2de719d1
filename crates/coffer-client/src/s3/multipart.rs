//! Uploads in parts.

use std::time::Instant;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::{HeaderMap, Method};
use hyper::body::Bytes;

use crate::limits::PART_COUNT_MAX;
use crate::s3::body::{Sent, bare, strong};
use crate::s3::checksum::{Algorithm, Checksum, Running, md5_of_hex};
use crate::s3::client::Client;
use crate::s3::error::S3Error;
use crate::s3::listing::is_truncated;
use crate::s3::objects::{ObjectName, Stored};
use crate::s3::request::Request;
use crate::s3::since::asked_at;
use crate::s3::store::Awaited;
use crate::s3::xml::Element;

/// An upload that was begun.
#[derive(Debug, Clone)]
pub struct UploadStart {
    /// What it is called from now on.
    pub upload_id: String,
    /// Whether the server said that it compares the checksums of its parts, and of the whole.
    pub compares: bool,
    /// When it was asked for, in seconds since 1970 by the server's clock.
    pub began_seconds: u64,
}

/// A part that was stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DonePart {
    /// Its number, from one.
    pub number: u32,
    /// What names its content.
    pub etag: String,
    /// Its CRC-64/NVME, in Base64, where the server compares it.
    pub checksum: Option<String>,
}

/// A part that the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedPart {
    /// Its number, from one.
    pub number: u32,
    /// How long it is.
    pub bytes: u64,
    /// What names its content.
    pub etag: String,
    /// Its CRC-64/NVME, in Base64, where the server tells it.
    pub checksum: Option<String>,
}

const ALGORITHM: Algorithm = Algorithm::Crc64Nvme;

impl Client {
    /// Begins an upload in parts, of which the server is to compare CRC-64/NVMEs.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn create_upload(
        &self,
        name: &ObjectName,
        headers: &[(String, String)],
    ) -> Result<UploadStart, S3Error> {
        let request = name
            .request(Method::POST)
            .query("uploads", "")
            .headers(headers);
        let comparing = { request.clone() }
            .header("x-amz-checksum-algorithm", ALGORITHM.name())
            .header("x-amz-checksum-type", "FULL_OBJECT");
        let asked = Instant::now();
        let (answer, headers) = match self.document(&comparing).await {
            // A server that knows other checksums only.
            Err(error) if error.is_about_checksums() => self.document(&request).await?,
            begun => begun?,
        };
        let upload_id = answer.value_of("UploadId");
        let upload_id = upload_id.ok_or_else(|| self.unreadable("names no upload"))?;
        let algorithm = headers.get("x-amz-checksum-algorithm");
        Ok(UploadStart {
            upload_id: upload_id.to_owned(),
            compares: algorithm.is_some_and(|told| told == ALGORITHM.name()),
            began_seconds: asked_at(asked, &headers),
        })
    }

    /// Stores a part.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn upload_part(
        &self,
        name: &ObjectName,
        (upload_id, number): (&str, u32),
        headers: &[(String, String)],
        body: Bytes,
        sent: Option<Sent>,
    ) -> Result<Stored, S3Error> {
        let request = name
            .request(Method::PUT)
            .query("partNumber", number.to_string())
            .query("uploadId", upload_id)
            .headers(headers)
            .body(body, sent);
        let mut attempt = 0;
        loop {
            let error = match self.part_once(&request).await {
                Ok(stored) => return Ok(stored),
                Err(error) => error,
            };
            attempt += 1;
            self.pause(attempt, error).await?;
        }
    }

    async fn part_once(&self, request: &Request) -> Result<Stored, S3Error> {
        let answer = self.send_once(request).await?;
        self.stored(request, answer).await
    }

    /// Has the server copy a range of an object, its end included, to a part.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn copy_part(
        &self,
        source: &ObjectName,
        name: &ObjectName,
        (upload_id, number): (&str, u32),
        headers: &[(String, String)],
    ) -> Result<DonePart, S3Error> {
        let request = name
            .request(Method::PUT)
            .query("partNumber", number.to_string())
            .query("uploadId", upload_id)
            .headers(headers)
            .header("x-amz-copy-source", source.copy_source());
        let (answer, _) = self.document(&request).await?;
        let etag = answer.value_of("ETag");
        Ok(DonePart {
            number,
            etag: etag
                .ok_or_else(|| self.unreadable("names no part"))?
                .to_owned(),
            checksum: answer.value_of(&ALGORITHM.element()).map(str::to_owned),
        })
    }

    /// All parts that the server holds of an upload.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn list_parts(
        &self,
        name: &ObjectName,
        upload_id: &str,
    ) -> Result<Vec<ListedPart>, S3Error> {
        let mut parts = Vec::new();
        let mut after = 0;
        loop {
            let mut request = name.request(Method::GET).query("uploadId", upload_id);
            if after > 0 {
                request = request.query("part-number-marker", after.to_string());
            }
            let (answer, _) = self.document(&request).await?;
            if answer.name != "ListPartsResult" {
                return Err(self.unreadable("is no list of parts"));
            }
            parts.extend(answer.all("Part").filter_map(listed_part));
            match next_part(&answer, after).map_err(|problem| self.unreadable(problem))? {
                Some(next) => after = next,
                None => return Ok(parts),
            }
        }
    }

    /// Makes an object of the parts of an upload, in order, and has its checksum compared.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub(crate) async fn complete_upload(
        &self,
        awaited: &Awaited<'_>,
        upload_id: &str,
        parts: &[DonePart],
        whole: Option<&Checksum>,
    ) -> Result<Stored, S3Error> {
        let request = completion(awaited.name, upload_id, parts, whole);
        self.store(awaited, || self.complete_once(&request)).await
    }

    async fn complete_once(&self, request: &Request) -> Result<Stored, S3Error> {
        let answer = self.document_once(request).await?;
        completed(answer).map_err(|problem| self.unreadable(problem))
    }

    /// The same with headers such as `if-match`, and who is told when a request failed.
    pub(crate) async fn complete_upload_if(
        &self,
        name: &ObjectName,
        upload_id: &str,
        parts: &[DonePart],
        whole: Option<&Checksum>,
        (conditions, sent): (&[(String, String)], Option<Sent>),
    ) -> Result<Stored, S3Error> {
        let mut request = completion(name, upload_id, parts, whole).headers(conditions);
        request.sent = sent;
        let answer = self.document(&request).await?;
        completed(answer).map_err(|problem| self.unreadable(problem))
    }

    /// How long the parts of an object are, in order, where the server lists them: of the content
    /// that this ETag names, and no other.
    ///
    /// # Errors
    /// Those of [`document`](Self::document).
    pub async fn part_bytes(
        &self,
        name: &ObjectName,
        etag: &str,
    ) -> Result<Option<Vec<u64>>, S3Error> {
        let mut parts: Vec<u64> = Vec::new();
        let mut after = 0;
        loop {
            let mut request = name
                .request(Method::GET)
                .query("attributes", "")
                .header("x-amz-object-attributes", "ETag,ObjectParts")
                .header("x-amz-max-parts", "1000");
            if after > 0 {
                request = request.header("x-amz-part-number-marker", after.to_string());
            }
            let (answer, _) = self.document(&request).await?;
            let told = answer.value_of("ETag").unwrap_or(etag);
            let list = answer.child("ObjectParts");
            let Some(list) = list.filter(|_| bare(told) == bare(etag)) else {
                return Ok(None);
            };
            let page = list
                .all("Part")
                .map(|part| part.value_of("Size")?.parse().ok());
            let Some(page) = page.collect::<Option<Vec<u64>>>() else {
                return Ok(None);
            };
            parts.extend(page);
            match next_part(list, after) {
                Ok(Some(next)) => after = next,
                Ok(None) => return Ok(Some(parts)),
                Err(_) => return Ok(None),
            }
        }
    }

    /// How long a part of an object is, of the content that this ETag names.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn head_part(
        &self,
        name: &ObjectName,
        etag: &str,
        number: u32,
    ) -> Result<Option<u64>, S3Error> {
        let mut request = name
            .request(Method::HEAD)
            .query("partNumber", number.to_string());
        if let Some(etag) = strong(etag) {
            request = request.header("if-match", etag);
        }
        let answer = self.send(&request).await?;
        let length = answer.header("content-length");
        Ok(length.and_then(|length| length.parse().ok()))
    }

    /// Ends an upload, of which nothing stays.
    ///
    /// # Errors
    /// Those of [`send`](Self::send).
    pub async fn abort_upload(&self, name: &ObjectName, upload_id: &str) -> Result<(), S3Error> {
        let request = name.request(Method::DELETE).query("uploadId", upload_id);
        self.send(&request).await.map(drop)
    }
}

/// Whether nothing stays of an upload, after this answer to its end. One that is not there was
/// ended before.
pub(crate) fn is_ended(answer: &Result<(), S3Error>) -> bool {
    match answer {
        Ok(()) => true,
        Err(error) => error.is_absent(),
    }
}

fn completion(
    name: &ObjectName,
    upload_id: &str,
    parts: &[DonePart],
    whole: Option<&Checksum>,
) -> Request {
    let leaf = |name: &str, text: String| Element {
        name: name.to_owned(),
        text,
        ..Element::default()
    };
    let part = |part: &DonePart| {
        let mut children = vec![
            leaf("PartNumber", part.number.to_string()),
            leaf("ETag", part.etag.clone()),
        ];
        let checksum =
            { part.checksum.iter() }.map(|text| leaf(&ALGORITHM.element(), text.clone()));
        children.extend(checksum);
        Element {
            name: "Part".to_owned(),
            children,
            ..Element::default()
        }
    };
    let document = Element {
        name: "CompleteMultipartUpload".to_owned(),
        children: parts.iter().map(part).collect(),
        ..Element::default()
    };
    let mut request = name.request(Method::POST).query("uploadId", upload_id);
    if let Some(whole) = whole {
        request = request
            .header("x-amz-checksum-type", "FULL_OBJECT")
            .header(whole.algorithm.header(), whole.text());
    }
    request.body(Bytes::from(document.to_xml()), None)
}

/// What the answer to a completion says; of checksums, that of the whole object.
fn completed((answer, headers): (Element, HeaderMap)) -> Result<Stored, &'static str> {
    // Some services call it …Response, or …Output.
    if !answer.name.starts_with("CompleteMultipartUpload") {
        return Err("is no S3 answer to the end of an upload");
    }
    let mut stored = Stored::of_headers(&headers);
    let etag = answer.value_of("ETag");
    stored.etag = etag.ok_or("ends an upload, and names no ETag")?.to_owned();
    let is_of_all = answer.text_of("ChecksumType") != Some("COMPOSITE");
    let told = { answer.value_of(&ALGORITHM.element()) }.filter(|_| is_of_all);
    if let Some(value) = told.and_then(|text| BASE64.decode(text).ok()) {
        stored.checksum = Some(Checksum {
            algorithm: ALGORITHM,
            value,
        });
    }
    Ok(stored)
}

/// The ETag that an object of these parts has where those of parts are MD5s: the MD5 of them.
pub(crate) fn etag_of_parts(parts: &[DonePart]) -> Option<String> {
    let mut md5 = Running::new(Algorithm::Md5);
    for part in parts {
        md5.update(&md5_of_hex(bare(&part.etag))?);
    }
    Some(format!("{}-{}", hex::encode(md5.done().value), parts.len()))
}

/// The part that the next page of a list of parts comes behind; none at the end of it, where many
/// services name the last part all the same. Numbers that go forward come to an end.
fn next_part(page: &Element, after: u32) -> Result<Option<u32>, &'static str> {
    if !is_truncated(page)? {
        return Ok(None);
    }
    let next = page.value_of("NextPartNumberMarker");
    let next = next.and_then(|next| next.parse().ok());
    let next = next.filter(|next| *next > after && u64::from(*next) <= PART_COUNT_MAX);
    next.map(Some)
        .ok_or("is a part of a list of parts that does not go on behind it")
}

fn listed_part(part: &Element) -> Option<ListedPart> {
    Some(ListedPart {
        number: part.value_of("PartNumber")?.parse().ok()?,
        bytes: part.value_of("Size")?.parse().ok()?,
        etag: part.value_of("ETag")?.to_owned(),
        checksum: part.value_of(&ALGORITHM.element()).map(str::to_owned),
    })
}
