//! Storing the file of a form, and what its page is told.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use coffer_vault::record::{ObjectName, Precondition, Tags};
use coffer_vault::{
    BodyError, BucketName, Digests, Incoming, PutObject, Stored, Subject, Vault, VaultError,
};
use futures::StreamExt;
use http::header::{CONTENT_TYPE, ETAG, HOST, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use multer::Field;
use s3s::dto::Tagging;
use s3s::xml::{Deserialize, Deserializer};
use s3s::{Body, HttpResponse, S3Error, S3Result, s3_error};
use time::OffsetDateTime;

use crate::around_s3s::xml::canonical;
use crate::checksums::expected::{ExpectedDigests, NoTrailers};
use crate::checksums::fields::in_headers;
use crate::errors::details;
use crate::forms::fields::{Fields, Form};
use crate::forms::policy::{LengthRange, Policy};
use crate::http::percent;
use crate::lifecycle::told as told_of_rules;
use crate::limits::{FORM_FIELDS_MAX_BYTES, OBJECT_TAGS_MAX};
use crate::parameters::customer_key::{self, Brought};
use crate::parameters::encryption::Told;
use crate::parameters::{
    acl, encryption, expected_owner, lock, metadata, names, not_implemented, tags,
};
use crate::request::asked::describe::{Described, describe};
use crate::request::caller::Caller;
use crate::request::context::RequestContext;

/// Where a form was sent, as its answers tell.
pub(crate) struct Target<'a> {
    /// The bucket's name, as it was sent.
    pub(crate) bucket: &'a str,
    /// Whether the host names it.
    pub(crate) is_in_host: bool,
    /// The request's headers.
    pub(crate) headers: &'a HeaderMap,
}

/// Who signed a form, if it is signed, and the request.
pub(crate) type Sender<'a> = (Option<Arc<Subject>>, &'a Arc<RequestContext>);

/// Checks a form whose signature is right against its policy, and stores its file. A form without
/// signature has no policy, and is let in where everyone is.
///
/// # Errors
/// As S3 has them.
pub(crate) async fn upload(
    vault: &Vault,
    sender: Sender<'_>,
    form: Form,
    target: &Target<'_>,
) -> S3Result<HttpResponse> {
    let Form { fields, file } = form;
    let bucket = names::bucket(target.bucket)?;
    let key = fields.key(&file)?;
    let range = match &sender.0 {
        Some(_) => {
            let policy = Policy::parse(fields.get("policy").unwrap_or_default())?;
            policy.check(&fields, target.bucket, &key, OffsetDateTime::now_utc())?
        }
        None => None,
    };
    let name = names::object(key)?;
    let sent = (&fields, target.headers);
    let stored = store(vault, sender, &bucket, name.clone(), sent, file, range).await?;
    let (stored, expiration) = stored;
    let mut answer = answer(&fields, target, &name, &stored.etag)?;
    let told = Told::of(&stored.encryption, &stored.level);
    answer.headers_mut().extend(told.headers());
    answer.headers_mut().extend(of_version(&stored, expiration));
    if let Some(checksum) = &stored.checksum {
        answer.headers_mut().extend(in_headers(checksum));
    }
    let brought = customer_key::of_object(&fields.headers()?)?;
    let told = brought.iter().flat_map(Brought::headers);
    answer.headers_mut().extend(told);
    Ok(answer)
}

/// Which version it has become, and when a rule ends it, as a PUT tells.
fn of_version(stored: &Stored, expiration: Option<String>) -> Vec<(HeaderName, HeaderValue)> {
    let version = stored.version.as_ref().map(ToString::to_string);
    let told = [
        ("x-amz-version-id", version),
        ("x-amz-expiration", expiration),
    ];
    told.into_iter()
        .filter_map(|(name, value)| {
            let value = HeaderValue::try_from(value?).ok()?;
            Some((HeaderName::from_static(name), value))
        })
        .collect()
}

/// What was stored, and its `x-amz-expiration`.
async fn store(
    vault: &Vault,
    sender: Sender<'_>,
    bucket: &BucketName,
    name: ObjectName,
    (fields, of_request): (&Fields, &HeaderMap),
    file: Field<'static>,
    range: Option<LengthRange>,
) -> S3Result<(Stored, Option<String>)> {
    let headers = fields.headers()?;
    not_implemented::check_headers("PostObject", &headers)?;
    let account = vault.account_id();
    not_implemented::check_conditions(of_request)?;
    not_implemented::check_conditions(&fields.conditions())?;
    for expecting in [&headers, of_request] {
        expected_owner::check(expecting, account.as_str())?;
    }
    encryption::check_headers("PostObject", &headers)?;
    let described = (&headers, tags_of(fields)?, of_request);
    let caller = &caller_of_form(vault, sender, bucket, &name, described)?;
    caller.check_named_key(vault, bucket, &headers).await?;
    let received = Arc::new(AtomicU64::new(0));
    let ruled = told_of_rules::ruled(vault, bucket, &name);
    let put = PutObject {
        name,
        details: metadata::of_headers(&headers)?,
        tags: tags_of(fields)?,
        precondition: Precondition::None,
        encryption: encryption::asked(&headers)?,
        lock: lock::asked(&headers)?,
        acl: acl::asked(&headers)?,
        incoming: incoming(&headers, file, range, received.clone())?,
    };
    let stored = vault.put_object(&caller.subject, bucket, put).await;
    let stored = stored.map_err(|error| match range {
        Some(range) => outside(range, received.load(Ordering::Relaxed))
            .unwrap_or_else(|| caller.refused(error)),
        None => caller.refused(error),
    })?;
    let (place, about) = ((bucket, ruled), told_of_rules::about(&stored));
    let expiration = told_of_rules::of_write(vault, caller, place, about).await;
    Ok((stored, expiration))
}

/// Who sends a form, as it asks for what that stores: a policy may come while its file arrives.
///
/// # Errors
/// `AccessDenied` where it is not signed and not everyone is let in.
fn caller_of_form(
    vault: &Vault,
    (signer, context): Sender<'_>,
    bucket: &BucketName,
    name: &ObjectName,
    (headers, tags, of_request): (&HeaderMap, Tags, &HeaderMap),
) -> S3Result<Caller> {
    let asked = describe(&Described {
        operation: "PostObject",
        bucket: bucket.as_str(),
        object: Some(name.expose()),
        query: "",
        headers,
        around_form: Some(of_request),
        xml: &[],
        tags: Some(tags),
        lock_now_ms: &|| vault.lock_now_ms(),
        asks: None,
        context,
    });
    let subject = match (signer, asked) {
        (Some(signer), Some(asked)) => Arc::new(signer.asking(asked)),
        (Some(signer), None) => signer,
        (None, asked) => {
            let anonymous = asked.and_then(|asked| vault.anonymous(asked));
            anonymous.ok_or_else(not_everyone)?
        }
    };
    let context = context.clone();
    Ok(Caller { subject, context })
}

fn not_everyone() -> S3Error {
    s3_error!(
        AccessDenied,
        "A form without a policy and its signature is let in where everyone may write"
    )
}

/// The file, which ends with an error where it is longer or shorter than it may be.
fn incoming(
    headers: &HeaderMap,
    file: Field<'static>,
    range: Option<LengthRange>,
    received: Arc<AtomicU64>,
) -> S3Result<Incoming> {
    let expected = ExpectedDigests::read(headers)?;
    let digests = expected.plan();
    let check = expected.check(NoTrailers);
    let (least, most) = range.unwrap_or((0, u64::MAX));
    let counted = received.clone();
    let body = file.map(move |piece| -> Result<Bytes, BodyError> {
        let piece = piece.map_err(|error| BodyError(error.into()))?;
        let bytes = piece.len() as u64;
        if counted.fetch_add(bytes, Ordering::Relaxed) + bytes > most {
            return Err(BodyError(
                "the file is longer than the policy allows".into(),
            ));
        }
        Ok(piece)
    });
    Ok(Incoming {
        declared_bytes: None,
        digests,
        body: body.boxed(),
        check: Box::new(move |digests: &Digests| {
            if received.load(Ordering::Relaxed) < least {
                return Err(VaultError::PreconditionFailed);
            }
            check(digests)
        }),
        is_proven: true, // a browser knows no checksum of a file
        arrived: None,
    })
}

/// What is wrong with a length, if anything is.
fn outside((least, most): LengthRange, bytes: u64) -> Option<S3Error> {
    if bytes > most {
        let message = "Your proposed upload exceeds the maximum allowed size";
        let error = s3_error!(EntityTooLarge, "{message}");
        let told = vec![("MaxSizeAllowed", most.to_string())];
        return Some(details::with(error, told));
    }
    (bytes < least).then(|| {
        let message = "Your proposed upload is smaller than the minimum allowed size";
        let error = s3_error!(EntityTooSmall, "{message}");
        let told = vec![
            ("ProposedSize", bytes.to_string()),
            ("MinSizeAllowed", least.to_string()),
        ];
        details::with(error, told)
    })
}

/// The tags of a form: XML in one field, or as a PUT has them in another.
fn tags_of(fields: &Fields) -> S3Result<Tags> {
    match fields.get("tagging") {
        Some(xml) => tag_set(xml),
        None => tags::from_header(fields.get("x-amz-tagging"), OBJECT_TAGS_MAX),
    }
}

/// The tags of the field `tagging`, which is XML.
fn tag_set(text: &str) -> S3Result<Tags> {
    let malformed = || s3_error!(MalformedXML, "The field tagging is no XML of tags");
    let xml = canonical(text.as_bytes(), FORM_FIELDS_MAX_BYTES).map_err(|_| malformed())?;
    let mut reader = Deserializer::new(xml.as_ref());
    let tagging = Tagging::deserialize(&mut reader).map_err(|_| malformed())?;
    tags::from_set(tagging.tag_set, OBJECT_TAGS_MAX)
}

/// A redirect, an empty answer, or XML, as the form asks for.
fn answer(
    fields: &Fields,
    target: &Target<'_>,
    name: &ObjectName,
    etag: &str,
) -> S3Result<HttpResponse> {
    let quoted = format!("\"{etag}\"");
    let host = target.headers.get(HOST).and_then(|host| host.to_str().ok());
    let host = host.unwrap_or("localhost");
    let key = percent::encode(name.expose());
    let location = if target.is_in_host {
        format!("https://{host}/{key}")
    } else {
        format!("https://{host}/{}/{key}", target.bucket)
    };
    let wanted = fields
        .get("success_action_redirect")
        .or(fields.get("redirect"));
    if let Some(page) = wanted.and_then(|page| redirected(page, target.bucket, name, &quoted)) {
        return Ok(with_headers(
            StatusCode::SEE_OTHER,
            String::new(),
            &page,
            &quoted,
        ));
    }
    let (status, body) = match fields.get("success_action_status") {
        Some("200") => (StatusCode::OK, String::new()),
        Some("201") => (
            StatusCode::CREATED,
            created(&location, target.bucket, name, &quoted),
        ),
        _ => (StatusCode::NO_CONTENT, String::new()),
    };
    Ok(with_headers(status, body, &location, &quoted))
}

/// The page to go to, with what was stored in its query; none where it is no address of one.
fn redirected(page: &str, bucket: &str, name: &ObjectName, etag: &str) -> Option<String> {
    let address: Uri = page.parse().ok()?;
    if !matches!(address.scheme_str(), Some("http" | "https")) {
        return None;
    }
    let [key, etag] = [name.expose(), etag].map(percent::encode_all);
    let joint = if address.query().is_some() { '&' } else { '?' };
    let (page, place) = page.split_at(page.find('#').unwrap_or(page.len()));
    Some(format!(
        "{page}{joint}bucket={bucket}&key={key}&etag={etag}{place}"
    ))
}

fn created(location: &str, bucket: &str, name: &ObjectName, etag: &str) -> String {
    let [location, key, etag] = [location, name.expose(), etag].map(|text| {
        let escaped = quick_xml::escape::escape(text);
        // Control characters would be changed or refused by readers.
        escaped.replace('\r', "&#xD;")
    });
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<PostResponse><Location>{location}</Location>\
         <Bucket>{bucket}</Bucket><Key>{key}</Key><ETag>{etag}</ETag></PostResponse>"
    )
}

fn with_headers(status: StatusCode, body: String, location: &str, etag: &str) -> HttpResponse {
    let mut answer = HttpResponse::new(Body::from(body.clone()));
    *answer.status_mut() = status;
    let mut set = |name: HeaderName, value: &str| {
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers_mut().insert(name, value);
        }
    };
    set(LOCATION, location);
    set(ETAG, etag);
    if !body.is_empty() {
        set(CONTENT_TYPE, "application/xml");
    }
    answer
}
