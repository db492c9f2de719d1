//! `GetObjectAttributes`: what is known of an object, part by part, without its bytes.

use coffer_vault::record::{
    Checksum, ChecksumKind, ObjectHead, ObjectName, ObjectPart as StoredPart,
};
use coffer_vault::version::Which;
use coffer_vault::{BucketName, ObjectParts, Vault, check_customer_key};
use s3s::dto::{
    ETag, GetObjectAttributesInput, GetObjectAttributesOutput, GetObjectAttributesParts,
    ObjectAttributesList, ObjectPart, StorageClass,
};
use s3s::{S3Request, S3Response, S3Result, s3_error};

use crate::around_s3s::finish_response::BareEtag;
use crate::checksums::algorithms::kind;
use crate::checksums::fields::set_checksum;
use crate::errors::details::of_argument;
use crate::errors::from_vault;
use crate::http::dates::timestamp;
use crate::limits::LIST_MAX;
use crate::parameters::customer_key;
use crate::parameters::names;
use crate::request::caller::{Caller, headers};

/// `GetObjectAttributes`.
pub(crate) async fn object_attributes(
    vault: &Vault,
    request: S3Request<GetObjectAttributesInput>,
) -> S3Result<S3Response<GetObjectAttributesOutput>> {
    let caller = Caller::of(&request)?;
    let brought = customer_key::of_object(headers(&request))?;
    let input = request.input;
    let which = names::which(input.version_id.as_deref())?;
    let (bucket, name) = (names::bucket(&input.bucket)?, names::object(input.key)?);
    let page = Page::of(input.max_parts, input.part_number_marker);
    let asked = attributes(&input.object_attributes)?;
    let read = read(vault, &caller, &bucket, (&name, which), page).await?;
    let ObjectParts {
        head,
        parts,
        version,
    } = read;
    let key = brought.as_ref().map(|brought| &brought.key);
    check_customer_key(&head.details.encryption, key).map_err(from_vault)?;
    if asked.is_empty() {
        return Err(s3_error!(
            InvalidRequest,
            "The x-amz-object-attributes header specifying the attributes to be retrieved is \
             either missing or empty"
        ));
    }
    let mut output = GetObjectAttributesOutput {
        last_modified: Some(timestamp(head.modified_ms)),
        version_id: version.map(|version| version.to_string()),
        ..Default::default()
    };
    for attribute in asked {
        match attribute {
            Attribute::Etag => output.e_tag = Some(ETag::Strong(head.etag.clone())),
            Attribute::Size => output.object_size = i64::try_from(head.size_bytes).ok(),
            Attribute::StorageClass => {
                output.storage_class = Some(StorageClass::from_static(StorageClass::STANDARD));
            }
            Attribute::Checksum => output.checksum = head.details.checksum.as_ref().map(told),
            Attribute::Parts => output.object_parts = object_parts(&head, &parts, page),
        }
    }
    let mut response = S3Response::new(output);
    response.extensions.insert(BareEtag);
    Ok(response)
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Etag,
    Size,
    StorageClass,
    Checksum,
    Parts,
}

/// What `x-amz-object-attributes` asks for: names with commas between.
fn attributes(header: &ObjectAttributesList) -> S3Result<Vec<Attribute>> {
    let listed = header.iter().flat_map(|names| names.as_str().split(','));
    let named = listed.map(str::trim).filter(|name| !name.is_empty());
    named.map(attribute).collect()
}

fn attribute(name: &str) -> S3Result<Attribute> {
    Ok(match name {
        "ETag" => Attribute::Etag,
        "ObjectSize" => Attribute::Size,
        "StorageClass" => Attribute::StorageClass,
        "Checksum" => Attribute::Checksum,
        "ObjectParts" => Attribute::Parts,
        _ => {
            let error = s3_error!(InvalidArgument, "Invalid attribute name specified.");
            return Err(of_argument(error, "x-amz-object-attributes", name));
        }
    })
}

/// Which parts are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Page {
    after: u32,
    rows: usize,
}

impl Page {
    /// S3 takes numbers that are none of parts for the nearest that are.
    fn of(max_parts: Option<i32>, marker: Option<i32>) -> Self {
        let rows = max_parts.filter(|rows| *rows >= 0).unwrap_or(LIST_MAX);
        Self {
            after: marker
                .and_then(|after| u32::try_from(after).ok())
                .unwrap_or(0),
            rows: usize::try_from(rows.min(LIST_MAX)).unwrap_or(0),
        }
    }
}

/// An object's head, and one part more than a page has.
async fn read(
    vault: &Vault,
    caller: &Caller,
    bucket: &BucketName,
    object: (&ObjectName, Which),
    page: Page,
) -> S3Result<ObjectParts> {
    vault
        .object_parts(&caller.subject, bucket, object, page.after, page.rows + 1)
        .await
        .map_err(|error| caller.refused(error))
}

fn told(checksum: &Checksum) -> s3s::dto::Checksum {
    let mut shown = s3s::dto::Checksum {
        checksum_type: Some(kind(checksum.kind)),
        ..Default::default()
    };
    set_checksum!(shown, Some(checksum));
    // S3 tells composite ones without the count of parts here.
    for value in [
        &mut shown.checksum_crc32,
        &mut shown.checksum_crc32c,
        &mut shown.checksum_sha1,
        &mut shown.checksum_sha256,
    ] {
        if let Some((bare, _)) = value.as_deref().and_then(|value| value.split_once('-')) {
            *value = Some(bare.to_owned());
        }
    }
    shown
}

/// The parts of an object that was uploaded in parts. Each is told where the object's checksum is
/// of theirs, and else, as by S3, how many there are.
fn object_parts(
    head: &ObjectHead,
    parts: &[StoredPart],
    page: Page,
) -> Option<GetObjectAttributesParts> {
    let total = i32::try_from(head.part_count).ok();
    let total = total.filter(|count| *count > 0)?;
    let whole = head.details.checksum.as_ref();
    if whole.is_none_or(|whole| whole.kind == ChecksumKind::FullObject) {
        return Some(GetObjectAttributesParts {
            total_parts_count: Some(total),
            ..Default::default()
        });
    }
    let is_truncated = parts.len() > page.rows;
    let parts = &parts[..parts.len().min(page.rows)];
    let number = |number: u32| i32::try_from(number).ok();
    let last = parts.last().map_or(0, |part| part.number);
    Some(GetObjectAttributesParts {
        is_truncated: Some(is_truncated),
        max_parts: i32::try_from(page.rows).ok(),
        next_part_number_marker: number(last),
        part_number_marker: number(page.after),
        parts: Some(parts.iter().map(part).collect()),
        total_parts_count: Some(total),
    })
}

fn part(stored: &StoredPart) -> ObjectPart {
    let mut part = ObjectPart {
        part_number: i32::try_from(stored.number).ok(),
        size: i64::try_from(stored.size_bytes).ok(),
        ..Default::default()
    };
    set_checksum!(part, stored.checksum.as_ref());
    part
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_have_bounds() {
        let page = |rows, after| Page::of(rows, after);
        assert_eq!(
            page(None, None),
            Page {
                after: 0,
                rows: 1000
            }
        );
        assert_eq!(
            page(Some(-1), Some(-1)),
            Page {
                after: 0,
                rows: 1000
            }
        );
        assert_eq!(
            page(Some(2000), Some(7)),
            Page {
                after: 7,
                rows: 1000
            }
        );
        assert_eq!(page(Some(0), None), Page { after: 0, rows: 0 });
    }
}
