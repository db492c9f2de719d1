//! A first walk through everything.

use bytes::Bytes;
use coffer_seal::SecretKey;
use coffer_store::record::*;
use coffer_store::{BlobStore, Catalog};
use futures::StreamExt;

#[tokio::test]
async fn smoke() {
    let dir = tempfile::tempdir().unwrap();
    let key = SecretKey::generate();
    let catalog = Catalog::create(dir.path(), &key, "b").await.unwrap();
    let store = BlobStore::new(dir.path(), Id([7; 16]));
    let data_key = SecretKey::generate();
    let mut writer = store.create(&data_key).unwrap();
    let data: Vec<u8> = (0..1_000_000u32).map(|i| (i * 7 % 251) as u8).collect();
    for piece in data.chunks(30_001) {
        writer.write(Bytes::copy_from_slice(piece)).await.unwrap();
    }
    let blob = writer.finish().await.unwrap();
    let name = ObjectName::new("a/b").unwrap();
    let object = NewObject {
        name: name.clone(),
        etag: "e".into(),
        modified_ms: 1,
        details: Details::default(),
        tags: vec![],
        content: NewContent::Blob(BlobRef {
            id: blob.id(),
            plaintext_bytes: blob.plaintext_bytes(),
            key_generation: 1,
            wrapped_key: [3; 104],
            checksum: None,
        }),
    };
    catalog.put(object, Precondition::Absent).await.unwrap();
    let id = blob.id();
    blob.keep();
    let (head, _, content) = catalog
        .read(&name, |head| Ok::<_, ()>(0..head.size_bytes))
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(head.size_bytes, 1_000_000);
    assert!(matches!(content, Content::Blobs { ref blobs, .. } if blobs[0].id == id));
    let mut reader = store.open(id, &data_key, 1_000_000).await.unwrap();
    let mut out = Vec::new();
    while let Some(piece) = reader.next().await {
        out.extend_from_slice(&piece.unwrap());
    }
    assert!(out == data);
    let swept = store.sweep(&catalog).await.unwrap();
    assert_eq!(swept.files, 0);
    catalog.check_integrity().await.unwrap();
    catalog.close().await;
    assert!(
        Catalog::open(dir.path(), &SecretKey::generate())
            .await
            .is_err()
    );
    let catalog = Catalog::open(dir.path(), &key).await.unwrap();
    let page = catalog
        .list(ListQuery {
            limit: 10,
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(page.objects.len(), 1);
}
#[allow(dead_code)]
fn writer_is_send() {
    fn send<T: Send>() {}
    fn sync<T: Sync>() {}
    send::<coffer_store::BlobWriter>();
    sync::<coffer_store::BlobReader>();
    send::<coffer_store::BlobReader>();
}
