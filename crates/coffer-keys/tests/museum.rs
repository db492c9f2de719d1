//! Keystores of every released format open for ever.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_keys::limits::SLOT_BYTES;
use coffer_keys::{
    FileRoot, KeyFolder, Keystore, LevelOptions, PassphraseRoot, Repair, RootSource, SourceSecrets,
};
use coffer_seal::{BlobId, BucketId};

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
        keystore.id().to_string(),
        "e01c6089145cdc417ee05b07aa25bfa7"
    );
    assert_eq!(keystore.generation(), 4);
    assert_eq!(
        hex::encode(keystore.system_key().expose()),
        "99c13dc1e7b9ef6cfa5ade3c1a1ae9c6fd9f82e5a8b01e334a5e71aea1185bf9"
    );
    assert_eq!(keystore.levels().len(), 2);
    let default = keystore.level_named("default").unwrap();
    assert_eq!(default.label.to_string(), "s0");
    assert_eq!(default.options, LevelOptions::default());
    assert_eq!(
        (default.generation, default.created_ms),
        (1, 1_795_199_339_260)
    );
    let secret = keystore.level_named("secret").unwrap();
    assert_eq!(secret.label.to_string(), "s2:c1,c9");
    let options = LevelOptions {
        exportable: false,
        approvals: 2,
        audit_data: true,
        ..LevelOptions::default()
    };
    assert_eq!(secret.options, options);

    let bucket_key = keystore.bucket_key(BucketId([0xB1; 16])).unwrap();
    assert_eq!(
        hex::encode(bucket_key.catalog_key().expose()),
        "4d405abe5d11444ee8066bf0d7f81f65fad9728939643958956e39e201ca534f"
    );
    let wrapped = fs::read(museum.join("wrapped-data-key")).unwrap();
    let wrapped = wrapped.as_slice().try_into().unwrap();
    let data_key = bucket_key.unwrap(BlobId([0xB2; 16]), 1, wrapped).unwrap();
    assert_eq!(*data_key.expose(), std::array::from_fn(|i| i as u8));
}

/// Made by another implementation, by `docs/FORMAT.md`, for the museum's root key.
#[test]
fn format_1_opens_with_a_passphrase() {
    let museum = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/museum/format-1");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.passphrase");
    fs::copy(museum.join("root.passphrase"), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    let record = "coffer root-key source v1\npassphrase root.passphrase\n";
    fs::write(folder.path().join("keystore.source"), record).unwrap();
    let copy = fs::read(museum.join("keystore.copy")).unwrap();
    fs::write(folder.path().join("keystore"), copy).unwrap();

    let passphrase = b"a passphrase of the museum".to_vec();
    let source = PassphraseRoot::new(&path, passphrase.clone().into());
    let text = fs::read_to_string(museum.join("root.key")).unwrap();
    let digits = hex::encode(source.candidates().unwrap()[0].secret().expose());
    assert_eq!(text.lines().nth(1), Some(digits.as_str()));
    let secrets = SourceSecrets {
        passphrase: Some(passphrase.into()),
        pin: None,
    };
    let (keystore, repair) = KeyFolder::new(folder.path()).open(None, &secrets).unwrap();
    assert_eq!((keystore.generation(), repair), (4, Repair::CopyB));
}
