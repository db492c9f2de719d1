//! What is found of a moment where a head takes long to be put together, or where a clock is wrong.

use std::collections::HashSet;

use super::window::{at, page_at, soon, states};
use super::*;

/// A state whose page has this number: as of a moment, known to be all there was until `after_s`
/// before it, and written later.
async fn state_at(bench: &mut Bench, fill: u8, as_of_s: i64, after_s: i64, written_s: i64) {
    let new = segment(u64::from(fill), 1, &[(1, fill)], true);
    let put = bench.writer.put_segment(BUCKET, None, new).await.unwrap();
    let piece = bench.writer.put_piece(vec![fill; 10]).await.unwrap();
    let mut next = bench.writer.head().clone();
    next.buckets.insert(BUCKET.to_string(), put);
    next.files.insert("system.db".to_owned(), vec![piece]);
    next.as_of_ms = as_of_s * 1_000;
    next.after_ms = after_s * 1_000;
    next.keep_ms = 1_000_000;
    bench.it_is(written_s);
    bench.writer.commit(next).await.unwrap();
}

/// One a second, by whatever the clock shows.
async fn seconds(bench: &mut Bench, shown: std::ops::RangeInclusive<u8>) {
    for second in shown {
        let now_s = i64::from(second);
        state_at(bench, second, now_s, now_s - 1, now_s).await;
    }
}

/// Three seconds, one by a clock that is ahead, some time after the one before as it is told, and
/// more when it is right again.
async fn ahead_for_a_second(bench: &mut Bench, until: u8) {
    seconds(bench, 1..=3).await;
    state_at(bench, 100, 1_000, 990, 1_000).await;
    seconds(bench, 5..=until).await;
}

#[tokio::test]
async fn a_moment_has_nothing_that_was_read_after_it() {
    let mut bench = Bench::new().await;
    states(&mut bench, 3).await;
    // Its buckets were read from second 4 to second 9.
    state_at(&mut bench, 4, 4, 4, 9).await;
    for (at_ms, wanted, complete_ms) in [
        (3_500, 3, 3_500),
        (4_000, 3, 4_000),
        (8_999, 3, 4_000),
        (9_000, 4, 4_000),
    ] {
        assert_eq!(page_at(&bench, at_ms).await.unwrap(), wanted, "{at_ms}");
        let (reader, moment) = at(&bench, at_ms).await.unwrap();
        assert_eq!(moment.complete_ms, complete_ms, "{at_ms}");
        assert!(reader.head().until_ms() <= at_ms);
        assert_eq!((moment.gap, moment.clock), (None, None));
    }
    // One that takes longer leaves a time that has no state.
    state_at(&mut bench, 10, 10, 9, 60).await;
    let gap = Gap {
        from_ms: 9_000,
        to_ms: 60_000,
    };
    let (_, moment) = at(&bench, 50_000).await.unwrap();
    assert_eq!((moment.gap, moment.complete_ms), (Some(gap), 9_000));
}

/// Each start writes a head that repeats the one before.
#[tokio::test]
async fn a_start_hours_later_tells_nothing_of_the_time_between_and_what_follows_it_does() {
    let mut bench = Bench::new().await;
    seconds(&mut bench, 1..=3).await;
    let start = async |bench: &mut Bench, now_s: i64| {
        bench.it_is(now_s);
        bench.writer = CopyWriter::resume(bench.copy(), None).await.unwrap();
    };
    let told = async |bench: &Bench, at_ms: i64| {
        let (_, moment) = at(bench, at_ms).await.unwrap();
        assert!(!moment.is_newest && moment.unchecked.is_none());
        (moment.gap, moment.complete_ms)
    };
    start(&mut bench, 9_000).await;
    start(&mut bench, 10_000).await;
    assert_eq!(told(&bench, 5_000_000).await, (None, 3_000));
    // There was no more until the start.
    state_at(&mut bench, 50, 10_001, 10_000, 10_001).await;
    assert_eq!(told(&bench, 5_000_000).await, (None, 5_000_000));
    assert_eq!(page_at(&bench, 5_000_000).await.unwrap(), 3);
    // That is not known of the next one.
    start(&mut bench, 20_000).await;
    assert_eq!(told(&bench, 15_000_000).await, (None, 10_001_000));
    state_at(&mut bench, 60, 20_001, 10_001, 20_001).await;
    let gap = Gap {
        from_ms: 10_001_000,
        to_ms: 20_001_000,
    };
    assert_eq!(told(&bench, 15_000_000).await, (Some(gap), 10_001_000));
}

#[tokio::test]
async fn no_state_leaves_the_window_before_one_that_has_nothing_of_after_it() {
    let mut bench = Bench::new().await;
    states(&mut bench, 3).await;
    state_at(&mut bench, 4, 4, 4, 9).await;
    bench
        .writer
        .sweep(8_000, &HashSet::new(), soon())
        .await
        .unwrap();
    assert_eq!(page_at(&bench, 8_000).await.unwrap(), 3);
    bench
        .writer
        .sweep(9_000, &HashSet::new(), soon())
        .await
        .unwrap();
    assert_eq!(bench.names("heads").await.len(), 1);
}

#[tokio::test]
async fn where_a_clock_was_put_back_it_is_told_and_what_was_written_then_is_named() {
    let mut bench = Bench::new().await;
    ahead_for_a_second(&mut bench, 9).await;
    let time = Gap {
        from_ms: 5_000,
        to_ms: 1_000_000,
    };
    let without_state = Gap {
        from_ms: 990_000,
        to_ms: 1_000_000,
    };
    assert_eq!(bench.writer.head().gaps, [time, without_state]);
    assert!(bench.writer.head().is_behind());
    let told = async |bench: &Bench| {
        for (second, wanted) in [(5_u8, 5), (7, 7), (9, 9), (200, 9)] {
            let at_ms = i64::from(second) * 1_000 + 500;
            // Nothing that may be later is given.
            assert_eq!(page_at(bench, at_ms).await.unwrap(), 3, "{second}");
            let (_, moment) = at(bench, at_ms).await.unwrap();
            let clock = moment.clock.expect("it is told");
            assert_eq!(clock.time, time);
            assert_eq!(clock.written_ms, wanted * 1_000, "{second}");
            let number = clock.head.number;
            let reader = CopyReader::numbered(bench.copy(), None, number).await;
            let reader = reader.unwrap();
            assert_eq!(*reader.known(), clock.head);
            let file = tempfile::tempfile().unwrap();
            let state = &reader.head().buckets[&BUCKET.to_string()];
            reader.catalog(BUCKET, state, Some(&file)).await.unwrap();
            let mut found = [0];
            std::os::unix::fs::FileExt::read_exact_at(&file, &mut found, 0).unwrap();
            assert_eq!(i64::from(found[0]), wanted, "{second}");
        }
        assert_eq!(at(bench, 2_500).await.unwrap().1.clock, None);
        assert_eq!(at(bench, 4_500).await.unwrap().1.clock, None);
    };
    told(&bench).await;
    // Also when the time has come that the clock had shown.
    state_at(&mut bench, 110, 1_100, 1_099, 1_100).await;
    assert_eq!(page_at(&bench, 1_100_000).await.unwrap(), 110);
    assert_eq!(at(&bench, 1_100_000).await.unwrap().1.clock, None);
    assert_eq!(bench.writer.head().gaps, [time, without_state]);
    assert_eq!(at(&bench, 7_500).await.unwrap().1.clock.unwrap().time, time);
}

#[tokio::test]
async fn a_window_goes_on_after_a_clock_was_ahead() {
    let mut bench = Bench::new().await;
    ahead_for_a_second(&mut bench, 20).await;
    let swept = bench
        .writer
        .sweep(15_500, &HashSet::new(), soon())
        .await
        .unwrap();
    assert!(swept.is_complete);
    // Of seconds 15 to 20.
    assert_eq!(bench.names("heads").await.len(), 6);
    assert_eq!(bench.names("files").await.len(), 6);
    assert!(bench.restored(None).await.unwrap() == page(20));
    let last = bench.writer.known().number;
    let missing = bench.copy().missing_heads(last, 15_500).await.unwrap();
    assert!(missing.is_empty(), "{missing:?}");
    // Of what is left none is of before the clock was put back: which one is meant is told.
    let number = bench.writer.known().number - 3;
    let early = at(&bench, 17_500).await.err();
    let Some(ReplicaError::WrongClock { head, .. }) = early else {
        panic!("{early:?}");
    };
    assert_eq!(head, number);
}

#[tokio::test]
async fn a_clock_that_is_behind_for_a_while_ends_no_state_early() {
    let mut bench = Bench::new().await;
    seconds(&mut bench, 100..=103).await;
    seconds(&mut bench, 50..=55).await;
    // The window is of ten seconds: by the clock that is behind, and by the one that is right.
    for (now_s, horizon_ms) in [(55, 45_000), (110, 100_500)] {
        bench.it_is(now_s);
        bench
            .writer
            .sweep(horizon_ms, &HashSet::new(), soon())
            .await
            .unwrap();
        assert_eq!(page_at(&bench, 101_500).await.unwrap(), 101, "{now_s}");
        assert_eq!(page_at(&bench, 102_500).await.unwrap(), 102, "{now_s}");
    }
    assert!(bench.restored(None).await.unwrap() == page(55));
}

#[tokio::test]
async fn a_record_is_of_the_moments_after_it_was_written() {
    let mut bench = Bench::new().await;
    state_at(&mut bench, 1, 1, 0, 1).await;
    // What it holds was read from second 2 to second 4.
    bench.it_is(4);
    let record = NewRecord {
        as_of_ms: 2_000,
        after_ms: 1_500,
        buckets: vec![RecordedPages {
            bucket: BUCKET,
            since: 1,
            commits: 2,
            page_count: 1,
            pages: vec![(1, page(2).into())],
        }],
        files: None,
    };
    bench.writer.records().append(record).await.unwrap();
    for (at_ms, commits, complete_ms) in [
        (1_200, 1, 1_200),
        (2_500, 1, 1_500),
        (3_999, 1, 1_500),
        (4_000, 2, 2_000),
    ] {
        let (reader, moment) = at(&bench, at_ms).await.unwrap();
        let state = &reader.head().buckets[&BUCKET.to_string()];
        assert_eq!(state.commits, commits, "{at_ms}");
        assert_eq!(moment.complete_ms, complete_ms, "{at_ms}");
    }
}
