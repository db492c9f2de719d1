//! The lease of an engine: one gateway has it at a time, whatever becomes of answers.

use super::*;

fn place(store: &Arc<Fickle>) -> LeasePlace {
    LeasePlace::new(store.clone())
}

fn lease(before: Option<&FoundLease>, gateway: u8) -> Lease {
    let before = before.map(|before| &before.lease);
    let address = format!("10.0.0.{gateway}:9003");
    Lease::taken(before, CopyId([gateway; 16]), address, 5_000)
}

#[tokio::test]
async fn of_two_that_take_it_at_once_one_has_it() {
    let store = Arc::<Fickle>::default();
    let place = place(&store);
    assert!(place.read().await.unwrap().is_none());
    let first = place.put(&lease(None, 1), None).await.unwrap().unwrap();
    assert!(place.put(&lease(None, 2), None).await.unwrap().is_none());
    let renewed = place.put(&first.lease.renewed(), Some(&first)).await;
    let renewed = renewed.unwrap().unwrap();
    // Who read it before it was renewed is too late.
    let late = lease(Some(&first), 2);
    assert!(place.put(&late, Some(&first)).await.unwrap().is_none());
    let given = place.put(&renewed.lease.over(), Some(&renewed)).await;
    let given = given.unwrap().unwrap();
    let found = place.read().await.unwrap().unwrap();
    assert!(found.lease.is_over && found.lease == given.lease);
    let second = place.put(&lease(Some(&found), 2), Some(&found)).await;
    assert_eq!(second.unwrap().unwrap().lease.number, 2);
}

#[tokio::test]
async fn a_put_whose_answer_was_lost_is_found_to_be_done_or_not() {
    let store = Arc::<Fickle>::default();
    let place = place(&store);
    store.unheard.store(1, Ordering::SeqCst);
    let first = place.put(&lease(None, 1), None).await.unwrap().unwrap();
    store.unheard.store(1, Ordering::SeqCst);
    let next = first.lease.renewed();
    let renewed = place.put(&next, Some(&first)).await.unwrap().unwrap();
    // Asked for again, as after an answer that did not come in time.
    let again = place.put(&next, Some(&first)).await.unwrap().unwrap();
    assert_eq!(again.lease, renewed.lease);
    store.refused.store(1, Ordering::SeqCst);
    let failed = place.put(&next.renewed(), Some(&renewed)).await;
    assert!(failed.is_err(), "nothing was done: it is asked for again");
    let done = place.put(&next.renewed(), Some(&renewed)).await.unwrap();
    assert_eq!(done.unwrap().lease.renewals, 2);
}

/// What failed was no read of a file.
#[tokio::test]
async fn a_store_that_does_not_answer_in_time_is_said_to() {
    let slow = Fickle {
        takes: limits::LEASE_REQUEST_TIMEOUT * 2,
        ..Fickle::default()
    };
    let late = LeasePlace::new(Arc::new(slow)).read().await.unwrap_err();
    assert!(late.is_passing());
    assert_eq!(
        late.to_string(),
        "the store did not answer within 2 seconds"
    );
}

#[tokio::test]
async fn a_store_that_keeps_no_conditions_is_refused_and_left_as_it_was() {
    let store = Arc::<Fickle>::default();
    place(&store).probe().await.unwrap();
    store.is_careless.store(true, Ordering::SeqCst);
    let refused = place(&store).probe().await.unwrap_err();
    assert!(matches!(refused, ReplicaError::NoConditions), "{refused}");
    let folder = tempfile::tempdir().unwrap();
    let url = format!("file://{}", folder.path().display());
    let store = Place::parse(&url).unwrap().open(true).unwrap();
    let refused = LeasePlace::new(store.clone()).probe().await.unwrap_err();
    assert!(matches!(refused, ReplicaError::NoSwap { .. }), "{refused}");
    assert!(store.list(None).next().await.is_none());
}

#[tokio::test]
async fn what_is_no_lease_is_told() {
    let store = Arc::<Fickle>::default();
    let path = Path::from("lease.json");
    let altered = |change: fn(&mut Lease)| {
        let mut lease = lease(None, 1);
        change(&mut lease);
        serde_json::to_string(&lease).unwrap()
    };
    for (text, told) in [
        (altered(|lease| lease.number = u64::MAX), "counts beyond"),
        (altered(|lease| lease.renewals = u64::MAX), "counts beyond"),
        (altered(|lease| lease.lasts_ms = 1 << 63), "last longer"),
        (
            altered(|lease| lease.address = "x".repeat(1_000)),
            "address is longer",
        ),
        ("{}".to_owned(), "no lease"),
        ("x".repeat(5_000), "longer than any"),
        (
            serde_json::to_string(&lease(None, 1))
                .unwrap()
                .replace("\"format\":1", "\"format\":2"),
            "format 2",
        ),
    ] {
        store.put(&path, text.into()).await.unwrap();
        let error = place(&store).read().await.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
