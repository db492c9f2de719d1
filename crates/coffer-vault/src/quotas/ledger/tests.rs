//! The count against a plain model of it.

use proptest::prelude::*;

use super::*;

const BUCKETS: [BucketId; 3] = [BucketId([1; 16]), BucketId([2; 16]), BucketId([3; 16])];
const LEVEL: LevelId = LevelId([9; 16]);
const OTHER: LevelId = LevelId([8; 16]);

fn ann() -> SubjectId {
    SubjectId([0xa; 16])
}

fn bytes(bytes: i64) -> Change {
    Change {
        bytes,
        ..Change::default()
    }
}

fn limit(bytes: u64) -> Option<Quota> {
    Some(Quota {
        bytes: Some(bytes),
        ..Quota::default()
    })
}

/// Two buckets of a level, the second and a third, of another level, made by ann.
fn ledger() -> QuotaLedger {
    let (ledger, ann) = (QuotaLedger::default(), ann().to_string());
    ledger.place(BUCKETS[0], LEVEL, None);
    ledger.place(BUCKETS[1], LEVEL, Some(&ann));
    ledger.place(BUCKETS[2], OTHER, Some(&ann));
    for id in BUCKETS {
        let look = ledger.begin_look(id);
        ledger.end_look(id, &look, Change::default());
    }
    ledger
}

#[test]
fn what_is_freed_counts_until_that_is_certain_and_what_is_in_doubt_until_it_is_read() {
    let ledger = ledger();
    let of = QuotaOf::Bucket(BUCKETS[0]);
    ledger.set(of, limit(10));
    let catalog = ledger.admission(BUCKETS[0]);
    catalog.admit(bytes(10)).unwrap();
    let refused = catalog.admit(bytes(1)).unwrap_err();
    assert_eq!(
        (refused.of, refused.limit, refused.used, refused.adds),
        ("bucket", 10, Some(10), 1)
    );
    catalog.settle(bytes(10), Settled::Done);
    catalog.admit(bytes(-4)).unwrap();
    assert!(catalog.admit(bytes(4)).is_err(), "it may still come back");
    catalog.settle(bytes(-4), Settled::Done);
    catalog.admit(bytes(4)).unwrap();
    catalog.settle(bytes(4), Settled::InDoubt);
    assert_eq!(ledger.usage(of).bytes, 10);
    assert_eq!(ledger.in_doubt(), [BUCKETS[0]]);
    // A look during a commit says nothing.
    let look = ledger.begin_look(BUCKETS[0]);
    catalog.admit(bytes(-1)).unwrap();
    ledger.end_look(BUCKETS[0], &look, bytes(6));
    catalog.settle(bytes(-1), Settled::Undone);
    ledger.end_look(BUCKETS[0], &look, bytes(6));
    assert_eq!(ledger.usage(of).bytes, 10);
    let look = ledger.begin_look(BUCKETS[0]);
    ledger.end_look(BUCKETS[0], &look, bytes(6));
    assert_eq!(ledger.usage(of).bytes, 6);
    assert!(ledger.in_doubt().is_empty());
    catalog.admit(bytes(4)).unwrap();
}

#[test]
fn a_doubt_of_what_is_not_counted_stays_until_a_look_that_begins_after_it() {
    let ledger = ledger();
    let catalog = ledger.admission(BUCKETS[0]);
    let look = || ledger.begin_look(BUCKETS[0]);
    let before = look();
    catalog.doubted();
    ledger.end_look(BUCKETS[0], &before, bytes(0));
    assert_eq!(ledger.in_doubt(), [BUCKETS[0]]);
    ledger.end_look(BUCKETS[0], &look(), bytes(0));
    assert!(ledger.in_doubt().is_empty());
}

#[test]
fn what_was_not_read_is_told_until_it_is() {
    let ledger = QuotaLedger::default();
    for id in BUCKETS {
        ledger.place(id, LEVEL, None);
    }
    let of = QuotaOf::Level(LEVEL);
    ledger.set(of, limit(5));
    assert_eq!(ledger.sums_that_limit(BUCKETS[0]), [of]);
    assert_eq!(ledger.unread(&[of]).len(), 3);
    let look = ledger.begin_look(BUCKETS[0]);
    ledger.end_look(BUCKETS[0], &look, bytes(2));
    ledger.give_up(BUCKETS[1]);
    assert_eq!(ledger.unread(&[of]), [BUCKETS[2]]);
    for (id, unread) in [(BUCKETS[0], vec![]), (BUCKETS[2], vec![BUCKETS[2]])] {
        assert_eq!(ledger.unread(&[QuotaOf::Bucket(id)]), unread);
    }
    assert_eq!((ledger.usage(of).bytes, ledger.usage(of).buckets), (2, 3));
    ledger.forget(BUCKETS[0]);
    assert_eq!((ledger.usage(of).bytes, ledger.usage(of).buckets), (0, 2));
    ledger.set(of, None);
    assert!(ledger.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    Admit { bucket: usize, bytes: i64 },
    Settle { which: usize, settled: Settled },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let settled = prop_oneof![
        4 => Just(Settled::Done),
        1 => Just(Settled::Undone),
        1 => Just(Settled::InDoubt),
    ];
    let step = prop_oneof![
        (0..3usize, -40..60i64).prop_map(|(bucket, bytes)| Step::Admit { bucket, bytes }),
        (any::<prop::sample::Index>(), settled).prop_map(|(which, settled)| Step::Settle {
            which: which.index(1 << 20),
            settled,
        }),
    ];
    prop::collection::vec(step, 1..200)
}

proptest! {
    /// However commits end, and in whichever order: no quota is passed by what may be stored, and
    /// nothing is refused that fits whatever becomes of the commits under way.
    #[test]
    fn no_limit_is_passed_and_nothing_is_refused_that_fits(steps in steps()) {
        let ledger = ledger();
        let limits = [
            (QuotaOf::Bucket(BUCKETS[0]), 70, vec![0]),
            (QuotaOf::Level(LEVEL), 100, vec![0, 1]),
            (QuotaOf::Subject(ann()), 90, vec![1, 2]),
        ];
        for (of, most, _) in &limits {
            ledger.set(*of, limit(*most));
        }
        // The most that each bucket may hold, and what it certainly will.
        let mut most = [0i64; 3];
        let mut open: Vec<(usize, i64)> = Vec::new();
        for step in steps {
            match step {
                Step::Admit { bucket, bytes: more } => {
                    let catalog = ledger.admission(BUCKETS[bucket]);
                    let fits = more <= 0 || limits.iter().all(|(_, limit, of)| {
                        let held: i64 = of.iter().map(|one| most[*one]).sum();
                        !of.contains(&bucket) || held + more <= *limit as i64
                    });
                    let admitted = catalog.admit(bytes(more)).is_ok();
                    prop_assert_eq!(admitted, fits);
                    if admitted {
                        most[bucket] += more.max(0);
                        open.push((bucket, more));
                    }
                }
                Step::Settle { which, settled } if !open.is_empty() => {
                    let (bucket, more) = open.swap_remove(which % open.len());
                    ledger.admission(BUCKETS[bucket]).settle(bytes(more), settled);
                    match settled {
                        Settled::Done => most[bucket] += more.min(0),
                        Settled::Undone => most[bucket] -= more.max(0),
                        Settled::InDoubt => {}
                    }
                }
                Step::Settle { .. } => {}
            }
            for (of, limit, buckets) in &limits {
                let held: i64 = buckets.iter().map(|one| most[*one]).sum();
                prop_assert!(held <= *limit as i64);
                prop_assert_eq!(ledger.usage(*of).bytes as i64, held.max(0));
            }
        }
    }
}
