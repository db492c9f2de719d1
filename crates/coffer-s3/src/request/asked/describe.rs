//! All that a request asks for, and in which buckets.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use coffer_vault::policy::{Action, Timestamp};
use coffer_vault::record::{ObjectName, Tags};
use coffer_vault::version::Which;
use coffer_vault::{Asked, AskedAction, AskedOf, BucketName, Subject, Vault};
use http::{HeaderMap, HeaderName, header};
use s3s::dto::{ObjectLockLegalHold, ObjectLockRetention, Tagging};
use s3s::xml::{Deserialize, Deserializer};

use crate::http::percent::form_pairs;
use crate::limits::OBJECT_TAGS_MAX;
use crate::parameters::{copy_source, lock, names, rename_source, tags};
use crate::request::asked::actions;
use crate::request::asked::given::{self, Part};
use crate::request::asked::values::{RequestValues, text_of};
use crate::request::context::RequestContext;

/// Looked for in each request.
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
    /// The time by which locks end, in milliseconds since 1970.
    pub(crate) lock_now_ms: i64,
    pub(crate) context: &'a Arc<RequestContext>,
}

/// Whether one of the buckets of a request has a policy, so that what it asks for must be said; of
/// a request without a signature, whether one may be public. Nearly always not.
pub(crate) fn is_any_shared(
    vault: &Vault,
    subject: Option<&Subject>,
    bucket: &str,
    headers: &HeaderMap,
) -> bool {
    let is_shared = |bucket: &str| match subject {
        Some(subject) => vault.is_shared(subject, bucket),
        None => vault.may_be_public(bucket),
    };
    is_shared(bucket) || source(headers).is_some_and(|(source, ..)| is_shared(source.as_str()))
}

/// What a copy is made of; none where that can't be read, which the operation refuses.
fn source(headers: &HeaderMap) -> Option<(BucketName, ObjectName, Which)> {
    let header = headers.get(COPY_SOURCE)?;
    copy_source::locate(header.to_str().ok()?).ok()
}

/// Says what a request asks for; none where the name of its bucket is that of none.
pub(crate) fn describe(request: &Described<'_>) -> Option<Asked> {
    let bucket = BucketName::new(request.bucket)?;
    let parts = given::parts_of(request.operation);
    let has_source = parts.contains(&Part::Source);
    let source = has_source.then(|| source(request.headers)).flatten();
    let query = form_pairs(request.query).unwrap_or_default();
    let named = query.iter().find(|(name, _)| name == "versionId");
    let named = named.map(|(_, version)| version.clone());
    // One that can't be read is refused by the operation.
    let which = names::which(named.as_deref()).unwrap_or_default();
    let on = match request.object {
        _ if request.operation == "DeleteObjects" => AskedOf::Each,
        // A name that is none is refused by the operation; until then it is no object's.
        Some(name) => {
            let name = ObjectName::new(name.to_owned());
            name.map_or(AskedOf::Bucket, |name| AskedOf::Object(name, which))
        }
        None => AskedOf::Bucket,
    };
    let main = actions::of(request.operation, named.is_some());
    let besides = besides(request);
    let mut actions: Vec<_> = main
        .iter()
        .copied()
        .chain(besides)
        .map(|action| AskedAction {
            bucket: bucket.clone(),
            action,
            on: on.clone(),
        })
        .collect();
    if let Some((bucket, name, which)) = source {
        let action = match which {
            Which::Version(_) => Action::GetObjectVersion,
            Which::Current => Action::GetObject,
        };
        let on = AskedOf::Object(name, which);
        actions.push(AskedAction { bucket, action, on });
    }
    actions.extend(renamed(request, &bucket));
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_seconds = now.map_or(0, |since| since.as_secs().cast_signed());
    let values = RequestValues {
        headers: asked_headers(request.headers),
        query,
        parts,
        creates: creates(request.operation),
        now_seconds,
        lock_now_seconds: request.lock_now_ms.div_euclid(1_000),
        context: request.context.clone(),
        ..of_body(request)
    };
    Some(Asked {
        actions,
        time: Timestamp::from_seconds(now_seconds),
        values: Arc::new(values),
    })
}

/// Those that conditions may ask for: of what most clients send, few are.
fn asked_headers(headers: &HeaderMap) -> HeaderMap {
    let asked = headers
        .iter()
        .filter(|(name, _)| given::may_be_asked(name.as_str()));
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

/// What a request does besides its operation, because a header asks for it.
fn besides(request: &Described<'_>) -> Vec<Action> {
    let has = |name: &str| request.headers.contains_key(name);
    let mut besides = Vec::new();
    match request.operation {
        "PutObject" | "CopyObject" | "CreateMultipartUpload" | "PostObject" => {
            let is_shared = request.headers.keys().any(|name| {
                name.as_str().starts_with("x-amz-grant-") || name.as_str() == "x-amz-acl"
            });
            let in_form = request.tags.as_ref().is_some_and(|tags| !tags.is_empty());
            let gives_tags = in_form || (has("x-amz-tagging") && !keeps_tags(request));
            // Only to these two it is a condition on what is there.
            let compares =
                matches!(request.operation, "PutObject" | "CopyObject") && has("if-match");
            let more = [
                (compares, Action::GetObject),
                (gives_tags, Action::PutObjectTagging),
                (is_shared, Action::PutObjectAcl),
                (has("x-amz-object-lock-mode"), Action::PutObjectRetention),
                (
                    has("x-amz-object-lock-legal-hold"),
                    Action::PutObjectLegalHold,
                ),
            ];
            let asked = more.into_iter().filter(|(is_asked, _)| *is_asked);
            besides.extend(asked.map(|(_, action)| action));
        }
        // Whether it is renamed tells of what has the new name, as below.
        "RenameObject"
            if RENAME_COMPARES
                .iter()
                .any(|name| compares_content(request, name)) =>
        {
            besides.push(Action::GetObject);
        }
        // Whether it is written tells of what is there (User Guide, "conditional writes").
        "CompleteMultipartUpload" if has("if-match") => besides.push(Action::GetObject),
        "DeleteObject" | "DeleteObjects" | "PutObjectRetention" => {
            let header = request.headers.get("x-amz-bypass-governance-retention");
            if header.is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"true")) {
                besides.push(Action::BypassGovernanceRetention);
            }
        }
        _ => {}
    }
    besides
}

/// Conditions of a rename on what has the new name.
const RENAME_COMPARES: [&str; 4] = [
    "if-match",
    "if-none-match",
    "if-modified-since",
    "if-unmodified-since",
];

/// Whether a condition asks of an object more than whether it is there.
fn compares_content(request: &Described<'_>, condition: &str) -> bool {
    let value = request.headers.get(condition);
    value.is_some_and(|value| value.as_bytes().trim_ascii() != b"*")
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
    let directive = request.headers.get("x-amz-tagging-directive");
    request.operation == "CopyObject" && directive.is_none_or(|directive| directive != "REPLACE")
}

/// What conditions ask of a body, or of a header that stands for one. What can't be read there,
/// the operation refuses.
fn of_body(request: &Described<'_>) -> RequestValues {
    let client = request.around_form.unwrap_or(request.headers);
    let of_client = |name| client.get(name).cloned();
    let mut values = RequestValues {
        headers: HeaderMap::new(),
        query: Vec::new(),
        parts: &[],
        referer: of_client(header::REFERER),
        user_agent: of_client(header::USER_AGENT),
        tags: Tags::new(),
        retain_until: None,
        lock_mode: None,
        legal_hold: None,
        creates: None,
        now_seconds: 0,
        lock_now_seconds: 0,
        context: request.context.clone(),
    };
    let mut reader = Deserializer::new(request.xml);
    match request.operation {
        "PutObjectTagging" => {
            if let Ok(tagging) = Tagging::deserialize(&mut reader) {
                values.tags = tags::from_set(tagging.tag_set, OBJECT_TAGS_MAX).unwrap_or_default();
            }
        }
        "PutObjectRetention" => {
            if let Ok(retention) = ObjectLockRetention::deserialize(&mut reader) {
                values.lock_mode = retention.mode.map(|mode| mode.as_str().to_owned());
                values.retain_until = retention.retain_until_date.and_then(written);
            }
        }
        "PutObjectLegalHold" => {
            if let Ok(hold) = ObjectLockLegalHold::deserialize(&mut reader) {
                values.legal_hold = hold.status.map(|status| status.as_str().to_owned());
            }
        }
        operation => {
            let headers = request.headers;
            let parts = given::parts_of(operation);
            if parts.contains(&Part::Tagging) && !keeps_tags(request) {
                let header = headers.get("x-amz-tagging");
                let header = header.and_then(|header| header.to_str().ok());
                let of_header = || tags::from_header(header, OBJECT_TAGS_MAX).unwrap_or_default();
                values.tags = request.tags.clone().unwrap_or_else(of_header);
            }
            if parts.contains(&Part::Lock) {
                values.lock_mode = text_of(headers, lock::MODE);
                values.retain_until = text_of(headers, lock::UNTIL);
                values.legal_hold = text_of(headers, lock::HOLD);
            }
        }
    }
    values
}

/// A date as headers have it.
fn written(date: s3s::dto::Timestamp) -> Option<String> {
    let mut text = Vec::new();
    let format = s3s::dto::TimestampFormat::DateTime;
    date.format(format, &mut text).ok()?;
    String::from_utf8(text).ok()
}
