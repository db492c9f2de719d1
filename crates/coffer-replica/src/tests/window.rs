//! What is kept of earlier moments, and what is removed.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use super::*;

/// A state a second, from second 1 on: one page of this number.
pub(super) async fn states(bench: &mut Bench, count: u8) {
    let mut state: Option<BucketState> = None;
    for second in 1..=count {
        // A new base now and then.
        let before = state.as_ref().filter(|_| second % 4 != 0);
        let new = segment(u64::from(second), 1, &[(1, second)], true);
        let put = bench.writer.put_segment(BUCKET, before, new).await.unwrap();
        let piece = bench.writer.put_piece(vec![second; 10]).await.unwrap();
        let mut next = bench.writer.head().clone();
        next.buckets.insert(BUCKET.to_string(), put.clone());
        next.files.insert("system.db".to_owned(), vec![piece]);
        commit_at(bench, next, i64::from(second), i64::from(second) - 1).await;
        state = Some(put);
    }
}

async fn commit_at(bench: &mut Bench, next: Head, as_of_s: i64, after_s: i64) {
    let next = Head {
        as_of_ms: as_of_s * 1_000,
        after_ms: after_s * 1_000,
        keep_ms: 1_000_000,
        ..next
    };
    bench.it_is(as_of_s);
    bench.writer.commit(next).await.unwrap();
}

async fn same_at(bench: &mut Bench, as_of_s: i64, after_s: i64) {
    let next = bench.writer.head().clone();
    commit_at(bench, next, as_of_s, after_s).await;
}

pub(super) async fn at(bench: &Bench, at_ms: i64) -> Result<(CopyReader, Moment)> {
    CopyReader::at(bench.copy(), None, at_ms).await
}

/// What the page is at a moment, of which all is read.
pub(super) async fn page_at(bench: &Bench, at_ms: i64) -> Result<u8> {
    let (reader, _) = at(bench, at_ms).await?;
    let file = tempfile::tempfile()?;
    let state = &reader.head().buckets[&BUCKET.to_string()];
    reader.catalog(BUCKET, state, Some(&file)).await?;
    let piece = reader.piece(&reader.head().files["system.db"][0]).await?;
    let mut bytes = [0];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0)?;
    assert_eq!(piece[0], bytes[0], "system.db is of the same moment");
    Ok(bytes[0])
}

pub(super) fn soon() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

#[tokio::test]
async fn each_second_is_restored_as_it_was() {
    let mut bench = Bench::new().await;
    states(&mut bench, 20).await;
    for second in 1..=20 {
        for at_ms in [i64::from(second) * 1_000, i64::from(second) * 1_000 + 999] {
            assert_eq!(page_at(&bench, at_ms).await.unwrap(), second);
        }
    }
    let error = page_at(&bench, 999).await.unwrap_err();
    assert!(matches!(error, ReplicaError::TooEarly { .. }), "{error}");
    assert!(error.to_string().contains("1970-01-01T00:00:01"), "{error}");
    let (_, moment) = at(&bench, i64::MAX).await.unwrap();
    assert!(moment.is_newest);
}

#[tokio::test]
async fn what_falls_out_of_the_window_goes_and_all_in_it_stays_wherever_a_removal_ends() {
    let mut bench = Bench::new().await;
    states(&mut bench, 20).await;
    bench.store.counts_removals.store(true, Ordering::SeqCst);
    let (mut ends, mut horizon_s) = (0, 9);
    loop {
        // One removal more each time, and then it is killed: the next start goes on.
        bench.store.removals_left.store(1, Ordering::SeqCst);
        let swept = bench
            .writer
            .sweep(horizon_s * 1_000 + 500, &HashSet::new(), soon())
            .await;
        for second in horizon_s..=20 {
            assert_eq!(page_at(&bench, second * 1_000).await.unwrap(), second as u8);
        }
        if swept.is_ok_and(|swept| swept.is_complete) {
            match horizon_s {
                9 => horizon_s = 14,
                _ => break,
            }
        }
        ends += 1;
        if ends % 7 == 0 {
            bench.writer = CopyWriter::resume(bench.copy(), None).await.unwrap();
        }
    }
    assert!(ends > 20, "it was ended {ends} times");
    let error = page_at(&bench, 13_000).await.unwrap_err();
    assert!(matches!(error, ReplicaError::TooEarly { .. }), "{error}");
    // The base of second 12, and all from there on.
    assert_eq!(bench.names("buckets").await.len(), 9);
    assert_eq!(bench.names("files").await.len(), 7);
}

#[tokio::test]
async fn a_removal_ends_when_its_time_is_over_and_does_some_each_time() {
    let mut bench = Bench::new().await;
    states(&mut bench, 200).await;
    let mut rounds = 0;
    while !bench
        .writer
        .sweep(200_000, &HashSet::new(), Instant::now())
        .await
        .unwrap()
        .is_complete
    {
        rounds += 1;
        assert!(rounds < 50);
    }
    assert!(rounds > 5, "{rounds}");
    assert_eq!(page_at(&bench, 200_000).await.unwrap(), 200);
    assert_eq!(bench.names("heads").await.len(), 1);
}

#[tokio::test]
async fn what_no_head_names_is_swept_and_the_rest_stays() {
    let mut bench = Bench::new().await;
    three_segments(&mut bench).await;
    let gone = BucketId([8; 16]);
    let lost = segment(1, 1, &[(1, 1)], true);
    bench.writer.put_segment(gone, None, lost).await.unwrap();
    let base = segment(4, 1, &[(1, 5)], true);
    bench.put(None, base).await;
    bench
        .writer
        .sweep(0, &HashSet::new(), soon())
        .await
        .unwrap();
    assert_eq!(bench.names("buckets").await.len(), 1, "the new base alone");
    assert_eq!(bench.names("heads").await.len(), 1);
    assert!(bench.restored(None).await.unwrap() == page(5));
}

#[tokio::test]
async fn gaps_are_named_and_those_that_leave_the_window_are_not() {
    let mut bench = Bench::new().await;
    states(&mut bench, 3).await;
    same_at(&mut bench, 100, 50).await;
    let gap = Gap {
        from_ms: 50_000,
        to_ms: 100_000,
    };
    assert_eq!(bench.writer.head().gaps, [gap]);
    for (at_ms, wanted) in [(49_000, None), (50_001, Some(gap)), (100_000, None)] {
        assert_eq!(at(&bench, at_ms).await.unwrap().1.gap, wanted, "{at_ms}");
    }
    // More than can be named become one, from the first to the last.
    for more in 1..=limits::GAPS_MAX as i64 {
        let end_s = 100 + more * 10;
        same_at(&mut bench, end_s, end_s - 8).await;
    }
    let gaps = &bench.writer.head().gaps;
    assert_eq!(gaps.len(), limits::GAPS_MAX);
    assert_eq!((gaps[0].from_ms, gaps[0].to_ms), (50_000, 110_000));
    same_at(&mut bench, 10_000, 9_999).await;
    assert_eq!(bench.writer.head().gaps, []);
    // A clock that is put back does not take the order from heads.
    same_at(&mut bench, 5_000, 4_000).await;
    assert_eq!(bench.writer.head().as_of_ms, 10_000_000);
}

#[tokio::test]
async fn a_head_that_is_withheld_shows_against_the_one_after_it() {
    let mut bench = Bench::new().await;
    states(&mut bench, 9).await;
    let heads = bench.names("heads").await;
    // Head 1 is the writer's own, so this is of second 5; and an older one is put in its place.
    bench.store.copy(&heads[4], &heads[5]).await.unwrap();
    let (reader, moment) = at(&bench, 5_000).await.unwrap();
    assert_eq!(reader.known().number, 5, "the one before it");
    let gap = Gap {
        from_ms: 4_000,
        to_ms: 6_000,
    };
    assert_eq!((moment.damaged, moment.unchecked), (vec![6], Some(gap)));
    bench.store.delete(&heads[5]).await.unwrap();
    let (reader, moment) = at(&bench, 5_000).await.unwrap();
    assert_eq!(reader.known().number, 5, "the one before it");
    assert_eq!((moment.damaged, moment.unchecked), (vec![6], Some(gap)));
}

#[tokio::test]
async fn lists_of_what_is_gone_outlast_a_writer_and_one_that_was_altered_is_dropped() {
    let mut bench = Bench::new().await;
    states(&mut bench, 2).await;
    let ids = vec![BlobId([1; 16]), BlobId([2; 16])];
    let blobs = std::collections::BTreeMap::from([(BUCKET, ids)]);
    let list = bench.writer.note_gone(blobs).await.unwrap();
    assert_eq!(
        (list.head, list.blob_count()),
        (bench.writer.known().number, 2)
    );
    let later = CopyWriter::resume(bench.copy(), None).await.unwrap();
    assert_eq!(later.gone_lists().await.unwrap(), [list]);
    let [name] = &bench.names("gone").await[..] else {
        panic!("one list")
    };
    let mut bytes = bench
        .store
        .get(name)
        .await
        .unwrap()
        .bytes()
        .await
        .unwrap()
        .to_vec();
    bytes[70] ^= 1;
    bench.store.put(name, bytes.into()).await.unwrap();
    assert_eq!(later.gone_lists().await.unwrap(), []);
    assert!(bench.names("gone").await.is_empty());
}

pub(super) async fn garble(bench: &Bench, head: &Path) {
    let garbage = bytes::Bytes::from_static(b"garbage");
    bench.store.put(head, garbage.into()).await.unwrap();
}

#[tokio::test]
async fn moments_that_need_no_damaged_head_are_restored_and_the_others_say_so() {
    let mut bench = Bench::new().await;
    states(&mut bench, 20).await;
    let heads = bench.names("heads").await;
    // Head 1 is the writer's own: these are of seconds 5, 10, 11 and 12.
    for number in [6, 11, 12, 13] {
        garble(&bench, &heads[number - 1]).await;
    }
    let copy = bench.copy();
    assert_eq!(copy.damaged_heads(21).await.unwrap(), [6, 11, 12, 13]);
    for second in 1..=20_i64 {
        let (_, moment) = at(&bench, second * 1_000).await.unwrap();
        let (shown, from_to) = match second {
            4 | 5 => (4, Some((4_000, 6_000))),
            9..=12 => (9, Some((9_000, 13_000))),
            other => (other, None),
        };
        assert_eq!(page_at(&bench, second * 1_000).await.unwrap(), shown as u8);
        let gap = from_to.map(|(from_ms, to_ms)| Gap { from_ms, to_ms });
        assert_eq!(moment.unchecked, gap, "{second}");
        let named = |number: &u64| moment.damaged.contains(number);
        match second {
            4 | 5 => assert!(named(&6)),
            9..=12 => assert!([11, 12, 13].iter().all(named), "{:?}", moment.damaged),
            _ => {}
        }
    }
    // None opens that is as old.
    garble(&bench, &heads[0]).await;
    garble(&bench, &heads[1]).await;
    let error = page_at(&bench, 1_500).await.unwrap_err();
    assert!(
        matches!(
            error,
            ReplicaError::Unreadable {
                first: 1,
                last: 2,
                ..
            }
        ),
        "{error}"
    );
    assert!(error.to_string().contains("1970-01-01T00:00:02"), "{error}");
}

#[tokio::test]
async fn a_removal_goes_on_over_damaged_heads_and_takes_no_more_than_without() {
    let (mut sound, mut bench) = (Bench::new().await, Bench::new().await);
    states(&mut sound, 20).await;
    states(&mut bench, 20).await;
    let heads = bench.names("heads").await;
    for number in [1, 2, 3, 10, 11] {
        garble(&bench, &heads[number - 1]).await;
    }
    for horizon_s in 1..=20_i64 {
        let horizon_ms = horizon_s * 1_000 + 500;
        sound
            .writer
            .sweep(horizon_ms, &HashSet::new(), soon())
            .await
            .unwrap();
        let swept = bench
            .writer
            .sweep(horizon_ms, &HashSet::new(), soon())
            .await
            .unwrap();
        assert!(swept.is_complete);
        if horizon_s <= 2 {
            assert!(
                [1, 2, 3].iter().all(|head| swept.damaged.contains(head)),
                "{swept:?}"
            );
        }
        for kind in ["heads", "files", "buckets"] {
            let (sound, kept) = (sound.names(kind).await, bench.names(kind).await);
            assert!(
                sound.iter().all(|name| kept.contains(name)),
                "{kind} at {horizon_s}"
            );
        }
        for second in horizon_s..=20 {
            let error = match page_at(&bench, second * 1_000).await {
                Ok(_) => continue,
                Err(error) => error,
            };
            assert!(
                second < 3 && matches!(error, ReplicaError::Unreadable { .. }),
                "{error}"
            );
        }
    }
    assert_eq!(bench.names("heads").await, sound.names("heads").await);
    assert_eq!(
        bench.names("files").await.len(),
        sound.names("files").await.len()
    );
}

#[tokio::test]
async fn a_head_that_is_known_is_compared_with_itself_as_long_as_it_is_there() {
    let mut bench = Bench::new().await;
    states(&mut bench, 5).await;
    let known = bench.writer.known().clone();
    states(&mut bench, 9).await;
    let reader = CopyReader::newest(bench.copy(), None).await.unwrap();
    assert!(reader.has(&known).await.unwrap());
    let wrong = KnownHead {
        sha256: "0".repeat(64),
        ..known.clone()
    };
    let error = reader.has(&wrong).await.unwrap_err();
    assert!(matches!(error, ReplicaError::Altered { .. }), "{error}");
    bench
        .writer
        .sweep(i64::MAX, &HashSet::new(), soon())
        .await
        .unwrap();
    assert!(!reader.has(&known).await.unwrap(), "it left the window");
}

#[tokio::test]
async fn what_a_round_that_failed_has_put_of_a_new_bucket_stays_when_room_is_made() {
    let mut bench = Bench::new().await;
    states(&mut bench, 4).await;
    let new = BucketId([8; 16]);
    let put = segment(1, 1, &[(1, 1)], true);
    bench.writer.put_segment(new, None, put).await.unwrap();
    let there = format!("buckets/{new}");
    let stay = HashSet::from([new]);
    bench.writer.sweep(i64::MAX, &stay, soon()).await.unwrap();
    assert_eq!(bench.names(&there).await.len(), 1);
    assert_eq!(bench.names("heads").await.len(), 1, "and room was made");
    let none = HashSet::new();
    bench.writer.sweep(i64::MAX, &none, soon()).await.unwrap();
    assert!(bench.names(&there).await.is_empty());
}
