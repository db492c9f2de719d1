//! What a root key must survive on its way from one source to another: after a power cut at any
//! moment the keystore opens with exactly one of the two, and the other holds nothing any more; and
//! after a failure of the source at any call no key that was reported destroyed is there.

use std::sync::Arc;

use coffer_durable::simulated::{Fault, Image, SimulatedDisk};
use coffer_label::Label;
use coffer_seal::BucketId;

use crate::error::KeysError;
use crate::keystore::contents::LevelOptions;
use crate::keystore::copies::Repair;
use crate::keystore::state::Keystore;
use crate::root::file::BareText;
use crate::root::key_file::RootText;
use crate::root::memory::MemoryRoot;
use crate::root::passphrase::PassphraseRoot;
use crate::root::source::{RootKey, RootSource};
use crate::tests::failing_source::{Call, Effect, FailingToken, FileOnDisk};
use crate::tests::fixture::{self, path};

/// How many ways a power cut at each operation goes.
const SEED_COUNT: u64 = 60;

/// What a root key moves from and to. What is in memory stands for a keyring or a token: a power
/// cut here does nothing to it.
#[derive(Debug, Clone, Copy)]
enum Kind {
    File,
    Passphrase(&'static str),
    Memory,
}

const MOVES: [(Kind, Kind); 6] = [
    (Kind::File, Kind::Passphrase("one")),
    (Kind::Passphrase("one"), Kind::File),
    (Kind::Passphrase("one"), Kind::Passphrase("two")),
    (Kind::File, Kind::Memory),
    (Kind::Memory, Kind::Passphrase("one")),
    (Kind::Memory, Kind::Memory),
];

/// The files of the source before, and of the one to come.
const ROOTS: [&str; 2] = ["before", "after"];

struct Server {
    disk: SimulatedDisk,
    memories: [MemoryRoot; 2],
    kinds: (Kind, Kind),
}

fn text(kind: Kind) -> Arc<dyn RootText + Send + Sync> {
    match kind {
        Kind::Passphrase(passphrase) => {
            Arc::new(PassphraseRoot::cheap(path(), passphrase.as_bytes()))
        }
        Kind::File | Kind::Memory => Arc::new(BareText),
    }
}

impl Server {
    fn on(image: &Image, memories: [Vec<RootKey>; 2], kinds: (Kind, Kind)) -> Self {
        let memories = memories.map(|keys| match keys.into_iter().next() {
            Some(root) => MemoryRoot::holding(root),
            None => MemoryRoot::new(),
        });
        Self {
            disk: SimulatedDisk::new(image),
            memories,
            kinds,
        }
    }

    /// A keystore that is longer than a sector, at rest with the source before.
    fn new(kinds: (Kind, Kind)) -> Self {
        let server = Self::on(&fixture::empty(), [Vec::new(), Vec::new()], kinds);
        let slots = fixture::slots(&server.disk);
        let keystore = Keystore::create_on(slots, path(), server.source(0)).unwrap();
        let level = keystore
            .add_level("secret", Label::HIGHEST, LevelOptions::default())
            .unwrap();
        for number in 0..8 {
            keystore
                .add_bucket(BucketId([number; 16]), level.id)
                .unwrap();
        }
        server
    }

    /// The source before (0), or the one to come (1), as a start makes it.
    fn source(&self, index: usize) -> Box<dyn RootSource> {
        let kind = [self.kinds.0, self.kinds.1][index];
        match kind {
            Kind::Memory => Box::new(self.memories[index].clone()),
            _ => Box::new(FileOnDisk {
                disk: self.disk.clone(),
                name: ROOTS[index],
                kind: text(kind),
            }),
        }
    }

    /// What a restart finds on the disk and beside it.
    fn restarted(&self) -> Self {
        let memories = [0, 1].map(|index: usize| self.memories[index].clone());
        Self {
            disk: SimulatedDisk::new(&self.disk.restart_image()),
            memories,
            kinds: self.kinds,
        }
    }

    fn open(&self) -> Result<(Keystore, Repair, bool), KeysError> {
        Keystore::open_between_on(
            fixture::slots(&self.disk),
            path(),
            [self.source(0), self.source(1)],
            false,
        )
    }

    /// Opens, and makes sure that all is at rest and one source holds one key. Whether it moved.
    fn settled(&self) -> bool {
        let (keystore, _, is_moved) = self.open().unwrap();
        assert!(!keystore.is_moving());
        assert_eq!(keystore.buckets().len(), 8);
        for bucket in keystore.buckets() {
            keystore.bucket_key(bucket.id).unwrap();
        }
        let found = [0, 1].map(|index| self.source(index).candidates().unwrap().len());
        assert_eq!(found, if is_moved { [0, 1] } else { [1, 0] });
        for (index, count) in found.iter().enumerate() {
            let is_there = |name: &String| name.starts_with(ROOTS[index]);
            assert!(
                *count == 1 || !self.disk.image().keys().any(is_there),
                "nothing is left"
            );
        }
        self.disk.fail(&[], 0);
        let alone = self.source(usize::from(is_moved));
        let (_, repair) =
            Keystore::open_on(fixture::slots(&self.disk), path(), vec![alone.into()]).unwrap();
        assert_eq!((repair, self.disk.operation_count()), (Repair::None, 0));
        is_moved
    }
}

#[test]
fn a_power_cut_at_any_moment_of_a_move_leaves_one_source() {
    for kinds in MOVES {
        let before = Server::new(kinds);
        let image = before.disk.image();
        let memories = || [0, 1].map(|index: usize| before.memories[index].candidates().unwrap());
        let again = || Server::on(&image, memories(), kinds);
        let whole = again();
        let (keystore, ..) = whole.open().unwrap();
        whole.disk.fail(&[], 0);
        keystore.move_to(whole.source(1)).unwrap();
        let operation_count = whole.disk.operation_count();
        assert!(whole.restarted().settled(), "{kinds:?}");

        let mut moved = [0, 0];
        for at in 0..operation_count {
            for seed in 0..SEED_COUNT {
                let server = again();
                let (keystore, ..) = server.open().unwrap();
                server.disk.fail(&[Fault::PowerCut { at }], seed);
                keystore.move_to(server.source(1)).unwrap_err();
                moved[usize::from(server.restarted().settled())] += 1;
            }
        }
        assert!(moved[0] >= 40 && moved[1] >= 40, "{kinds:?}: {moved:?}");
    }
}

#[test]
fn a_power_cut_while_a_move_is_completed_leaves_it_completable() {
    for kinds in [MOVES[0], MOVES[2]] {
        let before = Server::new(kinds);
        let image = before.disk.image();
        for first in 0..12 {
            for at in 0..8 {
                for seed in 0..10 {
                    let server = Server::on(&image, [Vec::new(), Vec::new()], kinds);
                    let (keystore, ..) = server.open().unwrap();
                    server.disk.fail(&[Fault::PowerCut { at: first }], seed);
                    let _ = keystore.move_to(server.source(1));
                    let again = server.restarted();
                    again.disk.fail(&[Fault::PowerCut { at }], seed);
                    let _ = again.open();
                    again.restarted().settled();
                }
            }
        }
    }
}

#[test]
fn a_refused_operation_of_a_move_is_made_good_without_a_restart() {
    for kinds in [MOVES[0], MOVES[1], MOVES[2]] {
        for at in 0..14 {
            let server = Server::new(kinds);
            let (keystore, ..) = server.open().unwrap();
            server.disk.fail(&[Fault::Refusal { at }], at as u64);
            let done = keystore.move_to(server.source(1));
            keystore.settle().unwrap();
            let is_moved = server.restarted().settled();
            assert!(is_moved || done.is_err(), "{kinds:?} {at}");
            if !is_moved {
                keystore.move_to(server.source(1)).unwrap();
                assert!(server.restarted().settled());
            }
        }
    }
}

/// What is done to a keystore in a token that fails, and how much it holds afterwards.
type Act = fn(&Keystore, &FailingToken) -> Result<(), KeysError>;

const ACTS: [(&str, Act); 4] = [
    ("erase a level", |keystore, _| {
        let level = keystore.level_named("secret").unwrap();
        keystore.erase_level(level.id).map(drop)
    }),
    ("erase a bucket", |keystore, _| {
        keystore.erase_bucket(BucketId([3; 16])).map(drop)
    }),
    ("rotate the root key", |keystore, _| keystore.rotate_root()),
    ("move to another", |keystore, other| {
        keystore.move_to(Box::new(other.clone()))
    }),
];

/// Every call that an act makes fails once: before it did anything, or after it did all of it.
#[test]
fn a_token_that_fails_at_any_call_leaves_old_or_new() {
    let mut failures = 0;
    for (name, act) in ACTS {
        for call in [Call::Candidates, Call::Add, Call::KeepOnly] {
            for effect in [Effect::Undone, Effect::Done] {
                for which in [0, 1] {
                    for number in 0..3 {
                        let fault = (call, number, effect);
                        failures += usize::from(fails_once(name, act, which, fault));
                    }
                }
            }
        }
    }
    assert!(failures >= 16, "{failures}");
}

/// Whether the act made the call at all.
fn fails_once(name: &str, act: Act, which: usize, fault: (Call, usize, Effect)) -> bool {
    let disk = SimulatedDisk::new(&fixture::empty());
    let tokens = [FailingToken::default(), FailingToken::default()];
    let first = Box::new(tokens[0].clone());
    let keystore = Keystore::create_on(fixture::slots(&disk), path(), first).unwrap();
    let level = keystore
        .add_level("secret", Label::HIGHEST, LevelOptions::default())
        .unwrap();
    for number in 0..8 {
        keystore
            .add_bucket(BucketId([number; 16]), level.id)
            .unwrap();
    }
    let (before, old_image) = (keystore.generation(), disk.image());
    let old_root = tokens[0].keys.candidates().unwrap();
    tokens[which].fail(Some(fault));
    let done = act(&keystore, &tokens[1]);
    if tokens[which].is_waiting() {
        tokens[which].fail(None);
        assert!(done.is_ok(), "{name}, {fault:?}");
        return false;
    }

    // A start right away, with both sources as after a move that was interrupted.
    let disk = SimulatedDisk::new(&disk.image());
    let [one, two]: [Box<dyn RootSource>; 2] = tokens.clone().map(|token| Box::new(token) as _);
    let (again, _, _) =
        Keystore::open_between_on(fixture::slots(&disk), path(), [one, two], false).unwrap();
    let told = format!("{name}, {fault:?} of {which}: {done:?}");
    assert!([before, before + 1].contains(&again.generation()), "{told}");
    assert!(done.is_err() || again.generation() == before + 1, "{told}");
    assert!(!again.is_moving(), "{told}");
    let left: Vec<_> = tokens
        .iter()
        .flat_map(|token| token.keys.candidates().unwrap())
        .collect();
    assert_eq!(left.len(), 1, "{told}");

    // Once it counts, nothing that is left opens what was there before.
    let old = SimulatedDisk::new(&old_image);
    let source = Arc::new(MemoryRoot::holding(left[0].clone()));
    let opened = Keystore::open_on(fixture::slots(&old), path(), vec![source]);
    assert_eq!(opened.is_ok(), again.generation() == before, "{told}");
    assert_eq!(left == old_root, again.generation() == before, "{told}");
    true
}
