//! Levels: made, erased, rotated.

use std::fs;
use std::path::{Path, PathBuf};

use coffer_keys::limits::SLOT_BYTES;
use coffer_keys::{
    ErasedWhat, FileRoot, KeysError, Keystore, LevelOptions, MemoryRoot, Repair, RootSource,
};
use coffer_label::Label;
use coffer_seal::{BlobId, BucketId, LevelId, SecretKey};

struct Scene {
    folder: tempfile::TempDir,
    keystore: Keystore,
}

impl Scene {
    /// Buckets 0 to 9 in level `default`, 10 to 19 in `secret`.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let source = Box::new(FileRoot::new(folder.path().join("root.key")));
        let keystore =
            Keystore::create(&folder.path().join("keystore"), source).expect("a new keystore");
        keystore
            .add_level("secret", label("s2:c1"), LevelOptions::default())
            .expect("a level");
        let scene = Self { folder, keystore };
        for number in 0..20 {
            let name = if number < 10 { "default" } else { "secret" };
            let level = scene.level(name);
            scene
                .keystore
                .add_bucket(BucketId([number; 16]), level)
                .expect("a bucket");
        }
        scene
    }

    fn level(&self, name: &str) -> LevelId {
        self.keystore.level_named(name).expect("it was made").id
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("keystore")
    }

    fn source(&self) -> FileRoot {
        FileRoot::new(self.folder.path().join("root.key"))
    }

    /// A copy of the data folder, as in a backup.
    fn copy_to(&self, folder: &Path) {
        for name in ["keystore", "root.key"] {
            fs::copy(self.folder.path().join(name), folder.join(name)).expect("a copy");
        }
    }

    fn reopened(&self) -> Keystore {
        let (keystore, repair) =
            Keystore::open(&self.path(), Box::new(self.source())).expect("it opens");
        assert_eq!(repair, Repair::None);
        keystore
    }
}

fn label(text: &str) -> Label {
    text.parse().expect("a label")
}

#[test]
fn levels_are_made_with_their_options_and_come_back() {
    let scene = Scene::new();
    let options = LevelOptions {
        exportable: false,
        approvals: 2,
        audit_data: true,
        sealed_transfer: true,
        ..LevelOptions::default()
    };
    let name = "x".repeat(63);
    let made = scene
        .keystore
        .add_level(&name, label("s3:c1,c9"), options)
        .unwrap();
    assert_eq!((made.generation, made.export_count), (1, 0));
    assert_eq!((made.options, made.imported), (options, false));
    let again = scene.reopened();
    assert_eq!(again.level_named(&name), Some(made.clone()));
    assert_eq!(again.level(made.id), Some(made));
    assert_eq!(again.levels().len(), 3);
}

#[test]
fn what_is_no_level_is_refused() {
    let scene = Scene::new();
    let add = |name: &str, approvals| {
        let options = LevelOptions {
            approvals,
            ..LevelOptions::default()
        };
        scene
            .keystore
            .add_level(name, Label::LOWEST, options)
            .unwrap_err()
    };
    let before = scene.keystore.generation();
    for name in ["", "Secret", "a b", "a_b", "ü", &"x".repeat(64)] {
        assert!(matches!(add(name, 1), KeysError::LevelName), "{name}");
    }
    for name in ["us-east-1", "eu-west-1", "aws-global"] {
        let error = add(name, 1);
        let is_refused = matches!(error, KeysError::LevelNameIsRegion { .. });
        assert!(is_refused && error.to_string().contains(name), "{error}");
    }
    for approvals in [0, 10] {
        let error = add("fine", approvals);
        assert!(matches!(error, KeysError::Approvals { .. }), "{error}");
    }
    let error = add("default", 1);
    assert!(matches!(error, KeysError::LevelExists { .. }), "{error}");
    assert_eq!(scene.keystore.generation(), before);
}

#[test]
fn an_erased_level_is_gone_with_its_buckets_and_nothing_else_is() {
    let scene = Scene::new();
    let secret = scene.keystore.level_named("secret").unwrap();
    let kept: Vec<_> = (0..10)
        .map(|number| scene.keystore.bucket_key(BucketId([number; 16])).unwrap())
        .collect();
    let (system_key, before) = (scene.keystore.system_key(), scene.keystore.generation());
    let old_root = fs::read(scene.source().path()).unwrap();

    let erased = scene.keystore.erase_level(secret.id).unwrap();
    assert_eq!((erased.what, &erased.level), (ErasedWhat::Level, &secret));
    let ids: Vec<_> = erased.buckets.iter().map(|bucket| bucket.id).collect();
    assert_eq!(
        ids,
        (10..20)
            .map(|number| BucketId([number; 16]))
            .collect::<Vec<_>>()
    );
    assert_eq!(erased.keystore_generation, before + 1);
    assert_eq!(erased.keystore_id, scene.keystore.id());

    for keystore in [&scene.keystore, &scene.reopened()] {
        assert_eq!(keystore.level_named("secret"), None);
        assert_eq!(keystore.system_key(), system_key);
        let gone = keystore.bucket_key(BucketId([12; 16])).unwrap_err();
        assert!(matches!(gone, KeysError::NoSuchBucket { .. }), "{gone}");
        for key in &kept {
            let again = keystore.bucket_key(key.bucket_id()).unwrap();
            assert_eq!(again.catalog_key(), key.catalog_key());
        }
    }
    let new_root = fs::read(scene.source().path()).unwrap();
    assert!(new_root != old_root, "the root key is another one");
    let image = fs::read(scene.path()).unwrap();
    assert!(image[..SLOT_BYTES] == image[SLOT_BYTES..], "both copies");
    let again = scene.keystore.erase_level(secret.id).unwrap_err();
    assert!(matches!(again, KeysError::NoSuchLevel { .. }), "{again}");
}

#[test]
fn an_old_copy_of_the_keystore_does_not_open_with_the_new_root_key() {
    let scene = Scene::new();
    let backup = tempfile::tempdir().unwrap();
    scene.copy_to(backup.path());
    scene.keystore.erase_bucket(BucketId([3; 16])).unwrap();
    let old = backup.path().join("keystore");
    let opened = Keystore::open_read_only(&old, Box::new(scene.source()));
    assert!(matches!(opened, Err(KeysError::StaleRoot(_))));
    // What the receipt says of the file source is true: with both files of old it does open.
    let old_root = Box::new(FileRoot::new(backup.path().join("root.key")));
    let opened = Keystore::open_read_only(&old, old_root).unwrap();
    assert!(opened.bucket_key(BucketId([3; 16])).is_ok());
    let medium = scene.source().medium();
    assert!(medium.remaining.contains("can still open"), "{medium:?}");
}

#[test]
fn an_erased_bucket_leaves_its_level() {
    let scene = Scene::new();
    let erased = scene.keystore.erase_bucket(BucketId([15; 16])).unwrap();
    assert_eq!(erased.what, ErasedWhat::Bucket);
    assert_eq!(erased.level.name, "secret");
    assert_eq!(erased.buckets.len(), 1);
    assert_eq!(erased.buckets[0].id, BucketId([15; 16]));
    assert_eq!(scene.reopened().buckets().len(), 19);
    assert!(scene.reopened().level_named("secret").is_some());
}

#[test]
fn the_root_key_changes_and_all_other_keys_stay() {
    let scene = Scene::new();
    let before = scene.source().candidates().unwrap();
    let key = scene.keystore.bucket_key(BucketId([7; 16])).unwrap();
    scene.keystore.rotate_root().unwrap();
    let after = scene.source().candidates().unwrap();
    assert!(after.len() == 1 && before != after);
    let again = scene.reopened().bucket_key(BucketId([7; 16])).unwrap();
    assert_eq!(again.catalog_key(), key.catalog_key());
}

#[test]
fn a_rotated_level_has_a_new_key_and_the_same_bucket_keys() {
    let scene = Scene::new();
    let key = scene.keystore.bucket_key(BucketId([17; 16])).unwrap();
    let rotated = scene.keystore.rotate_level(scene.level("secret")).unwrap();
    assert_eq!(rotated.generation, 2);
    for keystore in [&scene.keystore, &scene.reopened()] {
        assert_eq!(keystore.level_named("secret").unwrap().generation, 2);
        assert_eq!(keystore.level_named("default").unwrap().generation, 1);
        let again = keystore.bucket_key(BucketId([17; 16])).unwrap();
        assert_eq!(again.catalog_key(), key.catalog_key());
        assert!(keystore.bucket_key(BucketId([7; 16])).is_ok());
    }
    let nothing = scene
        .keystore
        .rotate_level(LevelId([0xEE; 16]))
        .unwrap_err();
    assert!(matches!(nothing, KeysError::NoSuchLevel { .. }));
}

#[test]
fn a_rotated_bucket_unwraps_with_both_generations_until_one_is_retired() {
    let scene = Scene::new();
    let (bucket, blob) = (BucketId([5; 16]), BlobId([0xB2; 16]));
    let data_key = SecretKey::generate();
    let old = scene.keystore.bucket_key(bucket).unwrap();
    let wrapped_by_old = old.wrap(blob, &data_key);

    let new = scene.keystore.rotate_bucket(bucket).unwrap();
    assert_eq!((new.generation(), new.older_generation()), (2, Some(1)));
    let wrapped_by_new = new.wrap(blob, &data_key);
    assert!(matches!(
        scene.keystore.rotate_bucket(bucket).unwrap_err(),
        KeysError::RotationUnderWay { .. }
    ));
    // A rotation of the level in between takes both generations along.
    scene.keystore.rotate_level(scene.level("default")).unwrap();
    for key in [new, scene.reopened().bucket_key(bucket).unwrap()] {
        assert_eq!(key.unwrap(blob, 1, &wrapped_by_old).unwrap(), data_key);
        assert_eq!(key.unwrap(blob, 2, &wrapped_by_new).unwrap(), data_key);
        assert!(key.unwrap(blob, 2, &wrapped_by_old).is_err());
        let rewrapped = key.rewrap(blob, 1, &wrapped_by_old).unwrap();
        assert_eq!(key.unwrap(blob, 2, &rewrapped).unwrap(), data_key);
        assert_eq!(key.catalog_key(), old.catalog_key());
    }

    for not_older in [0, 2, 3] {
        let error = scene
            .keystore
            .retire_bucket_generation(bucket, not_older)
            .unwrap_err();
        assert!(matches!(error, KeysError::NoSuchGeneration { .. }));
    }
    scene.keystore.retire_bucket_generation(bucket, 1).unwrap();
    let key = scene.reopened().bucket_key(bucket).unwrap();
    assert_eq!((key.generation(), key.older_generation()), (2, None));
    assert_eq!(key.unwrap(blob, 2, &wrapped_by_new).unwrap(), data_key);
    assert!(matches!(
        key.unwrap(blob, 1, &wrapped_by_old),
        Err(KeysError::OtherGeneration { wrapped: 1, own: 2 })
    ));
    assert_eq!(
        scene.keystore.rotate_bucket(bucket).unwrap().generation(),
        3
    );
}

#[test]
fn a_source_that_can_t_add_leaves_everything_as_it_was() {
    let scene = Scene::new();
    let source = MemoryRoot::new();
    let path = scene.folder.path().join("other");
    let keystore = Keystore::create(&path, Box::new(source.clone())).unwrap();
    keystore.settle().unwrap();
    // A second key from elsewhere: it goes when the keystore is next changed, and then all works.
    source.add().unwrap();
    let level = keystore.levels()[0].id;
    let error = keystore.erase_level(level).unwrap_err();
    assert!(matches!(error, KeysError::RootUnsettled { .. }), "{error}");
    assert_eq!(keystore.levels().len(), 1);
    keystore.erase_level(level).unwrap();
    assert_eq!(source.candidates().unwrap().len(), 1);
    assert!(keystore.levels().is_empty());
}
