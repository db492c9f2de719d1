//! A data folder's root-key source: recorded, found again, moved.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_keys::{
    FileRoot, KeyFolder, KeysError, Keystore, Repair, RootSource, SourceSecrets, SourceSpec,
    TokenSetupError,
};
use coffer_seal::BucketId;
use tempfile::TempDir;

const BUCKET: BucketId = BucketId([1; 16]);

fn passphrase(passphrase: &str) -> SourceSecrets {
    SourceSecrets {
        passphrase: Some(passphrase.as_bytes().to_vec().into()),
        pin: None,
    }
}

fn none() -> SourceSecrets {
    SourceSecrets::default()
}

/// A folder with a keystore of one bucket, and that bucket's catalog key.
fn folder(source: Option<&SourceSpec>, secrets: &SourceSecrets) -> (TempDir, Vec<u8>) {
    let folder = tempfile::tempdir().unwrap();
    let keystore = KeyFolder::new(folder.path())
        .create(source, secrets)
        .unwrap();
    let level = keystore.levels()[0].id;
    let key = keystore.add_bucket(BUCKET, level).unwrap().catalog_key();
    (folder, key.expose().to_vec())
}

fn opens(folder: &Path, secrets: &SourceSecrets, catalog_key: &[u8]) -> Keystore {
    let keys = KeyFolder::new(folder);
    let read_only = keys.open_read_only(None, secrets).unwrap();
    let (keystore, repair) = keys.open(None, secrets).unwrap();
    assert_eq!(repair, Repair::None);
    for keystore in [&read_only, &keystore] {
        let key = keystore.bucket_key(BUCKET).unwrap().catalog_key();
        assert_eq!(key.expose().as_slice(), catalog_key);
    }
    keystore
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn without_a_word_it_is_the_file_and_nothing_is_recorded() {
    let (folder, key) = folder(None, &none());
    assert_eq!(names(folder.path()), ["keystore", "root.key"]);
    let record = KeyFolder::new(folder.path()).record().unwrap();
    assert_eq!(
        (record.current(), record.next()),
        (&SourceSpec::File(None), None)
    );
    opens(folder.path(), &none(), &key);
    let same = KeyFolder::new(folder.path()).open(Some(&SourceSpec::File(None)), &none());
    assert!(same.is_ok());
}

#[test]
fn another_source_is_recorded_and_found_again() {
    let spec = SourceSpec::Passphrase;
    let (folder, key) = folder(Some(&spec), &passphrase("one"));
    assert_eq!(
        names(folder.path()),
        ["keystore", "keystore.source", "root.passphrase"]
    );
    for name in names(folder.path()) {
        let mode = fs::metadata(folder.path().join(&name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    opens(folder.path(), &passphrase("one"), &key);
    let keys = KeyFolder::new(folder.path());
    assert!(keys.record().unwrap().needs_passphrase());
    let open = |source: Option<&SourceSpec>, secrets: SourceSecrets| {
        keys.open(source, &secrets).unwrap_err()
    };
    assert!(matches!(open(None, none()), KeysError::PassphraseMissing));
    let wrong = open(None, passphrase("two"));
    assert!(
        matches!(wrong, KeysError::WrongPassphrase { .. }),
        "{wrong}"
    );
    let other = open(Some(&SourceSpec::File(None)), none());
    assert!(matches!(other, KeysError::OtherSource { .. }), "{other}");

    // A record that was lost can be told, and is made anew.
    fs::remove_file(folder.path().join("keystore.source")).unwrap();
    let lost = open(None, passphrase("one"));
    assert!(matches!(lost, KeysError::RootMissing { .. }), "{lost}");
    keys.open(Some(&spec), &passphrase("one")).unwrap();
    opens(folder.path(), &passphrase("one"), &key);
}

#[test]
fn it_moves_from_source_to_source_while_it_is_in_use() {
    let (folder, key) = folder(None, &none());
    let path = folder.path();
    let elsewhere = tempfile::tempdir().unwrap();
    let stick = elsewhere.path().join("my root.key");
    let keys = KeyFolder::new(path);
    let (keystore, _) = keys.open(None, &none()).unwrap();
    let old_copy = fs::read(path.join("keystore")).unwrap();
    let old_root = fs::read(path.join("root.key")).unwrap();

    let moves: [(SourceSpec, SourceSecrets, &[&str]); 4] = [
        (
            SourceSpec::Passphrase,
            passphrase("one"),
            &["root.passphrase"],
        ),
        (
            SourceSpec::Passphrase,
            passphrase("two"),
            &["root-2.passphrase"],
        ),
        (SourceSpec::File(Some(stick.clone())), none(), &[]),
        (SourceSpec::File(None), none(), &["root.key"]),
    ];
    for (spec, secrets, files) in &moves {
        keys.move_root(&keystore, spec, secrets).unwrap();
        assert_eq!(keys.source().as_ref(), Some(spec));
        let mut expected = vec!["keystore", "keystore.source"];
        expected.extend(*files);
        assert_eq!(names(path), expected, "{spec}");
        // As a server that is started again would, while this one goes on.
        let record = KeyFolder::new(path).record().unwrap();
        assert_eq!((record.current(), record.next()), (spec, None));
        opens(path, secrets, &key);
    }
    assert!(!stick.exists());
    keystore.rotate_root().unwrap();
    let same = keys
        .move_root(&keystore, &SourceSpec::File(None), &none())
        .unwrap_err();
    assert!(matches!(same, KeysError::SameSource { .. }), "{same}");

    // What was copied before the moves still opens only with what was copied with it.
    fs::write(path.join("keystore"), old_copy).unwrap();
    let other = Keystore::open(
        &path.join("keystore"),
        Box::new(FileRoot::new(path.join("root.key"))),
    );
    assert!(matches!(other, Err(KeysError::StaleRoot(_))));
    fs::write(path.join("root.key"), old_root).unwrap();
    opens(path, &none(), &key);
}

/// As after a power cut: both lines are recorded, and either source may have the key.
#[test]
fn a_move_that_was_interrupted_is_completed_or_undone() {
    for is_moved in [false, true] {
        let (folder, key) = folder(None, &none());
        let path = folder.path();
        let keys = KeyFolder::new(path);
        let (keystore, _) = keys.open(None, &none()).unwrap();
        let old_root = fs::read(path.join("root.key")).unwrap();
        if is_moved {
            keys.move_root(&keystore, &SourceSpec::Passphrase, &passphrase("one"))
                .unwrap();
            fs::write(path.join("root.key"), old_root).unwrap();
            let private = fs::Permissions::from_mode(0o600);
            fs::set_permissions(path.join("root.key"), private).unwrap();
        } else {
            let unused = coffer_keys::PassphraseRoot::new(
                path.join("root.passphrase"),
                b"one".to_vec().into(),
            );
            unused.add().unwrap();
        }
        drop(keystore);
        let lines = "coffer root-key source v1\nfile root.key\npassphrase root.passphrase\n";
        fs::write(path.join("keystore.source"), lines).unwrap();
        assert!(keys.record().unwrap().needs_passphrase());
        opens(path, &passphrase("one"), &key);
        let record = keys.record().unwrap();
        let (kept, gone, spec) = if is_moved {
            ("root.passphrase", "root.key", SourceSpec::Passphrase)
        } else {
            ("root.key", "root.passphrase", SourceSpec::File(None))
        };
        assert_eq!((record.current(), record.next()), (&spec, None));
        assert!(path.join(kept).exists() && !path.join(gone).exists());
    }
}

#[test]
fn a_move_that_fails_leaves_the_old_source_and_can_be_tried_again() {
    let (folder, key) = folder(None, &none());
    let path = folder.path();
    let keys = KeyFolder::new(path);
    let (keystore, _) = keys.open(None, &none()).unwrap();
    let nowhere = SourceSpec::File(Some("/nowhere/at/all/root.key".into()));
    for _ in 0..2 {
        keys.move_root(&keystore, &nowhere, &none()).unwrap_err();
        let missing = keys
            .move_root(&keystore, &SourceSpec::Passphrase, &none())
            .unwrap_err();
        assert!(matches!(missing, KeysError::PassphraseMissing));
        opens(path, &none(), &key);
    }
    // As after a failure that left a key in the new source: another move begins by removing it.
    coffer_keys::PassphraseRoot::new(path.join("root.passphrase"), b"two".to_vec().into())
        .add()
        .unwrap();
    let lines = "coffer root-key source v1\nfile root.key\npassphrase root.passphrase\n";
    fs::write(path.join("keystore.source"), lines).unwrap();
    keys.move_root(&keystore, &SourceSpec::Passphrase, &passphrase("one"))
        .unwrap();
    opens(path, &passphrase("one"), &key);
}

#[test]
fn keys_of_others_are_left_alone() {
    let other = tempfile::tempdir().unwrap();
    let taken = other.path().join("root.key");
    let theirs = FileRoot::new(&taken).add().unwrap();
    let spec = SourceSpec::File(Some(taken.clone()));
    let empty = tempfile::tempdir().unwrap();
    let error = KeyFolder::new(empty.path())
        .create(Some(&spec), &none())
        .unwrap_err();
    assert!(matches!(error, KeysError::RootTaken { .. }), "{error}");
    assert_eq!(names(empty.path()), [""; 0]);
    let (folder, _) = folder(None, &none());
    let keys = KeyFolder::new(folder.path());
    let (keystore, _) = keys.open(None, &none()).unwrap();
    let error = keys.move_root(&keystore, &spec, &none()).unwrap_err();
    assert!(matches!(error, KeysError::RootTaken { .. }), "{error}");
    assert_eq!(FileRoot::new(&taken).candidates().unwrap(), [theirs]);
}

#[test]
fn a_first_start_that_was_interrupted_goes_on_as_it_began() {
    let folder = tempfile::tempdir().unwrap();
    let keys = KeyFolder::new(folder.path());
    keys.create(Some(&SourceSpec::Passphrase), &passphrase("one"))
        .unwrap();
    fs::remove_file(keys.keystore()).unwrap();
    let again = KeyFolder::new(folder.path());
    again.create(None, &passphrase("one")).unwrap();
    assert_eq!(again.source(), Some(SourceSpec::Passphrase));
    again
        .open(Some(&SourceSpec::Passphrase), &passphrase("one"))
        .unwrap();
}

#[test]
fn a_pin_comes_from_a_file_of_its_owner_s() {
    let folder = tempfile::tempdir().unwrap();
    let pin = folder.path().join("pin");
    fs::write(&pin, "648219\n").unwrap();
    let text = format!(
        "pkcs11:token=a?module-path=/nowhere.so&pin-source={}",
        pin.display()
    );
    let spec: SourceSpec = text.parse().unwrap();
    let create = |mode| {
        fs::set_permissions(&pin, fs::Permissions::from_mode(mode)).unwrap();
        KeyFolder::new(folder.path())
            .create(Some(&spec), &none())
            .unwrap_err()
    };
    assert!(matches!(
        create(0o640),
        KeysError::TokenSetup(TokenSetupError::PinExposed { mode: 0o640, .. })
    ));
    let private = create(0o600);
    assert!(
        matches!(
            private,
            KeysError::TokenSetup(TokenSetupError::Module { .. })
        ),
        "it went on to the module: {private}"
    );
    fs::write(&pin, "\n").unwrap();
    assert!(matches!(create(0o600), KeysError::PinMissing));
}
