//! Keystores that go along with a copy.

use super::*;

async fn newest(bench: &Bench) -> Option<FoundKeystore> {
    newest_keystore(&*bench.store).await.unwrap()
}

#[tokio::test]
async fn the_newest_is_there_and_those_before_are_gone() {
    let bench = Bench::new().await;
    assert_eq!(newest(&bench).await, None);
    let mut keystores = KeystoreWriter::new(&bench.writer);
    let first = keystores.put_newest(9, vec![9]).await.unwrap();
    assert_eq!(keystores.put(), Some(&first));
    let second = keystores.put_newest(10, vec![10]).await.unwrap();
    assert!(first.is_before(&second));
    assert!(!keystores.is_alone() && bench.names("keystores").await.len() == 2);
    keystores.keep_alone().await.unwrap();
    assert!(keystores.is_alone());
    let found = newest(&bench).await.unwrap();
    assert_eq!((&found.reference, &found.bytes[..]), (&second, &[10][..]));
    assert_eq!(bench.names("keystores").await.len(), 1);
    let is_ten = |found: &FoundKeystore| found.bytes[..] == [10];
    let copy = bench.copy();
    copy.has_keystore(&second, is_ten).await.unwrap();
    // A head of before names one that is not there any more, because there is a later one.
    copy.has_keystore(&first, is_ten).await.unwrap();
    // What has a later name alone is not one.
    let forged = Path::from("keystores/00000001-000000000099");
    bench
        .store
        .inner
        .put(&forged, vec![7].into())
        .await
        .unwrap();
    copy.has_keystore(&second, is_ten).await.unwrap();
    let found = copy.has_keystore(&first, is_ten).await;
    let Err(ReplicaError::Altered { object, .. }) = &found else {
        panic!("{found:?}");
    };
    assert_eq!(*object, forged.to_string());
    // Nor does it stand for what this server put last, which is lost.
    let path = Path::from(second.object());
    bench.store.inner.delete(&path).await.unwrap();
    assert!(keystores.is_lost().await);
}

#[tokio::test]
async fn lost_answers_are_settled_and_the_same_bytes_go_again() {
    let bench = Bench::new().await;
    let mut keystores = KeystoreWriter::new(&bench.writer);
    bench.store.unheard.store(1, Ordering::SeqCst);
    let put = keystores.put_newest(9, vec![1]).await.unwrap();
    assert_eq!(newest(&bench).await.unwrap().reference, put);
    bench.store.refused.store(1, Ordering::SeqCst);
    assert!(keystores.put_newest(10, vec![2]).await.is_err());
    assert_eq!(
        keystores.put(),
        Some(&put),
        "only the one before is there for sure"
    );
    keystores.put_newest(10, vec![3]).await.unwrap();
    assert_eq!(newest(&bench).await.unwrap().bytes[..], [2]);
}

#[tokio::test]
async fn one_is_put_where_none_can_be_removed_and_is_not_alone_before_that() {
    let bench = Bench::new().await;
    let mut keystores = KeystoreWriter::new(&bench.writer);
    keystores.put_newest(9, vec![9]).await.unwrap();
    bench.store.counts_removals.store(true, Ordering::SeqCst);
    for generation in [10, 11] {
        let put = keystores.put_newest(generation, vec![10]).await.unwrap();
        assert_eq!(newest(&bench).await.unwrap().reference, put);
        assert!(keystores.keep_alone().await.is_err());
        assert!(keystores.put() == Some(&put) && !keystores.is_alone());
    }
    bench.store.counts_removals.store(false, Ordering::SeqCst);
    keystores.keep_alone().await.unwrap();
    assert!(keystores.is_alone());
    assert_eq!(bench.names("keystores").await.len(), 1);
    assert_eq!(newest(&bench).await.unwrap().reference.generation(), 11);
}

#[tokio::test]
async fn a_later_start_fences_an_earlier_one() {
    let bench = Bench::new().await;
    let mut old = KeystoreWriter::new(&bench.writer);
    old.put_newest(900, vec![1]).await.unwrap();
    let writer = CopyWriter::resume(bench.copy(), None).await.unwrap();
    let mut new = KeystoreWriter::new(&writer);
    new.put_newest(10, vec![2]).await.unwrap();
    let fenced = old.put_newest(901, vec![3]).await;
    assert!(
        matches!(fenced, Err(ReplicaError::Fenced { .. })),
        "{fenced:?}"
    );
    assert_eq!(newest(&bench).await.unwrap().bytes[..], [2]);
}

#[tokio::test]
async fn an_empty_place_takes_none() {
    let bench = Bench::new().await;
    let mut keystores = KeystoreWriter::new(&bench.writer);
    let lose = async |name: &Path| bench.store.inner.delete(name).await.unwrap();
    lose(&Path::from("copy.json")).await;
    let put = keystores.put_newest(9, vec![1]).await;
    assert!(matches!(put, Err(ReplicaError::RecordLost)), "{put:?}");
    for head in bench.names("heads").await {
        lose(&head).await;
    }
    let put = keystores.put_newest(9, vec![1]).await;
    assert!(matches!(put, Err(ReplicaError::NoCopy)), "{put:?}");
    assert!(bench.names("keystores").await.is_empty());
}

#[tokio::test]
async fn one_that_is_lost_or_altered_is_found_out_and_put_again() {
    let bench = Bench::new().await;
    let mut keystores = KeystoreWriter::new(&bench.writer);
    let put = keystores.put_newest(9, vec![1]).await.unwrap();
    let [path] = &bench.names("keystores").await[..] else {
        panic!("one keystore");
    };
    bench.store.inner.put(path, vec![8].into()).await.unwrap();
    let found = bench.copy().has_keystore(&put, |_| false).await;
    assert!(
        matches!(found, Err(ReplicaError::Altered { .. })),
        "{found:?}"
    );
    assert!(keystores.is_lost().await);
    keystores.forget();
    let again = keystores.put_newest(9, vec![1]).await.unwrap();
    assert!(!keystores.is_lost().await);
    assert_eq!(again, put);
    bench.store.inner.delete(path).await.unwrap();
    let found = bench.copy().has_keystore(&put, |_| false).await;
    assert!(
        matches!(found, Err(ReplicaError::Missing { .. })),
        "{found:?}"
    );
    keystores.forget();
    keystores.put_newest(9, vec![1]).await.unwrap();
    bench.copy().has_keystore(&put, |_| false).await.unwrap();
}

#[tokio::test]
async fn one_that_comes_late_is_removed_and_another_servers_is_not_passed_over() {
    let bench = Bench::new().await;
    let mut keystores = KeystoreWriter::new(&bench.writer);
    keystores.put_newest(9, vec![9]).await.unwrap();
    let last = keystores.put_newest(10, vec![10]).await.unwrap();
    keystores.keep_alone().await.unwrap();
    let late = Path::from("keystores/00000001-000000000009");
    bench.store.inner.put(&late, vec![9].into()).await.unwrap();
    keystores.keep_alone().await.unwrap();
    assert_eq!(bench.names("keystores").await.len(), 1);
    assert_eq!(keystores.put(), Some(&last));
    // One that this server never put, of a number that readers would take for the newest.
    let forged = Path::from("keystores/00000001-000000000099");
    bench
        .store
        .inner
        .put(&forged, vec![9].into())
        .await
        .unwrap();
    keystores.keep_alone().await.unwrap();
    assert_eq!(newest(&bench).await.unwrap().reference, last);
    // A clone has taken the copy over, and put its own while this one's was under way.
    let other = Path::from("keystores/00000002-000000000009");
    bench.store.inner.put(&other, vec![9].into()).await.unwrap();
    let alone = keystores.keep_alone().await;
    let Err(ReplicaError::FencedByKeystore { object, epoch, own }) = &alone else {
        panic!("{alone:?}");
    };
    assert_eq!((object.as_str(), *epoch, *own), (other.as_ref(), 2, 1));
    assert!(!keystores.is_alone());
    let put = keystores.put_newest(11, vec![11]).await;
    assert!(
        matches!(put, Err(ReplicaError::FencedByKeystore { .. })),
        "{put:?}"
    );
    assert_eq!(
        bench.names("keystores").await.len(),
        3,
        "none is removed then"
    );
}
