//! Blobs that are read without the copy's key.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_seal::{BlobId, BucketId};
use futures::StreamExt;
use object_store::ObjectStoreExt;

use super::Bench;
use super::fickle::Fickle;
use crate::limits::BLOB_PART_BYTES;
use crate::{BlobCheck, BlobPlace, BlobPut, ReplicaError, names};

const PLACE: (BucketId, BlobId) = (BucketId([7; 16]), BlobId([9; 16]));

/// What comes of a blob, and how it ends.
async fn read(store: &Arc<Fickle>) -> (Vec<u8>, Option<ReplicaError>) {
    let found = match BlobPlace::new(store.clone()).blob(PLACE.0, PLACE.1).await {
        Ok(found) => found,
        Err(error) => return (Vec::new(), Some(error)),
    };
    assert_eq!(found.length_bytes, 1_000);
    let (mut all, mut pieces) = (Vec::new(), found.bytes);
    while let Some(piece) = pieces.next().await {
        match piece {
            Ok(piece) => all.extend(piece),
            Err(error) => {
                assert!(pieces.next().await.is_none());
                return (all, Some(error));
            }
        }
    }
    (all, None)
}

#[tokio::test]
async fn one_that_breaks_off_is_asked_for_where_it_did() {
    let store = Arc::<Fickle>::default();
    let (bytes, error) = read(&store).await;
    assert!(bytes.is_empty() && matches!(error, Some(ReplicaError::Missing { .. })));
    let whole: Vec<u8> = (0..1_000_u32).map(|byte| byte as u8).collect();
    let path = names::blob(PLACE.0, PLACE.1);
    store.put(&path, whole.clone().into()).await.unwrap();
    for breaks_after in [0, 999, 300, 1] {
        store.breaks_after.store(breaks_after, Ordering::SeqCst);
        let (bytes, error) = read(&store).await;
        assert!(error.is_none(), "{error:?}");
        assert_eq!(bytes, whole);
    }
}

#[tokio::test]
async fn one_of_which_no_more_comes_ends() {
    let store = Arc::<Fickle>::default();
    let path = names::blob(PLACE.0, PLACE.1);
    store.put(&path, vec![1; 1_000].into()).await.unwrap();
    store.breaks_after.store(600, Ordering::SeqCst);
    let found = BlobPlace::new(store.clone()).blob(PLACE.0, PLACE.1).await;
    let mut pieces = found.unwrap().bytes;
    assert_eq!(pieces.next().await.unwrap().unwrap().len(), 600);
    store.delete(&path).await.unwrap();
    assert!(pieces.next().await.unwrap().is_err());
    assert!(pieces.next().await.is_none());
}

/// Takes bytes for right that are all the same, and so many.
struct AllOf(u8, usize);

impl BlobCheck for AllOf {
    fn feed(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        self.1 = self.1.checked_sub(bytes.len()).ok_or("too many")?;
        let are_right = bytes.iter().all(|byte| *byte == self.0);
        are_right.then_some(()).ok_or("another byte")
    }

    fn end(&mut self) -> Result<(), &'static str> {
        (self.1 == 0).then_some(()).ok_or("too few")
    }
}

#[tokio::test]
async fn one_that_is_put_again_is_replaced_by_what_is_right_alone() {
    let (bench, (bucket, id)) = (Bench::new().await, PLACE);
    let (copy, path) = (bench.copy(), names::blob(bucket, id));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("blob");
    // Of one part, of just one, and of several.
    for length in [0, 1_000, BLOB_PART_BYTES, 2 * BLOB_PART_BYTES + 1_000] {
        bench
            .store
            .put(&path, vec![1_u8; 500].into())
            .await
            .unwrap();
        let mut other = vec![7_u8; length + 1];
        other[length] = 8;
        let short = vec![7_u8; length.saturating_sub(1)];
        for (bytes, problem) in [(other, "too many"), (short, "too few")] {
            if bytes.len() == length {
                continue;
            }
            std::fs::write(&file, bytes).unwrap();
            let check = &mut AllOf(7, length);
            let put = copy.put_blob_again(bucket, id, &file, check).await.unwrap();
            assert_eq!(put, BlobPut::Damaged(problem), "{length}");
            let there = copy.blob_length(bucket, id).await.unwrap();
            assert_eq!(there, Some(500), "{length}: as it was");
        }
        let mut bytes = vec![7_u8; length];
        if let Some(last) = bytes.last_mut() {
            *last = 8;
            std::fs::write(&file, &bytes).unwrap();
            let check = &mut AllOf(7, length);
            let put = copy.put_blob_again(bucket, id, &file, check).await.unwrap();
            assert_eq!(put, BlobPut::Damaged("another byte"), "{length}");
        }
        let there = bench.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert_eq!(there, vec![1_u8; 500], "{length}: as it was");
        std::fs::write(&file, vec![7_u8; length]).unwrap();
        let check = &mut AllOf(7, length);
        let put = copy.put_blob_again(bucket, id, &file, check).await.unwrap();
        assert_eq!(put, BlobPut::Done(length as u64));
        let there = bench.store.get(&path).await.unwrap().bytes().await.unwrap();
        assert!(there == vec![7_u8; length], "{length}");
    }
    std::fs::remove_file(&file).unwrap();
    let check = &mut AllOf(7, 0);
    let put = copy.put_blob_again(bucket, id, &file, check).await.unwrap();
    assert_eq!(put, BlobPut::NoFile);
    bench.store.delete(&path).await.unwrap();
    assert_eq!(copy.blob_length(bucket, id).await.unwrap(), None);
}
