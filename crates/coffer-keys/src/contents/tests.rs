//! Bodies come back, and what is no body is refused.

use coffer_label::Category;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::limits::BODY_MAX_BYTES;

fn labels() -> impl Strategy<Value = Label> {
    (0u8..16, vec(0u16..1024, 0..4)).prop_map(|(rank, categories)| Label {
        rank: Rank::new(rank).unwrap(),
        categories: categories
            .into_iter()
            .map(|number| Category::new(number).unwrap())
            .collect(),
    })
}

/// Keystores of a few levels and buckets; every bucket's level exists.
pub(crate) fn contents() -> impl Strategy<Value = Contents> {
    let level = (labels(), 1u32.., any::<i64>(), any::<u8>());
    let levels = btree_map(any::<Id>(), level, 1..5);
    let buckets = btree_map(any::<Id>(), (any::<usize>(), 1u32.., any::<u8>()), 0..6);
    (1u32.., levels, buckets).prop_map(|(system_generation, levels, buckets)| {
        let ids: Vec<Id> = levels.keys().copied().collect();
        let level = |(number, (id, (label, generation, created_ms, fill)))| {
            let name = format!("level {number} – ü");
            let level = LevelEntry {
                id,
                name,
                label,
                generation,
                created_ms,
            };
            (id, (level, [fill; WRAPPED_KEY_BYTES]))
        };
        let bucket = |(id, (level, generation, fill)): (Id, (usize, u32, u8))| {
            let bucket = BucketEntry {
                id,
                level_id: ids[level % ids.len()],
                generation,
            };
            (id, (bucket, [fill; WRAPPED_KEY_BYTES]))
        };
        Contents {
            system_generation,
            system_key: [9; WRAPPED_KEY_BYTES],
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
            id: id(number),
            name: format!("{number:064}"),
            label: Label::HIGHEST,
            generation: u32::MAX,
            created_ms: i64::MAX,
        };
        (level.id, (level, [1; WRAPPED_KEY_BYTES]))
    };
    let bucket = |number| {
        let bucket = BucketEntry {
            id: id(number),
            level_id: id(number % LEVEL_COUNT_MAX),
            generation: u32::MAX,
        };
        (bucket.id, (bucket, [2; WRAPPED_KEY_BYTES]))
    };
    Contents {
        system_generation: u32::MAX,
        system_key: [3; WRAPPED_KEY_BYTES],
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

    let (mut more, wrapped) = contents.buckets.values().next().unwrap().to_owned();
    more.id = [0xFF; ID_BYTES];
    contents.buckets.insert(more.id, (more, wrapped));
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
    assert_eq!(
        nonsense(&level(|level| level.name = format!("{:064}", 5))),
        "level name"
    );
    assert_eq!(nonsense(&level(|level| level.generation = 0)), "level");
    assert_eq!(
        nonsense(&level(|level| level.id = [0xFF; 16])),
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
    body[1] = 2;
    let newer = Contents::from_bytes(&body).unwrap_err();
    assert!(matches!(
        newer,
        KeysError::NewerFormat { found: 2, known: 1 }
    ));
}
