//! Stores that have no room, and what failed rounds left in them.

use std::collections::HashSet;
use std::io::{Error, ErrorKind};

use super::*;

/// A round that failed: a segment of each of two buckets, and a piece.
async fn failed_round(bench: &mut Bench, state: &BucketState, other: BucketId) {
    let new = segment(2, 1, &[(1, 2)], true);
    let put = bench.writer.put_segment(BUCKET, Some(state), new).await;
    put.unwrap();
    let new = segment(1, 1, &[(1, 2)], true);
    bench.writer.put_segment(other, None, new).await.unwrap();
    bench.writer.put_piece(vec![1; 10]).await.unwrap();
}

#[tokio::test]
async fn what_no_head_names_goes_and_what_one_names_or_the_next_is_to_name_stays() {
    let mut bench = Bench::new().await;
    let state = bench.put(None, segment(1, 1, &[(1, 1)], true)).await;
    let other = BucketId([8; 16]);
    failed_round(&mut bench, &state, other).await;
    let stay = HashSet::from([other]);
    assert_eq!(bench.writer.remove_unnamed(&stay).await.unwrap(), 2);
    assert!(bench.names("files").await.is_empty());
    assert_eq!(bench.names("buckets").await.len(), 2);
    let none = HashSet::new();
    assert_eq!(bench.writer.remove_unnamed(&none).await.unwrap(), 1);
    assert_eq!(bench.writer.remove_unnamed(&none).await.unwrap(), 0);
    assert!(bench.restored(None).await.unwrap() == page(1));
    // It goes on.
    bench
        .put(Some(&state), segment(2, 1, &[(1, 3)], true))
        .await;
    assert_eq!(bench.writer.remove_unnamed(&none).await.unwrap(), 0);
    assert!(bench.restored(None).await.unwrap() == page(3));
}

#[tokio::test]
async fn a_writer_that_another_followed_removes_nothing() {
    let mut bench = Bench::new().await;
    let state = bench.put(None, segment(1, 1, &[(1, 1)], true)).await;
    CopyWriter::resume(bench.copy(), None).await.unwrap();
    failed_round(&mut bench, &state, BucketId([8; 16])).await;
    let removed = bench.writer.remove_unnamed(&HashSet::new()).await;
    assert!(matches!(removed, Err(ReplicaError::Fenced { .. })));
    assert_eq!(bench.names("buckets").await.len(), 3);
}

#[tokio::test]
async fn what_the_last_start_left_goes_before_the_next_unless_others_went_on() {
    let mut bench = Bench::new().await;
    let state = bench.put(None, segment(1, 1, &[(1, 1)], true)).await;
    let known = bench.writer.known();
    failed_round(&mut bench, &state, BucketId([8; 16])).await;
    assert_eq!(bench.copy().remove_left(&known).await.unwrap(), 3);
    assert_eq!(bench.names("buckets").await.len(), 1);
    let mut later = CopyWriter::resume(bench.copy(), Some(&known))
        .await
        .unwrap();
    later.put_piece(vec![2; 10]).await.unwrap();
    // By then it is that one's to say.
    assert_eq!(bench.copy().remove_left(&known).await.unwrap(), 0);
    assert_eq!(bench.names("files").await.len(), 1);
    assert!(bench.restored(None).await.unwrap() == page(1));
}

#[test]
fn a_store_that_says_that_it_has_no_room_is_full_and_no_other() {
    let told = |source: Box<dyn std::error::Error + Send + Sync>| {
        let store = "store";
        ReplicaError::from(object_store::Error::Generic { store, source })
    };
    for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
        assert!(told(Box::new(Error::from(kind))).is_full());
    }
    let answers = [
        "Server returned non-2xx status code: 507 Insufficient Storage: ",
        "Server returned non-2xx status code: 403 Forbidden: <Error><Code>QuotaExceeded</Code>",
    ];
    for answer in answers {
        assert!(told(answer.into()).is_full(), "{answer}");
    }
    assert!(!told("timed out".into()).is_full());
    assert!(!told(Box::new(Error::from(ErrorKind::NotFound))).is_full());
    // Of a file here.
    assert!(!ReplicaError::from(Error::from(ErrorKind::StorageFull)).is_full());
}

#[derive(Debug, thiserror::Error)]
#[error("HTTP error: error sending request")]
struct Sending(#[source] Error);

#[test]
fn a_store_that_is_away_is_told_with_why() {
    let source = Box::new(Sending(Error::from(ErrorKind::ConnectionRefused)));
    let store = "store";
    let told = ReplicaError::from(object_store::Error::Generic { store, source }).to_string();
    let why = "failed: HTTP error: error sending request: connection refused";
    assert!(told.ends_with(why), "{told}");
}
