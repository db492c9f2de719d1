//! Heads that a store has lost.

use std::collections::HashSet;
use std::ops::RangeInclusive;

use super::window::{at, garble, soon, states};
use super::*;

async fn missing(bench: &Bench, horizon_s: i64) -> Vec<(RangeInclusive<u64>, Gap)> {
    let found = bench.copy().missing_heads(21, horizon_s * 1_000).await;
    found.unwrap()
}

#[tokio::test]
async fn heads_of_the_window_that_are_gone_are_found_and_those_that_were_removed_are_not() {
    let mut bench = Bench::new().await;
    states(&mut bench, 20).await;
    let heads = bench.names("heads").await;
    // Head 1 is the writer's own: head N is of second N - 1.
    assert!(missing(&bench, 0).await.is_empty());
    for horizon_s in [5, 8] {
        let swept = bench
            .writer
            .sweep(horizon_s * 1_000, &HashSet::new(), soon())
            .await
            .unwrap();
        assert!(swept.is_complete);
        assert!(missing(&bench, horizon_s).await.is_empty());
    }
    for number in [12, 13, 15] {
        bench.store.delete(&heads[number - 1]).await.unwrap();
    }
    let gap = |from_s: i64, to_s: i64| Gap {
        from_ms: from_s * 1_000,
        to_ms: to_s * 1_000,
    };
    let wanted = [(12_u64..=13, gap(10, 13)), (15..=15, gap(13, 15))];
    assert_eq!(missing(&bench, 8).await, wanted);
    // What the store does not say is not known: it is no answer about the rest.
    *bench.store.silent_at.lock() = Some(heads[10].clone());
    let error = bench.copy().missing_heads(21, 8_000).await.err();
    assert!(error.is_some_and(|error| error.is_passing()));
    *bench.store.silent_at.lock() = None;
    // What is out of the window by now is not missed.
    assert_eq!(missing(&bench, 13).await, wanted[1..]);
    // Nor where the oldest does not open.
    garble(&bench, &heads[8]).await;
    assert_eq!(missing(&bench, 8).await, wanted);
    // The lowest.
    for number in 9..=11 {
        bench.store.delete(&heads[number - 1]).await.unwrap();
    }
    let found = missing(&bench, 8).await;
    assert_eq!(found[0], (1..=13, gap(8, 13)));
    // A moment before what is gone is restored, and it is told that more can't be.
    let (_, moment) = at(&bench, 13_500).await.unwrap();
    assert_eq!(moment.unchecked, Some(gap(13, 15)));
    for name in bench.names("heads").await {
        bench.store.delete(&name).await.unwrap();
    }
    let error = CopyReader::newest(bench.copy(), None).await.err();
    assert!(matches!(error, Some(ReplicaError::NoHeads)), "{error:?}");
}

#[tokio::test]
async fn a_number_that_is_not_kept_is_told_from_one_that_the_store_lost() {
    let mut bench = Bench::new().await;
    states(&mut bench, 20).await;
    let newest = bench.writer.known().number;
    let told = async |number: u64| {
        let read = CopyReader::numbered(bench.copy(), None, number).await;
        read.err()
            .map(|error| error.to_string())
            .unwrap_or_default()
    };
    let range = |first: u64| format!("heads {first} to {newest} now");
    let early = told(1).await;
    assert!(
        early.contains("holds nothing") && early.contains(&range(1)),
        "{early}"
    );
    let late = told(newest + 1).await;
    assert!(late.contains("yet") && late.contains(&range(1)), "{late}");
    let none = HashSet::new();
    let swept = bench.writer.sweep(9_500, &none, soon()).await;
    assert!(swept.unwrap().is_complete);
    bench.clock.store(1_009_500, Ordering::SeqCst);
    let first = bench.copy().number_from(0).await.unwrap().unwrap();
    assert!(first > 2, "{first}");
    let gone = told(first - 1).await;
    assert!(
        gone.contains("keeps does not reach") && gone.contains(&range(first)),
        "{gone}"
    );
    let lost = newest - 2;
    bench.store.inner.delete(&names::head(lost)).await.unwrap();
    let missing = told(lost).await;
    assert!(
        missing.contains("the store lost or removed it"),
        "{missing}"
    );
}

/// Whether the log goes on from what a writer wrote last.
async fn goes_on(bench: &Bench, written: &WrittenEnd) -> Result<()> {
    let reader = CopyReader::newest(bench.copy(), None).await?;
    reader.check_goes_on_from(written).await
}

#[tokio::test]
async fn a_log_that_lost_what_a_writer_wrote_last_is_refused_also_where_another_went_on() {
    let mut bench = Bench::new().await;
    let written = bench.writer.end();
    // Nothing whole was there yet.
    bench.writer = CopyWriter::resume(bench.copy(), None).await.unwrap();
    let other = bench.writer.end();
    states(&mut bench, 20).await;
    goes_on(&bench, &written).await.unwrap();
    goes_on(&bench, &other).await.unwrap();
    // It is gone, and then another in its place; that the number alone is there is not enough.
    let newest = bench.names("heads").await.split_off(20);
    for name in &newest {
        bench.store.delete(name).await.unwrap();
    }
    let refused = goes_on(&bench, &other).await;
    assert!(
        matches!(
            refused,
            Err(ReplicaError::RolledBack {
                found: 20,
                known: 22
            })
        ),
        "{refused:?}"
    );
    let mut third = CopyWriter::resume(bench.copy(), None).await.unwrap();
    for _ in 0..3 {
        let next = third.head().clone();
        third.commit(next).await.unwrap();
    }
    let refused = goes_on(&bench, &other).await;
    assert!(
        matches!(refused, Err(ReplicaError::Replaced { number: 22 })),
        "{refused:?}"
    );
    // The log of another id is another's to refuse.
    let id = CopyId::random();
    let elsewhere = Copy::new(Arc::new(Fickle::default()), id, &bench.key);
    let writer = CopyWriter::begin(elsewhere.clone(), &CopyRecord::new(KeystoreId([1; 16]))).await;
    writer.unwrap();
    let reader = CopyReader::newest(elsewhere, None).await.unwrap();
    reader.check_goes_on_from(&other).await.unwrap();
    // What left the window, or does not open any more, counts by its number.
    garble(&bench, &names::head(22)).await;
    goes_on(&bench, &other).await.unwrap();
    bench.store.delete(&names::head(22)).await.unwrap();
    goes_on(&bench, &other).await.unwrap();
}
