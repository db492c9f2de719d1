//! Every root-key source passes the same tests. Where the kernel has no keyring, or SoftHSM2 isn't
//! installed (`scripts/install-test-tools` does), that source's tests fail and say so.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use coffer_keys::{
    FileRoot, KeyringRoot, KeysError, Keystore, LevelOptions, MemoryRoot, PassphraseRoot,
    RootSource, Sanitization, TokenOptions, TokenRoot, TokenSetupError,
};
use coffer_label::Label;
use coffer_seal::BucketId;
use zeroize::Zeroizing;

/// Makes a source anew on the same medium, as a restart does.
type Open<'a> = &'a dyn Fn() -> Box<dyn RootSource>;

/// What holds for every source; begins and ends without a key.
fn conforms(folder: &Path, open: Open<'_>) {
    keys_are_kept_and_destroyed(open);
    a_keystore_moves_with_its_root_key(folder, open);
    an_interrupted_change_is_completed(folder, open);
    open().keep_only(None).expect("the last key goes");
    assert!(open().candidates().expect("it can be asked").is_empty());
}

fn keys_are_kept_and_destroyed(open: Open<'_>) {
    assert_eq!(open().candidates().unwrap(), vec![], "begins empty");
    open().keep_only(None).expect("nothing to destroy");
    let first = open().add().unwrap();
    assert_eq!(open().candidates().unwrap(), vec![first.clone()]);
    open().keep_only(Some(&first)).expect("nothing to destroy");
    let second = open().add().unwrap();
    assert_ne!(first, second);
    let both = open().candidates().unwrap();
    assert!(both.len() == 2 && both.contains(&first) && both.contains(&second));
    let third = open().add().unwrap_err();
    assert!(matches!(third, KeysError::RootUnsettled { .. }), "{third}");

    open().keep_only(Some(&second)).unwrap();
    assert_eq!(open().candidates().unwrap(), vec![second.clone()]);
    let gone = open().keep_only(Some(&first)).unwrap_err();
    assert!(matches!(gone, KeysError::RootMissing { .. }), "{gone}");
    assert_eq!(open().candidates().unwrap(), vec![second.clone()]);

    let fourth = open().add().unwrap();
    open().keep_only(Some(&second)).unwrap();
    assert_eq!(open().candidates().unwrap(), vec![second.clone()]);
    for text in [open().describe(), format!("{:?}", open().medium())] {
        for key in [&first, &second, &fourth] {
            assert!(!text.contains(&hex::encode(key.secret().expose())));
        }
        assert!(text.len() > 5, "{text}");
    }
    open().keep_only(None).unwrap();
}

fn a_keystore_moves_with_its_root_key(folder: &Path, open: Open<'_>) {
    let path = folder.join("moving");
    let keystore = Keystore::create(&path, open()).unwrap();
    let level = keystore
        .add_level("secret", Label::HIGHEST, LevelOptions::default())
        .unwrap();
    let kept = keystore
        .add_bucket(
            BucketId([1; 16]),
            keystore.level_named("default").unwrap().id,
        )
        .unwrap();
    keystore.add_bucket(BucketId([2; 16]), level.id).unwrap();
    let (old_root, old_file) = (open().candidates().unwrap(), fs::read(&path).unwrap());
    keystore.erase_level(level.id).unwrap();
    assert_ne!(open().candidates().unwrap(), old_root);
    drop(keystore);

    let (again, _) = Keystore::open(&path, open()).unwrap();
    let key = again.bucket_key(BucketId([1; 16])).unwrap();
    assert_eq!(key.catalog_key(), kept.catalog_key());
    assert!(again.level_named("secret").is_none());
    drop(again);
    fs::write(&path, old_file).unwrap();
    let old = Keystore::open(&path, open());
    assert!(matches!(old, Err(KeysError::StaleRoot(_))));
    fs::remove_file(&path).unwrap();
    open().keep_only(None).unwrap();
}

fn an_interrupted_change_is_completed(folder: &Path, open: Open<'_>) {
    let path = folder.join("interrupted");
    let keystore = Keystore::create(&path, open()).unwrap();
    let generation = keystore.generation();
    drop(keystore);
    let root = open().candidates().unwrap();
    open().add().unwrap();
    let (keystore, _) = Keystore::open(&path, open()).unwrap();
    assert_eq!(keystore.generation(), generation);
    assert_eq!(open().candidates().unwrap(), root, "it had not begun");
    fs::remove_file(&path).unwrap();
}

#[test]
fn memory_conforms() {
    let (folder, source) = (tempfile::tempdir().unwrap(), MemoryRoot::new());
    conforms(folder.path(), &|| Box::new(source.clone()));
}

#[test]
fn files_conform() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    conforms(folder.path(), &|| Box::new(FileRoot::new(&path)));
}

#[test]
fn passphrases_conform() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    conforms(folder.path(), &|| {
        Box::new(PassphraseRoot::new(
            &path,
            Zeroizing::new(b"correct".to_vec()),
        ))
    });
}

#[test]
fn the_kernel_keyring_conforms() {
    let folder = tempfile::tempdir().unwrap();
    let name = format!("test-{}", std::process::id());
    conforms(folder.path(), &|| Box::new(KeyringRoot::new(&name)));
}

#[test]
fn tokens_conform() {
    if runs_in_child("tokens_conform") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    conforms(folder.path(), &|| Box::new(token(&path, "conforming")));
}

#[test]
fn a_keystore_moves_from_source_to_source_without_being_closed() {
    let folder = tempfile::tempdir().unwrap();
    let (path, file) = (
        folder.path().join("keystore"),
        FileRoot::new(folder.path().join("root.key")),
    );
    let keystore = Keystore::create(&path, Box::new(file.clone())).unwrap();
    let level = keystore.levels()[0].id;
    let key = keystore.add_bucket(BucketId([1; 16]), level).unwrap();
    let memory = MemoryRoot::new();
    keystore.move_to(Box::new(memory.clone())).unwrap();
    assert_eq!(keystore.source().describe(), memory.describe());
    assert!(!file.path().exists(), "the old source holds nothing");
    keystore.erase_bucket(BucketId([1; 16])).unwrap();
    keystore.add_bucket(BucketId([2; 16]), level).unwrap();
    let taken = keystore.move_to(Box::new(MemoryRoot::holding(
        coffer_keys::RootKey::generate(),
    )));
    assert!(matches!(taken, Err(KeysError::RootUnsettled { .. })));
    drop(keystore);

    let (again, _) = Keystore::open(&path, Box::new(memory)).unwrap();
    assert!(again.bucket_key(BucketId([2; 16])).is_ok());
    let gone = again.bucket_key(key.bucket_id());
    assert!(matches!(gone, Err(KeysError::NoSuchBucket { .. })));
}

#[test]
fn another_passphrase_opens_and_destroys_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    let source = |passphrase: &str| {
        PassphraseRoot::new(&path, Zeroizing::new(passphrase.as_bytes().to_vec()))
    };
    let root = source("correct").add().unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("argon2id m=65536 t=3 p=4 "), "{text}");
    assert!(!text.contains(&hex::encode(root.secret().expose())));
    let wrong = source("incorrect");
    for result in [
        wrong.candidates().map(drop),
        wrong.add().map(drop),
        wrong.keep_only(Some(&root)),
    ] {
        let error = result.unwrap_err();
        assert!(
            matches!(error, KeysError::WrongPassphrase { .. }),
            "{error}"
        );
        assert!(!error.to_string().contains("correct\""));
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
    // Weaker parameters in the file don't open it either.
    fs::write(&path, text.replace("m=65536", "m=64")).unwrap();
    let weaker = source("correct").candidates().unwrap_err();
    assert!(matches!(weaker, KeysError::WrongPassphrase { .. }));
    fs::write(&path, text.replace("m=65536", "m=4294967295")).unwrap();
    let huge = source("correct").candidates().unwrap_err();
    assert!(matches!(huge, KeysError::RootMalformed { .. }), "{huge}");
}

/// A full copy of the data folder, taken before the erase, opens no more: the token has not the
/// key any more that the copy's root key needs.
#[test]
fn with_a_token_a_full_copy_from_before_an_erase_does_not_open() {
    if runs_in_child("with_a_token_a_full_copy_from_before_an_erase_does_not_open") {
        return;
    }
    let (folder, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (path, root) = (
        folder.path().join("keystore"),
        folder.path().join("root.key"),
    );
    let keystore = Keystore::create(&path, Box::new(token(&root, "backed-up"))).unwrap();
    let options = LevelOptions::default();
    let level = keystore
        .add_level("secret", Label::HIGHEST, options)
        .unwrap();
    for name in ["keystore", "root.key"] {
        fs::copy(folder.path().join(name), backup.path().join(name)).unwrap();
    }
    let copied = || {
        let source = Box::new(token(&backup.path().join("root.key"), "backed-up"));
        Keystore::open_read_only(&backup.path().join("keystore"), source)
    };
    assert!(copied().unwrap().level_named("secret").is_some());

    let erased = keystore.erase_level(level.id).unwrap();
    assert_eq!(erased.medium.category, Sanitization::Purge);
    let error = copied().unwrap_err();
    assert!(matches!(error, KeysError::RootMalformed { .. }), "{error}");
    assert!(error.to_string().contains("was destroyed"), "{error}");
    drop(keystore);
    let (again, _) = Keystore::open(&path, Box::new(token(&root, "backed-up"))).unwrap();
    assert!(
        again.level_named("default").is_some(),
        "what survives, opens"
    );
}

#[test]
fn keystores_that_share_a_token_and_a_name_leave_each_other_alone() {
    if runs_in_child("keystores_that_share_a_token_and_a_name_leave_each_other_alone") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["one.key", "two.key"].map(|name| folder.path().join(name));
    let [first, second] = [&one, &two].map(|path| token(path, "shared").add().unwrap());
    token(&one, "shared").keep_only(Some(&first)).unwrap();
    let new = token(&one, "shared").add().unwrap();
    token(&one, "shared").keep_only(Some(&new)).unwrap();
    assert_eq!(token(&two, "shared").candidates().unwrap(), vec![second]);
    token(&two, "shared").keep_only(None).unwrap();
    assert_eq!(token(&one, "shared").candidates().unwrap(), vec![new]);
}

/// Stopped between its steps, a change in a token has either not begun or is completed by the next
/// call: whatever the file says of a key that is not in the token, or the other way about.
#[test]
fn a_change_in_a_token_that_stopped_half_way_is_completed() {
    if runs_in_child("a_change_in_a_token_that_stopped_half_way_is_completed") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    let source = || token(&path, "half-way");
    let first = source().add().unwrap();
    let text_of_first = fs::read(&path).unwrap();
    let second = source().add().unwrap();
    let text_of_both = fs::read(&path).unwrap();

    // The second key was made in the token, and the power went before the file had it.
    fs::write(&path, &text_of_first).unwrap();
    assert_eq!(source().candidates().unwrap(), vec![first.clone()]);
    source().keep_only(Some(&first)).unwrap();
    fs::write(&path, &text_of_both).unwrap();
    let gone = source().keep_only(Some(&second)).unwrap_err();
    assert!(matches!(gone, KeysError::RootMissing { .. }), "{gone}");
    assert_eq!(source().candidates().unwrap(), vec![first.clone()]);

    // The first key was destroyed in the token, and the power went before its text was.
    let third = source().add().unwrap();
    let text_of_both = fs::read(&path).unwrap();
    source().keep_only(Some(&third)).unwrap();
    fs::write(&path, &text_of_both).unwrap();
    assert_eq!(source().candidates().unwrap(), vec![third.clone()]);
    source().keep_only(Some(&third)).unwrap();
    assert_eq!(
        fs::read(&path).unwrap().len(),
        text_of_first.len(),
        "at rest"
    );
    source().keep_only(None).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_token_that_is_not_there_or_not_ours_is_an_error_that_says_so() {
    if runs_in_child("a_token_that_is_not_there_or_not_ours_is_an_error_that_says_so") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("root.key");
    let options = |module: &str, label: &str, pin: &str| TokenOptions {
        module: module.into(),
        token: label.into(),
        pin: Zeroizing::new(pin.into()),
        name: "nobody".into(),
    };
    let fails = |options| TokenRoot::new(&path, options).add().unwrap_err();
    let module = softhsm().to_str().unwrap().to_owned();
    let error = fails(options("/nowhere.so", TOKEN, PIN));
    let is_told = matches!(error, KeysError::TokenSetup(TokenSetupError::Module { .. }));
    assert!(is_told, "{error}");
    let error = fails(options(&module, "another", PIN));
    let is_told = matches!(
        error,
        KeysError::TokenSetup(TokenSetupError::NoSuchToken { .. })
    );
    assert!(is_told, "{error}");
    assert!(!path.exists(), "nothing was written");
}

const TOKEN: &str = "coffer-test";
const PIN: &str = "648219";

/// A source in SoftHSM2.
fn token(path: &Path, name: &str) -> TokenRoot {
    let options = TokenOptions {
        module: softhsm(),
        token: TOKEN.into(),
        pin: Zeroizing::new(PIN.into()),
        name: name.into(),
    };
    TokenRoot::new(path, options)
}

fn softhsm() -> PathBuf {
    [
        "/usr/lib/softhsm/libsofthsm2.so",
        "/usr/lib64/pkcs11/libsofthsm2.so",
    ]
    .iter()
    .map(PathBuf::from)
    .find(|module| module.exists())
    .expect("libsofthsm2.so, of the Debian package softhsm2")
}

/// SoftHSM2 looks for its configuration in the environment, which a process with threads can't
/// change: so a test with a token runs itself again in a child that has a token of its own.
fn runs_in_child(test: &str) -> bool {
    const CONFIGURATION: &str = "SOFTHSM2_CONF";
    const MARK: &str = "COFFER_TEST_TOKEN";
    if std::env::var_os(MARK).is_some() {
        return false;
    }
    let folder = tempfile::tempdir().expect("a folder for the token");
    let (configuration, tokens) = (folder.path().join("conf"), folder.path().join("tokens"));
    fs::create_dir(&tokens).expect("the folder is ours");
    let text = format!("directories.tokendir = {}\n", tokens.display());
    fs::write(&configuration, text).expect("the folder is ours");
    let made = Command::new("softhsm2-util")
        .args(["--init-token", "--free", "--label", TOKEN])
        .args(["--pin", PIN, "--so-pin", PIN])
        .env(CONFIGURATION, &configuration)
        .output()
        .expect("softhsm2-util, of the Debian package softhsm2");
    assert!(made.status.success(), "{made:?}");
    let run = Command::new(std::env::current_exe().expect("this test"))
        .args([test, "--exact", "--nocapture"])
        .env(CONFIGURATION, &configuration)
        .env(MARK, "1")
        .output()
        .expect("this test again");
    let output = String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{output}");
    let counted = String::from_utf8_lossy(&run.stdout);
    assert!(counted.contains("1 passed"), "{counted}");
    true
}
