//! The root key's file.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use coffer_keys::{FileRoot, KeysError, RootKey, RootSource};

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a folder for the test")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the file is ours");
}

fn digits(root: &RootKey) -> String {
    hex::encode(root.secret().expose())
}

fn text_of(root: &RootKey) -> String {
    format!("coffer root key v1\n{}\n", digits(root))
}

#[test]
fn what_was_added_is_there() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    assert_eq!(source.candidates().unwrap(), []);
    let root = source.add().unwrap();
    assert_eq!(source.candidates().unwrap(), vec![root.clone()]);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    let mode = fs::metadata(source.path()).unwrap().permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(source.path()).unwrap(), text_of(&root));
    assert!(!source.describe().contains(&digits(&root)));
    assert!(source.describe().contains("root.key"));
}

#[test]
fn either_of_two_keys_can_be_kept_and_the_other_is_gone() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    for keep_new in [true, false, true] {
        let before = fs::read(source.path()).ok();
        let (old, new) = match before {
            Some(_) => (
                source.candidates().unwrap().remove(0),
                source.add().unwrap(),
            ),
            None => (source.add().unwrap(), source.add().unwrap()),
        };
        assert_eq!(source.candidates().unwrap(), [old.clone(), new.clone()]);
        let third = source.add().unwrap_err();
        assert!(matches!(third, KeysError::RootUnsettled { .. }), "{third}");
        let kept = if keep_new { &new } else { &old };
        source.keep_only(Some(kept)).unwrap();
        assert_eq!(fs::read_to_string(source.path()).unwrap(), text_of(kept));
        assert_eq!(source.candidates().unwrap(), vec![kept.clone()]);
    }
}

/// A crash may leave a file that was being written: its key has sealed nothing, but is no
/// readable byte to leave behind.
#[test]
fn what_a_crash_left_of_a_new_file_goes_with_the_keys() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    let left = folder.path().join("root.key.new");
    fs::write(&left, text_of(&RootKey::generate())).unwrap();
    source.keep_only(None).unwrap();
    assert!(!left.exists());
    fs::write(&left, "half a").unwrap();
    let root = source.add().unwrap();
    assert!(!left.exists() && source.candidates().unwrap() == [root]);
    fs::write(&left, "half a").unwrap();
    source.keep_only(None).unwrap();
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_key_that_is_not_there_is_not_kept_and_nothing_is_destroyed() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    let missing = source.keep_only(Some(&RootKey::generate())).unwrap_err();
    assert!(matches!(missing, KeysError::RootMissing { .. }));
    source.add().unwrap();
    source.add().unwrap();
    let before = fs::read(source.path()).unwrap();
    let other = source.keep_only(Some(&RootKey::generate())).unwrap_err();
    assert!(matches!(other, KeysError::RootMissing { .. }), "{other}");
    assert_eq!(fs::read(source.path()).unwrap(), before);
    source.keep_only(None).unwrap();
    assert_eq!(source.candidates().unwrap(), []);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn nothing_but_a_root_key_is_written_over() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    fs::write(source.path(), "something else").unwrap();
    set_mode(source.path(), 0o600);
    let error = source.add().unwrap_err();
    assert!(matches!(error, KeysError::RootUnsettled { .. }), "{error}");
    assert_eq!(fs::read_to_string(source.path()).unwrap(), "something else");
}

#[test]
fn a_receipt_can_say_what_the_medium_proves() {
    let folder = folder();
    let medium = FileRoot::new(folder.path().join("root.key")).medium();
    assert!(medium.holder.contains("root.key"), "{medium:?}");
    assert!(medium.destruction.contains("overwritten"), "{medium:?}");
    assert!(medium.remaining.contains("copies of both"), "{medium:?}");
}

#[test]
fn a_file_that_others_can_use_is_refused() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    source.add().unwrap();
    for mode in [0o640, 0o604, 0o620, 0o602, 0o610, 0o644, 0o777] {
        set_mode(source.path(), mode);
        let error = source.candidates().unwrap_err();
        assert!(matches!(error, KeysError::RootExposed { mode: found, .. } if found == mode));
        assert!(error.to_string().contains("chmod 600"), "{error}");
    }
    for mode in [0o600, 0o400] {
        set_mode(source.path(), mode);
        assert!(source.candidates().is_ok());
    }
}

#[test]
fn what_is_no_root_key_is_refused_without_showing_it() {
    let folder = folder();
    let source = FileRoot::new(folder.path().join("root.key"));
    source.add().unwrap();
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
        let error = source.candidates().unwrap_err();
        assert!(matches!(error, KeysError::RootMalformed { .. }), "{text:?}");
        assert!(!error.to_string().contains("abab"), "{error}");
    }
    // A key that was typed in again may lack the last line end.
    fs::write(source.path(), format!("coffer root key v1\n{digits}")).unwrap();
    let typed = source.candidates().unwrap();
    assert_eq!(typed[0].secret().expose(), &[0xAB; 32]);
}
