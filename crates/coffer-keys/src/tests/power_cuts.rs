//! What a keystore and its root-key file must survive on a disk that fails: after a power cut at
//! any moment the keystore is exactly what it was before the change, or exactly what it is after,
//! and a root key that was given up is on the disk no more.

use std::sync::Arc;

use coffer_durable::simulated::{Fault, Image, SimulatedDisk};
use coffer_label::Label;
use coffer_seal::{BucketId, LevelId};

use crate::error::KeysError;
use crate::keystore::contents::{LevelEntry, LevelOptions};
use crate::keystore::copies::Repair;
use crate::keystore::state::Keystore;
use crate::root::file::BareText;
use crate::root::key_file::RootText;
use crate::root::source::{RootKey, RootSource};
use crate::tests::failing_source::FileOnDisk;
use crate::tests::fixture::{self, KEYSTORE, SMALL_SLOT_BYTES, path};

const ROOT: &str = "root.key";

/// A disk with a keystore and its root key.
struct Server(SimulatedDisk);

impl Server {
    fn on(image: &Image) -> Self {
        Self(SimulatedDisk::new(image))
    }

    /// A keystore of two levels and twenty buckets: it grows and shrinks by several sectors.
    fn of_twenty() -> Self {
        let text = BareText.write(&RootKey::generate()).unwrap();
        let mut image = fixture::empty();
        image.insert(ROOT.to_owned(), text.to_vec());
        let server = Self::on(&image);
        let slots = fixture::slots(&server.0);
        let keystore = Keystore::create_on(slots, path(), server.source()).unwrap();
        let secret = keystore.add_level("secret", Label::HIGHEST, LevelOptions::default());
        let levels = [default_level(&keystore), secret.unwrap().id];
        for number in 0..20 {
            let level = levels[usize::from(number % 2)];
            keystore.add_bucket(BucketId([number; 16]), level).unwrap();
        }
        server
    }

    fn source(&self) -> Box<dyn RootSource> {
        Box::new(FileOnDisk {
            disk: self.0.clone(),
            name: ROOT,
            kind: Arc::new(BareText),
        })
    }

    fn try_open(&self) -> Result<(Keystore, Repair), KeysError> {
        Keystore::open_on(fixture::slots(&self.0), path(), vec![self.source().into()])
    }

    fn open(&self) -> (Keystore, Repair) {
        self.try_open().unwrap()
    }

    fn fail(&self, fault: Fault, seed: u64) {
        self.0.fail(&[fault], seed);
    }

    fn keystore_image(&self) -> Vec<u8> {
        self.0.image().remove(KEYSTORE).unwrap()
    }
}

/// What is done to the keystore.
struct Act {
    name: &'static str,
    run: fn(&Keystore) -> Result<(), KeysError>,
    /// How often it writes, truncates and syncs.
    operation_count: usize,
    changes_root: bool,
}

const PLAIN_OPERATIONS: usize = 4;

/// A second root key: one write. Both copies: two. The old root key written over, the second place
/// emptied, the file cut: three. All synced.
const ROOT_OPERATIONS: usize = 12;

const ACTS: [Act; 6] = [
    Act {
        name: "add",
        run: |keystore| {
            let level = default_level(keystore);
            keystore.add_bucket(BucketId([200; 16]), level).map(drop)
        },
        operation_count: PLAIN_OPERATIONS,
        changes_root: false,
    },
    Act {
        name: "destroy",
        run: |keystore| keystore.destroy_bucket(BucketId([3; 16])),
        operation_count: PLAIN_OPERATIONS,
        changes_root: false,
    },
    Act {
        name: "rotate the root key",
        run: |keystore| keystore.rotate_root(),
        operation_count: ROOT_OPERATIONS,
        changes_root: true,
    },
    Act {
        name: "erase a level",
        run: |keystore| keystore.erase_level(secret_level(keystore)).map(drop),
        operation_count: ROOT_OPERATIONS,
        changes_root: true,
    },
    Act {
        name: "erase a bucket",
        run: |keystore| keystore.erase_bucket(BucketId([3; 16])).map(drop),
        operation_count: ROOT_OPERATIONS,
        changes_root: true,
    },
    Act {
        name: "rotate a level",
        run: |keystore| keystore.rotate_level(secret_level(keystore)).map(drop),
        operation_count: ROOT_OPERATIONS,
        changes_root: true,
    },
];

/// How many ways a power cut at each operation goes.
const SEED_COUNT: u64 = 100;

fn default_level(keystore: &Keystore) -> LevelId {
    keystore.level_named("default").unwrap().id
}

fn secret_level(keystore: &Keystore) -> LevelId {
    keystore.level_named("secret").unwrap().id
}

/// Everything a user could see.
type View = (u64, Vec<LevelEntry>, Vec<BucketId>);

/// Looks at everything, and makes sure that every key opens.
fn view(keystore: &Keystore) -> View {
    let ids: Vec<_> = keystore.buckets().iter().map(|bucket| bucket.id).collect();
    for id in &ids {
        keystore.bucket_key(*id).unwrap();
    }
    (keystore.generation(), keystore.levels(), ids)
}

/// What a restart finds; afterwards all is at rest.
fn view_of(image: &Image) -> (View, String) {
    let server = Server::on(image);
    let seen = view(&server.open().0);
    // Whatever had to be mended is mended now, down to the bytes behind the copies.
    server.0.fail(&[], 0);
    let (again, repair) = server.open();
    assert_eq!(view(&again), seen);
    assert_eq!((repair, server.0.operation_count()), (Repair::None, 0));
    // One root key, and not a trace of another.
    let root =
        String::from_utf8(server.0.image().remove(ROOT).unwrap()).expect("text and nothing else");
    assert_eq!(root.lines().count(), 2);
    assert_eq!(server.source().candidates().unwrap().len(), 1);
    (seen, root)
}

#[test]
fn a_power_cut_at_any_moment_leaves_old_or_new() {
    for act in &ACTS {
        let server = Server::of_twenty();
        let before_image = server.0.image();
        let before = view_of(&before_image);
        let (keystore, _) = server.open();
        server.0.fail(&[], 0);
        (act.run)(&keystore).unwrap();
        assert_eq!(server.0.operation_count(), act.operation_count);
        let after = view_of(&server.0.restart_image());
        assert_eq!(act.changes_root, before.1 != after.1, "{}", act.name);

        let (mut old, mut new) = (0, 0);
        for at in 0..act.operation_count {
            for seed in 0..SEED_COUNT {
                let server = Server::on(&before_image);
                let (keystore, _) = server.open();
                server.fail(Fault::PowerCut { at }, seed);
                (act.run)(&keystore).unwrap_err();
                let seen = view_of(&server.0.restart_image());
                let is_old = seen == before;
                // The new root key is another one each time.
                let is_new = seen.0 == after.0 && (seen.1 != before.1) == act.changes_root;
                assert!(is_old || is_new, "{} at {at}, seed {seed}", act.name);
                old += usize::from(is_old);
                new += usize::from(is_new);
            }
        }
        assert!(old >= 40 && new >= 80, "{}: {old}, {new}", act.name);
    }
}

#[test]
fn a_refused_operation_is_made_good_by_the_next_change() {
    for act in &ACTS {
        for at in 0..act.operation_count {
            let server = Server::of_twenty();
            let (keystore, _) = server.open();
            server.fail(Fault::Refusal { at }, at as u64);
            let error = (act.run)(&keystore).unwrap_err();
            let told = view(&keystore);
            // The change counts once the first copy is written, which is after the new root key.
            let first_copy_done = if act.changes_root { 4 } else { 2 };
            let is_made = at >= first_copy_done;
            assert_eq!(told.0, if is_made { 23 } else { 22 }, "{} {at}", act.name);
            let is_unsettled = matches!(error, KeysError::Unsettled { .. });
            assert_eq!(is_unsettled, is_made && act.changes_root, "{error}");

            let level = default_level(&keystore);
            keystore.add_bucket(BucketId([99; 16]), level).unwrap();
            let now = view(&keystore);
            assert_eq!(now.0, told.0 + 1);
            assert_eq!(
                view_of(&server.0.restart_image()).0,
                now,
                "{} at {at}",
                act.name
            );
        }
    }
}

#[test]
fn a_power_cut_while_a_change_is_completed_leaves_it_completable() {
    let act = &ACTS[2];
    for first in [4, 6, 8, 9, 10] {
        for at in 0..8 {
            for seed in 0..20 {
                let server = Server::of_twenty();
                let (keystore, _) = server.open();
                server.fail(Fault::PowerCut { at: first }, seed + 1000);
                (act.run)(&keystore).unwrap_err();
                let again = Server::on(&server.0.restart_image());
                again.fail(Fault::PowerCut { at }, seed);
                let opened = again.try_open().map(drop);
                let seen = view_of(&again.0.restart_image());
                assert_eq!(seen.0.0, 23, "{first} {at} {seed}: {opened:?}");
            }
        }
    }
}

#[test]
fn destroying_again_completes_what_was_half_destroyed() {
    let server = Server::of_twenty();
    let (keystore, _) = server.open();
    server.fail(Fault::Refusal { at: 2 }, 0);
    keystore.destroy_bucket(BucketId([3; 16])).unwrap_err();
    server.0.fail(&[], 0);
    let again = keystore.destroy_bucket(BucketId([3; 16])).unwrap_err();
    assert!(matches!(again, KeysError::NoSuchBucket { .. }));
    let image = server.keystore_image();
    let (a, b) = image.split_at(SMALL_SLOT_BYTES);
    assert!(a == b, "both copies are as new");
}

#[test]
fn a_torn_copy_is_mended_at_the_first_occasion() {
    let server = Server::of_twenty();
    let (keystore, _) = server.open();
    let before = server.keystore_image();
    for at in [0, 1] {
        server.fail(Fault::Refusal { at }, at as u64);
        keystore.destroy_bucket(BucketId([3; 16])).unwrap_err();
        assert!(
            server.keystore_image() != before,
            "one copy is torn, or new"
        );
        server.0.fail(&[], 0);
        keystore.destroy_bucket(BucketId([250; 16])).unwrap_err();
        assert!(
            server.keystore_image() == before,
            "both copies are as they were"
        );
    }
}

#[test]
fn a_disk_that_lies_is_found_out() {
    for (act, writes) in [(&ACTS[1], &[0, 2][..]), (&ACTS[2], &[0, 2, 4, 6])] {
        for &at in writes {
            let server = Server::of_twenty();
            let (keystore, _) = server.open();
            server.fail(Fault::Lie { at }, at as u64);
            let error = match (act.run)(&keystore).unwrap_err() {
                KeysError::Unsettled { source } => *source,
                error => error,
            };
            assert!(matches!(error, KeysError::NotReadBack { .. }), "{error}");
            // Another copy is whole all the same, and its root key.
            view_of(&server.0.restart_image());
        }
    }
}
