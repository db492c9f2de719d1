//! What is removed from a store that may be full, and what is not.

use std::collections::BTreeSet;
use std::os::unix::fs::DirBuilderExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use coffer_durable::now_ms;
use coffer_keys::SourceSecrets;
use coffer_replica::CopyRecord;

use super::*;
use crate::access::{BucketName, Subject};
use crate::copies::{Carrier, Entry, Progress};
use crate::replica::{Restore, RestoreEvent, restore};
use crate::rotation::tests::{bucket, open, put};
use crate::vault::Vault;

/// A server whose copy is kept up by hand.
struct Scene {
    root: tempfile::TempDir,
    vault: Vault,
    subject: Arc<Subject>,
    round: Round,
    writer: CopyWriter,
}

fn empty() -> BucketName {
    BucketName::new("empty").unwrap()
}

fn files_in(folder: &Path) -> BTreeSet<PathBuf> {
    let mut files = BTreeSet::new();
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(files_in(&path));
        } else {
            files.insert(path);
        }
    }
    files
}

impl Scene {
    /// The copy keeps the newest state only, and has all: two objects, and a bucket without any.
    async fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let (vault, subject) = open(&root.path().join("data")).await;
        let url = format!("file://{}", root.path().join("copy").display());
        let store = Place::parse(&url).unwrap().open(true).unwrap();
        let inner = &vault.inner;
        let record = CopyRecord::new(inner.keystore.id());
        let copy = Copy::new(store, record.copy, &inner.keystore.system_key());
        let writer = CopyWriter::begin(copy, &record).await.unwrap();
        let registry = &inner.copies.registry;
        let entry = Entry {
            cursor: registry.cursor_for("far").unwrap(),
            name: "far".to_owned(),
            url,
            id: record.copy,
            made_ms: now_ms(),
            removed_ms: None,
            newest_ms: None,
            known: Some(writer.known()),
            as_of_ms: 0,
            keep_ms: 0,
            rested: None,
            keystore: None,
            sync: None,
            fenced_off: None,
        };
        let added = entry.clone();
        registry.change(|entries| entries.push(added)).unwrap();
        inner.open_buckets.taps.follow(entry.cursor);
        for name in [bucket(), empty()] {
            let made = vault.create_bucket(&subject, &name, None).await;
            made.unwrap();
        }
        for number in 0..2 {
            put(&vault, &subject, number).await.unwrap();
        }
        let carrier = Arc::new(Carrier::new(entry.id));
        let progress = Arc::new(Progress::new());
        let (readers, findings) = (Arc::default(), Arc::default());
        let round = Round::new(inner, entry, progress, readers, findings, carrier, None);
        let mut scene = Self {
            root,
            round,
            writer,
            subject,
            vault,
        };
        scene.run().await;
        scene.give_room().await;
        assert_eq!(scene.copied("blobs").len(), 2);
        scene
    }

    fn id(&self, name: &BucketName) -> BucketId {
        self.vault.inner.system.bucket(name).unwrap().id
    }

    /// Puts an object, in place of what it was before, whose blob is gone afterwards.
    async fn put(&self, number: usize, blob_count: usize) {
        put(&self.vault, &self.subject, number).await.unwrap();
        let id = self.id(&bucket());
        let blobs = self.vault.inner.folder.bucket(id).join("blobs");
        for _ in 0..1_000 {
            if files_in(&blobs).len() == blob_count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?}", files_in(&blobs));
    }

    async fn run(&mut self) {
        let done = self.round.run(&mut self.writer, now_ms()).await;
        done.unwrap();
    }

    async fn give_room(&mut self) {
        let given = self.round.give_room(&mut self.writer).await;
        given.unwrap();
    }

    /// All that a restore tells.
    async fn restored(&self) -> Vec<RestoreEvent> {
        let (from, data) = (self.root.path().join("data"), self.root.path().join("new"));
        fs::DirBuilder::new().mode(0o700).create(&data).unwrap();
        for name in ["keystore", "root.key"] {
            fs::copy(from.join(name), data.join(name)).unwrap();
        }
        let asked = Restore {
            from: Place::parse(&self.round.entry.url).unwrap(),
            data,
            source: None,
            secrets: SourceSecrets::default(),
            known: Some(self.writer.known()),
            at_ms: None,
            at_head: None,
            buckets: Vec::new(),
            identity: None,
        };
        let mut told = Vec::new();
        restore(asked, |event| told.push(event)).await.unwrap();
        told
    }

    fn copied(&self, kind: &str) -> BTreeSet<PathBuf> {
        files_in(&self.root.path().join("copy").join(kind))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_newest_head_names_stays_and_what_none_names_goes() {
    let mut scene = Scene::new().await;
    let (named, pieces) = (scene.copied("blobs"), scene.copied("files"));
    // A round that fails when the blob of another object is there, and a segment, and a piece.
    scene.put(2, 3).await;
    let row = scene.vault.inner.system.bucket(&bucket()).unwrap();
    let done = scene.round.put_bucket(&mut scene.writer, &row).await;
    done.unwrap();
    scene.writer.put_piece(vec![1; 10]).await.unwrap();
    let segments = scene.copied("buckets");
    scene.give_room().await;
    assert_eq!(scene.copied("blobs").len(), 3, "it is to be named");
    assert_eq!(scene.copied("buckets"), segments, "so are these");
    assert_eq!(scene.copied("files"), pieces);
    // What came since the head and is replaced here goes; what the head names stays.
    scene.put(2, 3).await;
    scene.put(0, 3).await;
    scene.round.remove_new(&scene.writer).await;
    assert_eq!(scene.copied("blobs"), named);
    scene.give_room().await;
    assert_eq!(scene.copied("blobs"), named, "it is of no object here");
    scene.run().await;
    assert_eq!(scene.copied("blobs").len(), 4);
    scene.give_room().await;
    assert_eq!(scene.copied("blobs").len(), 3);
    let scratch = scene.root.path().join("read");
    let catalog = scene.round.catalog_in_head(&scene.writer, row.id, &scratch);
    let catalog = catalog.await.unwrap().unwrap();
    let names = catalog.blobs_after(None).await.unwrap().into_iter();
    let lengths = names.map(|(id, _)| scene.writer.copy().blob_length(row.id, id));
    let lengths = futures::future::join_all(lengths).await;
    assert_eq!(lengths.len(), 3);
    assert!(lengths.into_iter().all(|length| length.unwrap().is_some()));
    catalog.close().await;
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_that_a_head_may_name_of_which_no_answer_came() {
    let mut scene = Scene::new().await;
    scene.put(0, 2).await;
    scene.run().await;
    scene.writer.put_piece(vec![1; 10]).await.unwrap();
    let blobs = scene.copied("blobs");
    assert_eq!(blobs.len(), 3);
    scene.round.doubt = Some(Instant::now());
    scene.give_room().await;
    assert_eq!(scene.copied("blobs"), blobs);
    let pieces = scene.copied("files");
    scene.round.doubt = None;
    scene.give_room().await;
    assert_eq!(scene.copied("blobs").len(), 2);
    assert_eq!(scene.copied("files").len() + 1, pieces.len());
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_is_gone_makes_room_before_a_round_succeeds() {
    let mut scene = Scene::new().await;
    let folder = format!("buckets/{}", scene.id(&empty()));
    assert!(!scene.copied(&folder).is_empty());
    let number = scene.writer.head().number;
    let deleted = scene.vault.delete_bucket(&scene.subject, &empty()).await;
    deleted.unwrap();
    scene.give_room().await;
    assert!(scene.copied(&folder).is_empty());
    assert_eq!(scene.writer.head().number, number + 1);
    assert_eq!(scene.copied("blobs").len(), 2);
    // What tells of buckets is older than that head: what is restored lacks nothing for that.
    let told = scene.restored().await;
    let bucket = empty().to_string();
    assert!(told.contains(&RestoreEvent::Removed { bucket }), "{told:?}");
    let is_lacking = |event: &RestoreEvent| matches!(event, RestoreEvent::NotThere { .. });
    assert!(!told.iter().any(is_lacking), "{told:?}");
    // It goes on from there.
    scene.put(3, 3).await;
    scene.run().await;
    scene.give_room().await;
    assert_eq!(scene.copied("blobs").len(), 3);
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_goes_while_a_head_is_there_of_which_no_answer_came() {
    let mut scene = Scene::new().await;
    scene.put(0, 2).await;
    scene.run().await;
    scene.writer.put_piece(vec![1; 10]).await.unwrap();
    let newest = scene.copied("heads").pop_last().unwrap();
    let name = newest.file_name().unwrap().to_str().unwrap();
    let number = name.parse::<u64>().unwrap() + 1;
    let width = name.len();
    fs::write(newest.with_file_name(format!("{number:0width$}")), "late").unwrap();
    let (blobs, pieces) = (scene.copied("blobs"), scene.copied("files"));
    scene.give_room().await;
    assert_eq!(
        (scene.copied("blobs"), scene.copied("files")),
        (blobs, pieces)
    );
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_head_that_repeats_another_keeps_what_that_names() {
    let mut scene = Scene::new().await;
    // It is noted as gone behind the head that names it.
    scene.put(0, 2).await;
    scene.round.sweep(&mut scene.writer).await.unwrap();
    assert!(!scene.round.gone.as_ref().unwrap().is_empty());
    let named = scene.copied("blobs");
    let deleted = scene.vault.delete_bucket(&scene.subject, &empty()).await;
    deleted.unwrap();
    let number = scene.writer.head().number;
    scene.give_room().await;
    assert_eq!(scene.writer.head().number, number + 1);
    assert_eq!(scene.copied("blobs"), named);
    scene.vault.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_grew_stays_known_where_no_pages_can_be_taken() {
    let mut scene = Scene::new().await;
    let (id, cursor) = (scene.id(&bucket()), scene.round.entry.cursor);
    let row = scene.vault.inner.system.bucket(&bucket()).unwrap();
    // A segment came that no head has, and the round that put it broke off before the next.
    scene.put(2, 3).await;
    let put = scene.round.put_bucket(&mut scene.writer, &row).await;
    put.unwrap();
    let chain = scene.round.chains.remove(&id);
    assert!(chain.is_some());
    scene.round.unfinished.insert(id, chain.clone());
    scene.put(3, 4).await;
    let tap = scene.vault.inner.open_buckets.taps.of(id).unwrap();
    tap.pages.unfollow(cursor);
    let put = scene.round.put_bucket(&mut scene.writer, &row).await;
    assert!(put.is_err());
    assert_eq!(scene.round.unfinished.get(&id), Some(&chain));
    // What comes next is all of it, and a head of it lacks nothing.
    tap.pages.follow(cursor);
    scene.run().await;
    let scratch = scene.root.path().join("read");
    let catalog = scene.round.catalog_in_head(&scene.writer, id, &scratch);
    let catalog = catalog.await.unwrap().unwrap();
    assert_eq!(catalog.blobs_after(None).await.unwrap().len(), 4);
    catalog.close().await;
    scene.vault.close().await;
}
