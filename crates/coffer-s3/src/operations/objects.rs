//! PUT and DELETE of objects.

pub(crate) mod rename;

pub(crate) mod tagging;

use std::collections::HashSet;

use coffer_vault::limits::DELETE_MANY_MAX;
use coffer_vault::record::{OnlyIf, Precondition};
use coffer_vault::version::{Absent, VersionId, Which};
use coffer_vault::{DeleteObject, Deleted, PutObject, Vault};
use s3s::dto::{
    Delete, DeleteObjectInput, DeleteObjectOutput, DeleteObjectsInput, DeleteObjectsOutput,
    DeletedObject, ETag, Error, ObjectIdentifier, PutObjectInput, PutObjectOutput, Timestamp,
};
use s3s::{S3Error, S3Request, S3Response, S3Result, s3_error};
use time::OffsetDateTime;

use crate::around_s3s::xml;
use crate::checksums::algorithms::kind;
use crate::checksums::expected::ExpectedDigests;
use crate::checksums::fields::set_checksum;
use crate::errors::{self, no_version, of_conditions};
use crate::http::conditions;
use crate::lifecycle::told as told_of_rules;
use crate::limits::{DELETE_BODY_MAX_BYTES, DELETED_ROW_BYTES, ECHO_MAX_BYTES, OBJECT_TAGS_MAX};
use crate::parameters::acl;
use crate::parameters::customer_key;
use crate::parameters::encryption::{self, set_customer_key, set_encryption};
use crate::parameters::lock;
use crate::parameters::metadata;
use crate::parameters::names;
use crate::parameters::not_implemented;
use crate::parameters::tags;
use crate::parameters::transfer::TRANSFER;
use crate::request::answer_room::{no_room, written_bytes};
use crate::request::caller::{Caller, headers};
use crate::request::incoming;
use crate::transfers::answers::{just_stored, ticket_of};

/// `PutObject`.
pub(crate) async fn put_object(
    vault: &Vault,
    mut request: S3Request<PutObjectInput>,
) -> S3Result<S3Response<PutObjectOutput>> {
    let caller = Caller::of(&request)?;
    let bucket = names::bucket(&request.input.bucket)?;
    let name = names::object(std::mem::take(&mut request.input.key))?;
    let precondition = conditions::of_write(headers(&request));
    let precondition = precondition.map_err(|error| of_conditions(error, headers(&request)))?;
    let tags = tags::from_header(request.input.tagging.as_deref(), OBJECT_TAGS_MAX)?;
    let expected = ExpectedDigests::read(headers(&request))?;
    caller
        .check_named_key(vault, &bucket, headers(&request))
        .await?;
    let details = metadata::of_headers(headers(&request))?;
    let lock = lock::asked(headers(&request))?;
    let acl = acl::asked(headers(&request))?;
    let encryption = encryption::asked(headers(&request))?;
    let brought = customer_key::of_object(headers(&request))?;
    let ticket = headers(&request).get(TRANSFER).cloned();
    let PutObjectInput {
        body,
        content_length,
        ..
    } = request.input;
    let context = caller.context.clone();
    let told = expected.told();
    let mut incoming = incoming::incoming(body, content_length, expected, context)?;
    incoming.arrived = ticket_of(ticket.as_ref(), incoming.declared_bytes, told)?;

    let ruled = told_of_rules::ruled(vault, &bucket, &name);
    let put = PutObject {
        name,
        details,
        tags,
        precondition,
        encryption,
        lock,
        acl,
        incoming,
    };
    let stored = match vault.put_object(&caller.subject, &bucket, put).await {
        Ok(stored) => stored,
        Err(error) => return Err(caller.refused(error)),
    };
    let place = (&bucket, ruled);
    let about = told_of_rules::about(&stored);
    let checksum = stored.checksum.as_ref();
    let headers = just_stored(&stored);
    let mut output = PutObjectOutput {
        expiration: told_of_rules::of_write(vault, &caller, place, about).await,
        checksum_type: checksum.map(|checksum| kind(checksum.kind)),
        e_tag: Some(ETag::Strong(stored.etag)),
        version_id: stored.version.map(VersionId::text),
        ..Default::default()
    };
    set_checksum!(output, checksum);
    set_encryption!(output, &stored.encryption, &stored.level);
    set_customer_key!(output, brought);
    Ok(S3Response::with_headers(output, headers))
}

/// `DeleteObject`.
pub(crate) async fn delete_object(
    vault: &Vault,
    request: S3Request<DeleteObjectInput>,
) -> S3Result<S3Response<DeleteObjectOutput>> {
    let caller = Caller::of(&request)?;
    let which = names::which(request.input.version_id.as_deref())?;
    let precondition = conditions::of_write(headers(&request));
    let precondition = precondition.map_err(|error| of_conditions(error, headers(&request)))?;
    if precondition == Precondition::Absent {
        return Err(errors::not_implemented("Deleting with If-None-Match"));
    }
    let bypasses_governance = lock::bypasses_governance(headers(&request));
    check_size(headers(&request))?;
    let DeleteObjectInput {
        bucket,
        key,
        if_match_last_modified_time,
        if_match_size,
        ..
    } = request.input;
    let only_if = only_if(if_match_last_modified_time, if_match_size);
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    let delete = DeleteObject {
        name,
        which,
        precondition,
        only_if,
        bypasses_governance,
    };
    let deleted = match vault.delete_object(&caller.subject, &bucket, delete).await {
        Ok(deleted) => deleted,
        Err(error) => return Err(caller.refused(error)),
    };
    let (version_id, is_marker) = told(which, deleted);
    Ok(S3Response::new(DeleteObjectOutput {
        delete_marker: is_marker,
        version_id,
        ..Default::default()
    }))
}

/// Whether all of it is a number. s3s reads numbers up to the first byte that is no digit, and a
/// condition that was read otherwise than it was meant deletes what it should keep.
fn is_size(text: &[u8]) -> bool {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

fn check_size(headers: &http::HeaderMap) -> S3Result {
    // s3s takes an empty time for none, and refuses what else is none.
    let time = headers.get("x-amz-if-match-last-modified-time");
    if time.is_some_and(|time| time.is_empty()) {
        let what = "x-amz-if-match-last-modified-time is a time";
        return Err(s3_error!(InvalidArgument, "{what}"));
    }
    let mut sizes = headers.get_all("x-amz-if-match-size").iter();
    if sizes.all(|size| is_size(size.as_bytes())) {
        return Ok(());
    }
    let what = "x-amz-if-match-size is a number of bytes";
    Err(s3_error!(InvalidArgument, "{what}"))
}

/// The same of a document in which so many entries have one.
fn check_sizes(document: &[u8], count: usize) -> S3Result {
    let malformed = || s3_error!(MalformedXML, "A Size is a number of bytes");
    let text = xml::canonical(document, DELETE_BODY_MAX_BYTES).map_err(|_| malformed())?;
    let sizes = text.split("<Size>").skip(1);
    let is_number = |rest: &&str| {
        let size = rest.split('<').next().unwrap_or_default();
        is_size(size.trim().as_bytes())
    };
    // An element with an attribute is read all the same, and not found here.
    if sizes.filter(is_number).count() == count {
        Ok(())
    } else {
        Err(malformed())
    }
}

/// The conditions that S3 has on deletions in directory buckets. A size that no object has matches
/// none.
fn only_if(modified: Option<Timestamp>, size: Option<i64>) -> OnlyIf {
    OnlyIf {
        modified_s: modified.map(|time| OffsetDateTime::from(time).unix_timestamp()),
        size_bytes: size.map(|size| u64::try_from(size).unwrap_or(u64::MAX)),
    }
}

/// What is told of a deletion: the version that was named, or the marker that was made; and whether
/// it is a marker.
fn told(which: Which, deleted: Deleted) -> (Option<String>, Option<bool>) {
    let version = match which {
        Which::Version(version) => Some(version),
        Which::Current => deleted.marker,
    };
    let is_marker = deleted.marker.map(|_| true);
    (version.map(|version| version.to_string()), is_marker)
}

/// `DeleteObjects`: up to 1,000 at once, each with its own outcome.
pub(crate) async fn delete_objects(
    vault: &Vault,
    request: S3Request<DeleteObjectsInput>,
) -> S3Result<S3Response<DeleteObjectsOutput>> {
    let caller = Caller::of(&request)?;
    // It is each entry that has conditions.
    not_implemented::check_conditions(headers(&request))?;
    caller.check_xml_body_has_digest(headers(&request))?;
    let bucket = names::bucket(&request.input.bucket)?;
    let bypasses = lock::bypasses_governance(headers(&request));
    let Delete { objects, quiet } = request.input.delete;
    let entries = entries(&objects, caller.context.xml())?;

    // Before anything is deleted: what was done is told.
    let answer = caller.context.answer();
    answer
        .set(entries.iter().map(|(one, _)| row_bytes(one)).sum())
        .map_err(|_| no_room())?;

    let mut output = (Vec::new(), Vec::new());
    let mut doomed = Vec::with_capacity(entries.len());
    for (identifier, etag) in &entries {
        match to_delete(identifier, etag.as_deref(), bypasses) {
            Ok(one) => doomed.push(one),
            Err(error) => {
                let version = version_echoed(identifier).map(str::to_owned);
                let key = identifier.key.clone();
                output.1.push(failure(key, version, &error));
            }
        }
    }
    let named = |one: &DeleteObject| (one.name.clone(), one.which);
    let names: Vec<_> = doomed.iter().map(named).collect();
    let outcomes = vault
        .delete_objects(&caller.subject, &bucket, doomed)
        .await
        .map_err(|error| caller.refused(error))?;
    for ((name, which), outcome) in names.into_iter().zip(outcomes) {
        let key = name.expose().to_owned();
        let deleted = match outcome {
            Ok(deleted) => deleted,
            Err(error) => {
                let error = caller.refused(error);
                output.1.push(failure(key, id_of(which), &error));
                continue;
            }
        };
        let (told, is_marker) = told(which, deleted);
        let named = (which != Which::Current).then(|| told.clone()).flatten();
        output.0.push(DeletedObject {
            delete_marker: is_marker,
            delete_marker_version_id: told.filter(|_| is_marker.is_some()),
            key: Some(key),
            version_id: named,
        });
    }
    let (deleted, errors) = output;
    Ok(S3Response::new(DeleteObjectsOutput {
        deleted: (!quiet.unwrap_or(false)).then_some(deleted),
        errors: (!errors.is_empty()).then_some(errors),
        ..Default::default()
    }))
}

/// What is to be deleted, as it was read from a document, each with its `ETag` as it was written.
/// An entry that says the same as one before it is none of its own (as on AWS), and makes no second
/// delete marker.
fn entries<'a>(
    entries: &'a [ObjectIdentifier],
    document: &[u8],
) -> S3Result<Vec<(&'a ObjectIdentifier, Option<String>)>> {
    if entries.is_empty() || entries.len() > DELETE_MANY_MAX {
        return Err(s3_error!(
            MalformedXML,
            "A deletion names 1 to 1000 objects"
        ));
    }
    let sizes = entries.iter().filter(|one| one.size.is_some()).count();
    if sizes > 0 {
        check_sizes(document, sizes)?;
    }
    let etags = written_etags(entries, document)?;
    let mut seen = HashSet::with_capacity(entries.len());
    let is_first = |(one, etag): &(&'a ObjectIdentifier, Option<String>)| {
        let one = *one;
        let conditions = (etag.clone(), &one.last_modified_time, one.size);
        seen.insert((one.key.as_str(), version_sent(one), conditions))
    };
    Ok(entries.iter().zip(etags).filter(is_first).collect())
}

/// At most so much is told of what an entry names.
fn row_bytes(identifier: &ObjectIdentifier) -> usize {
    let version = version_echoed(identifier).map_or(0, written_bytes);
    DELETED_ROW_BYTES + written_bytes(&identifier.key) + version
}

/// The version that an entry names. SDKs send the element empty where there is none.
fn version_sent(identifier: &ObjectIdentifier) -> Option<&str> {
    let version = identifier.version_id.as_deref();
    version.filter(|version| !version.is_empty())
}

/// The same, unless it is long.
fn version_echoed(identifier: &ObjectIdentifier) -> Option<&str> {
    version_sent(identifier).filter(|version| version.len() <= ECHO_MAX_BYTES)
}

fn id_of(which: Which) -> Option<String> {
    match which {
        Which::Version(version) => Some(version.to_string()),
        Which::Current => None,
    }
}

/// The `ETag` of each entry as it was written: s3s does not tell `*` from a tag that is a star.
fn written_etags(entries: &[ObjectIdentifier], document: &[u8]) -> S3Result<Vec<Option<String>>> {
    if entries.iter().all(|one| one.e_tag.is_none()) {
        return Ok(vec![None; entries.len()]);
    }
    let malformed = || s3_error!(MalformedXML, "An ETag is an entity tag");
    let text = xml::canonical(document, DELETE_BODY_MAX_BYTES).map_err(|_| malformed())?;
    let written = |entry: &str| {
        let (_, rest) = entry.split_once("<ETag>")?;
        Some(rest.split('<').next().unwrap_or_default().to_owned())
    };
    let etags: Vec<_> = text.split("<Object>").skip(1).map(written).collect();
    // An element with an attribute is read all the same, and not found here.
    let is_found =
        |(one, etag): (&ObjectIdentifier, &Option<String>)| one.e_tag.is_some() == etag.is_some();
    let are_found = etags.len() == entries.len() && !text.contains("<Object ");
    if are_found && entries.iter().zip(&etags).all(is_found) {
        Ok(etags)
    } else {
        Err(malformed())
    }
}

fn to_delete(
    identifier: &ObjectIdentifier,
    etag: Option<&str>,
    bypasses: bool,
) -> S3Result<DeleteObject> {
    let which = names::which(version_sent(identifier));
    let which = which.map_err(|_| no_version(Absent::Version))?;
    let precondition = etag.map_or(Ok(Precondition::None), conditions::of_entry)?;
    Ok(DeleteObject {
        name: names::object(identifier.key.as_str())?,
        which,
        precondition,
        only_if: only_if(identifier.last_modified_time.clone(), identifier.size),
        bypasses_governance: bypasses,
    })
}

fn failure(key: String, version_id: Option<String>, error: &S3Error) -> Error {
    Error {
        code: Some(error.code().as_str().to_owned()),
        key: Some(key),
        message: error.message().map(str::to_owned),
        version_id,
    }
}
