//! What AWS documents, as a table; and the rules against a model that asks them one by one.

use coffer_store::lock::Lock;
use coffer_store::record::{ObjectName, WalkPlace};
use coffer_store::version::VersionId;
use proptest::prelude::*;

use super::*;
use crate::lifecycle::FilterForm;

const HOUR_MS: i64 = 3_600_000;
const DAY: Day = Day { ms: 24 * HOUR_MS };

fn newest(name: &str, modified_ms: i64) -> AgedVersion {
    AgedVersion {
        place: WalkPlace {
            name: ObjectName::new(name).unwrap(),
            id: 1,
            is_older: false,
        },
        version: VersionId::Null,
        is_marker: false,
        modified_ms,
        size_bytes: 10,
        tags: Tags::new(),
        successor_ms: None,
        newer_noncurrent: 0,
        is_lone: true,
        lock: Lock::default(),
    }
}

fn older(since_ms: i64, newer_noncurrent: u32) -> AgedVersion {
    AgedVersion {
        successor_ms: Some(since_ms),
        newer_noncurrent,
        is_lone: false,
        ..newest("a", 0)
    }
}

fn marker(is_lone: bool) -> AgedVersion {
    AgedVersion {
        is_marker: true,
        is_lone,
        size_bytes: 0,
        ..newest("a", HOUR_MS)
    }
}

fn rule(expiration: Option<Expiration>, noncurrent: Option<Noncurrent>) -> LifecycleRule {
    LifecycleRule {
        id: "r".to_owned(),
        is_enabled: true,
        expiration,
        noncurrent,
        ..LifecycleRule::default()
    }
}

fn due(rule: LifecycleRule, version: &AgedVersion) -> Option<i64> {
    let rules = LifecycleRules(vec![rule]);
    rules.ending(version, DAY).map(|ending| ending.due_ms)
}

fn noncurrent(days: u32, newer_kept: u32) -> Option<Noncurrent> {
    Some(Noncurrent { days, newer_kept })
}

/// "15 Jan 10:30 and three days": midnight of 19 Jan.
#[test]
fn days_end_at_the_next_midnight() {
    let tenth = 10 * HOUR_MS + HOUR_MS / 2;
    assert_eq!(DAY.due_ms(14 * DAY.ms + tenth, 3), 18 * DAY.ms);
    assert_eq!(DAY.due_ms(14 * DAY.ms, 3), 17 * DAY.ms);
    assert_eq!(DAY.due_ms(14 * DAY.ms + 1, 1), 16 * DAY.ms);
    assert_eq!(DAY.due_ms(i64::MAX - 5, u32::MAX), i64::MAX);
    assert_eq!((DAY.number(-1), DAY.number(DAY.ms)), (-1, 1));
}

#[test]
fn what_each_action_ends() {
    let days = || rule(Some(Expiration::Days(1)), None);
    let markers = |is_set| rule(Some(Expiration::LoneMarkers(is_set)), None);
    let date = || rule(Some(Expiration::DateMs(5 * DAY.ms)), None);
    let one = newest("a", HOUR_MS);
    for (what, rule, version, expected) in [
        ("days", days(), &one, Some(2 * DAY.ms)),
        ("date", date(), &one, Some(5 * DAY.ms)),
        (
            "date, later",
            date(),
            &newest("a", 9 * DAY.ms),
            Some(5 * DAY.ms),
        ),
        ("markers only", markers(true), &one, None),
        ("lone marker", markers(true), &marker(true), Some(HOUR_MS)),
        ("lone marker, not set", markers(false), &marker(true), None),
        (
            "lone marker by days",
            days(),
            &marker(true),
            Some(2 * DAY.ms),
        ),
        ("marker over versions", days(), &marker(false), None),
        ("marker over versions", markers(true), &marker(false), None),
        ("older by days", days(), &older(HOUR_MS, 0), None),
        (
            "older",
            rule_old(1, 0),
            &older(DAY.ms + 1, 0),
            Some(3 * DAY.ms),
        ),
        ("newest by older", rule_old(1, 0), &one, None),
        ("kept", rule_old(1, 2), &older(HOUR_MS, 1), None),
        (
            "not kept",
            rule_old(1, 2),
            &older(HOUR_MS, 2),
            Some(2 * DAY.ms),
        ),
    ] {
        assert_eq!(due(rule, version), expected, "{what}");
    }
    let off = LifecycleRule {
        is_enabled: false,
        ..days()
    };
    assert_eq!(due(off, &one), None);
}

fn rule_old(days: u32, newer_kept: u32) -> LifecycleRule {
    rule(None, noncurrent(days, newer_kept))
}

#[test]
fn a_filter_is_for_what_all_of_it_is_true_of() {
    let tag = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    let mut object = newest("p/a", 0);
    object.tags = vec![tag("k", "v"), tag("l", "m")];
    let fits = |filter: LifecycleFilter| {
        let rule = LifecycleRule {
            filter,
            ..rule(Some(Expiration::Days(1)), None)
        };
        due(rule, &object).is_some()
    };
    let all = || LifecycleFilter {
        form: FilterForm::And,
        prefix: Some("p/".to_owned()),
        tags: vec![tag("k", "v")],
        larger_than_bytes: Some(9),
        smaller_than_bytes: Some(11),
    };
    assert!(fits(LifecycleFilter::default()) && fits(all()));
    let prefix = Some("q".to_owned());
    assert!(!fits(LifecycleFilter { prefix, ..all() }));
    let tags = vec![tag("k", "v"), tag("l", "w")];
    assert!(!fits(LifecycleFilter { tags, ..all() }));
    let larger_than_bytes = Some(10);
    assert!(!fits(LifecycleFilter {
        larger_than_bytes,
        ..all()
    }));
    let smaller_than_bytes = Some(10);
    assert!(!fits(LifecycleFilter {
        smaller_than_bytes,
        ..all()
    }));
}

#[test]
fn uploads_end_by_the_first_rule_for_their_name() {
    let mut long = rule(None, None);
    long.abort_uploads_days = Some(7);
    let mut short = long.clone();
    short.filter.prefix = Some("tmp/".to_owned());
    short.abort_uploads_days = Some(1);
    let rules = LifecycleRules(vec![long, short]);
    let due = |name| {
        rules
            .upload_ending(name, 1, DAY)
            .map(|ending| ending.due_ms)
    };
    assert_eq!(due("tmp/a"), Some(2 * DAY.ms));
    assert_eq!(due("a"), Some(8 * DAY.ms));
    assert!(rules.ends_uploads() && !LifecycleRules::default().ends_uploads());
}

fn some_rule() -> impl Strategy<Value = LifecycleRule> {
    let expiration = prop_oneof![
        Just(None),
        (1u32..4).prop_map(|days| Some(Expiration::Days(days))),
        (0i64..9).prop_map(|day| Some(Expiration::DateMs(day * DAY.ms))),
        any::<bool>().prop_map(|is_set| Some(Expiration::LoneMarkers(is_set))),
    ];
    let old = proptest::option::of((1u32..4, 0u32..3));
    let prefix = prop_oneof![Just(None), Just(Some("a")), Just(Some("b"))];
    let sizes = (proptest::option::of(0u64..4), proptest::option::of(0u64..4));
    let has_tag = any::<bool>();
    (any::<bool>(), expiration, old, prefix, sizes, has_tag).prop_map(
        |(is_enabled, expiration, old, prefix, (larger, smaller), has_tag)| LifecycleRule {
            id: String::new(),
            is_enabled,
            filter: LifecycleFilter {
                form: FilterForm::And,
                prefix: prefix.map(str::to_owned),
                tags: if has_tag { vec![tag_kv()] } else { Vec::new() },
                larger_than_bytes: larger,
                smaller_than_bytes: smaller,
            },
            expiration,
            noncurrent: old.map(|(days, newer_kept)| Noncurrent { days, newer_kept }),
            abort_uploads_days: None,
        },
    )
}

fn tag_kv() -> (String, String) {
    ("k".to_owned(), "v".to_owned())
}

prop_compose! {
    fn some_version()(
        name in "[ab]{1,2}", is_marker in any::<bool>(), modified in 0i64..200,
        size_bytes in 0u64..4, has_tag in any::<bool>(),
        successor in proptest::option::of(0i64..200), newer_noncurrent in 0u32..4,
        lone in any::<bool>(),
    ) -> AgedVersion {
        AgedVersion {
            is_marker,
            size_bytes,
            tags: if has_tag { vec![tag_kv()] } else { Vec::new() },
            successor_ms: successor.map(|hours| hours * HOUR_MS),
            newer_noncurrent,
            is_lone: lone && successor.is_none(),
            ..newest(&name, modified * HOUR_MS)
        }
    }
}

/// Whether a rule ends a version by an hour, as the user guide tells it, step by step.
fn model(rule: &LifecycleRule, version: &AgedVersion, hour: i64) -> bool {
    let days_over = |from_ms: i64, days: u32| {
        // Midnight after midnight, until one is late enough.
        let least_ms = from_ms + i64::from(days) * DAY.ms;
        let midnight = (0..).map(|day| day * DAY.ms).find(|ms| *ms >= least_ms);
        midnight.is_some_and(|ms| ms <= hour * HOUR_MS)
    };
    let filter = &rule.filter;
    let name = version.place.name.expose();
    if !rule.is_enabled
        || filter
            .prefix
            .as_ref()
            .is_some_and(|prefix| !name.starts_with(prefix.as_str()))
        || filter.tags.iter().any(|tag| !version.tags.contains(tag))
        || filter
            .larger_than_bytes
            .is_some_and(|size| version.size_bytes <= size)
        || filter
            .smaller_than_bytes
            .is_some_and(|size| version.size_bytes >= size)
    {
        return false;
    }
    if let Some(since_ms) = version.successor_ms {
        return rule.noncurrent.is_some_and(|old| {
            version.newer_noncurrent >= old.newer_kept && days_over(since_ms, old.days)
        });
    }
    if version.is_marker && !version.is_lone {
        return false;
    }
    match rule.expiration {
        None => false,
        Some(Expiration::Days(days)) => days_over(version.modified_ms, days),
        Some(Expiration::DateMs(ms)) => ms <= hour * HOUR_MS,
        Some(Expiration::LoneMarkers(is_set)) => {
            is_set && version.is_marker && version.modified_ms <= hour * HOUR_MS
        }
    }
}

proptest! {
    #[test]
    fn what_is_due_is_what_any_rule_ends(
        rules in proptest::collection::vec(some_rule(), 0..5), version in some_version(),
        hour in 0i64..400,
    ) {
        let expected = rules.iter().any(|rule| model(rule, &version, hour));
        let rules = LifecycleRules(rules);
        let ending = rules.ending(&version, DAY);
        let is_due = ending.is_some_and(|ending| ending.due_ms <= hour * HOUR_MS);
        prop_assert_eq!(is_due, expected);
        if version.successor_ms.is_none() && !version.is_marker {
            let about = (version.place.name.expose(), version.modified_ms);
            let told = rules.expiration(about, version.size_bytes, &version.tags, DAY);
            prop_assert_eq!(told, ending);
        }
    }
}
