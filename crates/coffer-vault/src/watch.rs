//! Levels whose objects are watched: each read and write of an object is recorded.
//!
//! A read is recorded before its first byte is given out; a write, or a deletion, as begun before
//! it is committed, and should it fail, that is noted afterwards.
//!
//! An object's name is as secret as its content and dies with its bucket's key. So it stands in a
//! record only sealed, under a key derived from the bucket's catalog key; auditors are shown it as
//! long as that key is there.

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use coffer_audit::{Event, Outcome, Record};
use coffer_keys::{BucketKey, Keystore};
use coffer_seal::{Context, SecretKey, open, seal};
use coffer_store::record::{Id, ObjectName};

use crate::audit::Audit;
use crate::error::Result;
use crate::name::BucketName;
use crate::subject::Subject;

/// What the key of names is derived with from the catalog key.
const NAME_KEY_LABEL: &[u8] = b"coffer audit name key v1\0";

/// A detail of a record: the bucket's id.
const BUCKET_ID: &str = "bucket_id";
/// A detail of a record: the object's name, sealed, in Base64.
const OBJECT_SEALED: &str = "object_sealed";
/// What auditors are shown in its place.
const OBJECT: &str = "object";

/// A read of an object.
pub(crate) const READ: &str = "object.read";
/// A write of an object, whole or completed.
pub(crate) const WRITE: &str = "object.write";
/// A deletion of an object.
pub(crate) const DELETE: &str = "object.delete";

/// A subject in a bucket whose objects are watched.
pub(crate) struct Watch {
    audit: Arc<Audit>,
    actor: String,
    bucket: BucketName,
    bucket_id: Id,
    name_key: SecretKey,
}

/// Acts on objects that were recorded as begun.
pub(crate) struct Begun {
    audit: Arc<Audit>,
    /// What is noted of those that fail.
    failed: Vec<Event>,
}

impl Watch {
    pub(crate) fn new(
        audit: Arc<Audit>,
        subject: &Subject,
        bucket: &BucketName,
        bucket_id: Id,
        key: &BucketKey,
    ) -> Self {
        Self {
            audit,
            actor: subject.access_key_id().to_owned(),
            bucket: bucket.clone(),
            bucket_id,
            name_key: key.catalog_key().derive(NAME_KEY_LABEL),
        }
    }

    /// Records a read; durable when this returns.
    pub(crate) async fn read(&self, object: &ObjectName) -> Result<()> {
        let event = self.event(READ, Outcome::Done, object);
        self.audit.record(event).await.map(drop)
    }

    /// Records that acts begin; durable when this returns.
    async fn begin<'a>(
        &self,
        act: &'static str,
        objects: impl IntoIterator<Item = &'a ObjectName>,
    ) -> Result<Begun> {
        let mut failed = Vec::new();
        let mut begun = Vec::new();
        for object in objects {
            failed.push(self.event(act, Outcome::Failed, object));
            begun.push(self.event(act, Outcome::Begun, object));
        }
        let recording = begun.into_iter().map(|event| self.audit.record(event));
        futures::future::try_join_all(recording).await?;
        Ok(Begun {
            audit: self.audit.clone(),
            failed,
        })
    }

    fn event(&self, act: &'static str, outcome: Outcome, object: &ObjectName) -> Event {
        let context = Context::audit_name(&self.bucket_id.0);
        let sealed = seal(&self.name_key, &context, object.expose().as_bytes());
        Event::new(act, &*self.actor, outcome)
            .with("bucket", &self.bucket)
            .with(BUCKET_ID, self.bucket_id)
            .with(OBJECT_SEALED, BASE64.encode(sealed))
    }
}

/// As [`Watch::begin`], where objects are watched.
pub(crate) async fn begin<'a>(
    watch: Option<&Watch>,
    act: &'static str,
    objects: impl IntoIterator<Item = &'a ObjectName>,
) -> Result<Option<Begun>> {
    match watch {
        Some(watch) => watch.begin(act, objects).await.map(Some),
        None => Ok(None),
    }
}

/// Notes that acts which had begun failed, all of them.
pub(crate) fn failed(begun: &Option<Begun>) {
    if let Some(begun) = begun {
        begun.note(|_| true);
    }
}

/// Notes which of the acts that had begun failed, by their outcomes.
pub(crate) fn failed_of<T>(begun: &Option<Begun>, outcomes: &[Result<T>]) {
    if let Some(begun) = begun {
        begun.note(|place| outcomes.get(place).is_some_and(Result::is_err));
    }
}

impl Begun {
    fn note(&self, has_failed: impl Fn(usize) -> bool) {
        for (place, event) in self.failed.iter().enumerate() {
            if has_failed(place) {
                self.audit.note(event.clone());
            }
        }
    }
}

/// Puts the object's name into a record that has it sealed, while the bucket's key is there.
pub(crate) fn show_name(keystore: &Keystore, record: &mut Record) {
    if let Some(name) = opened_name(keystore, record) {
        let details = &mut record.event.details;
        details.remove(OBJECT_SEALED);
        details.insert(OBJECT.to_owned(), name);
    }
}

fn opened_name(keystore: &Keystore, record: &Record) -> Option<String> {
    let details = &record.event.details;
    let sealed = BASE64.decode(details.get(OBJECT_SEALED)?).ok()?;
    let id = u128::from_str_radix(details.get(BUCKET_ID)?, 16).ok()?;
    let id = Id(id.to_be_bytes());
    let key = keystore.bucket_key(&id.0).ok()?.catalog_key();
    let name = open(
        &key.derive(NAME_KEY_LABEL),
        &Context::audit_name(&id.0),
        &sealed,
    );
    String::from_utf8(name.ok()?.to_vec()).ok()
}
