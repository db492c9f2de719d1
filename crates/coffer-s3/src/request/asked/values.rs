//! What a request has for the condition keys of policies.

use std::borrow::Cow;
use std::sync::Arc;

use coffer_vault::policy::{Decimal, Key, Timestamp, Value, Values};
use coffer_vault::record::Tags;
use http::{HeaderMap, HeaderName, header};

use crate::parameters::lock;
use crate::request::context::RequestContext;
use crate::signature::signer::DateTime;

const DAY_SECONDS: i64 = 86_400;

/// The values of one request.
pub(super) struct RequestValues {
    /// As the client sent them, with those that a presigned URL has in its query.
    pub(super) headers: HeaderMap,
    /// The parameters of the query, decoded.
    pub(super) query: Vec<(String, String)>,
    /// The tags that it gives to an object.
    pub(super) tags: Tags,
    /// Until when it locks an object, where a body says so.
    pub(super) retain_until: Option<String>,
    /// How it locks an object, where a body says so.
    pub(super) lock_mode: Option<String>,
    /// Whether it puts an object under a legal hold, where a body says so.
    pub(super) legal_hold: Option<String>,
    /// Whether it makes an object: none where it can't.
    pub(super) creates: Option<bool>,
    /// The version that it names.
    pub(super) version: Option<String>,
    pub(super) now_seconds: i64,
    /// By which locks end: it may be behind the other.
    pub(super) lock_now_seconds: i64,
    pub(super) context: Arc<RequestContext>,
}

impl RequestValues {
    fn header(&self, name: impl header::AsHeaderName) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn query(&self, name: &str) -> Option<&str> {
        let found = self.query.iter().find(|(key, _)| key == name);
        found.map(|(_, value)| value.as_str())
    }

    /// Until when the request locks an object, in seconds since 1970.
    fn retain_until(&self) -> Option<i64> {
        let text = self
            .retain_until
            .as_deref()
            .or_else(|| self.header("x-amz-object-lock-retain-until-date"))?;
        // As the operation reads it: what one of them reads and the other does not would lock past
        // a condition.
        let until_ms = lock::until_of(text).ok()?;
        Some(until_ms.div_euclid(1_000))
    }

    fn of_signature(&self, key: &Key) -> Option<Value<'_>> {
        let signed = self.context.signed();
        match key {
            Key::AuthType => signed.map(|signed| signed.form.auth_type().into()),
            Key::SignatureVersion => signed.map(|signed| signed.form.version().into()),
            Key::SignatureAge => {
                let in_header = || self.header("x-amz-date").and_then(DateTime::parse);
                let at = signed?.at_seconds;
                let at = at.or_else(|| in_header().map(|date| date.unix_seconds))?;
                let age_ms = self.now_seconds.saturating_sub(at).saturating_mul(1_000);
                Some(Value::Number(age_ms.into()))
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
            Key::ObjectLockMode => self
                .lock_mode
                .as_deref()
                .or_else(|| self.header("x-amz-object-lock-mode"))
                .map(Into::into),
            Key::ObjectLockLegalHold => self
                .legal_hold
                .as_deref()
                .or_else(|| self.header("x-amz-object-lock-legal-hold"))
                .map(Into::into),
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

impl Values for RequestValues {
    fn value(&self, key: &Key) -> Option<Value<'_>> {
        let text = |found: Option<&str>| found.map(|text| Value::Text(Cow::Owned(text.to_owned())));
        match key {
            Key::Referer => text(self.header(header::REFERER)),
            Key::UserAgent => text(self.header(header::USER_AGENT)),
            Key::IfMatch => text(self.header(header::IF_MATCH)),
            Key::IfNoneMatch => text(self.header(header::IF_NONE_MATCH)),
            Key::Prefix => text(self.query("prefix")),
            Key::Delimiter => text(self.query("delimiter")),
            Key::MaxKeys => {
                let sent = self.query("max-keys")?;
                // What is no number can't be compared with one.
                Some(match Decimal::parse(sent) {
                    Some(number) => Value::Number(number),
                    None => sent.into(),
                })
            }
            Key::VersionId => self.version.as_deref().map(Into::into),
            Key::ObjectCreationOperation => self.creates.map(Value::Bool),
            Key::RequestObjectTag(wanted) => {
                let tag = self.tags.iter().find(|(key, _)| key == wanted);
                tag.map(|(_, value)| value.as_str().into())
            }
            Key::RequestObjectTagKeys => (!self.tags.is_empty()).then(|| {
                let keys = self.tags.iter().map(|(key, _)| Cow::Borrowed(key.as_str()));
                Value::Texts(keys.collect())
            }),
            other => match header_of(other) {
                Some(name) => text(self.header(name)),
                None => self.of_signature(other).or_else(|| self.of_lock(other)),
            },
        }
    }
}

/// The header whose text is the value of a key.
fn header_of(key: &Key) -> Option<HeaderName> {
    let name = match key {
        Key::Acl => "x-amz-acl",
        Key::ChecksumCrc32 => "x-amz-checksum-crc32",
        Key::ChecksumCrc32c => "x-amz-checksum-crc32c",
        Key::ChecksumCrc64nvme => "x-amz-checksum-crc64nvme",
        Key::ChecksumSha1 => "x-amz-checksum-sha1",
        Key::ChecksumSha256 => "x-amz-checksum-sha256",
        Key::CopySource => "x-amz-copy-source",
        Key::GrantFullControl => "x-amz-grant-full-control",
        Key::GrantRead => "x-amz-grant-read",
        Key::GrantReadAcp => "x-amz-grant-read-acp",
        Key::GrantWrite => "x-amz-grant-write",
        Key::GrantWriteAcp => "x-amz-grant-write-acp",
        Key::MetadataDirective => "x-amz-metadata-directive",
        Key::ObjectOwnership => "x-amz-object-ownership",
        Key::ServerSideEncryption => "x-amz-server-side-encryption",
        Key::KmsKeyId => "x-amz-server-side-encryption-aws-kms-key-id",
        Key::CustomerAlgorithm => "x-amz-server-side-encryption-customer-algorithm",
        Key::StorageClass => "x-amz-storage-class",
        Key::WebsiteRedirect => "x-amz-website-redirect-location",
        _ => return None,
    };
    Some(HeaderName::from_static(name))
}
