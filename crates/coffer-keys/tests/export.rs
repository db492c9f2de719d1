//! A level's keys exported from one keystore and imported into another.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

use coffer_keys::{
    ExportIdentity, ExportRecipient, KeysError, Keystore, LevelEntry, LevelOptions, MemoryRoot,
    Repair,
};
use coffer_seal::{BlobId, BucketId, LevelId, SecretKey};

/// For these tests only.
const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

struct Scene {
    folder: tempfile::TempDir,
    source: MemoryRoot,
    keystore: Keystore,
}

impl Scene {
    fn new() -> Self {
        let (folder, source) = (tempfile::tempdir().unwrap(), MemoryRoot::new());
        let path = folder.path().join("keystore");
        let keystore = Keystore::create(&path, Box::new(source.clone())).unwrap();
        Self {
            folder,
            source,
            keystore,
        }
    }

    /// A level of two buckets, of which one is being rotated.
    fn add_secret(&self) -> LevelEntry {
        let options = LevelOptions {
            approvals: 2,
            sealed_transfer: true,
            ..LevelOptions::default()
        };
        let label = "s2:c1".parse().unwrap();
        let level = self.keystore.add_level("secret", label, options).unwrap();
        self.keystore
            .add_bucket(BucketId([1; 16]), level.id)
            .unwrap();
        self.keystore
            .add_bucket(BucketId([2; 16]), level.id)
            .unwrap();
        self.keystore.rotate_bucket(BucketId([2; 16])).unwrap();
        level
    }

    fn reopen(&mut self) {
        let path = self.folder.path().join("keystore");
        let (keystore, repair) = Keystore::open(&path, Box::new(self.source.clone())).unwrap();
        assert_eq!(repair, Repair::None);
        self.keystore = keystore;
    }
}

fn identity() -> ExportIdentity {
    IDENTITY.parse().unwrap()
}

#[test]
fn a_level_comes_back_on_another_keystore_with_all_of_its_keys() {
    let (mut from, mut to) = (Scene::new(), Scene::new());
    let level = from.add_secret();
    let bucket_key = from.keystore.bucket_key(BucketId([2; 16])).unwrap();
    let data_key = SecretKey::generate();
    let wrapped = bucket_key.wrap(BlobId([7; 16]), &data_key);
    let export = from
        .keystore
        .export_level(level.id, &[identity().recipient()])
        .unwrap();
    assert!(export.starts_with(b"-----BEGIN AGE ENCRYPTED FILE-----"));
    from.reopen();
    assert_eq!(from.keystore.level(level.id).unwrap().export_count, 1);

    let imported = to
        .keystore
        .import_level(&export, &identity(), None, true)
        .unwrap();
    let expected = LevelEntry {
        imported: true,
        ..level.clone()
    };
    assert_eq!(imported, expected);
    to.reopen();
    assert_eq!(to.keystore.level(level.id), Some(expected));
    assert_eq!(to.keystore.buckets(), from.keystore.buckets());
    let key = to.keystore.bucket_key(BucketId([2; 16])).unwrap();
    assert_eq!(key.unwrap(BlobId([7; 16]), 2, &wrapped).unwrap(), data_key);
    assert_eq!(key.catalog_key(), bucket_key.catalog_key());
    assert!(to.keystore.bucket_key(BucketId([1; 16])).is_ok());
    assert_ne!(to.keystore.system_key(), from.keystore.system_key());
}

#[test]
fn an_export_brings_back_an_erased_level_and_its_receipt_said_so() {
    let scene = Scene::new();
    let level = scene.add_secret();
    let recipient = identity().recipient();
    let export = scene
        .keystore
        .export_level(level.id, std::slice::from_ref(&recipient))
        .unwrap();
    scene.keystore.export_level(level.id, &[recipient]).unwrap();
    let erased = scene.keystore.erase_level(level.id).unwrap();
    let receipt = scene
        .keystore
        .sign_receipt(&erased, coffer_keys::ReceiptDetails::default())
        .unwrap();
    assert_eq!(receipt.erased.level.exports, 2);
    let says_so = |text: &String| text.contains("exported 2 times");
    assert!(receipt.remaining.iter().any(says_so), "{receipt:?}");
    let back = scene
        .keystore
        .import_level(&export, &identity(), Some("secret-again"), true)
        .unwrap();
    assert_eq!((back.name.as_str(), back.id), ("secret-again", level.id));
    assert!(scene.keystore.bucket_key(BucketId([1; 16])).is_ok());
}

#[test]
fn what_is_not_to_be_exported_is_not_even_counted() {
    let scene = Scene::new();
    let options = LevelOptions {
        exportable: false,
        ..LevelOptions::default()
    };
    let label = "s3".parse().unwrap();
    let level = scene.keystore.add_level("sealed", label, options).unwrap();
    let before = scene.keystore.generation();
    let recipient = [identity().recipient()];
    let error = scene.keystore.export_level(level.id, &recipient);
    assert!(matches!(error, Err(KeysError::NotExportable { .. })));
    let error = scene.keystore.export_level(LevelId([9; 16]), &recipient);
    assert!(matches!(error, Err(KeysError::NoSuchLevel { .. })));
    let default = scene.keystore.level_named("default").unwrap().id;
    let error = scene.keystore.export_level(default, &[]);
    assert!(matches!(error, Err(KeysError::ExportNotSealed { .. })));
    assert_eq!(scene.keystore.generation(), before);
}

#[test]
fn an_export_for_others_or_changed_opens_nothing() {
    let (from, to) = (Scene::new(), Scene::new());
    let level = from.add_secret();
    let other: ExportRecipient = "age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"
        .parse()
        .unwrap();
    let before = to.keystore.generation();
    let fails = |export: &[u8]| {
        let error = to.keystore.import_level(export, &identity(), None, true);
        assert!(matches!(error, Err(KeysError::ExportDidNotOpen)));
    };
    fails(&from.keystore.export_level(level.id, &[other]).unwrap());
    let recipient = [identity().recipient()];
    let export = from.keystore.export_level(level.id, &recipient).unwrap();
    for offset in (40..export.len() - 40).step_by(53) {
        let mut changed = export.clone();
        changed[offset] = if changed[offset] == b'A' { b'B' } else { b'A' };
        fails(&changed);
    }
    fails(&export[..export.len() / 2]);
    fails(b"");
    assert_eq!(to.keystore.generation(), before);
}

#[test]
fn an_import_takes_nobody_s_place() {
    let (from, to) = (Scene::new(), Scene::new());
    let level = from.add_secret();
    let recipient = [identity().recipient()];
    let export = from.keystore.export_level(level.id, &recipient).unwrap();
    let import = |scene: &Scene, name| {
        scene
            .keystore
            .import_level(&export, &identity(), name, true)
    };
    let present = import(&from, Some("other")).unwrap_err();
    assert!(matches!(present, KeysError::LevelPresent { .. }));
    let named = import(&to, Some("default")).unwrap_err();
    assert!(matches!(named, KeysError::LevelExists { .. }), "{named}");
    let no_name = import(&to, Some("No Name")).unwrap_err();
    assert!(matches!(no_name, KeysError::LevelName), "{no_name}");
    let region = import(&to, Some("eu-west-1")).unwrap_err();
    let is_refused = matches!(region, KeysError::LevelNameIsRegion { .. });
    assert!(is_refused, "{region}");
    let default = to.keystore.level_named("default").unwrap().id;
    to.keystore.add_bucket(BucketId([2; 16]), default).unwrap();
    let bucket = import(&to, None).unwrap_err();
    assert!(matches!(bucket, KeysError::BucketExists { .. }), "{bucket}");
    assert_eq!(to.keystore.levels().len(), 1);
}

#[test]
fn what_is_not_of_age_is_refused_without_showing_it() {
    for text in ["", "age1", "AGE-SECRET-KEY-1QQQ", IDENTITY] {
        assert!(matches!(
            text.parse::<ExportRecipient>(),
            Err(KeysError::ExportRecipient)
        ));
    }
    let error = "age1qqq".parse::<ExportIdentity>().unwrap_err();
    assert!(matches!(error, KeysError::ExportIdentity), "{error}");
    assert_eq!(format!("{:?}", identity()), "ExportIdentity(redacted)");
}

/// A keystore that goes along with a sealed copy.
mod carried {
    use std::collections::BTreeSet;

    use coffer_keys::{CarriedKeystore, FileRoot, KeyFolder, SourceSecrets};

    use super::*;

    fn placed(carried: &CarriedKeystore) -> (tempfile::TempDir, Keystore) {
        let folder = tempfile::tempdir().unwrap();
        carried.place(folder.path()).unwrap();
        let secrets = SourceSecrets::default();
        let opened = KeyFolder::new(folder.path()).open(None, &secrets).unwrap();
        (folder, opened.0)
    }

    #[test]
    fn it_opens_for_its_recipients_with_the_levels_that_went_along_only() {
        let scene = Scene::new();
        let first = scene.keystore.levels()[0].clone();
        let (keystore, secret) = (&scene.keystore, scene.add_secret());
        keystore.add_bucket(BucketId([3; 16]), first.id).unwrap();
        let chosen = BTreeSet::from([secret.id]);
        keystore.count_exports(&chosen).unwrap();
        assert_eq!(keystore.level(secret.id).unwrap().export_count, 1);
        assert_eq!(keystore.level(first.id).unwrap().export_count, 0);
        let bucket_key = keystore.bucket_key(BucketId([2; 16])).unwrap();
        let data_key = SecretKey::generate();
        let wrapped = bucket_key.wrap(BlobId([7; 16]), &data_key);
        let recipients = [identity().recipient()];
        let sealed = keystore.seal_carried(Some(&chosen), &recipients).unwrap();
        assert!(CarriedKeystore::is_for_recipients(&sealed.bytes));
        assert!(CarriedKeystore::read(&sealed.bytes, None).is_err());
        let carried = CarriedKeystore::read(&sealed.bytes, Some(&identity())).unwrap();
        assert_eq!(carried.generation(), keystore.generation());
        assert!(
            !keystore.opens_carried(&carried),
            "the server's root key goes nowhere"
        );
        let (_folder, opened) = placed(&carried);
        assert_eq!(opened.id(), keystore.id());
        assert_eq!(opened.system_key(), keystore.system_key());
        let key = opened.bucket_key(BucketId([2; 16])).unwrap();
        let found = key
            .unwrap(BlobId([7; 16]), key.generation(), &wrapped)
            .unwrap();
        assert_eq!(found, data_key);
        assert!(opened.bucket_key(BucketId([3; 16])).is_err());
        assert!(opened.level(first.id).is_none());
    }

    #[test]
    fn without_recipients_the_root_key_opens_it_and_after_an_erase_no_longer() {
        let folder = tempfile::tempdir().unwrap();
        let root = FileRoot::new(folder.path().join("root.key"));
        let path = folder.path().join("keystore");
        let keystore = Keystore::create(&path, Box::new(root)).unwrap();
        let level = keystore.levels()[0].id;
        let chosen = BTreeSet::from([level]);
        keystore.add_bucket(BucketId([3; 16]), level).unwrap();
        let sealed = keystore.seal_carried(Some(&chosen), &[]).unwrap();
        let carried = CarriedKeystore::read(&sealed.bytes, None).unwrap();
        assert!(keystore.opens_carried(&carried));
        keystore.erase_bucket(BucketId([3; 16])).unwrap();
        assert!(!keystore.opens_carried(&carried));
        let newer = keystore.seal_carried(Some(&chosen), &[]).unwrap();
        let newer = CarriedKeystore::read(&newer.bytes, None).unwrap();
        assert!(keystore.opens_carried(&newer) && newer.generation() > carried.generation());
    }

    #[test]
    fn what_is_cut_off_or_altered_is_none() {
        let scene = Scene::new();
        let level = scene.keystore.levels()[0].id;
        let chosen = BTreeSet::from([level]);
        for recipients in [vec![], vec![identity().recipient()]] {
            let sealed = scene
                .keystore
                .seal_carried(Some(&chosen), &recipients)
                .unwrap();
            let middle = sealed.bytes.len() / 2;
            let mut altered = sealed.bytes.clone();
            altered[middle] ^= 1;
            for bytes in [&sealed.bytes[..middle], &altered, b""] {
                assert!(CarriedKeystore::read(bytes, Some(&identity())).is_err());
            }
        }
    }

    #[test]
    fn a_level_that_forbids_exports_goes_nowhere() {
        let scene = Scene::new();
        let options = LevelOptions {
            exportable: false,
            ..LevelOptions::default()
        };
        let label = "s2:c1".parse().unwrap();
        let level = scene.keystore.add_level("kept", label, options).unwrap();
        let error = scene.keystore.count_exports(&BTreeSet::from([level.id]));
        assert!(matches!(error, Err(KeysError::NotExportable { .. })));
        let none = BTreeSet::from([LevelId([9; 16])]);
        let error = scene.keystore.count_exports(&none);
        assert!(matches!(error, Err(KeysError::NoSuchLevel { .. })));
    }
}
