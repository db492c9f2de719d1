//! Levels whose objects are watched: whatever tells of an object or changes one is recorded.
//!
//! What tells (reads, heads, tags, listings) is recorded before anything is given out; what changes
//! (writes, deletions, tags, uploads and their parts) as begun before it is committed, and should
//! it fail, that is noted afterwards.
//!
//! An object's name is as secret as its content and dies with its bucket's key, and so does what it
//! begins with. So they stand in a record only sealed, under a key derived from the bucket's
//! catalog key; auditors are shown them as long as that key is there.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_audit::{Event, Outcome, Record};
use coffer_keys::{BucketKey, Keystore};
use coffer_seal::{BucketId, Context, SecretKey, open, seal};
use coffer_store::record::ObjectName;

use super::facts::{Facts, event};
use super::log::Audit;
use crate::access::{Act, BucketName, Subject};
use crate::error::Result;

/// What the key of names is derived with from the catalog key.
const NAME_KEY_LABEL: &[u8] = b"coffer audit name key v1\0";

/// A detail of a record: the bucket's id.
const BUCKET_ID: &str = "bucket_id";
/// A detail of a record: the number of a part.
const PART: &str = "part";
/// Details of a record that are sealed, in Base64, and what auditors are shown in their place.
const SEALED: [(&str, &str); 2] = [("object_sealed", "object"), ("prefix_sealed", "prefix")];

/// A subject in a bucket whose objects are watched.
pub(crate) struct ObjectAudit {
    audit: Arc<Audit>,
    subject: Subject,
    bucket: BucketName,
    bucket_id: BucketId,
    name_key: SecretKey,
}

/// What of a bucket an act is about.
#[derive(Clone, Copy)]
pub(crate) enum On<'a> {
    Bucket,
    /// The objects whose names begin so.
    Prefix(&'a str),
    Object(&'a ObjectName),
    /// An object, and what more is told of it.
    Told(&'a ObjectName, &'a Facts),
    /// A part of an object to be.
    Part(&'a ObjectName, u32),
}

/// Acts on objects that were recorded as begun.
pub(crate) struct Begun {
    audit: Arc<Audit>,
    /// What is noted of those that fail.
    failed: Vec<Event>,
}

impl ObjectAudit {
    pub(crate) fn new(
        audit: Arc<Audit>,
        subject: &Subject,
        bucket: &BucketName,
        bucket_id: BucketId,
        key: &BucketKey,
    ) -> Self {
        Self {
            audit,
            subject: subject.clone(),
            bucket: bucket.clone(),
            bucket_id,
            name_key: key.catalog_key().derive(NAME_KEY_LABEL),
        }
    }

    /// Records what is about to be told; durable when this returns.
    pub(crate) async fn record(&self, act: Act, outcome: Outcome, on: On<'_>) -> Result<()> {
        let event = self.event(act, outcome, on);
        self.audit.record(event).await.map(drop)
    }

    /// Records that acts begin; durable when this returns.
    pub(crate) async fn begin<'a>(
        &self,
        act: Act,
        all: impl IntoIterator<Item = On<'a>>,
    ) -> Result<Begun> {
        let mut failed = Vec::new();
        let mut begun = Vec::new();
        for on in all {
            failed.push(self.event(act, Outcome::Failed, on));
            begun.push(self.event(act, Outcome::Begun, on));
        }
        let recording = begun.into_iter().map(|event| self.audit.record(event));
        futures::future::try_join_all(recording).await?;
        Ok(Begun {
            audit: self.audit.clone(),
            failed,
        })
    }

    fn event(&self, act: Act, outcome: Outcome, on: On<'_>) -> Event {
        let [(object, _), (prefix, _)] = SEALED;
        let event = event(act, &self.subject, outcome, &Facts::new())
            .with("bucket", &self.bucket)
            .with(BUCKET_ID, self.bucket_id);
        match on {
            On::Bucket | On::Prefix("") => event,
            On::Prefix(text) => event.with(prefix, self.sealed(text)),
            On::Object(name) => event.with(object, self.sealed(name.expose())),
            On::Told(name, told) => told.iter().fold(
                event.with(object, self.sealed(name.expose())),
                |event, (detail, value)| event.with(detail, value),
            ),
            On::Part(name, number) => event
                .with(object, self.sealed(name.expose()))
                .with(PART, number),
        }
    }

    fn sealed(&self, text: &str) -> String {
        let context = Context::audit_name(self.bucket_id);
        BASE64.encode(seal(&self.name_key, &context, text.as_bytes()))
    }
}

impl Begun {
    /// Notes which of them failed, and what is known of others only now that they are done, by
    /// their places.
    pub(crate) fn ended(&self, failed: &[usize], told: &[(usize, Facts)]) {
        for event in failed.iter().filter_map(|place| self.failed.get(*place)) {
            self.audit.note(event.clone());
        }
        for (place, facts) in told {
            let Some(failed) = self.failed.get(*place) else {
                continue;
            };
            let mut event = failed.clone();
            event.outcome = Outcome::Done;
            let facts = facts.iter();
            let facts = facts.map(|(name, value)| ((*name).to_owned(), value.clone()));
            event.details.extend(facts);
            self.audit.note(event);
        }
    }

    /// Notes that all of them failed.
    pub(crate) fn all_failed(&self) {
        for event in &self.failed {
            self.audit.note(event.clone());
        }
    }
}

/// Puts the names that a record has sealed into it, while the bucket's key is there.
pub(crate) fn show_name(keystore: &Keystore, record: &mut Record) {
    for (sealed, shown) in SEALED {
        if let Some(name) = opened_name(keystore, record, sealed) {
            let details = &mut record.event.details;
            details.remove(sealed);
            details.insert(shown.to_owned(), name);
        }
    }
}

fn opened_name(keystore: &Keystore, record: &Record, detail: &str) -> Option<String> {
    let details = &record.event.details;
    let sealed = BASE64.decode(details.get(detail)?).ok()?;
    let id = u128::from_str_radix(details.get(BUCKET_ID)?, 16).ok()?;
    let id = BucketId(id.to_be_bytes());
    let key = keystore.bucket_key(id).ok()?.catalog_key();
    let name = open(
        &key.derive(NAME_KEY_LABEL),
        &Context::audit_name(id),
        &sealed,
    );
    String::from_utf8(name.ok()?.to_vec()).ok()
}
