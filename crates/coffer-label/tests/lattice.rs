//! Labels are a lattice, and their text is faithful.

use coffer_label::fuzzing::fuzz_label;
use coffer_label::{Categories, Category, Clearance, Label, Rank};
use proptest::collection::vec;
use proptest::prelude::*;

/// Labels that often compare: few ranks and categories, now and then far ones.
fn labels() -> impl Strategy<Value = Label> {
    let categories = vec(prop_oneof![9 => 0u16..5, 1 => 0u16..1024], 0..5);
    let ranks = prop_oneof![9 => 0u8..3, 1 => 0u8..16];
    (ranks, categories).prop_map(|(rank, categories)| Label {
        rank: Rank::new(rank).expect("0 to 15"),
        categories: categories
            .into_iter()
            .map(|number| Category::new(number).expect("0 to 1023"))
            .collect(),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn dominance_is_a_partial_order(a in labels(), b in labels(), c in labels()) {
        prop_assert!(a.dominates(&a));
        if a.dominates(&b) && b.dominates(&a) {
            prop_assert_eq!(a, b);
        }
        if a.dominates(&b) && b.dominates(&c) {
            prop_assert!(a.dominates(&c));
        }
        prop_assert_eq!(a >= b, a.dominates(&b));
        prop_assert!(Label::HIGHEST.dominates(&a) && a.dominates(&Label::LOWEST));
    }

    #[test]
    fn join_is_the_least_upper_bound(a in labels(), b in labels(), c in labels()) {
        let join = a.join(&b);
        prop_assert!(join.dominates(&a) && join.dominates(&b));
        if c.dominates(&a) && c.dominates(&b) {
            prop_assert!(c.dominates(&join));
        }
    }

    #[test]
    fn meet_is_the_greatest_lower_bound(a in labels(), b in labels(), c in labels()) {
        let meet = a.meet(&b);
        prop_assert!(a.dominates(&meet) && b.dominates(&meet));
        if a.dominates(&c) && b.dominates(&c) {
            prop_assert!(meet.dominates(&c));
        }
    }

    #[test]
    fn lattice_laws_hold(a in labels(), b in labels(), c in labels()) {
        prop_assert_eq!(a.join(&b), b.join(&a));
        prop_assert_eq!(a.meet(&b), b.meet(&a));
        prop_assert_eq!(a.join(&b.join(&c)), a.join(&b).join(&c));
        prop_assert_eq!(a.meet(&b.meet(&c)), a.meet(&b).meet(&c));
        prop_assert_eq!(a.join(&a.meet(&b)), a);
        prop_assert_eq!(a.meet(&a.join(&b)), a);
        // Sets and a chain make the lattice distributive as well.
        prop_assert_eq!(a.meet(&b.join(&c)), a.meet(&b).join(&a.meet(&c)));
        prop_assert_eq!(a.dominates(&b), a.join(&b) == a);
        prop_assert_eq!(a.dominates(&b), a.meet(&b) == b);
    }

    #[test]
    fn text_comes_back(a in labels(), b in labels()) {
        prop_assert_eq!(a.to_string().parse(), Ok(a));
        let json = serde_json::to_string(&a).unwrap();
        prop_assert_eq!(&json, &format!("\"{a}\""));
        prop_assert_eq!(serde_json::from_str::<Label>(&json).unwrap(), a);

        let bits = a.categories.to_bytes();
        prop_assert_eq!(Categories::from_bytes(&bits), a.categories);
        for category in a.categories.iter().map(|category| usize::from(category.number())) {
            prop_assert!(bits[category / 8] >> (category % 8) & 1 == 1);
        }

        let clearance = Clearance::new(a.meet(&b), a.join(&b)).unwrap();
        prop_assert_eq!(clearance.to_string().parse(), Ok(clearance));
        prop_assert!(clearance.contains(&a) && clearance.contains(&b));
        prop_assert_eq!(Clearance::new(a, b).is_ok(), b.dominates(&a));
    }

    #[test]
    fn text_like_a_label_never_panics(text in "[sc0-9:.,-]{0,24}") {
        fuzz_label(text.as_bytes());
    }
}

#[test]
fn text_is_that_of_selinux() {
    for (written, canonical) in [
        ("s0", "s0"),
        ("s15:c0.c1023", "s15:c0.c1023"),
        ("s2:c1.c3,c7", "s2:c1.c3,c7"),
        ("s2:c7,c3,c2,c1", "s2:c1.c3,c7"),
        ("s1:c4.c5", "s1:c4,c5"),
        ("s1:c4,c4", "s1:c4"),
        ("s1:c63.c65", "s1:c63.c65"),
    ] {
        let label: Label = written.parse().unwrap();
        assert_eq!(label.to_string(), canonical);
    }
}

#[test]
fn what_is_not_a_label_is_refused() {
    for text in [
        "",
        "s",
        "s16",
        "s01",
        "s-1",
        "s+1",
        "S1",
        "c1",
        "s1:",
        "s1:c",
        "s1:c1024",
        "s1:c01",
        "s1:c3.c1",
        "s1:c1.c1",
        "s1:c1,",
        "s1:,c1",
        "s1:c1.c2.c3",
        "s1 ",
        " s1",
        "s1:c1:c2",
        "s1:c١",
    ] {
        assert!(text.parse::<Label>().is_err(), "{text:?}");
    }
    let long = format!("s0:{}", vec!["c1"; 4000].join(","));
    assert!(long.parse::<Label>().is_err());
    for text in ["s1-s0", "s0:c1-s5", "s0-", "-s0", "s0-s1-s2"] {
        assert!(text.parse::<Clearance>().is_err(), "{text:?}");
    }
    assert!(serde_json::from_str::<Label>("\"s99\"").is_err());
    assert!(serde_json::from_str::<Label>("3").is_err());
}

#[test]
fn the_longest_texts_can_be_read_back() {
    let every_other: Categories = (0..1024)
        .step_by(2)
        .map(|number| Category::new(number).unwrap())
        .collect();
    let label = Label {
        rank: Rank::HIGHEST,
        categories: every_other,
    };
    let lower = Label {
        rank: Rank::LOWEST,
        ..label
    };
    let clearance = Clearance::new(lower, label).unwrap();
    assert_eq!(clearance.to_string().parse(), Ok(clearance));
}
