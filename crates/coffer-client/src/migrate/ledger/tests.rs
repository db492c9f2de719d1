//! What a ledger knows later.

use super::*;
use crate::migrate::attributes::Lock;
use crate::s3::ListedObject;

fn version(id: &str, etag: &str) -> ListedVersion {
    ListedVersion {
        object: ListedObject {
            key: "k".to_owned(),
            bytes: 3,
            etag: etag.to_owned(),
            modified: "2026".to_owned(),
        },
        version_id: id.to_owned(),
        is_latest: true,
        is_marker: false,
    }
}

#[test]
fn what_arrived_is_known_later_and_lines_that_are_cut_off_mean_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true);
    let ledger = open().unwrap();
    let (source, target) = (version("v1", "\"a\""), version("null", "\"b\""));
    ledger
        .arrived("k", &source, ("e:b", None), Some(7))
        .unwrap();
    let begun = Begun {
        key: "k".to_owned(),
        upload_id: "u".to_owned(),
        compares: true,
        part_bytes: 5,
        headers: String::new(),
    };
    let part = Part {
        number: 1,
        etag: "e".to_owned(),
        crc: 9,
    };
    let other = version("v2", "");
    ledger.begun("k", &other, &begun).unwrap();
    ledger.part("u", part.clone()).unwrap();
    assert!(matches!(open(), Err(MigrateError::Busy { .. })));
    let path = ledger.path.clone();
    drop(ledger);
    let text = fs::read(&path).unwrap();
    fs::write(&path, &text[..text.len() - 4]).unwrap();
    let ledger = open().unwrap();
    assert!(ledger.came_of("k", &target, &source));
    assert_eq!(ledger.crc_of("k", &source), Some(7));
    assert!(ledger.is_ours("k", &target) && !ledger.is_ours("l", &target));
    assert!(!ledger.came_of("k", &version("null", "c"), &source));
    assert!(!ledger.came_of("k", &target, &version("v1", "z")));
    // The part's line was cut off; what is added now is on a line of its own.
    assert_eq!(ledger.upload_of("k", &other), Some((begun.clone(), vec![])));
    ledger.part("u", part.clone()).unwrap();
    drop(ledger);
    let ledger = open().unwrap();
    // One that may still be there stays needless, until it is known to be ended.
    ledger.needless_uploads();
    drop(ledger);
    let ledger = open().unwrap();
    let needless = ledger.needless_uploads();
    let [(of, found)] = needless.as_slice() else {
        panic!("{} uploads", needless.len());
    };
    assert_eq!(found, &begun);
    ledger.ended(*of).unwrap();
    let left = Begun {
        upload_id: "left".to_owned(),
        ..begun
    };
    ledger.left(&left).unwrap();
    drop(ledger);
    let ledger = open().unwrap();
    assert_eq!(ledger.upload_of("k", &other), None);
    assert_eq!(ledger.needless_uploads()[0].1, left);
}

#[test]
fn the_same_of_others_is_theirs_and_what_was_sent_is_known() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true).unwrap();
    let ledger = open();
    let (source, target) = (version("v1", "\"a\""), version("null", "\"b\""));
    ledger.same("k", &source, "e:b", Some(7)).unwrap();
    let (lost, refused) = (version("v2", "c"), version("v3", "d"));
    let held = Given::default().with_hold(true);
    ledger.sending("k", &lost, held).unwrap();
    ledger.sending("k", &refused, held).unwrap();
    ledger.unsent("k", &refused).unwrap();
    ledger.set("cors", "<a/>").unwrap();
    ledger.set("policy", "{}").unwrap();
    ledger.set("policy", "").unwrap();
    drop(ledger);
    let ledger = open();
    assert!(ledger.came_of("k", &target, &source) && !ledger.is_ours("k", &target));
    assert_eq!(ledger.crc_of("k", &source), Some(7));
    assert!(ledger.was_sent("k", &lost) && !ledger.was_sent("k", &refused));
    ledger.arrived("k", &lost, ("v:x", None), None).unwrap();
    assert!(!ledger.was_sent("k", &lost));
    // It has what it was sent with.
    assert_eq!(ledger.given("k", &lost), held);
    assert_eq!(ledger.has_set("cors").as_deref(), Some("<a/>"));
    assert_eq!(ledger.has_set("policy"), None);
}

#[test]
fn what_is_stored_again_later_is_of_others() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true).unwrap();
    let at = |etag: &str, modified: &str| {
        let mut there = version("null", etag);
        there.object.modified = modified.to_owned();
        there
    };
    let ledger = open();
    let [one, old, spoilt] = ["a", "b", "c"].map(|etag| version("v1", etag));
    let by = Some(1_700_000_000);
    ledger.arrived("k", &one, ("e:1", by), None).unwrap();
    ledger.arrived("k", &old, ("e:2", None), None).unwrap();
    ledger.spoilt("k", ("e:3", by)).unwrap();
    drop(ledger);
    let ledger = open();
    let (then, later) = ("2023-11-14T22:13:20.999Z", "2023-11-14T22:13:21.000Z");
    for (etag, of, is_known_later) in [("1", &one, false), ("2", &old, true)] {
        let known = |modified| {
            let there = at(etag, modified);
            (ledger.is_ours("k", &there), ledger.came_of("k", &there, of))
        };
        assert_eq!(known(then), (true, true));
        assert_eq!(known(later), (is_known_later, is_known_later), "{etag}");
    }
    assert!(ledger.is_ours("k", &at("3", then)) && !ledger.is_ours("k", &at("3", later)));
    assert!(!ledger.came_of("k", &at("3", then), &spoilt));
    // The same of others is there, and theirs.
    ledger.same("k", &one, "e:1", None).unwrap();
    let there = at("1", later);
    assert!(ledger.came_of("k", &there, &one) && !ledger.is_ours("k", &there));
}

#[test]
fn a_document_as_long_as_answers_may_be_is_known_later() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true).unwrap();
    let document = "<Rule>\"é\"</Rule>".repeat(20_000);
    open().set("lifecycle", &document).unwrap();
    let ledger = open();
    assert_eq!(ledger.has_set("lifecycle"), Some(document));
}

#[test]
fn the_ledger_of_another_bucket_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let open = |target: &str, adds| Ledger::open(folder.path(), "s", target, adds);
    let paths = ["one", "other"].map(|target| open(target, true).unwrap().path);
    fs::rename(&paths[0], &paths[1]).unwrap();
    for adds in [true, false] {
        let told = open("other", adds).err().unwrap();
        assert_eq!(told.code(), "other_ledger");
        let told = told.to_string();
        assert!(told.contains("from s to one"), "{told}");
    }
    assert!(!paths[0].exists());
    open("one", true).unwrap();
}

#[test]
fn what_was_given_and_what_stands_is_known_later() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true).unwrap();
    let ledger = open();
    let (one, other) = (version("v1", "a"), version("v2", "b"));
    ledger.arrived("k", &one, ("v:x", None), None).unwrap();
    let until = |until: &str| ("GOVERNANCE".to_owned(), until.to_owned());
    let lock = Lock {
        retention: Some(until("2099-01-02T03:04:05.6Z")),
        is_held: true,
    };
    ledger
        .gave("k", &one, Given::new("b=2&a=1", &lock))
        .unwrap();
    ledger
        .gave("k", &other, Given::default().with_hold(true))
        .unwrap();
    let pending = ledger.given("k", &other).with_hold(false);
    ledger.giving("k", &other, pending).unwrap();
    ledger.found("cors", "<found/>").unwrap();
    ledger.found("tagging", "<found/>").unwrap();
    ledger.set("cors", "<set/>").unwrap();
    ledger.set("policy", "{}").unwrap();
    ledger.set("policy", "").unwrap();
    drop(ledger);
    let ledger = open();
    let given = ledger.given("k", &one);
    assert_eq!(ledger.may_have("k", &one), given);
    assert!(given.is_held && given.has_tags("a=1&b=2") && !given.has_tags("a=1"));
    assert!(given.has_retention(&until("2099-01-02T03:04:05Z")));
    assert!(!given.has_retention(&until("2099-01-02T03:04:06Z")));
    let given = ledger.given("k", &other);
    assert!(given.has_tags("") && given.is_held && !ledger.may_have("k", &other).is_held);
    ledger.gave("k", &other, pending).unwrap();
    assert_eq!(ledger.may_have("k", &other), Given::default());
    // What arrives anew has what it is given then.
    ledger.arrived("k", &one, ("v:y", None), None).unwrap();
    assert_eq!(ledger.given("k", &one), Given::default());
    assert_eq!(ledger.stands("cors").as_deref(), Some("<set/>"));
    assert_eq!(ledger.stands("tagging").as_deref(), Some("<found/>"));
    assert_eq!(
        (ledger.has_set("tagging"), ledger.stands("policy")),
        (None, None)
    );
    ledger.set("cors", "").unwrap();
    assert_eq!(ledger.stands("cors"), None);
    // No answer says yet whether that is there.
    ledger.setting("policy", "{2}").unwrap();
    ledger.setting("cors", "<never/>").unwrap();
    ledger.set("cors", "<set/>").unwrap();
    drop(ledger);
    let ledger = open();
    assert_eq!(ledger.may_stand("policy").as_deref(), Some("{2}"));
    assert_eq!(
        (ledger.stands("policy"), ledger.may_stand("cors")),
        (None, None)
    );
}

#[test]
fn lines_of_earlier_ledgers_are_known_and_tell_less() {
    let folder = tempfile::tempdir().unwrap();
    let open = || Ledger::open(folder.path(), "s", "t", true).unwrap();
    let of = version("v1", "a");
    let at = hex::encode(source_mark("k", &of));
    let tags = hex::encode(mark(&["a=1"]));
    let begun = r#"{"key":"k","upload_id":"u","compares":true,"part_bytes":5}"#;
    let lines = [
        format!(r#"{{"line":"sending","version":"{at}"}}"#),
        format!(r#"{{"line":"given","version":"{at}","tags":"{tags}","is_held":true}}"#),
        format!(r#"{{"line":"begun","version":"{at}","begun":{begun}}}"#),
    ];
    let path = open().path;
    fs::write(&path, lines.join("\n")).unwrap();
    let ledger = open();
    assert!(ledger.was_sent("k", &of));
    let given = ledger.given("k", &of);
    assert!(given.is_held && given.has_tags("a=1"));
    let lock = Lock::default();
    assert_eq!(given, Given::new("a=1", &lock).with_hold(true));
    let (begun, _) = ledger.upload_of("k", &of).unwrap();
    assert_ne!(begun.headers, mark_of_headers(&[]));
}
