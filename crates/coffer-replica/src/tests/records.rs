//! Records between heads: what they add, what is named of them, and how long they stay.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use bytes::Bytes;

use super::histories::pages_of;
use super::*;

/// Of page 1 alone, from one commit to the next.
fn record(commits: u64, as_of_s: i64) -> NewRecord {
    NewRecord {
        as_of_ms: as_of_s * 1_000,
        after_ms: as_of_s * 1_000 - 1_000,
        buckets: vec![RecordedPages {
            bucket: BUCKET,
            since: commits - 1,
            commits,
            page_count: 1,
            pages: vec![(1, page(commits as u8).into())],
        }],
        files: None,
    }
}

async fn head_at(bench: &mut Bench, commits: u64, as_of_s: i64, covered: u64) {
    let new = segment(commits, 1, &[(1, commits as u8)], true);
    let state = bench.writer.put_segment(BUCKET, None, new).await.unwrap();
    let mut next = bench.writer.head().clone();
    next.buckets.insert(BUCKET.to_string(), state);
    next.covers = Some(Covers {
        number: covered,
        files: 0,
    });
    (next.as_of_ms, next.after_ms) = (as_of_s * 1_000, as_of_s * 1_000 - 1_000);
    next.keep_ms = 1_000_000;
    bench.it_is(as_of_s);
    bench.writer.commit(next).await.unwrap();
}

async fn page_at(bench: &Bench, at_ms: i64) -> Result<u8> {
    let (reader, _) = CopyReader::at(bench.copy(), None, at_ms).await?;
    let file = tempfile::tempfile()?;
    let state = &reader.head().buckets[&BUCKET.to_string()];
    reader.catalog(BUCKET, state, Some(&file)).await?;
    Ok(pages_of(&file, 1)[0])
}

/// A second each: head 2 of commit 1, records of 2 to 4, a head of 3 that was put together after
/// record 3, a record of 5.
async fn five_seconds(bench: &mut Bench) {
    head_at(bench, 1, 1, 1).await;
    let records = bench.writer.records();
    for second in 2..=4 {
        records.append(record(second, second as i64)).await.unwrap();
    }
    head_at(bench, 3, 3, 4).await;
    records.append(record(5, 5)).await.unwrap();
}

#[tokio::test]
async fn each_moment_between_heads_is_found_and_stays_as_long_as_its_window() {
    let mut bench = Bench::new().await;
    five_seconds(&mut bench).await;
    for second in 1..=6 {
        let found = page_at(&bench, second * 1_000 + 500).await.unwrap();
        assert_eq!(i64::from(found), second.min(5));
    }
    // Head 6 is the oldest that stays; it lacks record 5, which stays as well.
    let until = Instant::now() + Duration::from_secs(60);
    let swept = bench
        .writer
        .sweep(4_500, &HashSet::new(), until)
        .await
        .unwrap();
    assert_eq!((swept.floor, swept.is_complete), (6, true));
    assert_eq!(bench.names("heads").await.len(), 3);
    for (at_ms, wanted) in [(4_500, 4), (5_500, 5)] {
        assert_eq!(page_at(&bench, at_ms).await.unwrap(), wanted);
    }
    assert!(bench.restored(None).await.unwrap() == page(5));
    for at_ms in [2_500, 3_500] {
        let early = page_at(&bench, at_ms).await.unwrap_err();
        assert!(matches!(early, ReplicaError::TooEarly { .. }), "{early}");
    }
}

#[tokio::test]
async fn a_record_that_is_lost_altered_or_another_one_is_named() {
    let mut bench = Bench::new().await;
    five_seconds(&mut bench).await;
    let names = bench.names("heads").await;
    let name = &names[4];
    let whole = bench.store.get(name).await.unwrap().bytes().await.unwrap();
    for at in [0, 9, 40, whole.len() - 1] {
        let mut bytes = whole.to_vec();
        bytes[at] ^= 1;
        bench.store.put(name, bytes.into()).await.unwrap();
        let error = bench.restored(None).await.unwrap_err();
        let is_told = match &error {
            ReplicaError::Altered { object, .. } => *object == name.to_string(),
            ReplicaError::NewerFormat { .. } => at == 9,
            _ => false,
        };
        assert!(is_told, "byte {at}: {error}");
        let damaged = bench.copy().damaged_heads(7).await;
        assert!(at == 9 || damaged.unwrap() == [5]);
    }
    bench.store.delete(name).await.unwrap();
    let error = bench.restored(None).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Missing { .. }), "{error}");
    bench.store.put(name, whole.into()).await.unwrap();
    bench.restored(None).await.unwrap();
    // One that says more than the one before it leads to.
    let records = bench.writer.records();
    records.append(record(7, 7)).await.unwrap();
    let error = bench.restored(None).await.unwrap_err();
    assert!(error.to_string().contains("pages of a catalog are missing"));
}

/// What was acknowledged since would be gone without a word.
#[tokio::test]
async fn where_the_end_of_a_log_is_damaged_none_goes_on_from_before_it() {
    let mut bench = Bench::new().await;
    five_seconds(&mut bench).await;
    let names = bench.names("heads").await;
    // A record, and when that is gone a head.
    for (before, name) in names.iter().enumerate().rev().take(2) {
        for bytes in [b"garbage".to_vec(), Vec::new()] {
            bench.store.put(name, bytes.into()).await.unwrap();
            let told = [
                CopyReader::newest(bench.copy(), None).await.err(),
                CopyReader::at(bench.copy(), None, 1_500).await.err(),
                CopyWriter::resume_engine(bench.copy(), None).await.err(),
            ];
            for error in told {
                let is_named = matches!(
                    &error,
                    Some(ReplicaError::Altered { object, .. }) if *object == name.to_string()
                );
                assert!(is_named, "{error:?}");
            }
        }
        let there = bench.names("heads").await;
        assert_eq!(there.len(), before + 1, "nothing was written behind it");
        // Who removes it has decided to do without.
        bench.store.delete(name).await.unwrap();
    }
    let writer = CopyWriter::resume_engine(bench.copy(), None).await.unwrap();
    assert_eq!(writer.known().number, 6);
    assert!(bench.restored(None).await.unwrap() == page(4));
}

#[tokio::test]
async fn who_serves_says_again_what_lay_at_a_damaged_end_and_nothing_in_place_of_another() {
    let mut bench = Bench::new().await;
    five_seconds(&mut bench).await;
    let names = bench.names("heads").await;
    let name = &names[6];
    let whole = bench.store.get(name).await.unwrap().bytes().await.unwrap();
    assert!(bench.writer.check_end().await.unwrap());
    bench.store.put(name, "garbage".into()).await.unwrap();
    assert!(!bench.writer.check_end().await.unwrap());
    head_at(&mut bench, 5, 6, 7).await;
    assert!(bench.writer.check_end().await.unwrap());
    assert!(bench.restored(None).await.unwrap() == page(5));
    assert_eq!(bench.copy().damaged_heads(8).await.unwrap(), [7]);
    // Another that wrote under the same number is not passed over.
    bench.store.put(name, whole.into()).await.unwrap();
    let last = bench.names("heads").await.pop().unwrap();
    bench.store.delete(&last).await.unwrap();
    CopyWriter::resume_engine(bench.copy(), None).await.unwrap();
    assert!(bench.names("heads").await.contains(&last));
    let error = bench.writer.check_end().await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
}

#[tokio::test]
async fn files_grow_by_records_and_never_go_back() {
    let mut bench = Bench::new().await;
    head_at(&mut bench, 1, 1, 1).await;
    let piece = bench.writer.put_piece(b"ab".to_vec()).await.unwrap();
    let mut next = bench.writer.head().clone();
    next.files.insert("audit/1".to_owned(), vec![piece]);
    next.covers = Some(Covers {
        number: 2,
        files: 2,
    });
    bench.writer.commit(next).await.unwrap();
    let grown = |number: u64, from_bytes: u64, bytes: &'static [u8], head: &'static [u8]| {
        let part = |name: &str, from_bytes, bytes| {
            (name.to_owned(), from_bytes, Bytes::from_static(bytes))
        };
        NewRecord {
            files: Some(RecordedFiles {
                number,
                parts: vec![
                    part("audit/1", Some(from_bytes), bytes),
                    part("audit/head", None, head),
                ],
            }),
            ..NewRecord::default()
        }
    };
    let records = bench.writer.records();
    records.append(grown(4, 1, b"bcd", b"4")).await.unwrap();
    // One that came late says less.
    records.append(grown(3, 2, b"c", b"3")).await.unwrap();
    records.append(grown(5, 4, b"e", b"5")).await.unwrap();
    let reader = CopyReader::newest(bench.copy(), None).await.unwrap();
    for (name, wanted) in [
        ("audit/1", b"abcde".to_vec()),
        ("audit/head", b"5".to_vec()),
    ] {
        let mut found = Vec::new();
        for piece in &reader.head().files[name] {
            found.extend(reader.piece(piece).await.unwrap());
        }
        assert_eq!(found, wanted);
    }
    records.append(grown(6, 7, b"h", b"6")).await.unwrap();
    let error = CopyReader::newest(bench.copy(), None).await.err().unwrap();
    assert!(error.to_string().contains("a part of a file is missing"));
}

#[tokio::test]
async fn a_record_has_a_bound_and_costs_one_request() {
    let mut bench = Bench::new().await;
    head_at(&mut bench, 1, 1, 1).await;
    let records = bench.writer.records();
    let mut large = record(2, 2);
    large.buckets[0].pages = vec![(1, page(1).into()); limits::RECORD_PAGES_MAX + 1];
    let error = records.append(large).await.unwrap_err();
    assert!(matches!(error, ReplicaError::TooLarge { .. }), "{error}");
    let before = bench.store.requests.load(Ordering::SeqCst);
    records.append(record(2, 2)).await.unwrap();
    assert_eq!(bench.store.requests.load(Ordering::SeqCst), before + 1);
}

#[tokio::test]
async fn the_server_whose_copy_became_the_log_of_an_engine_never_goes_on_with_it() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let refused = |error: Option<ReplicaError>| {
        let is_told = matches!(error, Some(ReplicaError::OfEngine { .. }));
        assert!(is_told, "{error:?}");
    };
    let known = bench.writer.known();
    let gateway = CopyWriter::resume_engine(bench.copy(), Some(&known)).await;
    let mut gateway = gateway.unwrap();
    // While it runs, and as it starts again.
    refused(bench.writer.check_alone().await.err());
    let next = bench.writer.head().clone();
    refused(bench.writer.commit(next).await.err());
    refused(CopyWriter::resume(bench.copy(), None).await.err());
    // Nor behind heads and records that the engine writes.
    gateway.commit(gateway.head().clone()).await.unwrap();
    refused(CopyWriter::resume(bench.copy(), None).await.err());
    gateway.records().append(record(4, 4)).await.unwrap();
    refused(CopyWriter::resume(bench.copy(), Some(&known)).await.err());
    // Other gateways do.
    let second = CopyWriter::resume_engine(bench.copy(), Some(&known)).await;
    second.unwrap().check_alone().await.unwrap();
    assert!(bench.restored(None).await.is_ok());
}

/// As earlier versions wrote it: nothing but its records says whose it is.
#[tokio::test]
async fn a_log_that_has_records_is_an_engines() {
    let mut bench = Bench::new().await;
    five_seconds(&mut bench).await;
    let resumed = CopyWriter::resume(bench.copy(), None).await;
    assert!(matches!(resumed, Err(ReplicaError::OfEngine { .. })));
    head_at(&mut bench, 6, 6, 7).await;
    let resumed = CopyWriter::resume(bench.copy(), None).await;
    assert!(matches!(resumed, Err(ReplicaError::OfEngine { .. })));
    CopyWriter::resume_engine(bench.copy(), None).await.unwrap();
}

#[tokio::test]
async fn of_two_standbys_one_is_promoted_and_may_ask_again() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let known = bench.writer.known();
    let (one, two) = (CopyId::random(), CopyId::random());
    let both = tokio::join!(
        CopyWriter::promote(bench.copy(), &known, one),
        CopyWriter::promote(bench.copy(), &known, two)
    );
    let (first, second) = match both {
        (Ok(_), Err(error)) => ((one, two), error),
        (Err(error), Ok(_)) => ((two, one), error),
        (Ok(_), Ok(_)) => panic!("both were promoted"),
        (Err(one), Err(two)) => panic!("{one}; {two}"),
    };
    let is_told = |error: &ReplicaError| matches!(error, ReplicaError::Promoted { .. });
    assert!(is_told(&second), "{second}");
    let late = CopyWriter::promote(bench.copy(), &known, first.1).await;
    assert!(is_told(&late.err().unwrap()));
    let again = CopyWriter::promote(bench.copy(), &known, first.0).await;
    assert_eq!(again.unwrap().head().promotions, 2);
    let engine = CopyWriter::resume_engine(bench.copy(), None).await;
    assert!(is_told(&engine.err().unwrap()));
}

#[tokio::test(start_paused = true)]
async fn a_standby_is_promoted_beside_an_original_that_goes_on_writing() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let slow = Fickle {
        inner: bench.store.inner.fork(),
        takes: Duration::from_millis(10),
        ..Fickle::default()
    };
    let slow = Arc::new(slow);
    let copy = Copy::new(slow.clone(), bench.id, &bench.key);
    let known = bench.writer.known();
    let mut original = CopyWriter::resume(copy.clone(), Some(&known))
        .await
        .unwrap();
    let known = original.known();
    let writes = async {
        for as_of_s in 1..=8 {
            let mut next = original.head().clone();
            next.as_of_ms = as_of_s * 1_000;
            original.commit(next).await?;
        }
        Ok::<_, ReplicaError>(())
    };
    let promotion = CopyWriter::promote(copy.clone(), &known, CopyId::random());
    let (wrote, promoted) = tokio::join!(writes, promotion);
    let promoted = promoted.unwrap();
    assert!(
        promoted.known().number > known.number + 1,
        "none was faster"
    );
    let is_told = |error: &ReplicaError| matches!(error, ReplicaError::Promoted { .. });
    assert!(wrote.err().is_none_or(|error| is_told(&error)));
    let late = original.commit(original.head().clone()).await;
    assert!(is_told(&late.unwrap_err()));
}
