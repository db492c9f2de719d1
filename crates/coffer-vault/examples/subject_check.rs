//! How long the monitor takes to decide: `cargo run --release -p coffer-vault --example
//! subject_check`. What is asked is more than the check alone: the bucket's description is made
//! too. The limit is a microsecond.

#![allow(clippy::unwrap_used)] // a failure of an example may look like one

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use coffer_label::Label;
use coffer_vault::{
    Actor, BucketName, NewLevel, NewSubject, Rights, Role, Subject, Vault, VaultOptions,
};

const BUCKETS: usize = 200;
const ROUNDS: usize = 2_000;
const BURSTS: usize = 101;
const OWNER: Actor = Actor::Local { uid: 0 };

fn name(number: usize) -> BucketName {
    BucketName::new(&format!("bucket-number-{number:04}")).unwrap()
}

async fn subject(vault: &Vault, name: &str, grants: Option<usize>) -> Arc<Subject> {
    let grants = grants.map(|count| (0..count).map(|n| (self::name(n), Rights::all())).collect());
    let new = NewSubject {
        name: name.to_owned(),
        clearance: "default..secret".to_owned(),
        roles: [Role::DataUser].into_iter().collect(),
        is_trusted: false,
        expires_ms: Some(i64::MAX),
        grants,
    };
    let (made, _) = vault.create_subject(&OWNER, new).await.unwrap();
    vault.subject(&made.keys[0].id).unwrap()
}

/// The median over bursts, in nanoseconds a call.
async fn median(mut call: impl AsyncFnMut(usize)) -> f64 {
    let mut bursts = Vec::new();
    for _ in 0..BURSTS {
        let began = Instant::now();
        for round in 0..ROUNDS {
            call(round).await;
        }
        bursts.push(began.elapsed().as_nanos() as f64 / ROUNDS as f64);
    }
    bursts.sort_by(f64::total_cmp);
    bursts[BURSTS / 2]
}

#[tokio::main]
async fn main() {
    let data = tempfile::tempdir().unwrap();
    let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
    let label: Label = "s2:c1.c3".parse().unwrap();
    for (level, label) in [("secret", label), ("top", Label::HIGHEST)] {
        let new = NewLevel {
            name: level.to_owned(),
            label,
            options: Default::default(),
            may_share_label: true,
        };
        vault.create_level(&OWNER, new).await.unwrap();
    }
    for number in 0..BUCKETS {
        let made = vault
            .provide_bucket(&OWNER, &name(number), Some("secret"))
            .await;
        made.unwrap();
    }
    let hidden = name(9_999);
    vault
        .provide_bucket(&OWNER, &hidden, Some("top"))
        .await
        .unwrap();
    let free = subject(&vault, "free", None).await;
    let narrowed = subject(&vault, "narrowed", Some(100)).await;
    let names: Vec<BucketName> = (0..100).map(name).collect();

    let found = median(async |round| {
        black_box(vault.subject(free.access_key_id().unwrap())).unwrap();
        black_box(round);
    });
    println!("subject of an access key      {:6.0} ns", found.await);
    for (title, subject) in [("every bucket", &free), ("100 buckets granted", &narrowed)] {
        let decided = median(async |round| {
            let decided = vault.bucket(subject, &names[round % names.len()]).await;
            black_box(decided).unwrap();
        });
        println!("check, {title:22} {:6.0} ns", decided.await);
    }
    for (title, name) in [
        ("hidden bucket", &hidden),
        ("no such bucket", &self::name(8_888)),
    ] {
        let refused = median(async |_| {
            black_box(vault.bucket(&free, name).await).unwrap_err();
        });
        println!("check, {title:22} {:6.0} ns", refused.await);
    }
    vault.close().await;
}
