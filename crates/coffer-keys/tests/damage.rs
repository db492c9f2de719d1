//! A keystore file that something happened to.

use std::fs;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{SHA256, digest};
use coffer_keys::limits::SLOT_BYTES;
use coffer_keys::{KeysError, Keystore, MemoryRoot, Repair};
use coffer_seal::BucketId;

const HEADER_BYTES: usize = 40;
const SHA256_BYTES: usize = 32;

struct Scene {
    _folder: tempfile::TempDir,
    path: PathBuf,
    root: MemoryRoot,
    /// The file, whole.
    image: Vec<u8>,
}

impl Scene {
    /// A keystore of five buckets.
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder for the test");
        let (path, root) = (folder.path().join("keystore"), MemoryRoot::new());
        let keystore = Keystore::create(&path, Box::new(root.clone())).expect("a new keystore");
        let level = keystore.levels()[0].id;
        for number in 0..5 {
            keystore
                .add_bucket(BucketId([number; 16]), level)
                .expect("a bucket");
        }
        let image = fs::read(&path).expect("the keystore");
        Self {
            _folder: folder,
            path,
            root,
            image,
        }
    }

    /// How long a copy is, in bytes.
    fn copy_bytes(&self) -> usize {
        copy_bytes(&self.image)
    }

    fn write(&self, image: &[u8]) {
        fs::write(&self.path, image).expect("the keystore is writable");
    }

    fn read(&self) -> Vec<u8> {
        fs::read(&self.path).expect("the keystore is readable")
    }

    fn open(&self) -> Result<(Keystore, Repair), KeysError> {
        Keystore::open(&self.path, Box::new(self.root.clone()))
    }

    /// Opens a damaged file, and expects it to be as it was once mended.
    #[track_caller]
    fn mends(&self, damaged: &[u8], expected: Repair) {
        self.write(damaged);
        let (keystore, repair) = self.open().expect("one copy is whole");
        assert_eq!(repair, expected);
        assert_eq!(keystore.buckets().len(), 5);
        assert!(keystore.bucket_key(BucketId([3; 16])).is_ok());
        assert!(self.read() == self.image, "the file is as it was");
    }
}

fn copy_bytes(slot: &[u8]) -> usize {
    let sealed: [u8; 4] = slot[36..40].try_into().expect("four bytes");
    HEADER_BYTES + u32::from_be_bytes(sealed) as usize + SHA256_BYTES
}

/// Gives a copy another format number, and the checksum that goes with it.
fn set_format(slot: &mut [u8], format: u32, with_checksum: bool) {
    let end = copy_bytes(slot);
    slot[8..12].copy_from_slice(&format.to_be_bytes());
    if with_checksum {
        let checksum = digest(&SHA256, &slot[..end - SHA256_BYTES]);
        slot[end - SHA256_BYTES..end].copy_from_slice(checksum.as_ref());
    }
}

#[test]
fn damage_anywhere_in_one_copy_is_mended_from_the_other() {
    let scene = Scene::new();
    let copy_bytes = scene.copy_bytes();
    // Every byte of the header and the checksum, and the body in steps.
    let body = (HEADER_BYTES..copy_bytes - SHA256_BYTES).step_by(61);
    let offsets: Vec<usize> = (0..HEADER_BYTES)
        .chain(body)
        .chain(copy_bytes - SHA256_BYTES..copy_bytes)
        .collect();
    for (slot, repair) in [(0, Repair::CopyA), (SLOT_BYTES, Repair::CopyB)] {
        for offset in &offsets {
            let mut damaged = scene.image.clone();
            damaged[slot + offset] ^= 0x40;
            scene.mends(&damaged, repair);
        }
    }
}

#[test]
fn a_copy_that_is_gone_or_cut_off_is_mended() {
    let scene = Scene::new();
    let copy_bytes = scene.copy_bytes();
    let mut zeroed = scene.image.clone();
    zeroed[..SLOT_BYTES].fill(0);
    scene.mends(&zeroed, Repair::CopyA);
    for kept in [SLOT_BYTES, SLOT_BYTES + 20, SLOT_BYTES + copy_bytes - 1] {
        scene.write(&scene.image[..kept]);
        let (keystore, repair) = scene.open().unwrap();
        assert_eq!((repair, keystore.buckets().len()), (Repair::CopyB, 5));
        // The file ends with the copy now; what would follow are zeros.
        assert_eq!(scene.read(), scene.image[..SLOT_BYTES + copy_bytes]);
        assert_eq!(scene.open().unwrap().1, Repair::None);
    }
}

#[test]
fn bytes_behind_a_copy_become_zeros() {
    let scene = Scene::new();
    for (slot, repair) in [(0, Repair::CopyA), (SLOT_BYTES, Repair::CopyB)] {
        let mut damaged = scene.image.clone();
        damaged[slot + scene.copy_bytes() + 5000] = 1;
        scene.mends(&damaged, repair);
        damaged[slot + SLOT_BYTES - 1] = 1;
        scene.mends(&damaged, repair);
    }
}

#[test]
fn two_damaged_copies_are_an_error_that_says_so() {
    let scene = Scene::new();
    let mut damaged = scene.image.clone();
    damaged[100] ^= 1;
    damaged[SLOT_BYTES + 200] ^= 1;
    scene.write(&damaged);
    let error = scene.open().unwrap_err();
    assert!(matches!(error, KeysError::Damaged { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("damaged") && text.contains("backup"),
        "{text}"
    );
    assert!(scene.read() == damaged, "nothing was touched");
    for nonsense in [&b""[..], b"not a keystore", &[0xFF; 100_000]] {
        scene.write(nonsense);
        assert!(matches!(scene.open(), Err(KeysError::Damaged { .. })));
    }
}

#[test]
fn a_newer_format_is_refused_with_its_number() {
    let scene = Scene::new();
    let newer = |result: Result<(Keystore, Repair), KeysError>| match result.unwrap_err() {
        KeysError::NewerFormat { found, known } => (found, known),
        other => panic!("{other}"),
    };
    // An upgrade that was interrupted: one copy is newer and whole.
    for slot in [0, SLOT_BYTES] {
        let mut image = scene.image.clone();
        set_format(&mut image[slot..], 2, true);
        scene.write(&image);
        assert_eq!(newer(scene.open()), (2, 1));
        assert!(scene.read() == image, "nothing was touched");
    }
    // A format whose checksum is of another kind.
    let mut image = scene.image.clone();
    set_format(&mut image, 7, false);
    set_format(&mut image[SLOT_BYTES..], 7, false);
    scene.write(&image);
    assert_eq!(newer(scene.open()), (7, 1));
    assert!(scene.open().unwrap_err().to_string().contains("format 7"));
}

#[test]
fn an_older_copy_is_brought_up() {
    let scene = Scene::new();
    let (keystore, _) = scene.open().unwrap();
    keystore.destroy_bucket(BucketId([4; 16])).unwrap();
    let newer = scene.read();
    for (older_slot, repair) in [
        (0..SLOT_BYTES, Repair::CopyA),
        (SLOT_BYTES..2 * SLOT_BYTES, Repair::CopyB),
    ] {
        let mut image = newer.clone();
        image[older_slot.clone()].copy_from_slice(&scene.image[older_slot]);
        scene.write(&image);
        let (keystore, found) = scene.open().unwrap();
        assert_eq!((found, keystore.buckets().len()), (repair, 4));
        assert!(scene.read() == newer);
    }
}

#[test]
fn an_older_copy_never_stands_in_for_a_newer_one_of_another_root_key() {
    let scene = Scene::new();
    let other = Scene::new();
    let (keystore, _) = other.open().unwrap();
    keystore.destroy_bucket(BucketId([0; 16])).unwrap();
    let mut image = scene.image.clone();
    image[..SLOT_BYTES].copy_from_slice(&other.read()[..SLOT_BYTES]);
    scene.write(&image);
    assert!(matches!(scene.open(), Err(KeysError::StaleRoot(_))));
    assert!(scene.read() == image, "nothing was touched");
}

#[test]
fn a_write_that_was_interrupted_leaves_old_or_new() {
    let scene = Scene::new();
    let old = scene.image.clone();
    for change in [
        |keystore: &Keystore| {
            let level = keystore.levels()[0].id;
            keystore
                .add_bucket(BucketId([77; 16]), level)
                .expect("room for one more");
        },
        |keystore: &Keystore| {
            keystore
                .destroy_bucket(BucketId([4; 16]))
                .expect("it exists")
        },
    ] {
        scene.write(&old);
        change(&scene.open().unwrap().0);
        let new = scene.read();
        let bucket_count = |path: &Path| {
            let (keystore, _) = Keystore::open(path, Box::new(scene.root.clone())).unwrap();
            keystore.buckets().len()
        };
        let (before, after) = (5, bucket_count(&scene.path));
        let end = copy_bytes(&old).max(copy_bytes(&new));
        // The first copy up to some byte, then the second likewise; and garbage instead.
        for slot in [0, SLOT_BYTES] {
            for written in (0..=end).step_by(97).chain([end]) {
                let mut image = if slot == 0 { old.clone() } else { new.clone() };
                image[slot..slot + written].copy_from_slice(&new[slot..slot + written]);
                image[slot + written..slot + SLOT_BYTES]
                    .copy_from_slice(&old[slot + written..slot + SLOT_BYTES]);
                scene.write(&image);
                let count = bucket_count(&scene.path);
                let first_done = slot > 0 || written >= copy_bytes(&new);
                assert_eq!(
                    count,
                    if first_done { after } else { before },
                    "{slot} {written}"
                );

                image[slot..slot + end].fill(0xA5);
                scene.write(&image);
                let count = bucket_count(&scene.path);
                assert_eq!(count, if slot == 0 { before } else { after });
            }
        }
    }
}

#[test]
fn reading_only_mends_and_changes_nothing() {
    let scene = Scene::new();
    let mut damaged = scene.image.clone();
    damaged[50] ^= 1;
    scene.write(&damaged);
    let keystore = Keystore::open_read_only(&scene.path, Box::new(scene.root.clone())).unwrap();
    assert_eq!(keystore.buckets().len(), 5);
    assert!(keystore.bucket_key(BucketId([2; 16])).is_ok());
    let level = keystore.levels()[0].id;
    assert!(matches!(
        keystore.add_bucket(BucketId([9; 16]), level),
        Err(KeysError::ReadOnly)
    ));
    assert!(matches!(
        keystore.destroy_bucket(BucketId([2; 16])),
        Err(KeysError::ReadOnly)
    ));
    assert!(scene.read() == damaged);
}
