//! What is noted of blobs that were found damaged goes with them.

use coffer_seal::{BlobId, UploadId};
use coffer_store::BlobState;
use coffer_store::lock::Lock;
use coffer_store::record::{
    Checksum, ChecksumAlgorithm, ChecksumKind, CompletedObject, Details, Part, Precondition, Upload,
};

use crate::fixture::{Bucket, blob_ref_to, gone, in_blob, inline, name};

/// A blob that waits to be verified.
async fn waiting(bucket: &Bucket) -> BlobId {
    let id = BlobId::random();
    let checksum = Checksum {
        algorithm: ChecksumAlgorithm::Sha256,
        kind: ChecksumKind::FullObject,
        value: "sum".into(),
    };
    bucket
        .catalog
        .await_verification(id, &checksum)
        .await
        .unwrap();
    id
}

/// An object of such a blob, which is then found damaged.
async fn damaged(bucket: &Bucket, object: &str) -> BlobId {
    let id = waiting(bucket).await;
    let object = in_blob(object, blob_ref_to(id, 20_000));
    bucket
        .catalog
        .put(object, Precondition::None)
        .await
        .unwrap();
    bucket.catalog.note_damaged(id).await.unwrap();
    id
}

async fn is_noted(bucket: &Bucket, id: BlobId) -> bool {
    bucket.catalog.is_noted_damaged(id).await.unwrap()
}

#[tokio::test]
async fn a_verdict_goes_with_an_object_that_is_deleted_or_replaced() {
    let bucket = Bucket::new().await;
    let (deleted, replaced) = (damaged(&bucket, "a").await, damaged(&bucket, "b").await);
    let kept = damaged(&bucket, "c").await;
    assert!(is_noted(&bucket, deleted).await && is_noted(&bucket, replaced).await);
    let deletion = gone(&name("a"), Precondition::None);
    bucket.catalog.delete(deletion).await.unwrap();
    let newer = inline("b", b"whole");
    bucket.catalog.put(newer, Precondition::None).await.unwrap();
    assert!(!is_noted(&bucket, deleted).await);
    assert!(!is_noted(&bucket, replaced).await);
    assert!(is_noted(&bucket, kept).await);
}

#[tokio::test]
async fn of_what_is_gone_no_verdict_is_noted() {
    let bucket = Bucket::new().await;
    let id = waiting(&bucket).await;
    bucket.catalog.note_damaged(id).await.unwrap();
    assert!(!is_noted(&bucket, id).await);
    // It still waits, and its row is removed when it is met.
    let state = bucket.catalog.blob_state(id).await.unwrap();
    assert!(matches!(state, BlobState::Waits(waiting) if waiting.id == id));
}

#[tokio::test]
async fn what_is_damaged_is_not_told_as_whole() {
    let bucket = Bucket::new().await;
    let id = damaged(&bucket, "a").await;
    let state = bucket.catalog.blob_state(id).await.unwrap();
    assert_eq!(state, BlobState::Damaged);
    let other = bucket.catalog.blob_state(BlobId::random()).await.unwrap();
    assert_eq!(other, BlobState::Gone);
    let deletion = gone(&name("a"), Precondition::None);
    bucket.catalog.delete(deletion).await.unwrap();
    let state = bucket.catalog.blob_state(id).await.unwrap();
    assert_eq!(state, BlobState::Gone, "its verdict went with it");
}

async fn begin(bucket: &Bucket) -> UploadId {
    let id = UploadId::random();
    let upload = Upload {
        id,
        name: name("whole"),
        started_ms: 5,
        details: Details::default(),
        checksum: None,
        tags: Vec::new(),
        lock: Lock::default(),
        acl: None,
        made_by: None,
    };
    bucket.catalog.create_upload(upload).await.unwrap();
    id
}

/// A part whose blob is found damaged.
async fn damaged_part(bucket: &Bucket, upload: UploadId, number: u32) -> BlobId {
    let id = waiting(bucket).await;
    let part = Part {
        number,
        etag: "part".into(),
        modified_ms: 6,
        blob: blob_ref_to(id, 20_000),
    };
    bucket.catalog.put_part(upload, part).await.unwrap();
    bucket.catalog.note_damaged(id).await.unwrap();
    id
}

#[tokio::test]
async fn a_verdict_goes_with_a_part_that_becomes_nothing() {
    let bucket = Bucket::new().await;
    let upload = begin(&bucket).await;
    let replaced = damaged_part(&bucket, upload, 1).await;
    let used = damaged_part(&bucket, upload, 1).await;
    let unnamed = damaged_part(&bucket, upload, 2).await;
    assert!(!is_noted(&bucket, replaced).await);
    assert!(is_noted(&bucket, unnamed).await);
    let object = CompletedObject {
        name: name("whole"),
        etag: "whole".into(),
        modified_ms: 7,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        access: Default::default(),
        parts: vec![(1, used)],
        request: [7; 32],
    };
    let completing = bucket
        .catalog
        .complete_upload(&upload, object, Precondition::None);
    completing.await.unwrap();
    assert!(!is_noted(&bucket, unnamed).await);
    assert!(is_noted(&bucket, used).await, "the object has it now");
    let other = begin(&bucket).await;
    let ended = damaged_part(&bucket, other, 1).await;
    bucket.catalog.abort_upload(&other).await.unwrap();
    assert!(!is_noted(&bucket, ended).await);
}
