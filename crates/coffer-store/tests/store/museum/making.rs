//! How the newest folder of the museum was made.

use coffer_store::lock::{Lock, Retention, RetentionMode};
use coffer_store::record::{Checksum, ChecksumAlgorithm, CompletedObject, Precondition};
use coffer_store::version::Versioning;
use coffer_store::{BlobStore, CATALOG, Catalog};

use super::{
    BUCKET_ID, UNDER_WAY_ID, UPLOAD_ID, blob, catalog_key, checksum, details, museum, part, tags,
    upload,
};
use crate::fixture::{gone, in_blob, inline, name, noise};

/// Makes the folder of the newest format, once.
#[tokio::test]
#[ignore = "was run once for each format; never again for one that was released"]
async fn make_the_newest() {
    let dir = museum(CATALOG.format_version as u32);
    assert!(!dir.exists(), "what is in the museum is never changed");
    let catalog = Catalog::create(&dir, &catalog_key(), "museum")
        .await
        .unwrap();
    let blobs = BlobStore::new(&dir, BUCKET_ID);
    let mut small = inline("a/small", b"A small object, in the catalog.");
    (small.details, small.tags) = (details(), tags());
    let large = in_blob("a/large", blob(&blobs, &noise(40_000)).await);
    for object in [
        small,
        inline("empty", b""),
        inline("4 KiB", &noise(4096)),
        large,
    ] {
        catalog.put(object, Precondition::Absent).await.unwrap();
    }
    let mut parts = Vec::new();
    catalog
        .create_upload(upload(UPLOAD_ID, "of parts"))
        .await
        .unwrap();
    for (number, length) in [(1, 5_000), (7, 300)] {
        let part = part(&blobs, number, &noise(length)).await;
        parts.push((number, part.blob.id));
        catalog.put_part(UPLOAD_ID, part).await.unwrap();
    }
    let object = CompletedObject {
        name: name("of parts"),
        etag: "etag-2".to_owned(),
        modified_ms: 1_700_000_000_002,
        details: details(),
        tags: Vec::new(),
        lock: Lock::default(),
        access: Default::default(),
        parts,
        request: [7; 32],
    };
    catalog
        .complete_upload(&UPLOAD_ID, object, Precondition::Absent)
        .await
        .unwrap();
    catalog
        .create_upload(upload(UNDER_WAY_ID, "under way"))
        .await
        .unwrap();
    catalog
        .put_part(UNDER_WAY_ID, part(&blobs, 2, &noise(20)).await)
        .await
        .unwrap();
    catalog.set_bucket_tags(Some(tags())).await.unwrap();
    make_versions(&catalog, &blobs).await;
    make_sums(&catalog).await;
    catalog.close().await;
}

/// Versions, which format 4 brought.
async fn make_versions(catalog: &Catalog, blobs: &BlobStore) {
    catalog.set_versioning(Versioning::Enabled).await.unwrap();
    let first = in_blob("versions", blob(blobs, &noise(20_000)).await);
    for object in [
        first,
        inline("versions", b"The second."),
        inline("gone", b"Its version."),
    ] {
        catalog.put(object, Precondition::None).await.unwrap();
    }
    let retention = Retention {
        mode: RetentionMode::Compliance,
        until_ms: 1_700_000_000_500,
    };
    let mut locked = inline("locked", b"Until then.");
    locked.lock = Lock {
        retention: Some(retention),
        ..Lock::default().with_hold(true)
    };
    catalog.put(locked, Precondition::None).await.unwrap();
    let deletion = gone(&name("gone"), Precondition::Present);
    catalog.delete(deletion).await.unwrap();
    catalog.set_versioning(Versioning::Suspended).await.unwrap();
    catalog
        .put(inline("versions", b"The null one."), Precondition::None)
        .await
        .unwrap();
}

/// Checksums of the kinds that format 5 brought, and a hold that is off.
pub(super) const SUMS: [(&str, ChecksumAlgorithm); 4] = [
    ("md5", ChecksumAlgorithm::Md5),
    ("sha512", ChecksumAlgorithm::Sha512),
    ("xxhash128", ChecksumAlgorithm::Xxhash128),
    ("xxhash3", ChecksumAlgorithm::Xxhash3),
];

async fn make_sums(catalog: &Catalog) {
    for (object, algorithm) in SUMS {
        let mut object = inline(object, b"sum");
        object.details.checksum = Some(Checksum {
            algorithm,
            ..checksum("c3Vt")
        });
        object.lock = Lock::default().with_hold(false);
        catalog.put(object, Precondition::None).await.unwrap();
    }
}
