//! What a world begins with.

use std::collections::{BTreeMap, BTreeSet};

use coffer_vault::{NewSubject, Role, Vault};
use proptest::prelude::*;

use crate::long_put::put;
use crate::model::{ADMINISTRATOR, AUDITOR, CUSTODIAN, DATA_USER};
use crate::operations::{LEVELS, SUBJECTS};
use crate::world::{OWNER, bucket_name, level_name, vault_label};

/// Rank and categories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Label {
    pub(crate) rank: u8,
    pub(crate) categories: BTreeSet<u16>,
}

impl Label {
    pub(crate) fn dominates(&self, other: &Self) -> bool {
        self.rank >= other.rank && self.categories.is_superset(&other.categories)
    }
}

/// What a world begins with.
#[derive(Clone, Debug)]
pub(crate) struct Start {
    pub(crate) levels: Vec<Label>,
    pub(crate) subjects: Vec<Subject>,
}

#[derive(Clone, Debug)]
pub(crate) struct Subject {
    pub(crate) low: Label,
    pub(crate) high: Label,
    pub(crate) roles: BTreeSet<usize>,
    /// Rights by bucket.
    pub(crate) grants: Option<BTreeMap<usize, BTreeSet<usize>>>,
    pub(crate) disabled: bool,
    pub(crate) trusted: bool,
    /// Labels at which it may have read what it could carry lower, since it was settled.
    pub(crate) read: Vec<Label>,
    /// The levels that it was told something of, also by what it read, since it was settled.
    pub(crate) memory: BTreeSet<usize>,
    /// How often its requests under way were cut off.
    pub(crate) cuts: usize,
}

fn label() -> impl Strategy<Value = Label> {
    let categories = prop::collection::btree_set(prop_oneof![Just(0u16), Just(63), Just(64)], 0..3);
    (0..3u8, categories).prop_map(|(rank, categories)| Label { rank, categories })
}

pub(crate) fn start() -> impl Strategy<Value = Start> {
    let roles = prop_oneof![
        3 => Just([DATA_USER].into()),
        2 => Just([DATA_USER, ADMINISTRATOR, CUSTODIAN, AUDITOR].into()),
        1 => prop::collection::btree_set(0..4usize, 0..3),
    ];
    let low = prop_oneof![
        Just(Label {
            rank: 0,
            categories: BTreeSet::new()
        }),
        label(),
    ];
    let subject = (low, label(), roles).prop_map(|(low, other, roles)| {
        let categories = low.categories.union(&other.categories).copied().collect();
        let rank = low.rank.max(other.rank);
        Subject {
            high: Label { rank, categories },
            low,
            roles,
            grants: None,
            disabled: false,
            trusted: false,
            read: Vec::new(),
            memory: BTreeSet::new(),
            cuts: 0,
        }
    });
    let levels = prop::collection::vec(label(), LEVELS - 1);
    let subjects = prop::collection::vec(subject, SUBJECTS);
    (levels, subjects).prop_map(|(levels, mut subjects)| {
        subjects[0].roles = [DATA_USER, ADMINISTRATOR, CUSTODIAN, AUDITOR].into();
        Start { levels, subjects }
    })
}

/// What object 0 of each bucket holds at the start; bucket and level have the same number.
pub(crate) fn first_content(bucket: usize) -> String {
    format!("{bucket}/0 from the start knowing []")
}

/// Makes a bucket in each level and puts an object into it.
pub(crate) async fn fill(vault: &Vault, start: &Start) {
    let labels = start.levels.iter().map(vault_label);
    let labels = [coffer_label::Label::LOWEST].into_iter().chain(labels);
    for (number, label) in labels.enumerate() {
        let level = level_name(number);
        let name = bucket_name(number);
        vault
            .provide_bucket(&OWNER, &name, Some(&level))
            .await
            .unwrap();
        let new = NewSubject {
            name: format!("filler-{number}"),
            clearance: label.to_string(),
            roles: [Role::DataUser].into_iter().collect(),
            is_trusted: false,
            expires_ms: None,
            grants: None,
        };
        let (filler, _) = vault.create_subject(&OWNER, new).await.unwrap();
        let first = put(0, first_content(number));
        vault
            .put_object(&filler.subject, &name, first)
            .await
            .unwrap();
    }
}
