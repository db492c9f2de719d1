//! What a request has for the condition keys of policies.

use std::borrow::Cow;
use std::sync::Arc;

use coffer_vault::policy::{Decimal, Key, Timestamp, Value, Values, grants_in_header};
use coffer_vault::record::Tags;
use http::{HeaderMap, HeaderValue};

use crate::http::conditions;
use crate::parameters::{acl, copy_source, lock};
use crate::request::asked::given::{Part, part_of, place_of};
use crate::request::context::RequestContext;
use crate::request::signed::SignedForm;
use crate::signature::signer::DateTime;
use crate::signature::version_4::{DateHeader, date_in};

const DAY_SECONDS: i64 = 86_400;

/// The values of one request. Which version it is about is known to the vault, action by action.
pub(super) struct RequestValues {
    /// As the client sent them, with those that a presigned URL has in its query, as far as a
    /// condition may ask for them; those of a form are its fields. A request that is only signed
    /// has none.
    pub(super) headers: HeaderMap,
    /// The header that says when it was signed.
    pub(super) dated: Option<(DateHeader, HeaderValue)>,
    /// The parameters of the query, decoded.
    pub(super) query: Vec<(String, String)>,
    /// What the operation takes from headers and query.
    pub(super) parts: &'static [Part],
    /// `Referer` of the request itself.
    pub(super) referer: Option<HeaderValue>,
    /// `User-Agent` of the request itself.
    pub(super) user_agent: Option<HeaderValue>,
    pub(super) body: OfBody,
    /// Whether it makes an object: none where it can't.
    pub(super) creates: Option<bool>,
    /// By which locks end. Asked for only where it locks an object.
    pub(super) lock_now_seconds: i64,
    pub(super) context: Arc<RequestContext>,
}

/// What a body says, or headers that stand for one.
#[derive(Default)]
pub(super) struct OfBody {
    /// The tags that the request gives to an object.
    pub(super) tags: Tags,
    /// Until when it locks an object.
    pub(super) retain_until: Option<String>,
    /// How it locks an object.
    pub(super) lock_mode: Option<String>,
    /// Whether it puts an object under a legal hold.
    pub(super) legal_hold: Option<String>,
}

/// The text of a header; none where it is empty, which for operations is as if it were not sent.
pub(super) fn text_of(headers: &HeaderMap, name: &str) -> Option<String> {
    let value = headers.get(name).filter(|value| !value.is_empty())?;
    Some(String::from_utf8_lossy(value.as_bytes()).into_owned())
}

impl RequestValues {
    fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Until when the request locks an object, in seconds since 1970.
    fn retain_until(&self) -> Option<i64> {
        // As the operation reads it: what one of them reads and the other does not would lock past
        // a condition.
        let until_ms = lock::until_of(self.body.retain_until.as_deref()?).ok()?;
        Some(until_ms.div_euclid(1_000))
    }

    /// What the operation takes from headers or query for a key.
    fn given(&self, key: &Key) -> Option<Value<'_>> {
        let (part, name) = place_of(key)?;
        if !self.parts.contains(&part) {
            return None;
        }
        let is_in_query = matches!(part, Part::Prefix | Part::MaxKeys);
        debug_assert!(is_in_query || part_of(name) == Some(part));
        match part {
            Part::Prefix => self.query(name).map(Into::into),
            Part::MaxKeys => {
                let sent = self.query(name)?;
                // What is no number can't be compared with one.
                Some(match Decimal::parse(sent) {
                    Some(number) => Value::Number(number),
                    None => sent.into(),
                })
            }
            Part::Conditions => conditions::text(&self.headers, name).map(text),
            Part::Acl if *key == Key::Acl => acl::sent_under(&self.headers, name).map(text),
            Part::Acl => acl::sent_under(&self.headers, name).map(grants_in_header),
            Part::Source => {
                let spelled = copy_source::spelled(text_of(&self.headers, name)?);
                let texts = |texts: Vec<String>| texts.into_iter().map(Cow::Owned).collect();
                Some(Value::Spelled {
                    meant: texts(spelled.meant),
                    also: texts(spelled.also),
                })
            }
            _ => text_of(&self.headers, name).map(text),
        }
    }

    fn of_signature(&self, key: &Key) -> Option<Value<'_>> {
        let signed = self.context.signed();
        match key {
            Key::AuthType => signed.map(|signed| signed.form.auth_type().into()),
            Key::SignatureVersion => signed.map(|signed| signed.form.version().into()),
            Key::SignatureAge => {
                let signed = signed?;
                let in_header = || {
                    let (header, value) = self.dated.as_ref()?;
                    // Beside its query, version 2 signs no `Date`.
                    let is_covered =
                        signed.form == SignedForm::Header || *header == DateHeader::Amz;
                    let date = date_in(*header, value).filter(|_| is_covered)?;
                    DateTime::parse(&date).map(|date| date.unix_seconds)
                };
                let at = signed.at_seconds.or_else(in_header)?;
                Some(Value::Date(Timestamp::from_seconds(at)))
            }
            Key::ContentSha256 => {
                let sent = signed.and_then(|signed| signed.content_sha256.as_ref());
                sent.and_then(|sent| sent.to_str().ok()).map(Into::into)
            }
            Key::SourceIp => self.context.client().address.map(Value::Address),
            // There is nothing but TLS.
            Key::SecureTransport => Some(Value::Bool(true)),
            Key::TlsVersion => {
                let version = self.context.client().tls_version?;
                Decimal::parse(version).map(Value::Number)
            }
            _ => None,
        }
    }

    fn of_lock(&self, key: &Key) -> Option<Value<'_>> {
        match key {
            Key::ObjectLockMode => self.body.lock_mode.as_deref().map(Into::into),
            Key::ObjectLockLegalHold => self.body.legal_hold.as_deref().map(Into::into),
            Key::ObjectLockRetainUntilDate => {
                let until = self.retain_until()?;
                Some(Value::Date(Timestamp::from_seconds(until)))
            }
            Key::ObjectLockRemainingRetentionDays => {
                let seconds = self.retain_until()?.saturating_sub(self.lock_now_seconds);
                // A day that has begun counts.
                let days = seconds
                    .saturating_add(DAY_SECONDS - 1)
                    .div_euclid(DAY_SECONDS);
                Some(Value::Number(days.into()))
            }
            _ => None,
        }
    }
}

fn text(found: String) -> Value<'static> {
    Value::Text(Cow::Owned(found))
}

fn text_in(header: Option<&HeaderValue>) -> Option<Value<'_>> {
    header?.to_str().ok().map(Into::into)
}

impl Values for RequestValues {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        match key {
            Key::Referer => text_in(self.referer.as_ref()),
            Key::UserAgent => text_in(self.user_agent.as_ref()),
            Key::ObjectCreationOperation => self.creates.map(Value::Bool),
            Key::RequestObjectTag(wanted) => {
                let tag = self.body.tags.iter().find(|(key, _)| key == wanted);
                tag.map(|(_, value)| value.as_str().into())
            }
            Key::RequestObjectTagKeys => (!self.body.tags.is_empty()).then(|| {
                let keys = self.body.tags.iter();
                let keys = keys.map(|(key, _)| Cow::Borrowed(key.as_str()));
                Value::Texts(keys.collect())
            }),
            other => self
                .given(other)
                .or_else(|| self.of_signature(other))
                .or_else(|| self.of_lock(other)),
        }
    }
}
