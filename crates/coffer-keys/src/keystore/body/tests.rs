//! Bodies come back, and what is no body is refused.

use coffer_label::Category;
use coffer_seal::limits::WRAPPED_KEY_BYTES;
use coffer_seal::{BucketId, LevelId};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::limits::{BODY_MAX_BYTES, ID_BYTES};

fn labels() -> impl Strategy<Value = Label> {
    (0u8..16, vec(0u16..1024, 0..4)).prop_map(|(rank, categories)| Label {
        rank: Rank::new(rank).unwrap(),
        categories: categories
            .into_iter()
            .map(|number| Category::new(number).unwrap())
            .collect(),
    })
}

fn options() -> impl Strategy<Value = LevelOptions> {
    let flags = any::<[bool; 5]>();
    (flags, 1..=APPROVALS_MAX).prop_map(|(flags, approvals)| {
        let [
            exportable,
            audit_data,
            public,
            erase_breaks_locks,
            sealed_transfer,
        ] = flags;
        LevelOptions {
            exportable,
            approvals,
            audit_data,
            public,
            erase_breaks_locks,
            sealed_transfer,
        }
    })
}

fn generation(number: u32, fill: u8) -> Generation {
    Generation {
        number,
        wrapped: [fill; WRAPPED_KEY_BYTES],
    }
}

/// Keystores of a few levels and buckets; every bucket's level exists.
pub(crate) fn contents() -> impl Strategy<Value = Contents> {
    let history = (any::<bool>(), any::<u32>(), any::<i64>(), 1u32..);
    let level = (labels(), options(), history, any::<u8>());
    let levels = btree_map(any::<[u8; 16]>().prop_map(LevelId), level, 1..5);
    let bucket = (any::<usize>(), 1u32..1000, any::<Option<u8>>(), any::<u8>());
    let buckets = btree_map(any::<[u8; 16]>().prop_map(BucketId), bucket, 0..6);
    let held = (0u64..3, any::<[u8; 32]>(), any::<i64>(), any::<bool>());
    let held = held.prop_map(|(number, audit_hash, held_ms, is_outside)| match number {
        0 => Held::default(),
        number => Held {
            system_commits: number,
            audit_record: 2 * number,
            audit_hash,
            anchor_number: 3 * number,
            held_ms,
            is_outside,
        },
    });
    (1u32.., held, levels, buckets).prop_map(|(system_generation, held, levels, buckets)| {
        let ids: Vec<LevelId> = levels.keys().copied().collect();
        let level = |(number, (id, (label, options, history, fill)))| {
            let (imported, export_count, created_ms, generation) = history;
            let level = LevelEntry {
                id,
                name: format!("level-{number}"),
                label,
                options,
                imported,
                export_count,
                generation,
                created_ms,
            };
            (id, (level, [fill; WRAPPED_KEY_BYTES]))
        };
        let bucket =
            |(id, (level, number, older, fill)): (BucketId, (usize, u32, Option<u8>, u8))| {
                let bucket = Bucket {
                    level_id: ids[level % ids.len()],
                    catalog: [!fill; WRAPPED_KEY_BYTES],
                    current: generation(number + 1, fill),
                    older: older.map(|fill| generation(number, fill)),
                };
                (id, bucket)
            };
        Contents {
            system: generation(system_generation, 9),
            receipt: generation(1, 8),
            held,
            levels: levels.into_iter().enumerate().map(level).collect(),
            buckets: buckets.into_iter().map(bucket).collect(),
        }
    })
}

proptest! {
    #[test]
    fn bodies_come_back(contents in contents()) {
        let body = contents.to_bytes();
        prop_assert_eq!(Contents::from_bytes(&body).unwrap(), contents);
    }

    #[test]
    fn cut_or_grown_bodies_are_malformed(contents in contents(), extra in 1usize..9) {
        let mut body = contents.to_bytes().to_vec();
        for length in 0..body.len() {
            prop_assert!(Contents::from_bytes(&body[..length]).is_err());
        }
        body.resize(body.len() + extra, 0);
        prop_assert!(Contents::from_bytes(&body).is_err());
    }
}

/// As many levels and buckets as there may be, each as long as it may be.
pub(crate) fn fullest() -> Contents {
    let id = |number: usize| {
        let mut id = [0; ID_BYTES];
        id[..8].copy_from_slice(&(number as u64).to_be_bytes());
        id
    };
    let level = |number| {
        let level = LevelEntry {
            id: LevelId(id(number)),
            name: format!("{number:063}"),
            label: Label::HIGHEST,
            options: LevelOptions::default(),
            imported: true,
            export_count: u32::MAX,
            generation: u32::MAX,
            created_ms: i64::MAX,
        };
        (level.id, (level, [1; WRAPPED_KEY_BYTES]))
    };
    let bucket = |number| {
        let bucket = Bucket {
            level_id: LevelId(id(number % LEVEL_COUNT_MAX)),
            catalog: [4; WRAPPED_KEY_BYTES],
            current: generation(u32::MAX, 2),
            older: Some(generation(u32::MAX - 1, 3)),
        };
        (BucketId(id(number)), bucket)
    };
    Contents {
        system: generation(u32::MAX, 3),
        receipt: generation(u32::MAX, 4),
        held: Held {
            system_commits: u64::MAX,
            audit_record: u64::MAX,
            audit_hash: [5; 32],
            anchor_number: u64::MAX,
            held_ms: i64::MAX,
            is_outside: true,
        },
        levels: (0..LEVEL_COUNT_MAX).map(level).collect(),
        buckets: (0..BUCKET_COUNT_MAX).map(bucket).collect(),
    }
}

#[test]
fn the_fullest_body_is_the_limit() {
    let mut contents = fullest();
    let body = contents.to_bytes();
    assert_eq!(body.len(), BODY_MAX_BYTES);
    assert_eq!(Contents::from_bytes(&body).unwrap(), contents);

    let more = *contents.buckets.values().next().unwrap();
    contents.buckets.insert(BucketId([0xFF; ID_BYTES]), more);
    let error = Contents::from_bytes(&contents.to_bytes()).unwrap_err();
    assert!(matches!(
        error,
        KeysError::Malformed {
            what: "bucket count"
        }
    ));
}

#[test]
fn nonsense_is_malformed() {
    let contents = fullest();
    let nonsense = |change: &dyn Fn(&mut Contents)| {
        let mut changed = contents.clone();
        change(&mut changed);
        match Contents::from_bytes(&changed.to_bytes()).unwrap_err() {
            KeysError::Malformed { what } => what,
            other => panic!("{other}"),
        }
    };
    let first = *contents.levels.keys().next().unwrap();
    let level = |change: fn(&mut LevelEntry)| {
        move |contents: &mut Contents| change(&mut contents.levels.get_mut(&first).unwrap().0)
    };
    assert_eq!(
        nonsense(&level(|level| level.name = "a\nb".into())),
        "level name"
    );
    assert_eq!(
        nonsense(&level(|level| level.name = String::new())),
        "level name"
    );
    for name in [format!("{:063}", 5), "Secret".into(), "a b".into()] {
        let named = |contents: &mut Contents| {
            contents.levels.get_mut(&first).unwrap().0.name = name.clone();
        };
        assert_eq!(nonsense(&named), "level name", "{name}");
    }
    for approvals in [0, APPROVALS_MAX + 1] {
        let approved = |contents: &mut Contents| {
            let level = &mut contents.levels.get_mut(&first).unwrap().0;
            level.options.approvals = approvals;
        };
        assert_eq!(nonsense(&approved), "level options");
    }
    let disordered = |contents: &mut Contents| {
        let bucket = contents.buckets.values_mut().next().unwrap();
        bucket.current.number = bucket.older.unwrap().number;
    };
    assert_eq!(nonsense(&disordered), "order of generations");
    assert_eq!(nonsense(&level(|level| level.generation = 0)), "level");
    assert_eq!(
        nonsense(&level(|level| level.id = LevelId([0xFF; 16]))),
        "order of levels"
    );
    assert_eq!(
        nonsense(&|contents| drop(contents.levels.remove(&first))),
        "bucket's level"
    );

    let mut body = contents.to_bytes().to_vec();
    let name_length = BODY_FIXED_BYTES - 4 + ID_BYTES;
    assert_eq!(usize::from(body[name_length]), LEVEL_NAME_MAX_BYTES);
    body[name_length] += 1;
    let longer = Contents::from_bytes(&body).unwrap_err();
    assert!(matches!(
        longer,
        KeysError::Malformed { what: "level name" }
    ));
    body[1] = 3;
    let newer = Contents::from_bytes(&body).unwrap_err();
    assert!(matches!(
        newer,
        KeysError::NewerFormat { found: 3, known: 2 }
    ));
}

/// Options of later versions: what they promise would not be kept.
#[test]
fn levels_with_unknown_options_are_refused() {
    let body = fullest().to_bytes().to_vec();
    let name_length = BODY_FIXED_BYTES - 4 + ID_BYTES;
    let options = name_length + 1 + LEVEL_NAME_MAX_BYTES + 1 + CATEGORIES_BYTES;
    assert_eq!(body[options], EXPORTABLE | IMPORTED);
    for unknown in [64, 128] {
        let mut later = body.clone();
        later[options] |= unknown;
        let refused = Contents::from_bytes(&later).unwrap_err();
        let what = "level options";
        assert!(matches!(refused, KeysError::Malformed { what: told } if told == what));
    }
}
