//! What a copy says of itself, lost or altered in its store.

use coffer_seal::{KeystoreId, SecretKey};
use object_store::ObjectStoreExt;
use object_store::path::Path;

use super::{Bench, three_segments};
use crate::{Copy, CopyRecord, CopyWriter, KnownHead, ReplicaError, names};

const KEYSTORE: KeystoreId = KeystoreId([1; 16]);

fn record() -> Path {
    Path::from("copy.json")
}

async fn bytes_there(bench: &Bench) -> Vec<u8> {
    let found = bench.store.get(&record()).await.unwrap();
    found.bytes().await.unwrap().to_vec()
}

#[tokio::test]
async fn what_a_copy_says_of_itself_is_put_again_as_it_was() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let (copy, known) = (bench.copy(), bench.writer.known());
    let before = bytes_there(&bench).await;
    let put = copy.put_record_again(KEYSTORE, Some(&known)).await;
    assert!(!put.unwrap(), "it is there");
    bench.store.delete(&record()).await.unwrap();
    let checked = copy.check_own_record(KEYSTORE).await;
    assert!(
        matches!(checked, Err(ReplicaError::RecordLost)),
        "{checked:?}"
    );
    assert!(copy.put_record_again(KEYSTORE, Some(&known)).await.unwrap());
    assert_eq!(bytes_there(&bench).await, before);
    copy.check_own_record(KEYSTORE).await.unwrap();
    bench.writer.check_end().await.unwrap();
}

#[tokio::test]
async fn nothing_is_put_where_the_place_may_be_of_another() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let known = bench.writer.known();
    let put = async |copy: Copy, known: &KnownHead| {
        let put = copy.put_record_again(KEYSTORE, Some(known)).await;
        put.unwrap_err()
    };
    // Another has been begun there.
    let other = CopyRecord::new(KEYSTORE);
    bench
        .store
        .put(&record(), other.bytes().into())
        .await
        .unwrap();
    let error = put(bench.copy(), &known).await;
    assert!(matches!(error, ReplicaError::OtherCopy { .. }), "{error}");
    assert_eq!(bytes_there(&bench).await, other.bytes());
    bench.store.delete(&record()).await.unwrap();
    // Another's heads are there, or an older state of this one.
    let foreign = Copy::new(bench.store.clone(), bench.id, &SecretKey::generate());
    let error = put(foreign, &known).await;
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    let number = known.number + 1;
    let later = KnownHead {
        number,
        ..known.clone()
    };
    let error = put(bench.copy(), &later).await;
    assert!(matches!(error, ReplicaError::RolledBack { .. }), "{error}");
    let sha256 = "0".repeat(64);
    let altered = KnownHead {
        sha256,
        ..known.clone()
    };
    let error = put(bench.copy(), &altered).await;
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    // Nothing at all is there.
    for name in bench.names("heads").await {
        bench.store.delete(&name).await.unwrap();
    }
    let error = put(bench.copy(), &known).await;
    assert!(matches!(error, ReplicaError::NoCopy), "{error}");
    assert!(bench.store.get(&record()).await.is_err());
}

/// Who was fenced off stays so when it is put again.
#[tokio::test]
async fn one_that_was_fenced_off_stays_so_without_the_record() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let known = bench.writer.known();
    let next = CopyWriter::resume(bench.copy(), Some(&known))
        .await
        .unwrap();
    bench.store.delete(&record()).await.unwrap();
    bench
        .copy()
        .put_record_again(KEYSTORE, Some(&known))
        .await
        .unwrap();
    let head = bench.writer.head().clone();
    let error = bench.writer.commit(head).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Fenced { .. }), "{error}");
    assert!(next.is_newest().await.unwrap());
}

#[tokio::test]
async fn what_was_altered_is_told_and_put_right_where_it_says_nothing() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let known = bench.writer.known();
    let checked = bench.copy().check_own_record(KeystoreId([2; 16])).await;
    let Err(ReplicaError::OtherKeystore { found, own }) = checked else {
        panic!("{checked:?}");
    };
    assert_eq!((found, own), ("01".repeat(16), "02".repeat(16)));
    bench.store.put(&record(), "{}".into()).await.unwrap();
    let read = CopyRecord::read(&*bench.store).await;
    assert!(
        matches!(read, Err(ReplicaError::RecordUnreadable)),
        "{read:?}"
    );
    assert!(CopyRecord::is_filled(&*bench.store).await.unwrap());
    // One of a later format is no damage, whatever else it says.
    let later = r#"{"format":9,"id":"x"}"#;
    bench.store.put(&record(), later.into()).await.unwrap();
    let put = bench.copy().put_record_again(KEYSTORE, Some(&known)).await;
    assert!(
        matches!(put, Err(ReplicaError::NewerFormat { .. })),
        "{put:?}"
    );
    assert_eq!(bytes_there(&bench).await, later.as_bytes());
    bench.store.put(&record(), "{}".into()).await.unwrap();
    // It is no other's.
    let foreign = Copy::new(bench.store.clone(), bench.id, &SecretKey::generate());
    let put = foreign.put_record_again(KEYSTORE, Some(&known)).await;
    assert!(matches!(put, Err(ReplicaError::Altered { .. })), "{put:?}");
    let put = bench.copy().put_record_again(KEYSTORE, Some(&known)).await;
    assert!(put.unwrap());
    bench.copy().check_own_record(KEYSTORE).await.unwrap();
}

/// Without that, `replica add` there made a copy of which nothing opens.
#[tokio::test]
async fn a_place_with_the_heads_of_a_copy_is_taken_and_stays_as_it_is() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    bench.store.delete(&record()).await.unwrap();
    let before = bench.names("").await;
    let other = CopyRecord::new(KeystoreId([2; 16]));
    let copy = Copy::new(bench.store.clone(), other.copy, &SecretKey::generate());
    let begun = CopyWriter::begin(copy, &other).await;
    assert!(matches!(begun, Err(ReplicaError::Occupied)));
    assert_eq!(bench.names("").await, before);
    // Nor does a first start of an engine take it for one that was begun.
    assert!(CopyRecord::is_filled(&*bench.store).await.unwrap());
    let removed = CopyRecord::remove_begun(&*bench.store).await;
    assert!(
        matches!(removed, Err(ReplicaError::RecordLost)),
        "{removed:?}"
    );
    assert_eq!(bench.names("").await, before);
}

#[tokio::test]
async fn of_a_record_that_says_another_keystore_counts_what_is_sealed() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let altered = CopyRecord::again(bench.id, KeystoreId([2; 16]), false);
    let found = async |key: &SecretKey| {
        let store = bench.store.clone();
        Copy::of(store, altered.clone(), KEYSTORE, key).await
    };
    let copy = found(&bench.key).await.unwrap();
    assert!(copy.newest_head().await.unwrap().is_some());
    let foreign = found(&SecretKey::generate()).await.err().unwrap();
    assert!(
        matches!(foreign, ReplicaError::ForeignCopy { .. }),
        "{foreign}"
    );
}

/// Two that found it saying nothing: the first puts it right, and a copy that was begun there by
/// the other stays.
#[tokio::test]
async fn what_came_in_place_of_one_that_said_nothing_is_not_put_over() {
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let in_folder = crate::Place::parse(&url).unwrap().open(false).unwrap();
    let bench = Bench::new().await;
    for store in [bench.store.clone(), in_folder] {
        let copy = Copy::new(store.clone(), bench.id, &bench.key);
        let own = CopyRecord::again(bench.id, KEYSTORE, false).bytes();
        let lies = async || store.get(&record()).await.unwrap().bytes().await.unwrap();
        store.put(&record(), "{}".into()).await.unwrap();
        let version = copy.record_version().await.unwrap();
        let other = CopyRecord::new(KEYSTORE).bytes();
        store.put(&record(), other.clone().into()).await.unwrap();
        let put = copy.replace_record(version, own.clone()).await.unwrap();
        assert!(!put && lies().await == other);
        let version = copy.record_version().await.unwrap();
        assert!(copy.replace_record(version, own.clone()).await.unwrap());
        assert_eq!(lies().await, own);
    }
}

/// By another id another key is derived, which opens no head.
#[tokio::test]
async fn of_a_record_whose_id_was_altered_that_is_told_and_no_damaged_head() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let found = async |record: CopyRecord| {
        let store = bench.store.clone();
        Copy::of(store, record, KEYSTORE, &bench.key).await
    };
    let own = CopyRecord::again(bench.id, KEYSTORE, false);
    found(own.clone()).await.unwrap();
    let altered = found(CopyRecord::new(KEYSTORE)).await.err().unwrap();
    assert!(matches!(altered, ReplicaError::OtherId { .. }), "{altered}");
    assert!(altered.to_string().starts_with("copy.json "), "{altered}");
    // A head that does not open is no sign of it, where others do.
    let newest = bench.names("heads").await.pop().unwrap();
    bench.store.put(&newest, "{}".into()).await.unwrap();
    let copy = found(own).await.unwrap();
    let read = copy.newest_head().await;
    assert!(
        matches!(read, Err(ReplicaError::Altered { .. })),
        "{read:?}"
    );
}

/// As an attempt leaves it of which the answer was lost.
#[tokio::test]
async fn what_is_there_already_is_said_to_be_and_put_again_under_another_name() {
    let mut bench = Bench::new().await;
    let mut at = bench.writer.put_piece(vec![1]).await.unwrap().at;
    at.number += 1;
    let path = names::piece(at);
    bench.store.put(&path, vec![2].into()).await.unwrap();
    let lost = bench.writer.put_piece(vec![2]).await.unwrap_err();
    assert!(lost.is_passing());
    let told = lost.to_string();
    assert!(
        told.contains("is there already") && !told.contains("file"),
        "{told}"
    );
    bench.writer.put_piece(vec![2]).await.unwrap();
}
