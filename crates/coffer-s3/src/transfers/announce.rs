//! Announcements of uploads that will be sent sealed: `POST /BUCKET/KEY?coffer-transfer`.

use std::sync::Arc;

use coffer_vault::{Announcement, DigestPlan, Subject, Vault};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use s3s::{HttpResponse, S3Error, S3Result, s3_error};

use super::answers::{TRANSFER_LENGTH, is_signed_in_header, upload_answer};
use crate::checksums::algorithms::by_name;
use crate::checksums::headers::header_value;
use crate::http::percent::form_pairs;
use crate::http::{number, ranges};
use crate::parameters::{acl, customer_key, encryption, expected_owner, names, not_implemented};
use crate::request::asked::describe::{Described, describe};
use crate::request::caller::Caller;

/// What the query of an announcement has.
const ANNOUNCE: &str = "coffer-transfer";

/// Whether a request announces an upload.
pub(crate) fn is_announcement(method: &Method, uri: &Uri) -> bool {
    *method == Method::POST
        && uri.query().is_some_and(|query| {
            let mut names = query.split('&').map(|pair| pair.split('=').next());
            names.any(|name| name == Some(ANNOUNCE))
        })
}

/// Announces an upload whose bytes will be sent sealed.
///
/// # Errors
/// Those of PutObject or UploadPart.
pub(crate) async fn announce(
    vault: &Vault,
    caller: Caller,
    head: &Parts,
    (bucket, key): (String, String),
) -> S3Result<HttpResponse> {
    let headers = &head.headers;
    let query = head.uri.query().unwrap_or("");
    let query = form_pairs(query).ok_or_else(|| s3_error!(InvalidURI))?;
    let value = |name: &str| {
        let found = query.iter().find(|(other, _)| other == name);
        found.map(|(_, value)| value.as_str())
    };
    let part = match (value("uploadId"), value("partNumber")) {
        (None, None) => None,
        (Some(upload), Some(part)) => {
            let part = number(part).ok_or_else(bad_part)?;
            Some((names::upload(upload), ranges::part_number(part)?))
        }
        _ => return Err(bad_part()),
    };
    let operation = part.map_or("PutObject", |_| "UploadPart");
    not_implemented::check_headers(operation, headers)?;
    encryption::check_headers(operation, headers)?;
    acl::asked(headers)?;
    expected_owner::check(headers, vault.account_id().as_str())?;
    let plaintext_bytes = headers.get(TRANSFER_LENGTH);
    let digits = |text: &&str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plaintext_bytes = plaintext_bytes.and_then(|value| value.to_str().ok());
    let plaintext_bytes = plaintext_bytes
        .filter(digits)
        .and_then(|text| text.parse().ok());
    let plaintext_bytes = plaintext_bytes.ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "{TRANSFER_LENGTH} must say how many bytes will be sent"
        )
    })?;
    let brought = customer_key::of_object(headers)?;
    let digests = digests(headers)?;
    let caller = asking(vault, caller, operation, head, (&bucket, &key));
    let (bucket, name) = (names::bucket(&bucket)?, names::object(key)?);
    caller.check_named_key(vault, &bucket, headers).await?;
    let announcement = Announcement {
        name,
        part,
        plaintext_bytes,
        digests,
    };
    if brought.is_some() || !is_signed_in_header(&caller) {
        return upload_answer(vault, None);
    }
    let announced = vault
        .announce(&caller.subject, &bucket, announcement)
        .await
        .map_err(|error| caller.refused(error))?;
    upload_answer(vault, announced)
}

fn bad_part() -> S3Error {
    s3_error!(
        InvalidArgument,
        "A part has an uploadId, and a partNumber from 1 to 10000"
    )
}

/// The checksum that the commit will have, as far as the announcement says.
fn digests(headers: &HeaderMap) -> S3Result<DigestPlan> {
    let named = ["x-amz-checksum-algorithm", "x-amz-sdk-checksum-algorithm"];
    let named = named.iter().find_map(|name| headers.get(*name));
    let checksum = match named {
        Some(name) => Some(by_name(name.to_str().unwrap_or(""))?),
        None => header_value(headers)?.map(|(algorithm, _)| algorithm),
    };
    Ok(DigestPlan {
        checksum,
        md5: headers.contains_key("content-md5"),
    })
}

/// The caller as it asks for what it will commit: a policy may come before that.
fn asking(
    vault: &Vault,
    caller: Caller,
    operation: &str,
    head: &Parts,
    (bucket, key): (&str, &str),
) -> Caller {
    let asked = describe(&Described {
        operation,
        bucket,
        object: Some(key),
        query: head.uri.query().unwrap_or(""),
        headers: &head.headers,
        around_form: None,
        xml: &[],
        tags: None,
        lock_now_ms: &|| vault.lock_now_ms(),
        asks: None,
        context: &caller.context,
    });
    let subject: Option<Arc<Subject>> = asked.map(|asked| Arc::new(caller.subject.asking(asked)));
    Caller {
        subject: subject.unwrap_or_else(|| caller.subject.clone()),
        context: caller.context,
    }
}
