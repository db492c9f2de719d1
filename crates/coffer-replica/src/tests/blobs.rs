//! Blobs that are read without the copy's key.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use coffer_seal::{BlobId, BucketId};
use futures::StreamExt;
use object_store::ObjectStoreExt;

use super::fickle::Fickle;
use crate::{BlobPlace, ReplicaError, names};

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
