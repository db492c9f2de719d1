//! The identity of an engine: created once, whatever becomes of answers.

use bytes::Bytes;

use super::*;

fn place(store: &Arc<Fickle>) -> IdentityPlace {
    IdentityPlace::new(store.clone())
}

const FIRST: Bytes = Bytes::from_static(b"first");
const SECOND: Bytes = Bytes::from_static(b"second");

#[tokio::test]
async fn of_several_that_are_made_one_counts() {
    let store = Arc::<Fickle>::default();
    let place = place(&store);
    assert!(place.read().await.unwrap().is_none());
    assert_eq!(place.settle(FIRST).await.unwrap(), FIRST);
    assert_eq!(place.settle(SECOND).await.unwrap(), FIRST);
    assert_eq!(place.read().await.unwrap(), Some(FIRST));
}

#[tokio::test]
async fn one_whose_answer_was_lost_counts_if_it_is_there() {
    let store = Arc::<Fickle>::default();
    let place = place(&store);
    store.refused.store(1, Ordering::SeqCst);
    assert!(place.settle(FIRST).await.is_err(), "nothing is there");
    store.unheard.store(1, Ordering::SeqCst);
    assert_eq!(place.settle(FIRST).await.unwrap(), FIRST);
    assert_eq!(place.settle(SECOND).await.unwrap(), FIRST);
}

#[tokio::test]
async fn one_that_is_too_long_is_not_read() {
    let store = Arc::<Fickle>::default();
    let long = vec![b'x'; limits::IDENTITY_MAX_BYTES as usize + 1];
    store
        .put(&Path::from("identity"), long.into())
        .await
        .unwrap();
    let error = place(&store).read().await.unwrap_err().to_string();
    assert!(error.contains("longer than any"), "{error}");
}
