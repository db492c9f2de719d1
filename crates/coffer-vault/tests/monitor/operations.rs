//! What is tried, and how it can end.

use std::collections::BTreeSet;

use coffer_vault::{AdministrationError, SharingError, VaultError};
use proptest::prelude::*;

use crate::lists;
use crate::policies::{self, Statement};

/// How many of each there are in a world, so that operations meet.
pub(crate) const LEVELS: usize = 5;
pub(crate) const SUBJECTS: usize = 4;
pub(crate) const BUCKETS: usize = 5;
pub(crate) const OBJECTS: usize = 3;

/// One thing that a subject asks for, all by number.
#[derive(Clone, Debug)]
pub(crate) struct Operation {
    pub(crate) subject: usize,
    pub(crate) wish: Wish,
}

#[derive(Clone, Debug)]
pub(crate) enum Wish {
    CreateBucket {
        bucket: usize,
        level: usize,
    },
    DeleteBucket {
        bucket: usize,
    },
    HeadBucket {
        bucket: usize,
    },
    ListBuckets,
    Put {
        bucket: usize,
        object: usize,
    },
    Get {
        bucket: usize,
        object: usize,
    },
    Head {
        bucket: usize,
        object: usize,
    },
    Delete {
        bucket: usize,
        object: usize,
    },
    List {
        bucket: usize,
    },
    Copy {
        from: usize,
        object: usize,
        to: usize,
        name: usize,
    },
    SetTags {
        bucket: usize,
        object: usize,
    },
    Upload {
        bucket: usize,
    },
    ListUploads {
        bucket: usize,
    },
    /// Begins a put whose bytes come later, unless one is under way.
    BeginPut {
        bucket: usize,
        object: usize,
    },
    /// Sends the bytes of the put that is under way, if one is, of any subject.
    EndPut,
    /// Sets a policy; without statements, removes it.
    SetPolicy {
        bucket: usize,
        statements: Vec<Statement>,
    },
    /// Has lists count, with these who may list the bucket by its own; without, has none count.
    SetLists {
        bucket: usize,
        readers: Option<BTreeSet<usize>>,
    },
    ProvideBucket {
        bucket: usize,
        level: usize,
    },
    WithdrawBucket {
        bucket: usize,
    },
    CreateLevel,
    Grant {
        whom: usize,
        bucket: usize,
        rights: BTreeSet<usize>,
    },
    Revoke {
        whom: usize,
        bucket: usize,
    },
    AllBuckets {
        whom: usize,
    },
    Roles {
        whom: usize,
        roles: BTreeSet<usize>,
    },
    Clearance {
        whom: usize,
        low: usize,
        high: usize,
    },
    Switch {
        whom: usize,
        disabled: bool,
    },
    Trust {
        whom: usize,
        trusted: bool,
    },
    Settle {
        whom: usize,
    },
}

/// How it ends, as the one who asked sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    Content(String),
    Buckets(Vec<usize>),
    Objects(Vec<usize>),
    Denied,
    ReadAbove,
    Itself,
    NoSuchAccessKey,
    NoSuchBucket,
    NoSuchObject,
    NoSuchLevel,
    OwnedByYou,
    Exists,
    NotEmpty,
    Invalid,
    Changed,
}

/// What a refusal is called here.
pub(crate) fn refusal(error: VaultError) -> Outcome {
    match error {
        VaultError::AccessDenied
        | VaultError::Administration(AdministrationError::RoleMissing { .. }) => Outcome::Denied,
        VaultError::ReadAbove { .. } => Outcome::ReadAbove,
        VaultError::SettlesItself => Outcome::Itself,
        VaultError::NoSuchBucket => Outcome::NoSuchBucket,
        VaultError::NoSuchObject => Outcome::NoSuchObject,
        VaultError::NoSuchLevel => Outcome::NoSuchLevel,
        VaultError::BucketAlreadyOwnedByYou => Outcome::OwnedByYou,
        VaultError::BucketAlreadyExists => Outcome::Exists,
        VaultError::BucketNotEmpty => Outcome::NotEmpty,
        VaultError::Invalid { .. } => Outcome::Invalid,
        VaultError::Administration(AdministrationError::Sharing(SharingError::Changed)) => {
            Outcome::Changed
        }
        other => panic!("{other}"),
    }
}

pub(crate) fn operation() -> impl Strategy<Value = Operation> {
    let asked = |subject, wish| Operation { subject, wish };
    let all = || 0..SUBJECTS;
    // Subject 0 has every role at the start, so that changes come about.
    let subject = prop_oneof![3 => Just(0), 1 => all()];
    prop_oneof![
        4 => (all(), on_data()).prop_map(move |(subject, wish)| asked(subject, wish)),
        1 => (all(), policies::wish()).prop_map(move |(subject, wish)| asked(subject, wish)),
        1 => (all(), lists::wish()).prop_map(move |(subject, wish)| asked(subject, wish)),
        2 => (all(), on_buckets()).prop_map(move |(subject, wish)| asked(subject, wish)),
        1 => (subject, on_subjects()).prop_map(move |(subject, wish)| asked(subject, wish)),
    ]
}

fn on_data() -> impl Strategy<Value = Wish> {
    let place = || (0..BUCKETS, 0..OBJECTS);
    prop_oneof![
        4 => place().prop_map(|(bucket, object)| Wish::Put { bucket, object }),
        4 => place().prop_map(|(bucket, object)| Wish::Get { bucket, object }),
        1 => place().prop_map(|(bucket, object)| Wish::Head { bucket, object }),
        2 => place().prop_map(|(bucket, object)| Wish::Delete { bucket, object }),
        2 => (0..BUCKETS).prop_map(|bucket| Wish::List { bucket }),
        4 => (place(), place()).prop_map(|((from, object), (to, name))| Wish::Copy {
            from,
            object,
            to,
            name
        }),
        1 => place().prop_map(|(bucket, object)| Wish::SetTags { bucket, object }),
        1 => (0..BUCKETS).prop_map(|bucket| Wish::Upload { bucket }),
        1 => (0..BUCKETS).prop_map(|bucket| Wish::ListUploads { bucket }),
        2 => place().prop_map(|(bucket, object)| Wish::BeginPut { bucket, object }),
        2 => Just(Wish::EndPut),
    ]
}

fn on_buckets() -> impl Strategy<Value = Wish> {
    let made = || (0..BUCKETS, 0..LEVELS);
    prop_oneof![
        3 => made().prop_map(|(bucket, level)| Wish::CreateBucket { bucket, level }),
        1 => (0..BUCKETS).prop_map(|bucket| Wish::DeleteBucket { bucket }),
        2 => (0..BUCKETS).prop_map(|bucket| Wish::HeadBucket { bucket }),
        2 => Just(Wish::ListBuckets),
        1 => made().prop_map(|(bucket, level)| Wish::ProvideBucket { bucket, level }),
        1 => (0..BUCKETS).prop_map(|bucket| Wish::WithdrawBucket { bucket }),
        1 => Just(Wish::CreateLevel),
    ]
}

fn on_subjects() -> impl Strategy<Value = Wish> {
    let some = || prop::collection::btree_set(0..4usize, 0..4);
    let whom = || 1..SUBJECTS;
    prop_oneof![
        3 => (whom(), 0..BUCKETS, some())
            .prop_map(|(whom, bucket, rights)| Wish::Grant { whom, bucket, rights }),
        1 => (whom(), 0..BUCKETS).prop_map(|(whom, bucket)| Wish::Revoke { whom, bucket }),
        1 => whom().prop_map(|whom| Wish::AllBuckets { whom }),
        1 => (whom(), some()).prop_map(|(whom, roles)| Wish::Roles { whom, roles }),
        1 => whom().prop_map(|whom| Wish::Roles { whom, roles: [0].into() }),
        2 => (whom(), 0..LEVELS, 0..LEVELS)
            .prop_map(|(whom, low, high)| Wish::Clearance { whom, low, high }),
        1 => (whom(), any::<bool>())
            .prop_map(|(whom, disabled)| Wish::Switch { whom, disabled }),
        1 => (whom(), any::<bool>()).prop_map(|(whom, trusted)| Wish::Trust { whom, trusted }),
        2 => (0..SUBJECTS).prop_map(|whom| Wish::Settle { whom }),
    ]
}
