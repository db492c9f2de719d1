//! All that a request asks for, and in which buckets.

use std::iter;
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
use crate::request::asked::values::{OfBody, RequestValues, text_of};
use crate::request::context::RequestContext;
use crate::signature::version_4::date_header;

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
    /// Tells the time by which locks end, in milliseconds since 1970.
    pub(crate) lock_now_ms: &'a dyn Fn() -> i64,
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
    let query = form_pairs(request.query).unwrap_or_default();
    let version = query.iter().find(|(name, _)| name == "versionId");
    let version = version.map(|(_, version)| version.as_str());
    // One that can't be read is refused by the operation.
    let which = names::which(version).unwrap_or_default();
    let main = actions::of(request.operation, version.is_some());
    let besides = besides(request);
    let renamed = renamed(request, &bucket);
    let on = asked_of(request, which);
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
        values: Arc::new(values(request, parts, query, now_seconds)),
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
    parts: &'static [Part],
    query: Vec<(String, String)>,
    now_seconds: i64,
) -> RequestValues {
    let client = request.around_form.unwrap_or(request.headers);
    let dated = date_header(request.headers);
    let body = of_body(request, parts);
    let lock_now_ms = body.retain_until.as_ref().map(|_| (request.lock_now_ms)());
    RequestValues {
        headers: asked_headers(request.headers, parts),
        dated: dated.map(|(header, value)| (header, value.clone())),
        query,
        parts,
        referer: client.get(header::REFERER).cloned(),
        user_agent: client.get(header::USER_AGENT).cloned(),
        body,
        creates: creates(request.operation),
        now_seconds,
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
fn of_body(request: &Described<'_>, parts: &[Part]) -> OfBody {
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
            if parts.contains(&Part::Tagging) && !keeps_tags(request) {
                let header = headers.get("x-amz-tagging");
                let header = header.and_then(|header| header.to_str().ok());
                let of_header = || tags::from_header(header, OBJECT_TAGS_MAX).unwrap_or_default();
                body.tags = request.tags.clone().unwrap_or_else(of_header);
            }
            if parts.contains(&Part::Lock) {
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
mod tests {
    use coffer_vault::policy::Key;
    use http::HeaderValue;

    use super::*;
    use crate::request::memory_budget::MemoryBudget;
    use crate::request::signed::{Signed, SignedForm};

    /// What a signed request says of itself.
    fn described(operation: &str, headers: &[(&'static str, &'static str)]) -> Asked {
        let mut sent = HeaderMap::new();
        for (name, value) in headers {
            sent.append(*name, HeaderValue::from_static(value));
        }
        let context = RequestContext::new(&MemoryBudget::answers());
        context.set_signed(Signed {
            form: SignedForm::Header,
            at_seconds: None,
            content_sha256: None,
        });
        let asked = describe(&Described {
            operation,
            bucket: "bucket",
            object: Some("k"),
            query: "",
            headers: &sent,
            around_form: None,
            xml: &[],
            tags: None,
            lock_now_ms: &|| 0,
            context: &Arc::new(context),
        });
        asked.unwrap()
    }

    #[test]
    fn a_request_has_what_its_operation_takes_from_headers_and_when_it_was_signed() {
        let date = ("x-amz-date", "20260101T000000Z");
        let sent = [
            date,
            ("if-match", "\"a\""),
            ("x-amz-acl", "private"),
            ("x-amz-checksum-crc32", "AAAAAA=="),
        ];
        let has = |asked: &Asked, key| asked.values.value(&key).is_some();
        let get = described("GetObject", &sent);
        assert!(has(&get, Key::IfMatch) && has(&get, Key::SignatureAge));
        assert!(!has(&get, Key::Acl) && !has(&get, Key::ChecksumCrc32));
        let put = described("PutObject", &sent);
        assert!(has(&put, Key::Acl) && has(&put, Key::ChecksumCrc32));
        let http = described("GetObject", &[("date", "Thu, 01 Jan 2026 00:00:00 GMT")]);
        assert!(has(&http, Key::SignatureAge));
        for unknown in [&[date, date][..], &[]] {
            assert!(!has(&described("GetObject", unknown), Key::SignatureAge));
        }
    }

    #[test]
    fn each_action_is_on_the_object() {
        let sent = [("if-match", "\"a\""), ("x-amz-tagging", "a=b")];
        let asked = described("PutObject", &sent);
        let actions: Vec<_> = asked.actions.iter().map(|ask| ask.action).collect();
        let besides = [Action::GetObject, Action::PutObjectTagging];
        assert_eq!(actions, [&[Action::PutObject][..], &besides].concat());
        let on = AskedOf::Object(ObjectName::new("k").unwrap(), Which::Current);
        assert!(asked.actions.iter().all(|ask| ask.on == on));
        let mut buckets = asked.actions.iter().map(|ask| ask.bucket.as_str());
        assert!(buckets.all(|bucket| bucket == "bucket"));
    }
}
