//! Levels whose objects are watched.

use std::path::Path;

use coffer_audit::Event;
use coffer_keys::LevelOptions;
use coffer_label::Label;
use coffer_vault::record::{Details, ListQuery, Precondition, Tags, UploadsQuery};
use coffer_vault::version::Which;
use coffer_vault::*;

use crate::door::{self, Door, bytes, gone, incoming, name, put, recorded};

const LOCAL: Actor = Actor::Local { uid: 0 };

/// A front door with a bucket in a level that is watched.
async fn watched(data: &Path) -> Door {
    let mut door = door::door(data).await;
    let level = NewLevel {
        name: "watched".into(),
        label: Label::LOWEST,
        options: LevelOptions {
            audit_data: true,
            ..LevelOptions::default()
        },
        may_share_label: true,
    };
    door.vault.create_level(&LOCAL, level).await.unwrap();
    door.bucket = BucketName::new("watched").unwrap();
    let made = door
        .vault
        .create_bucket(&door.subject, &door.bucket, Some("watched"));
    made.await.unwrap();
    door
}

/// Acts on objects: act, outcome, the object's name if it is shown.
async fn acts(door: &Door) -> Vec<(String, &'static str, Option<String>)> {
    let of_object = |event: Event| {
        event.act.starts_with("object.").then(|| {
            let object = event.details.get("object").cloned();
            (event.act.into_owned(), event.outcome.as_str(), object)
        })
    };
    let events = recorded(&door.vault).await.into_iter();
    events.filter_map(of_object).collect()
}

#[tokio::test]
async fn each_read_and_write_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    door.put("secret name", &bytes(10)).await.unwrap();
    door.read("secret name", RangeRequest::All).await.unwrap();
    let mut refused = put("secret name", &bytes(5));
    refused.precondition = Precondition::Absent;
    let refused = door
        .vault
        .put_object(&door.subject, &door.bucket, refused)
        .await;
    assert!(matches!(refused, Err(VaultError::PreconditionFailed)));
    let doomed = name("secret name");
    let gone = door.vault.delete_object(
        &door.subject,
        &door.bucket,
        gone(doomed, Precondition::None),
    );
    gone.await.unwrap();

    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    let shown = Some("secret name".to_owned());
    let act = |act: &str, outcome| (act.to_owned(), outcome, shown.clone());
    let expected = [
        act("object.write", "begun"),
        act("object.read", "done"),
        act("object.write", "begun"),
        act("object.delete", "begun"),
    ];
    let mut found = acts(&door).await;
    // A failure is noted within a second.
    let failed = act("object.write", "failed");
    assert!(found.contains(&failed), "{found:?}");
    found.retain(|found| *found != failed);
    assert_eq!(found, expected);
    let report = door.vault.verify_audit(&LOCAL, None).await.unwrap();
    assert!(report.is_sound(), "{report:?}");
    door.vault.close().await;
}

/// What all records of acts in buckets tell: act, outcome, and the details shown but those of the
/// bucket.
async fn told(door: &Door) -> Vec<String> {
    let of_bucket = |event: Event| {
        event.details.get("bucket_id")?;
        let mut told = format!("{} {}", event.act, event.outcome.as_str());
        for (name, value) in event.details {
            if !name.starts_with("bucket") {
                told.push_str(&format!(" {name}={value}"));
            }
        }
        Some(told)
    };
    let events = recorded(&door.vault).await.into_iter();
    events.filter_map(of_bucket).collect()
}

#[tokio::test]
async fn each_look_and_each_change_of_tags_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    let Door {
        vault,
        subject,
        bucket,
    } = &door;
    door.put("a/b", &bytes(10)).await.unwrap();
    let object = name("a/b");
    let options = ReadOptions::default;
    vault
        .head_object(subject, bucket, &object, options())
        .await
        .unwrap();
    let missing = vault
        .head_object(subject, bucket, &name("none"), options())
        .await;
    assert!(missing.is_err());
    // A refusal that tells that the object is there, and how old or long it is.
    let mut unchanged = options();
    unchanged.conditions.if_none_match = Some(EtagMatch::Any);
    let mut beyond = options();
    beyond.range = RangeRequest::FromTo {
        first: 10,
        last: None,
    };
    for refused in [unchanged, beyond] {
        let refused = vault.read_object(subject, bucket, &object, refused).await;
        assert!(matches!(
            refused.err(),
            Some(VaultError::NotModified { .. } | VaultError::InvalidRange { .. })
        ));
    }
    door.names().await;
    let query = ListQuery {
        prefix: "a/".into(),
        limit: 10,
        ..ListQuery::default()
    };
    vault.list_objects(subject, bucket, query).await.unwrap();
    let set = vault.set_object_tags(subject, bucket, (&object, Which::Current), Tags::new());
    set.await.unwrap();
    let tags = vault.object_tags(subject, bucket, &object, Which::Current);
    tags.await.unwrap();
    vault.set_bucket_tags(subject, bucket, None).await.unwrap();
    vault.bucket_tags(subject, bucket).await.unwrap();
    let none = name("none");
    let none = vault.set_object_tags(subject, bucket, (&none, Which::Current), Tags::new());
    assert!(matches!(none.await, Err(VaultError::NoSuchObject)));
    tokio::time::sleep(std::time::Duration::from_millis(900)).await;
    let expected = [
        "object.write begun object=a/b",
        "object.head done object=a/b",
        "object.head failed object=none",
        "object.head done object=a/b",
        "object.head done object=a/b",
        "object.list done",
        "object.list done prefix=a/",
        "tags.write begun object=a/b",
        "tags.read done object=a/b",
        "tags.write begun",
        "tags.read done",
        "tags.write begun object=none",
        "tags.write failed object=none",
    ];
    assert_eq!(told(&door).await, expected);
    door.vault.close().await;
}

#[tokio::test]
async fn each_part_and_upload_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    let Door {
        vault,
        subject,
        bucket,
    } = &door;
    let object = name("parts");
    let begin = || async {
        let new = NewUpload {
            encryption: Default::default(),
            lock: Default::default(),
            acl: Default::default(),
            acl_sent: Default::default(),
            name: object.clone(),
            details: Details::default(),
            tags: Tags::new(),
            checksum: None,
        };
        vault.create_upload(subject, bucket, new).await.unwrap().id
    };
    let (upload, other) = (begin().await, begin().await);
    let part = PutPart {
        customer_key: None,
        name: object.clone(),
        upload,
        number: 7,
        incoming: incoming(&bytes(100), 10),
    };
    let etag = vault.put_part(subject, bucket, part).await.unwrap().etag;
    let parts = vault.list_parts(subject, bucket, &object, upload, 0, 10);
    assert_eq!(parts.await.unwrap().parts.len(), 1);
    let query = UploadsQuery {
        limit: 10,
        ..UploadsQuery::default()
    };
    vault.list_uploads(subject, bucket, query).await.unwrap();
    let aborted = vault.abort_upload(subject, bucket, &object, other);
    aborted.await.unwrap();
    let complete = CompleteUpload {
        name: object.clone(),
        upload,
        parts: vec![CompletedPart {
            number: 7,
            etag,
            checksum: None,
        }],
        checksum: None,
        size_bytes: None,
        precondition: Precondition::None,
    };
    let completed = vault.complete_upload(subject, bucket, complete);
    completed.await.unwrap();
    let expected = [
        "upload.create begun object=parts",
        "upload.create begun object=parts",
        "part.write begun object=parts part=7",
        "part.list done object=parts",
        "upload.list done",
        "upload.abort begun object=parts",
        "object.write begun object=parts",
    ];
    assert_eq!(told(&door).await, expected);
    door.vault.close().await;
}

#[tokio::test]
async fn what_is_sent_for_an_upload_that_is_not_there_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    let Door {
        vault,
        subject,
        bucket,
    } = &door;
    let (object, upload) = (name("parts"), UploadId([7; 16]));
    let part = PutPart {
        customer_key: None,
        name: object.clone(),
        upload,
        number: 8,
        incoming: incoming(&bytes(100), 10),
    };
    let put = vault.put_part(subject, bucket, part).await;
    assert!(matches!(put, Err(VaultError::NoSuchUpload)));
    let announced = vault.announced_checksum(subject, bucket, &object, upload, Some(9));
    assert!(matches!(announced.await, Err(VaultError::NoSuchUpload)));
    let complete = CompleteUpload {
        name: object.clone(),
        upload,
        parts: Vec::new(),
        checksum: None,
        size_bytes: None,
        precondition: Precondition::None,
    };
    let completed = vault.complete_upload(subject, bucket, complete).await;
    assert!(matches!(completed, Err(VaultError::NoSuchUpload)));
    let expected = [
        "part.write failed object=parts part=8",
        "part.write failed object=parts part=9",
        "object.write failed object=parts",
    ];
    assert_eq!(told(&door).await, expected);
    door.vault.close().await;
}

#[tokio::test]
async fn names_die_with_the_bucket() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    door.put("secret name", &bytes(10)).await.unwrap();
    let shown = |acts: &[(String, &str, Option<String>)]| acts[0].2.clone();
    assert_eq!(shown(&acts(&door).await), Some("secret name".to_owned()));
    door.vault.erase_level(&LOCAL, "watched").await.unwrap();
    assert_eq!(shown(&acts(&door).await), None);
    door.vault.close().await;
}

#[tokio::test]
async fn nothing_is_given_out_unrecorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = watched(folder.path()).await;
    door.put("a", &bytes(10)).await.unwrap();
    let other = BucketName::new("bucket").unwrap();
    let free = |object| {
        let put = put(object, &bytes(10));
        door.vault.put_object(&door.subject, &other, put)
    };
    free("b").await.unwrap();

    let a = name("a");
    let (audit, away) = (folder.path().join("audit"), folder.path().join("away"));
    std::fs::rename(&audit, &away).unwrap();
    for refused in [
        door.read("a", RangeRequest::All).await.map(drop),
        door.put("c", &bytes(10)).await.map(drop),
    ] {
        assert!(matches!(refused, Err(VaultError::AuditUnavailable(_))));
    }
    let unrecorded = |refused: Option<VaultError>| {
        assert!(matches!(refused, Some(VaultError::AuditUnavailable(_))));
    };
    let (vault, subject, bucket) = (&door.vault, &door.subject, &door.bucket);
    let listed = vault.list_objects(subject, bucket, ListQuery::default());
    unrecorded(listed.await.err());
    let head = vault.head_object(subject, bucket, &a, ReadOptions::default());
    unrecorded(head.await.err());
    let tagged = vault.set_object_tags(subject, bucket, (&a, Which::Current), Tags::new());
    unrecorded(tagged.await.err());
    free("d").await.unwrap();
    assert!(door.vault.audit_failure().is_some());
    std::fs::rename(&away, &audit).unwrap();
    door.read("a", RangeRequest::All).await.unwrap();
    assert_eq!(door.vault.audit_failure(), None);
    door.vault.close().await;
}

#[tokio::test]
async fn other_levels_leave_no_trace() {
    let folder = tempfile::tempdir().unwrap();
    let door = door::door(folder.path()).await;
    door.put("a", &bytes(10)).await.unwrap();
    door.read("a", RangeRequest::All).await.unwrap();
    assert!(acts(&door).await.is_empty());
    door.vault.close().await;
}

#[tokio::test]
async fn damage_that_reading_finds_is_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let door = door::door(folder.path()).await;
    door.put("large", &bytes(100_000)).await.unwrap();
    let blob = &door::blob_files(folder.path())[0];
    let mut content = std::fs::read(blob).unwrap();
    content[50_000] ^= 1;
    std::fs::write(blob, content).unwrap();
    assert!(door.read("large", RangeRequest::All).await.is_err());
    door.vault.close().await;
    drop(door);

    let vault = door::open(folder.path()).await;
    let events = recorded(&vault).await;
    let damage = |event: &&Event| event.act == "storage.damage";
    assert_eq!(events.iter().filter(damage).count(), 1);
    vault.close().await;
}
