//! What headers tell of the rules.

use coffer_vault::record::ObjectName;
use coffer_vault::version::Which;
use coffer_vault::{BucketName, DueEnd, ObjectInfo, Stored, Vault};
use s3s::dto::Timestamp;

use crate::http::{dates, percent};
use crate::request::caller::Caller;

/// The name of an object that is about to be written, where the bucket has rules.
pub(crate) fn ruled(vault: &Vault, bucket: &BucketName, name: &ObjectName) -> Option<ObjectName> {
    vault.has_lifecycle(bucket).then(|| name.clone())
}

/// `x-amz-expiration` of an object that was read: when which rule ends it. Of its newest version
/// alone.
pub(crate) async fn of_read(
    vault: &Vault,
    bucket: &BucketName,
    (name, which): (&ObjectName, Which),
    info: &ObjectInfo,
) -> Option<String> {
    if which != Which::Current {
        return None;
    }
    let about = (info.head.modified_ms, info.head.size_bytes);
    header(vault.object_end(None, bucket, name, about).await?)
}

/// The same of one that was written, for a caller that might have read the rules.
pub(crate) async fn of_write(
    vault: &Vault,
    caller: &Caller,
    (bucket, name): (&BucketName, Option<ObjectName>),
    (modified_ms, size_bytes): (i64, u64),
) -> Option<String> {
    let (subject, name) = (&caller.subject, name?);
    let about = (modified_ms, size_bytes);
    let end = vault.object_end(Some(subject), bucket, &name, about);
    header(end.await?)
}

/// What of a stored object matters to rules.
pub(crate) fn about(stored: &Stored) -> (i64, u64) {
    (stored.modified_ms, stored.size_bytes)
}

fn header(DueEnd { due_ms, rule }: DueEnd) -> Option<String> {
    let (date, rule) = (dates::http_date(due_ms), percent::encode(&rule));
    Some(format!("expiry-date=\"{date}\", rule-id=\"{rule}\""))
}

/// `x-amz-abort-date` and `x-amz-abort-rule-id` of an upload.
pub(crate) fn of_upload(end: Option<DueEnd>) -> (Option<Timestamp>, Option<String>) {
    let told = end.map(|end| (dates::timestamp(end.due_ms), percent::encode(&end.rule)));
    told.unzip()
}
