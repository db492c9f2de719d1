//! All that a request asks for, and in which buckets.

use std::iter;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use coffer_vault::policy::{Action, Key, Timestamp};
use coffer_vault::record::{ObjectName, Tags};
use coffer_vault::version::Which;
use coffer_vault::{Asked, AskedAction, AskedOf, Asks, BucketName};
use http::{HeaderMap, HeaderName, header};
use s3s::dto::{ObjectLockLegalHold, ObjectLockRetention, Tagging};
use s3s::xml::{Deserialize, Deserializer};

use crate::http::percent::form_pairs;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::{copy_source, lock, names, rename_source, tags};
use crate::request::asked::actions;
use crate::request::asked::besides::{self, Rare};
use crate::request::asked::given::{self, Part};
use crate::request::asked::values::{OfBody, RequestValues, text_of};
use crate::request::context::RequestContext;
use crate::signature::version_4::date_header;

const COPY_SOURCE: HeaderName = HeaderName::from_static("x-amz-copy-source");

/// A request, as far as it is known before its operation reads it.
pub(crate) struct Described<'a> {
    /// S3's name of the operation.
    pub(crate) operation: &'a str,
    pub(crate) bucket: &'a str,
    /// The name of the object, if it is about one.
    pub(crate) object: Option<&'a str>,
    pub(crate) query: &'a str,
    /// As the client sent them; of a form, its fields.
    pub(crate) headers: &'a HeaderMap,
    /// Those of the request itself, where that carries a form.
    pub(crate) around_form: Option<&'a HeaderMap>,
    /// The body of an operation that has one in XML.
    pub(crate) xml: &'a [u8],
    /// The tags that it gives to an object, where neither a header nor XML says so.
    pub(crate) tags: Option<Tags>,
    /// Tells the time by which locks end, in milliseconds since 1970.
    pub(crate) lock_now_ms: &'a dyn Fn() -> i64,
    /// What of it is asked; none: whatever a policy may ask that comes before it is done.
    pub(crate) asks: Option<&'a Asks>,
    pub(crate) context: &'a Arc<RequestContext>,
}

/// What a copy is made of; none where that can't be read, which the operation refuses.
fn source(headers: &HeaderMap) -> Option<(BucketName, ObjectName, Which)> {
    let header = headers.get(COPY_SOURCE)?;
    copy_source::locate(header.to_str().ok()?).ok()
}

/// Says what a request asks for; none where the name of its bucket is that of none.
pub(crate) fn describe(request: &Described<'_>) -> Option<Asked> {
    let bucket = match request.asks {
        Some(asks) => asks.bucket().clone(),
        None => BucketName::new(request.bucket)?,
    };
    let parts = given::parts_of(request.operation);
    let query = form_pairs(request.query).unwrap_or_default();
    let version = query.iter().find(|(name, _)| name == "versionId");
    let version = version.map(|(_, version)| version.as_str());
    // One that can't be read is refused by the operation.
    let which = names::which(version).unwrap_or_default();
    let main = actions::of(request.operation, version.is_some());
    // Only what makes an object heeds any of it.
    let rare = if main.contains(&Action::PutObject) {
        Rare::of(request.headers)
    } else {
        Rare::default()
    };
    let gives_tags = gives_tags(request, rare) && !keeps_tags(request);
    let besides = besides::of(request.operation, request.headers, rare, gives_tags);
    let renamed = renamed(request, &bucket);
    let on = asked_of(request, which);
    let keys = request.asks.and_then(Asks::keys);
    // The last of them takes the names, the others copies.
    let places = iter::repeat_n((bucket, on), main.len() + besides.len());
    let mut actions: Vec<_> = main
        .iter()
        .copied()
        .chain(besides)
        .zip(places)
        .map(|(action, (bucket, on))| AskedAction { bucket, action, on })
        .collect();
    if parts.contains(&Part::Source)
        && let Some((bucket, name, which)) = source(request.headers)
    {
        let action = match which {
            Which::Version(_) => Action::GetObjectVersion,
            Which::Current => Action::GetObject,
        };
        let on = AskedOf::Object(name, which);
        actions.push(AskedAction { bucket, action, on });
    }
    actions.extend(renamed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_seconds = now.map_or(0, |since| since.as_secs().cast_signed());
    Some(Asked {
        actions,
        time: Timestamp::from_seconds(now_seconds),
        values: Arc::new(values(request, (parts, rare, keys), query)),
        asks: request.asks.cloned(),
    })
}

/// What the operation is done to.
fn asked_of(request: &Described<'_>, which: Which) -> AskedOf {
    match request.object {
        _ if request.operation == "DeleteObjects" => AskedOf::Each,
        // A name that is none is refused by the operation; until then it is no object's.
        Some(name) => {
            let name = ObjectName::new(name.to_owned());
            name.map_or(AskedOf::Bucket, |name| AskedOf::Object(name, which))
        }
        None => AskedOf::Bucket,
    }
}

fn values(
    request: &Described<'_>,
    (parts, rare, keys): (&'static [Part], Rare, Option<&[Key]>),
    query: Vec<(String, String)>,
) -> RequestValues {
    let client = request.around_form.unwrap_or(request.headers);
    let is_asked = |key: &Key| keys.is_none_or(|keys| keys.contains(key));
    // Looked for only where they are asked for.
    let sent = |key: &Key, name: HeaderName| {
        let asked = is_asked(key).then(|| client.get(name));
        asked.flatten().cloned()
    };
    let dated = is_asked(&Key::SignatureAge).then(|| date_header(request.headers));
    let is_given = keys.is_none_or(|keys| given::is_any_given(keys, parts));
    let body = of_body(request, parts, rare);
    let lock_now_ms = body.retain_until.as_ref().map(|_| (request.lock_now_ms)());
    RequestValues {
        headers: if is_given {
            asked_headers(request.headers, parts)
        } else {
            HeaderMap::new()
        },
        dated: dated
            .flatten()
            .map(|(header, value)| (header, value.clone())),
        query,
        parts,
        referer: sent(&Key::Referer, header::REFERER),
        user_agent: sent(&Key::UserAgent, header::USER_AGENT),
        body,
        creates: creates(request.operation),
        lock_now_seconds: lock_now_ms.unwrap_or_default().div_euclid(1_000),
        context: request.context.clone(),
    }
}

/// Those that conditions may ask for: most requests have none.
fn asked_headers(headers: &HeaderMap, parts: &[Part]) -> HeaderMap {
    let asked = headers.iter().filter(|(name, _)| {
        let part = given::part_of(name.as_str());
        part.is_some_and(|part| parts.contains(&part))
    });
    let mut kept = HeaderMap::new();
    for (name, value) in asked {
        kept.append(name, value.clone());
    }
    kept
}

/// What a rename asks for of the object that it renames: as much as copying and deleting it.
fn renamed(request: &Described<'_>, bucket: &BucketName) -> Vec<AskedAction> {
    let source = match request.operation {
        "RenameObject" => rename_source::read(request.headers).ok(),
        _ => None,
    };
    // What can't be read, the operation refuses.
    let Some(name) = source else {
        return Vec::new();
    };
    let ask = |action| AskedAction {
        bucket: bucket.clone(),
        action,
        on: AskedOf::Object(name.clone(), Which::Current),
    };
    vec![ask(Action::GetObject), ask(Action::DeleteObject)]
}

/// `s3:ObjectCreationOperation`: what makes an object at once can have conditions, what belongs to
/// an upload in parts can't.
fn creates(operation: &str) -> Option<bool> {
    match operation {
        "PutObject" | "CopyObject" | "CompleteMultipartUpload" | "PostObject" => Some(true),
        "CreateMultipartUpload" | "UploadPart" | "UploadPartCopy" => Some(false),
        _ => None,
    }
}

/// Whether a copy has its source's tags: then those in its header are not used, and what it asks
/// for by the source's is asked once they are known.
fn keeps_tags(request: &Described<'_>) -> bool {
    let directive = || request.headers.get("x-amz-tagging-directive");
    request.operation == "CopyObject" && directive().is_none_or(|directive| directive != "REPLACE")
}

/// Whether a form or a header names tags.
fn gives_tags(request: &Described<'_>, rare: Rare) -> bool {
    let in_form = request.tags.as_ref().is_some_and(|tags| !tags.is_empty());
    in_form || rare.tags
}

/// What conditions ask of a body, or of a header that stands for one. What can't be read there,
/// the operation refuses.
fn of_body(request: &Described<'_>, parts: &[Part], rare: Rare) -> OfBody {
    let mut body = OfBody::default();
    let reader = || Deserializer::new(request.xml);
    match request.operation {
        "PutObjectTagging" => {
            if let Ok(tagging) = Tagging::deserialize(&mut reader()) {
                body.tags = tags::from_set(tagging.tag_set, OBJECT_TAGS_MAX).unwrap_or_default();
            }
        }
        "PutObjectRetention" => {
            if let Ok(retention) = ObjectLockRetention::deserialize(&mut reader()) {
                body.lock_mode = retention.mode.map(|mode| mode.as_str().to_owned());
                body.retain_until = retention.retain_until_date.and_then(written);
            }
        }
        "PutObjectLegalHold" => {
            if let Ok(hold) = ObjectLockLegalHold::deserialize(&mut reader()) {
                body.legal_hold = hold.status.map(|status| status.as_str().to_owned());
            }
        }
        _ => {
            let headers = request.headers;
            let takes_tags = parts.contains(&Part::Tagging) && gives_tags(request, rare);
            if takes_tags && !keeps_tags(request) {
                let header = headers.get("x-amz-tagging");
                let header = header.and_then(|header| header.to_str().ok());
                let of_header = || tags::from_header(header, OBJECT_TAGS_MAX).unwrap_or_default();
                body.tags = request.tags.clone().unwrap_or_else(of_header);
            }
            if parts.contains(&Part::Lock) && rare.locks {
                body.lock_mode = text_of(headers, lock::MODE);
                body.retain_until = text_of(headers, lock::UNTIL);
                body.legal_hold = text_of(headers, lock::HOLD);
            }
        }
    }
    body
}

/// A date as headers have it.
fn written(date: s3s::dto::Timestamp) -> Option<String> {
    let mut text = Vec::new();
    let format = s3s::dto::TimestampFormat::DateTime;
    date.format(format, &mut text).ok()?;
    String::from_utf8(text).ok()
}

#[cfg(test)]
mod tests;
