use coffer_keys::{LevelOptions, MemoryRoot, ReceiptDetails};
use coffer_replica::CopyId;
use tempfile::TempDir;

use super::*;
use crate::copies::registry::TakenKeystore;

fn given_up(removed_ms: Option<i64>, newest_ms: Option<i64>) -> Entry {
    Entry {
        name: "far".to_owned(),
        url: "file:///copy".to_owned(),
        id: CopyId::random(),
        cursor: 1,
        made_ms: 10,
        removed_ms,
        newest_ms,
        known: None,
        as_of_ms: 0,
        keep_ms: 0,
        rested: None,
        keystore: None,
        sync: None,
        fenced_off: None,
    }
}

#[test]
fn a_copy_that_ended_before_it_was_made_holds_nothing_of_it() {
    assert!(ended_before(&given_up(Some(20), Some(15)), 30));
    for (removed_ms, newest_ms, why) in [
        (None, None, "it is kept up"),
        (Some(20), None, "an earlier version gave it up"),
        (Some(40), Some(15), "it was kept up when that was made"),
        (
            Some(20),
            Some(30),
            "that was there, by a clock that was ahead",
        ),
        (Some(30), Some(15), "in the same moment"),
    ] {
        assert!(!ended_before(&given_up(removed_ms, newest_ms), 30), "{why}");
    }
}

#[test]
fn what_a_server_began_with_may_hold_what_is_older() {
    let went_on = || {
        Some(WentOn {
            at_ms: 20,
            followed: Some("s3://copies/far".to_owned()),
        })
    };
    for (made_ms, is_told) in [(None, true), (Some(20), true), (Some(21), false)] {
        let told = left_of_origin(went_on(), made_ms);
        assert_eq!(told.is_some(), is_told);
        assert!(told.is_none_or(|told| told.contains("at s3://copies/far, and the server")));
        assert_eq!(left_of_origin(None, made_ms), None);
    }
}

fn with_keystore(is_of_engine: bool) -> Entry {
    let with = WithKeystore {
        is_of_engine,
        recipients: vec!["age1recipient".to_owned()],
        ..WithKeystore::default()
    };
    Entry {
        keystore: Some(with),
        ..given_up(None, None)
    }
}

#[test]
fn what_was_taken_waits_no_more() {
    let mut log = with_keystore(true);
    log.keystore.as_mut().expect("it has one").taken = Some(taken(2));
    assert!(!is_pending(&on_receipt(&log, 2)));
    assert!(is_pending(&on_receipt(&log, 3)));
}

fn taken(generation: u64) -> TakenKeystore {
    TakenKeystore {
        generation,
        at_ms: now_ms(),
        is_of_this_start: true,
    }
}

#[test]
fn what_was_taken_before_the_start_counts_for_no_erase_after_it() {
    let folder = tempfile::tempdir().expect("it works");
    let path = folder.path().join("keystore");
    let keystore = Keystore::create(&path, Box::new(MemoryRoot::new())).expect("it works");
    for (beyond, is_told) in [(0, true), (9, false)] {
        let mut copy = with_keystore(false);
        let generation = keystore.generation() + beyond;
        copy.keystore.as_mut().expect("it has one").taken = Some(taken(generation));
        let id = copy.id;
        let (registry, _) = Registry::open(folder.path(), &keystore);
        let kept = registry.change(|entries| *entries = vec![copy.clone()]);
        kept.expect("it works");
        assert!(!is_pending(&on_receipt(&copy, generation)));
        let (registry, _) = Registry::open(folder.path(), &keystore);
        let copy = registry.of_id(id).expect("it is there");
        let told = on_receipt(&copy, generation);
        assert!(is_pending(&told), "{beyond}");
        // One that the server no longer has is told of no more.
        let told = told.keystore.expect("it has one").generation;
        assert_eq!(told.is_some(), is_told, "{beyond}");
    }
}

/// An erase of now, whose receipt waits for a copy.
struct Erased {
    folder: TempDir,
    keystore: Keystore,
    system: System,
    receipt: Receipt,
}

impl Erased {
    fn while_there_was(copy: &Entry) -> Self {
        let folder = tempfile::tempdir().expect("it works");
        let path = folder.path().join("keystore");
        let keystore = Keystore::create(&path, Box::new(MemoryRoot::new())).expect("it works");
        let label = "s0".parse().expect("it is one");
        let level = keystore.add_level("secret", label, LevelOptions::default());
        let level = level.expect("it works").id;
        let erased = keystore.erase_level(level).expect("it works");
        let details = ReceiptDetails {
            performed_by: Vec::new(),
            requested_ms: now_ms(),
            objects: 0,
            bytes: 0,
            bucket_names: Default::default(),
            verification: Vec::new(),
            remaining: Vec::new(),
            copies: vec![on_receipt(copy, keystore.generation())],
            last_audit_record: None,
        };
        let receipt = keystore.sign_receipt(&erased, details).expect("it works");
        let path = folder.path().join("system.db");
        let system = System::open(&path, &keystore.system_key()).expect("it works");
        let (draft, of) = (level.into(), (level, None));
        let kept = system.finish_erase(draft, &[], of, &receipt, now_ms());
        kept.expect("it works");
        Self {
            folder,
            keystore,
            system,
            receipt,
        }
    }

    /// As earlier versions signed it, without ids.
    fn without_ids(mut self) -> Self {
        self.receipt.format = "coffer receipt v4".to_owned();
        self.receipt.copies.as_mut().expect("it has them")[0].id = None;
        let signed = self.keystore.sign_again(self.receipt, now_ms());
        self.receipt = signed.expect("it works");
        self.system
            .replace_receipt(&self.receipt)
            .expect("it works");
        self
    }

    /// Has this copy take the keystore, with the receipt among those that wait for it: those that
    /// wait for it then.
    fn is_taken_by(&self, copy: &Entry) -> Vec<String> {
        let (registry, _) = Registry::open(self.folder.path(), &self.keystore);
        let mut copy = copy.clone();
        let with = copy.keystore.as_mut().expect("it has one");
        with.pending = vec![self.receipt.id.clone()];
        with.taken = Some(taken(self.receipt.erased.keystore_generation));
        let id = copy.id;
        registry
            .change(|entries| *entries = vec![copy])
            .expect("it works");
        let settled = registry.settle_receipts(id, &self.system, &self.keystore);
        settled.expect("it works");
        let entry = registry.of_id(id).expect("it is there");
        entry.keystore.expect("it has one").pending
    }

    /// The receipt, as it is kept, which verifies, and what it says of the copy.
    fn told(&self) -> (Receipt, SealedCopy) {
        let receipt = self.system.receipt(&self.receipt.id).expect("it opens");
        let receipt = receipt.expect("it is kept");
        let key = self.keystore.receipt_public_key().expect("it has one");
        receipt.verify(&key).expect("it is genuine");
        let copy = receipt.copies.clone().expect("it has them").remove(0);
        (receipt, copy)
    }

    fn says_pending(&self) -> bool {
        is_pending(&self.told().1)
    }
}

fn log_made_at(made_ms: i64) -> Entry {
    Entry {
        made_ms,
        ..with_keystore(true)
    }
}

#[test]
fn another_log_at_the_same_place_whose_clock_was_behind_settles_nothing() {
    let log = log_made_at(now_ms() - 5_000);
    let erased = Erased::while_there_was(&log);
    for made_ms in [log.made_ms - 60_000, log.made_ms, now_ms() + 60_000] {
        let other = Entry {
            id: CopyId::random(),
            made_ms,
            ..log.clone()
        };
        assert!(!waits_for(&erased.receipt, &other));
        erased.is_taken_by(&other);
        assert!(erased.says_pending());
    }
}

#[test]
fn a_log_that_a_clock_ahead_began_settles_what_waits_for_it() {
    let log = log_made_at(now_ms() + 600_000);
    let erased = Erased::while_there_was(&log);
    // Who takes it over may reach it by another URL, and know better when it was made.
    let taken_over = Entry {
        url: "file:///alias".to_owned(),
        made_ms: log.made_ms + 1_000,
        ..log.clone()
    };
    assert!(waits_for(&erased.receipt, &taken_over));
    assert!(erased.is_taken_by(&taken_over).is_empty());
    let (_, told) = erased.told();
    assert!(!is_pending(&told));
    let as_it_was = (log.public_url(), rfc3339(log.made_ms));
    assert_eq!((told.url, told.made_at), as_it_was);
}

#[test]
fn a_receipt_without_ids_stays_pending_where_the_log_is_in_doubt() {
    let log = log_made_at(now_ms() - 5_000);
    let erased = Erased::while_there_was(&log).without_ids();
    for by_ms in [-60_000, -1, 1, 60_000] {
        let other = log_made_at(log.made_ms + by_ms);
        assert!(!waits_for(&erased.receipt, &other));
        let waiting = erased.is_taken_by(&other);
        assert_eq!(waiting, std::slice::from_ref(&erased.receipt.id), "{by_ms}");
        assert!(erased.says_pending(), "{by_ms}");
    }
    // Which was made at the same moment is the same.
    assert!(erased.is_taken_by(&log).is_empty());
    let (_, told) = erased.told();
    assert!(!is_pending(&told) && told.id.is_none());
}

#[test]
fn receipts_that_wait_are_found_by_the_copys_id_and_without_one_by_its_name() {
    let log = log_made_at(now_ms());
    let id = log.id.to_string();
    let erased = Erased::while_there_was(&log);
    let found = |erased: &Erased, id: &str, name: &str| {
        let found = erased.system.receipts_pending_in(id, name);
        found.expect("it works").len()
    };
    assert_eq!(found(&erased, &id, "another"), 1);
    assert_eq!(found(&erased, "00", &log.name), 0);
    let erased = erased.without_ids();
    assert_eq!(found(&erased, "00", &log.name), 1);
    assert_eq!(found(&erased, &id, "another"), 0);
    assert!(may_wait_for(&erased.receipt, &log_made_at(log.made_ms + 1)));
}

#[test]
fn an_erase_waits_for_the_copy_that_there_was_and_not_for_another_of_its_name() {
    let copy = with_keystore(false);
    let erased = Erased::while_there_was(&copy);
    let anew = Entry {
        id: CopyId::random(),
        ..copy.clone()
    };
    assert!(waits_for(&erased.receipt, &copy) && !waits_for(&erased.receipt, &anew));
    // It was given up meanwhile.
    let entries = vec![
        Entry {
            removed_ms: Some(now_ms()),
            ..copy.clone()
        },
        anew.clone(),
    ];
    let (registry, read) = Registry::open(erased.folder.path(), &erased.keystore);
    registry.change(|all| *all = entries).expect("it works");
    let copies = Copies::new((registry, read));
    copies.note_pending(&erased.receipt).expect("it works");
    let waiting = copies.registry.all().into_iter().filter_map(|entry| {
        let with = entry.keystore.expect("it has one");
        (!with.pending.is_empty()).then_some(entry.id)
    });
    assert_eq!(waiting.collect::<Vec<_>>(), [copy.id]);
}
