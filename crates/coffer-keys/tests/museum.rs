//! Keystores of every released format open for ever.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_keys::limits::SLOT_BYTES;
use coffer_keys::{FileRoot, Keystore, Repair};

#[test]
fn format_1_opens() {
    let museum = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum/format-1");
    let folder = tempfile::tempdir().unwrap();
    // Git keeps no modes but the executable bit.
    let source = FileRoot::new(folder.path().join("root.key"));
    fs::copy(museum.join("root.key"), source.path()).unwrap();
    fs::set_permissions(source.path(), fs::Permissions::from_mode(0o600)).unwrap();
    let copy = fs::read(museum.join("keystore.copy")).unwrap();
    let mut file = vec![0; 2 * SLOT_BYTES];
    file[..copy.len()].copy_from_slice(&copy);
    file[SLOT_BYTES..SLOT_BYTES + copy.len()].copy_from_slice(&copy);
    let path = folder.path().join("keystore");
    fs::write(&path, &file).unwrap();

    let (keystore, repair) = Keystore::open(&path, Box::new(source)).unwrap();
    assert_eq!(repair, Repair::None);
    assert_eq!(
        hex::encode(keystore.id()),
        "f00f805ea2a8809f2796dc52eb2db6c8"
    );
    assert_eq!(keystore.generation(), 2);
    assert_eq!(
        hex::encode(keystore.system_key().expose()),
        "d2b6311fc21b525f641329a1d76f18ac857759806bbd2ff6cc61d74baebbe72c"
    );
    let levels = keystore.levels();
    assert_eq!(levels.len(), 1);
    assert_eq!(levels[0].name, "default");
    assert_eq!(levels[0].label.to_string(), "s0");
    assert_eq!(
        (levels[0].generation, levels[0].created_ms),
        (1, 1_795_197_138_809)
    );

    let bucket_key = keystore.bucket_key(&[0xB1; 16]).unwrap();
    assert_eq!(
        hex::encode(bucket_key.catalog_key().expose()),
        "18348947e1fc840b1a8efe740a3e61d28f3d75eafd2c21cdf6a2c50e69cf8d60"
    );
    let wrapped = fs::read(museum.join("wrapped-data-key")).unwrap();
    let wrapped = wrapped.as_slice().try_into().unwrap();
    let data_key = bucket_key.unwrap(&[0xB2; 16], 1, wrapped).unwrap();
    assert_eq!(*data_key.expose(), std::array::from_fn(|i| i as u8));
}
