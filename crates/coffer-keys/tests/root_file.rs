//! The root key's file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_keys::{FileRoot, KeysError, RootSource};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

#[test]
fn what_was_created_is_loaded() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    assert!(matches!(source.load(), Err(KeysError::RootMissing { .. })));
    let root = source.create().unwrap();
    assert_eq!(source.load().unwrap(), root);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let mode = fs::metadata(source.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    let text = fs::read_to_string(source.path()).unwrap();
    let digits = hex::encode(root.secret().expose());
    assert_eq!(text, format!("coffer root key v1\n{digits}\n"));
    assert!(!source.describe().contains(&digits));
    assert!(source.describe().contains("root.key"));
}

#[test]
fn it_is_never_overwritten() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    let root = source.create().unwrap();
    assert!(matches!(source.create(), Err(KeysError::RootExists { .. })));
    assert_eq!(source.load().unwrap(), root);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    // Not even a file that is no root key.
    fs::write(source.path(), "something else").unwrap();
    assert!(matches!(source.create(), Err(KeysError::RootExists { .. })));
    assert_eq!(fs::read_to_string(source.path()).unwrap(), "something else");
}

#[test]
fn a_file_that_others_can_use_is_refused() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    source.create().unwrap();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777] {
        set_mode(source.path(), mode);
        let error = source.load().unwrap_err();
        assert!(matches!(error, KeysError::RootExposed { mode: found, .. } if found == mode));
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    for mode in [0o600, 0o400] {
        set_mode(source.path(), mode);
        assert!(source.load().is_ok());
    }
}

#[test]
fn what_is_no_root_key_is_refused_without_showing_it() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    source.create().unwrap();
    let digits = "ab".repeat(32);
    for text in [
        String::new(),
        digits.clone(),
        "coffer root key v1\n".to_owned(),
        format!("coffer root key v2\n{digits}\n"),
        format!("coffer root key v1\n{}\n", &digits[1..]),
        format!("coffer root key v1\n{digits}ab\n"),
        format!("coffer root key v1\n{}\n", digits.replace('a', "g")),
        format!("coffer root key v1\n{digits}\n\n"),
        format!("coffer root key v1\n {digits}\n"),
        format!("coffer root key v1\n{}", digits.repeat(100)),
    ] {
        fs::write(source.path(), &text).unwrap();
        let error = source.load().unwrap_err();
        assert!(matches!(error, KeysError::RootMalformed { .. }), "{text:?}");
        assert!(!error.to_string().contains("abab"), "{error}");
    }
    // A key that was typed in again may lack the last line end.
    fs::write(source.path(), format!("coffer root key v1\n{digits}")).unwrap();
    assert_eq!(source.load().unwrap().secret().expose(), &[0xAB; 32]);
}
