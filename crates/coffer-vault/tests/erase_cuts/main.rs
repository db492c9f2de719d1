//! What an erase must survive on a disk that fails, over all files that it writes: the keystore,
//! its root key, `system.db` with its log, the audit log, and the folders that go.
//!
//! An erase on a real folder is recorded, write by write. Then the power is cut at each of its
//! steps, in many ways, and a restart must find that the erase has not begun or is complete; that
//! it is complete, if it had been acknowledged; and that nothing which is left opens what was
//! erased.

#![allow(clippy::unwrap_used)] // a failed expectation of a test is its failure

mod tape;

mod calls;

mod scene;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use coffer_durable::simulated::{DiskState, NameOrder, Random};
use coffer_keys::ErasedWhat;
use futures::{StreamExt, stream};
use tempfile::TempDir;

use crate::scene::{
    Found, holds_the_old_root_key, look, make, start, start_and_erase, start_and_fail_to_erase,
    start_in_vain,
};
use crate::tape::{Recording, disk_of, record};

/// What is erased, and how many ways a power cut at each step goes.
const ERASES: [(ErasedWhat, u64); 2] = [(ErasedWhat::Level, 20), (ErasedWhat::Bucket, 8)];

/// How many restarts are looked at side by side.
const AT_ONCE: usize = 4;

/// A disk as a power cut left it.
struct Cut {
    disk: DiskState,
    /// Whether the erase had been acknowledged.
    is_told: bool,
    told: String,
}

impl Recording {
    /// The disk when the power goes within the step `at`, in one of many ways.
    fn cut(&self, at: usize, seed: u64) -> Cut {
        let mut random = Random::new(seed);
        let mut disk = self.before.clone();
        for step in &self.steps[..at] {
            disk.apply(step);
        }
        if let Some(step) = self.steps.get(at) {
            disk.begin(step);
        }
        disk.cut_power(&mut random, NameOrder::Kept);
        Cut {
            disk,
            is_told: self.told.is_some_and(|told| at >= told),
            told: format!("cut at {at} of {}, seed {seed}", self.steps.len()),
        }
    }

    /// All cuts that leave different disks.
    fn cuts(&self, seed_count: u64) -> Vec<Cut> {
        let mut different = HashMap::new();
        for at in 0..=self.steps.len() {
            for seed in 0..seed_count {
                let cut = self.cut(at, seed * 1_000 + at as u64);
                different
                    .entry((cut.disk.digest(), cut.is_told))
                    .or_insert(cut);
            }
        }
        different.into_values().collect()
    }
}

impl Cut {
    /// What a restart finds.
    async fn restart(&self, what: ErasedWhat, before: &Path) -> Found {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        self.disk.place(&data).unwrap();
        if self.is_told {
            assert!(!holds_the_old_root_key(before, &data), "{}", self.told);
        }
        let before = before.to_owned();
        let looking = tokio::spawn(async move { look(&data, what, &before).await });
        let found = looking.await;
        let found = found.unwrap_or_else(|error| panic!("{}: {error}", self.told));
        assert!(found == Found::Complete || !self.is_told, "{}", self.told);
        found
    }
}

/// Restarts after each cut; how often each outcome was found.
async fn restart_all(cuts: Vec<Cut>, what: ErasedWhat, before: &Path) -> [usize; 2] {
    let mut founds = stream::iter(cuts)
        .map(|cut| {
            let before = before.to_owned();
            tokio::spawn(async move { cut.restart(what, &before).await })
        })
        .buffer_unordered(AT_ONCE);
    let mut counts = [0, 0];
    while let Some(found) = founds.next().await {
        counts[found.unwrap() as usize] += 1;
    }
    counts
}

async fn base() -> Arc<TempDir> {
    let base = tempfile::tempdir().unwrap();
    make(&base.path().join("data")).await;
    Arc::new(base)
}

/// A folder of its own with the same in it.
fn copy_of(base: &Path) -> TempDir {
    let copy = tempfile::tempdir().unwrap();
    let (disk, _) = disk_of(&base.join("data"));
    disk.place(&copy.path().join("data")).unwrap();
    copy
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_at_any_moment_leaves_an_erase_not_begun_or_complete() {
    let base = base().await;
    let before = base.path().join("data");
    for (what, seed_count) in ERASES {
        let folder = copy_of(base.path());
        let data = folder.path().join("data");
        let recording = record(&data, None, start_and_erase(&data, what)).await;
        assert!(recording.told.is_some(), "it was acknowledged");
        nothing_was_missed(&recording, &data);

        let cuts = recording.cuts(seed_count);
        let [not_begun, complete] = restart_all(cuts, what, &before).await;
        assert!(not_begun >= 20 && complete >= 60, "{not_begun}, {complete}");
    }
}

/// The tape leads to what is in the folder.
fn nothing_was_missed(recording: &Recording, data: &Path) {
    let mut disk = recording.before.clone();
    for step in &recording.steps {
        disk.apply(step);
    }
    disk.sync_all();
    assert_eq!(disk.digest(), disk_of(data).0.digest());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_while_an_erase_is_completed_leaves_it_completable() {
    let base = base().await;
    let before = base.path().join("data");
    let what = ErasedWhat::Level;
    let folder = copy_of(base.path());
    let data = folder.path().join("data");
    let first = record(&data, None, start_and_erase(&data, what)).await;
    let (mut random, mut cuts) = (Random::new(7), Vec::new());
    for at in (0..first.steps.len()).step_by(2) {
        let cut = first.cut(at, at as u64);
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        cut.disk.place(&data).unwrap();
        let second = record(&data, None, start(&data)).await;
        for seed in 0..8 {
            let mut again = second.cut(random.below(second.steps.len()), seed);
            again.is_told = cut.is_told;
            again.told = format!("{}, then {}", cut.told, again.told);
            cuts.push(again);
        }
    }
    let [not_begun, complete] = restart_all(cuts, what, &before).await;
    assert!(not_begun >= 10 && complete >= 40, "{not_begun}, {complete}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_at_any_write_or_sync_leaves_an_erase_not_begun_or_complete() {
    let base = base().await;
    let before = base.path().join("data");
    let what = ErasedWhat::Level;
    let (mut cuts, mut told_count) = (Vec::new(), 0);
    for at in 0.. {
        let folder = copy_of(base.path());
        let data = folder.path().join("data");
        let recording = record(&data, Some(at), start_and_erase(&data, what)).await;
        if !recording.has_refused {
            assert!(at > 40, "{at}");
            break;
        }
        told_count += usize::from(recording.told.is_some());
        let mut random = Random::new(at as u64);
        for seed in 0..6 {
            // At the end, or somewhere after what was refused.
            let cut_at = match seed {
                0..3 => recording.steps.len(),
                _ => at + random.below(recording.steps.len() + 1 - at.min(recording.steps.len())),
            };
            let mut cut = recording.cut(cut_at.min(recording.steps.len()), seed);
            cut.told = format!("refused {at}, {}", cut.told);
            cuts.push(cut);
        }
    }
    assert!(told_count > 20, "most refusals are made good: {told_count}");
    let [not_begun, complete] = restart_all(cuts, what, &before).await;
    assert!(not_begun >= 10 && complete >= 40, "{not_begun}, {complete}");
}

/// It was told that the keys can't be used any more: they can't, and it is completed by who asks
/// for it again, or by the next start.
#[tokio::test(flavor = "multi_thread")]
async fn an_erase_whose_keystore_takes_nothing_is_completed_when_it_does() {
    let base = base().await;
    let before = base.path().join("data");
    for what in [ErasedWhat::Level, ErasedWhat::Bucket] {
        for is_asked_again in [false, true] {
            let folder = copy_of(base.path());
            let data = folder.path().join("data");
            record(
                &data,
                None,
                start_and_fail_to_erase(&data, what, is_asked_again),
            )
            .await;
            if !is_asked_again {
                record(&data, None, start_in_vain(&data, what)).await;
            }
            let found = look(&data, what, &before).await;
            assert_eq!(found, Found::Complete, "{what:?}, {is_asked_again}");
        }
    }
}
