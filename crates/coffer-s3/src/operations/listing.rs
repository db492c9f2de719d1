//! Listings of a bucket's objects, in S3's three forms.

use coffer_vault::record::{ListPage, ListQuery, ListedObject};
use coffer_vault::{BucketName, Vault};
use s3s::dto::{
    ChecksumAlgorithm, CommonPrefix, ETag, EncodingType, ListObjectsInput, ListObjectsOutput,
    ListObjectsV2Input, ListObjectsV2Output, Object, ObjectStorageClass,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::answer_xml::escape;
use crate::checksums::algorithms::{kind, name};
use crate::errors::details::of_argument;
use crate::http::dates::in_seconds;
use crate::http::percent;
use crate::limits::LIST_MAX;
use crate::operations::acl::owners::Owners;
use crate::operations::page_length::cut_objects;
use crate::parameters::continuation_tokens;
use crate::parameters::names;
use crate::request::caller::Caller;

/// How names are written in an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Writing {
    Plain,
    Url,
}

impl Writing {
    pub(crate) fn asked(encoding: Option<&EncodingType>) -> S3Result<Self> {
        match encoding.map(EncodingType::as_str) {
            None => Ok(Self::Plain),
            Some(EncodingType::URL) => Ok(Self::Url),
            Some(other) => {
                let error = s3_error!(
                    InvalidArgument,
                    "Invalid Encoding Method specified in Request"
                );
                Err(of_argument(error, "encoding-type", other))
            }
        }
    }

    pub(crate) fn write(self, text: String) -> String {
        match self {
            Self::Plain => text,
            Self::Url => percent::encode(&text),
        }
    }

    /// Writes a name into XML.
    pub(crate) fn write_to(self, xml: &mut String, text: &str) {
        match self {
            Self::Plain => escape(xml, text),
            // Nothing that XML has other use for is left.
            Self::Url => percent::encode_to(xml, text),
        }
    }

    pub(crate) fn told(self) -> Option<EncodingType> {
        (self == Self::Url).then(|| EncodingType::from_static(EncodingType::URL))
    }
}

/// How many rows are wanted, from a parameter of this name.
pub(crate) fn page_size(asked: Option<i32>, parameter: &str, max: i32) -> S3Result<i32> {
    match asked.unwrap_or(max) {
        negative if negative < 0 => {
            let error = s3_error!(
                InvalidArgument,
                "Argument {parameter} must be an integer between 0 and 2147483647"
            );
            Err(of_argument(error, parameter, &negative.to_string()))
        }
        rows => Ok(rows.min(max)),
    }
}

pub(crate) fn prefixes(prefixes: Vec<String>, writing: Writing) -> Option<Vec<CommonPrefix>> {
    let row = |prefix| CommonPrefix {
        prefix: Some(writing.write(prefix)),
    };
    (!prefixes.is_empty()).then(|| prefixes.into_iter().map(row).collect())
}

/// What all three forms have in common.
struct Listing {
    prefix: Option<String>,
    delimiter: Option<String>,
    start_after: Option<String>,
    rows: i32,
    writing: Writing,
}

impl Listing {
    async fn page(
        &self,
        vault: &Vault,
        caller: &Caller,
        bucket: &BucketName,
    ) -> S3Result<ListPage> {
        let query = ListQuery {
            prefix: self.prefix.clone().unwrap_or_default(),
            delimiter: self.delimiter.clone(),
            start_after: self.start_after.clone().filter(|after| !after.is_empty()),
            limit: usize::try_from(self.rows).unwrap_or(0).max(1),
        };
        let mut page = vault
            .list_objects(&caller.subject, bucket, query)
            .await
            .map_err(|error| caller.refused(error))?;
        // Without rows, the question is whether the bucket may be listed, which the vault answers.
        match self.rows {
            0 => Ok(ListPage::default()),
            _ => {
                cut_objects(&mut page, caller.context.answer());
                Ok(page)
            }
        }
    }

    fn object(&self, listed: ListedObject, owners: Option<&Owners>) -> Object {
        let (algorithm, checksum_kind) = listed.checksum.unzip();
        Object {
            checksum_algorithm: algorithm.map(|algorithm| vec![written(algorithm)]),
            checksum_type: checksum_kind.map(kind),
            e_tag: Some(ETag::Strong(listed.etag)),
            key: Some(self.writing.write(listed.name.expose().to_owned())),
            last_modified: Some(in_seconds(listed.modified_ms)),
            owner: owners.map(|owners| owners.of(listed.owner)),
            size: i64::try_from(listed.size_bytes).ok(),
            storage_class: Some(ObjectStorageClass::from_static(
                ObjectStorageClass::STANDARD,
            )),
            ..Default::default()
        }
    }

    fn written(&self, text: Option<String>) -> Option<String> {
        text.map(|text| self.writing.write(text))
    }
}

pub(crate) fn written(algorithm: coffer_vault::record::ChecksumAlgorithm) -> ChecksumAlgorithm {
    ChecksumAlgorithm::from_static(name(algorithm))
}

/// `ListObjectsV2`.
pub(crate) async fn list_objects_v2(
    vault: &Vault,
    request: S3Request<ListObjectsV2Input>,
) -> S3Result<S3Response<ListObjectsV2Output>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let token = input.continuation_token;
    let after = match token.as_deref() {
        Some(token) => Some(continuation_tokens::decode(token)?),
        None => input.start_after.clone(),
    };
    let listing = Listing {
        prefix: input.prefix,
        delimiter: { input.delimiter }.filter(|delimiter| !delimiter.is_empty()),
        start_after: after,
        rows: page_size(input.max_keys, "max-keys", LIST_MAX)?,
        writing: Writing::asked(input.encoding_type.as_ref())?,
    };
    let page = listing.page(vault, &caller, &bucket).await?;
    let owners = match input.fetch_owner {
        Some(true) => Some(Owners::within(vault, &caller, &bucket).await?),
        _ => None,
    };
    let count = page.objects.len() + page.prefixes.len();
    let row = |listed| listing.object(listed, owners.as_ref());
    Ok(S3Response::new(ListObjectsV2Output {
        name: Some(input.bucket),
        prefix: Some(
            listing
                .writing
                .write(listing.prefix.clone().unwrap_or_default()),
        ),
        max_keys: Some(listing.rows),
        key_count: i32::try_from(count).ok(),
        continuation_token: token,
        is_truncated: Some(page.next.is_some()),
        next_continuation_token: page.next.as_deref().map(continuation_tokens::encode),
        contents: Some(page.objects.into_iter().map(row).collect()),
        common_prefixes: prefixes(page.prefixes, listing.writing),
        delimiter: listing.written(listing.delimiter.clone()),
        encoding_type: listing.writing.told(),
        start_after: listing.written(input.start_after),
        ..Default::default()
    }))
}

/// `ListObjects`, the first version.
pub(crate) async fn list_objects(
    vault: &Vault,
    request: S3Request<ListObjectsInput>,
) -> S3Result<S3Response<ListObjectsOutput>> {
    let caller = Caller::of(&request)?;
    let input = request.input;
    let bucket = names::bucket(&input.bucket)?;
    let listing = Listing {
        prefix: input.prefix,
        delimiter: { input.delimiter }.filter(|delimiter| !delimiter.is_empty()),
        start_after: input.marker,
        rows: page_size(input.max_keys, "max-keys", LIST_MAX)?,
        writing: Writing::asked(input.encoding_type.as_ref())?,
    };
    let page = listing.page(vault, &caller, &bucket).await?;
    let owners = Owners::within(vault, &caller, &bucket).await?;
    let row = |listed| listing.object(listed, Some(&owners));
    Ok(S3Response::new(ListObjectsOutput {
        name: Some(input.bucket),
        prefix: Some(
            listing
                .writing
                .write(listing.prefix.clone().unwrap_or_default()),
        ),
        marker: Some(
            listing
                .writing
                .write(listing.start_after.clone().unwrap_or_default()),
        ),
        max_keys: Some(listing.rows),
        is_truncated: Some(page.next.is_some()),
        next_marker: listing.written(page.next),
        contents: Some(page.objects.into_iter().map(row).collect()),
        common_prefixes: prefixes(page.prefixes, listing.writing),
        delimiter: listing.written(listing.delimiter.clone()),
        encoding_type: listing.writing.told(),
        ..Default::default()
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_bounded() {
        assert_eq!(page_size(None, "max-keys", 1000).unwrap(), 1000);
        assert_eq!(page_size(Some(7), "max-keys", 1000).unwrap(), 7);
        assert_eq!(page_size(Some(0), "max-keys", 1000).unwrap(), 0);
        assert_eq!(page_size(Some(5000), "max-keys", 1000).unwrap(), 1000);
        assert!(page_size(Some(-1), "max-keys", 1000).is_err());
    }

    #[test]
    fn only_url_encoding_is_known() {
        let asked = |text: &'static str| Writing::asked(Some(&EncodingType::from_static(text)));
        assert_eq!(asked("url").unwrap(), Writing::Url);
        assert!(asked("gzip").is_err());
        assert!(asked("").is_err());
        assert_eq!(Writing::asked(None).unwrap(), Writing::Plain);
        assert_eq!(Writing::Url.write("a b".into()), "a%20b");
    }
}
