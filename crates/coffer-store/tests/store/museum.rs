//! Folders of buckets as released formats left them: all of them can be read for ever.
//!
//! `tests/museum/format-N` is never changed. It was made by the ignored test below, run with the
//! version that brought the format; `docs/FORMAT.md` reads it with Python alone.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use coffer_seal::{BucketId, Context, KeyKind, SecretKey, UploadId, open, seal};
use coffer_store::lock::{Lock, Locked};
use coffer_store::record::{
    BlobRef, Checksum, ChecksumAlgorithm, ChecksumKind, Content, ContentHeaders, Details,
    ListQuery, ObjectHead, Part, Precondition, Upload, UploadsQuery, WrappedKey,
};
use coffer_store::version::{Absent, VersionId, Which};
use coffer_store::{BlobStore, CATALOG, Catalog, Totals, VersionsQuery};

use crate::fixture::{drain, gone, inline, name, noise, read};

mod making;

use making::SUMS;

const BUCKET_ID: BucketId = BucketId([0xb1; 16]);
const GENERATION: u32 = 1;
const UPLOAD_ID: UploadId = UploadId([0xa1; 16]);
const UNDER_WAY_ID: UploadId = UploadId([0xa2; 16]);

fn bucket_key() -> SecretKey {
    SecretKey::from_bytes([0x0b; 32])
}

fn catalog_key() -> SecretKey {
    SecretKey::from_bytes([0x0c; 32])
}

fn museum(format: u32) -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum");
    tests.join(format!("format-{format}"))
}

fn details() -> Details {
    let headers = ContentHeaders {
        cache_control: Some("max-age=60".into()),
        content_type: Some("text/plain; charset=utf-8".into()),
        ..ContentHeaders::default()
    };
    let user_metadata = BTreeMap::from([("author".to_owned(), "Zoë".to_owned())]);
    Details {
        redirect: None,
        encryption: Default::default(),
        headers,
        user_metadata,
        checksum: Some(checksum("rosUhgp5mIg=")),
    }
}

fn checksum(value: &str) -> Checksum {
    Checksum {
        algorithm: ChecksumAlgorithm::Crc64nvme,
        kind: ChecksumKind::FullObject,
        value: value.to_owned(),
    }
}

fn tags() -> Vec<(String, String)> {
    vec![
        ("colour".to_owned(), "blue".to_owned()),
        ("empty".to_owned(), String::new()),
    ]
}

async fn blob(blobs: &BlobStore, data: &[u8]) -> BlobRef {
    let data_key = SecretKey::generate();
    let mut writer = blobs.create(&data_key).unwrap();
    writer.write(Bytes::copy_from_slice(data)).await.unwrap();
    let blob = writer.finish().await.unwrap();
    let id = blob.id();
    let context = Context::key(KeyKind::Data(id), GENERATION);
    let wrapped = seal(&bucket_key(), &context, data_key.expose());
    let plaintext_bytes = blob.plaintext_bytes();
    blob.keep();
    BlobRef {
        id,
        plaintext_bytes,
        key_generation: GENERATION,
        wrapped_key: WrappedKey::of_bytes(&wrapped).unwrap(),
        checksum: None,
    }
}

fn upload(id: UploadId, object: &str) -> Upload {
    Upload {
        id,
        name: name(object),
        started_ms: 1_700_000_000_000,
        details: Details {
            checksum: None,
            ..details()
        },
        checksum: Some((ChecksumAlgorithm::Crc64nvme, ChecksumKind::FullObject)),
        tags: tags(),
        lock: Lock::default(),
        acl: None,
        made_by: Some("AKANN".into()),
    }
}

async fn part(blobs: &BlobStore, number: u32, data: &[u8]) -> Part {
    let mut blob = blob(blobs, data).await;
    blob.checksum = Some(checksum(&format!("part {number}")));
    Part {
        number,
        etag: format!("etag of part {number}"),
        modified_ms: 1_700_000_000_001,
        blob,
    }
}

async fn assert_sums(catalog: &Catalog) {
    for (object, algorithm) in SUMS {
        let (head, _) = read(catalog, object).await.unwrap().unwrap();
        let found = head.details.checksum.unwrap();
        assert_eq!((found.algorithm, &*found.value), (algorithm, "c3Vt"));
        assert!(head.lock.hold_is_off && head.lock.is_none());
    }
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

#[tokio::test]
async fn every_format_is_read() {
    for format in 1..=CATALOG.format_version as u32 {
        let dir = museum(format);
        let catalog = Catalog::open_read_only(&dir, &catalog_key()).await.unwrap();
        assert_everything(&catalog, &dir, format).await;
        let counted = catalog.commit_count().await.unwrap();
        assert_eq!(counted, [0, 11, 11, 19, 23][format as usize - 1]);
        catalog.close().await;
    }
}

#[tokio::test]
async fn every_format_is_written_on() {
    for format in 1..=CATALOG.format_version as u32 {
        is_written_on(&museum(format)).await;
    }
}

async fn is_written_on(museum: &Path) {
    let dir = tempfile::tempdir().unwrap();
    copy(museum, dir.path());
    let catalog = Catalog::open(dir.path(), &catalog_key()).await.unwrap();
    let before = catalog.commit_count().await.unwrap();
    let uploads = catalog.open_uploads(None).await.unwrap();
    assert_eq!((uploads.count, uploads.bytes), (1, 20));
    let format = format_of(museum);
    let known = knows_makers(format).then(|| ("AKANN".to_owned(), 1));
    assert_eq!(uploads.by_maker, known.into_iter().collect());
    assert_everything(&catalog, dir.path(), format).await;
    catalog
        .put(inline("new", &noise(9_000)), Precondition::Absent)
        .await
        .unwrap();
    let deleted = catalog
        .delete(gone(&name("of parts"), Precondition::Present))
        .await
        .unwrap();
    assert_eq!(deleted.freed.len(), 2);
    assert_eq!(catalog.commit_count().await.unwrap(), before + 2);
    let blobs = BlobStore::new(dir.path(), BUCKET_ID);
    assert_eq!(blobs.sweep(&catalog).await.unwrap().files, 2);
    catalog.check_integrity().await.unwrap();
    catalog.check_structure().await.unwrap();
    catalog.close().await;
}

/// Whether a format knows who began an upload.
fn knows_makers(format: u32) -> bool {
    format >= 3
}

fn format_of(museum: &Path) -> u32 {
    let name = museum.file_name().unwrap().to_str().unwrap();
    name.strip_prefix("format-").unwrap().parse().unwrap()
}

async fn assert_everything(catalog: &Catalog, dir: &Path, format: u32) {
    catalog.check_integrity().await.unwrap();
    catalog.check_structure().await.unwrap();
    assert_eq!(catalog.bucket_name(), "museum");
    let bytes = 31 + 4_096 + 40_000 + 5_300;
    let (mut totals, mut names) = (Totals { objects: 5, bytes }, Vec::new());
    names.extend(["4 KiB", "a/large", "a/small", "empty", "of parts"]);
    if catalog.has_versions() {
        assert_versions(catalog, dir).await;
        totals = Totals {
            objects: 11,
            bytes: bytes + 20_000 + 11 + 12 + 13 + 11,
        };
        names.extend(["locked", "versions"]);
    }
    if format >= 5 {
        assert_sums(catalog).await;
        totals.objects += 4;
        totals.bytes += 4 * 3;
        names.extend(SUMS.map(|(name, _)| name));
    }
    names.sort_unstable();
    assert_eq!(catalog.totals().await.unwrap(), totals);
    assert_eq!(catalog.bucket_tags().await.unwrap(), Some(tags()));
    let query = ListQuery {
        limit: 20,
        ..ListQuery::default()
    };
    let page = catalog.list(query).await.unwrap();
    let listed: Vec<_> = page
        .objects
        .iter()
        .map(|object| object.name.expose())
        .collect();
    assert_eq!(listed, names);

    let (head, content) = read(catalog, "a/small").await.unwrap().unwrap();
    assert_eq!((head.details, head.tag_count), (details(), 2));
    let small = Content::Inline("A small object, in the catalog.".into());
    assert_eq!(content, small);
    let found = catalog.object_tags(&name("a/small"), Which::Current).await;
    assert_eq!(found.unwrap(), Ok((tags(), VersionId::Null)));
    let (_, content) = read(catalog, "4 KiB").await.unwrap().unwrap();
    assert_eq!(content, Content::Inline(noise(4096).into()));
    let (_, content) = read(catalog, "empty").await.unwrap().unwrap();
    assert_eq!(content, Content::Inline(Bytes::new()));

    let blobs = BlobStore::new(dir, BUCKET_ID);
    assert!(read_blobs(catalog, &blobs, "a/large").await == noise(40_000));
    let of_parts = [noise(5_000), noise(300)].concat();
    assert!(read_blobs(catalog, &blobs, "of parts").await == of_parts);
    let range = catalog
        .part_range(&name("of parts"), Which::Current, 7)
        .await
        .unwrap();
    assert_eq!(range, Some(5_000..5_300));

    let query = UploadsQuery {
        limit: 10,
        ..UploadsQuery::default()
    };
    let uploads = catalog.uploads(query).await.unwrap().uploads;
    let mut under_way = upload(UNDER_WAY_ID, "under way");
    under_way.made_by = under_way.made_by.filter(|_| knows_makers(format));
    assert_eq!(uploads, [under_way]);
    let parts = catalog.parts(&UNDER_WAY_ID, 0, 10).await.unwrap();
    assert_eq!((parts.len(), parts[0].number), (1, 2));
    assert!(read_blob(&blobs, &parts[0].blob).await == noise(20));
}

async fn assert_versions(catalog: &Catalog, dir: &Path) {
    let query = VersionsQuery {
        prefix: "versions".into(),
        limit: 10,
        ..VersionsQuery::default()
    };
    let versions = catalog.versions(query).await.unwrap().versions;
    let sizes = versions
        .iter()
        .map(|row| row.content.as_ref().unwrap().size_bytes);
    assert_eq!(sizes.collect::<Vec<_>>(), [13, 11, 20_000]);
    assert_eq!(versions[0].version, VersionId::Null);
    let absent = read_version(catalog, "gone", Which::Current).await;
    assert!(matches!(
        absent,
        Err(Absent::Deleted(VersionId::Numbered { .. }))
    ));
    let locked = Locked {
        count: 1,
        compliance_until_ms: Some(1_700_000_000_500),
        governance_until_ms: None,
        has_hold: true,
    };
    assert_eq!(catalog.locked().await.unwrap(), locked);
    let which = Which::Version(versions[2].version);
    let Ok(Content::Blobs { blobs: refs, .. }) = read_version(catalog, "versions", which).await
    else {
        panic!("the first version lies in a blob")
    };
    let blobs = BlobStore::new(dir, BUCKET_ID);
    assert!(read_blob(&blobs, &refs[0]).await == noise(20_000));
}

async fn read_version(catalog: &Catalog, object: &str, which: Which) -> Result<Content, Absent> {
    let all = |head: &ObjectHead| Ok::<_, ()>(0..head.size_bytes);
    let read = catalog.read(&name(object), which, all).await.unwrap()?;
    Ok(read.unwrap().2)
}

async fn read_blobs(catalog: &Catalog, blobs: &BlobStore, object: &str) -> Vec<u8> {
    let (_, content) = read(catalog, object).await.unwrap().unwrap();
    let Content::Blobs { blobs: refs, .. } = content else {
        panic!("{object} is inline")
    };
    let mut data = Vec::new();
    for blob in refs {
        data.extend(read_blob(blobs, &blob).await);
    }
    data
}

async fn read_blob(blobs: &BlobStore, blob: &BlobRef) -> Vec<u8> {
    let context = Context::key(KeyKind::Data(blob.id), blob.key_generation);
    let data_key = open(&bucket_key(), &context, blob.wrapped_key.as_bytes()).unwrap();
    let data_key = SecretKey::from_bytes(data_key.as_slice().try_into().unwrap());
    let reader = blobs
        .open(blob.id, &data_key, blob.plaintext_bytes)
        .await
        .unwrap();
    let (data, end) = drain(reader).await;
    end.unwrap();
    data
}
