//! What the tests share: folders, records, and reading a blob to its end.

use std::path::Path;

use bytes::Bytes;
use coffer_seal::{BlobId, BucketId, SecretKey};
use coffer_store::lock::{Lock, LockTest};
use coffer_store::record::{
    BlobRef, Content, Details, NewContent, NewObject, ObjectHead, ObjectName, Precondition,
    WRAPPED_KEY_BYTES,
};
use coffer_store::version::Which;
use coffer_store::{BlobReader, BlobStore, Catalog, Deletion, StoreError};
use futures::StreamExt;
use tempfile::TempDir;

/// An empty bucket in a folder that goes away with it.
pub(crate) struct Bucket {
    pub(crate) dir: TempDir,
    pub(crate) key: SecretKey,
    pub(crate) catalog: Catalog,
    pub(crate) blobs: BlobStore,
}

pub(crate) const BUCKET_ID: BucketId = BucketId([0xb0; 16]);

impl Bucket {
    pub(crate) async fn new() -> Self {
        Self::within(tempfile::tempdir().unwrap()).await
    }

    /// In memory where that can be had: for tests that commit very often and not about disks.
    pub(crate) async fn in_memory() -> Self {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() {
            tempfile::tempdir_in(shm)
        } else {
            tempfile::tempdir()
        };
        Self::within(dir.unwrap()).await
    }

    pub(crate) async fn within(dir: TempDir) -> Self {
        let key = SecretKey::generate();
        let catalog = Catalog::create(dir.path(), &key, "bucket").await.unwrap();
        let blobs = BlobStore::new(dir.path(), BUCKET_ID);
        Self {
            dir,
            key,
            catalog,
            blobs,
        }
    }

    /// Closes the catalog and opens it again, as a new start would.
    pub(crate) async fn reopen(&mut self) {
        self.catalog.close().await;
        self.catalog = Catalog::open(self.dir.path(), &self.key).await.unwrap();
    }

    pub(crate) async fn put(&self, name: &str, data: &[u8]) {
        self.catalog
            .put(inline(name, data), Precondition::None)
            .await
            .unwrap();
    }

    /// What an object holds, if it is an inline one.
    pub(crate) async fn inline_data(&self, name: &str) -> Option<Bytes> {
        match read(&self.catalog, name).await.unwrap()? {
            (_, Content::Inline(data)) => Some(data),
            (_, other) => panic!("{other:?} is not inline"),
        }
    }

    /// Writes a blob and keeps it, without a row that refers to it.
    pub(crate) async fn write_blob(&self, data: &[u8]) -> (BlobId, SecretKey) {
        let data_key = SecretKey::generate();
        let mut writer = self.blobs.create(&data_key).unwrap();
        writer.write(Bytes::copy_from_slice(data)).await.unwrap();
        let blob = writer.finish().await.unwrap();
        let id = blob.id();
        blob.keep();
        (id, data_key)
    }

    pub(crate) async fn read_blob(
        &self,
        id: BlobId,
        key: &SecretKey,
        bytes: u64,
    ) -> (Vec<u8>, Result<(), StoreError>) {
        match self.blobs.open(id, key, bytes).await {
            Ok(reader) => drain(reader).await,
            Err(error) => (Vec::new(), Err(error)),
        }
    }
}

/// All that a reader gives out, and how it ends.
pub(crate) async fn drain(mut reader: BlobReader) -> (Vec<u8>, Result<(), StoreError>) {
    let mut data = Vec::new();
    while let Some(piece) = reader.next().await {
        match piece {
            Ok(piece) => data.extend_from_slice(&piece),
            Err(error) => {
                assert!(reader.next().await.is_none(), "an error ends the stream");
                return (data, Err(error));
            }
        }
    }
    (data, Ok(()))
}

pub(crate) fn name(name: &str) -> ObjectName {
    ObjectName::new(name).unwrap()
}

pub(crate) fn inline(object_name: &str, data: &[u8]) -> NewObject {
    NewObject {
        name: name(object_name),
        etag: format!("etag of {} bytes", data.len()),
        modified_ms: 1_700_000_000_123,
        details: Details::default(),
        tags: Vec::new(),
        lock: Lock::default(),
        access: Default::default(),
        content: NewContent::Inline(Bytes::copy_from_slice(data)),
    }
}

pub(crate) fn in_blob(object_name: &str, blob: BlobRef) -> NewObject {
    NewObject {
        content: NewContent::Blob(blob),
        ..inline(object_name, b"")
    }
}

/// A reference to a blob that need not exist.
pub(crate) fn blob_ref(plaintext_bytes: u64) -> BlobRef {
    blob_ref_to(BlobId::random(), plaintext_bytes)
}

pub(crate) fn blob_ref_to(id: BlobId, plaintext_bytes: u64) -> BlobRef {
    let wrapped_key = [id.0[0]; WRAPPED_KEY_BYTES].into();
    BlobRef {
        id,
        plaintext_bytes,
        key_generation: 3,
        wrapped_key,
        checksum: None,
    }
}

pub(crate) async fn read(
    catalog: &Catalog,
    object_name: &str,
) -> Result<Option<(ObjectHead, Content)>, StoreError> {
    let all = |head: &ObjectHead| Ok::<_, StoreError>(0..head.size_bytes);
    let name = name(object_name);
    let Ok(read) = catalog.read(&name, Which::Current, all).await? else {
        return Ok(None);
    };
    read.map(|(head, _, content)| Some((head, content)))
}

/// Bytes without a pattern that a mistake could repeat.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64 ^ length as u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state as u8
    };
    (0..length).map(next).collect()
}

/// The deletion of the newest version.
pub(crate) fn gone(name: &ObjectName, precondition: Precondition) -> Deletion {
    Deletion {
        name: name.clone(),
        which: Which::Current,
        precondition,
        only_if: Default::default(),
        now_ms: 1_700_000_000_456,
        test: LockTest {
            now_ms: 1_700_000_000_456,
            bypasses_governance: false,
        },
    }
}
