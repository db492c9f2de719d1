//! The identity of an engine, sealed by what its gateways share.

#![expect(clippy::unwrap_used, reason = "what a test can not unwrap fails it")]

use std::io::Write;

use age::secrecy::SecretString;
use age::{Encryptor, scrypt};
use coffer_keys::{
    ExportIdentity, FoundIdentity, KeysError, SealedIdentity, SourceSecrets, SourceSpec,
    open_identity,
};
use zeroize::Zeroizing;

const PASSPHRASE: &str = "lantern-gravel-uncle-seventeen-otters";

/// For these tests only.
const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

fn secrets(passphrase: &str) -> SourceSecrets {
    SourceSecrets {
        passphrase: Some(Zeroizing::new(passphrase.as_bytes().to_vec())),
        pin: None,
    }
}

fn opened(sealed: &[u8], passphrase: &str) -> FoundIdentity {
    open_identity(sealed, &SourceSpec::Passphrase, &secrets(passphrase)).unwrap()
}

fn recipient_of(found: FoundIdentity) -> String {
    match found {
        FoundIdentity::Opened(identity) => identity.recipient().to_string(),
        other => panic!("{other:?}"),
    }
}

/// As another program seals, which is not armored.
fn sealed_elsewhere(text: &str, work_factor: u8) -> Vec<u8> {
    let mut by = scrypt::Recipient::new(SecretString::from(PASSPHRASE));
    by.set_work_factor(work_factor);
    let encryptor = Encryptor::with_recipients(std::iter::once(&by as _)).unwrap();
    let mut writer = encryptor.wrap_output(Vec::new()).unwrap();
    writer.write_all(text.as_bytes()).unwrap();
    writer.finish().unwrap()
}

#[test]
fn a_passphrase_opens_it_and_no_other() {
    let made = SealedIdentity::make(&SourceSpec::Passphrase, &secrets(PASSPHRASE)).unwrap();
    let recipient = made.identity.recipient().to_string();
    assert_eq!(recipient_of(opened(&made.sealed, PASSPHRASE)), recipient);
    assert!(!String::from_utf8_lossy(&made.sealed).contains("SECRET"));
    let other = opened(&made.sealed, "another one");
    assert!(matches!(other, FoundIdentity::OtherPassphrase), "{other:?}");
    let another = SealedIdentity::make(&SourceSpec::Passphrase, &secrets(PASSPHRASE)).unwrap();
    assert_ne!(another.identity.recipient().to_string(), recipient);
    another.withdraw().unwrap();
    for none in [SourceSecrets::default(), secrets("")] {
        let made = SealedIdentity::make(&SourceSpec::Passphrase, &none);
        assert!(matches!(made, Err(KeysError::PassphraseMissing)));
    }
}

#[test]
fn what_other_programs_sealed_opens_within_bounds() {
    let recipient = IDENTITY.parse::<ExportIdentity>().unwrap().recipient();
    for text in [
        IDENTITY.to_owned(),
        format!("# created: today\n# public key: {recipient}\n{IDENTITY}\n"),
    ] {
        let found = opened(&sealed_elsewhere(&text, 10), PASSPHRASE);
        assert_eq!(recipient_of(found), recipient.to_string());
    }
    let none = opened(&sealed_elsewhere("a key", 10), PASSPHRASE);
    assert!(matches!(none, FoundIdentity::Damaged), "{none:?}");
    // The work is in the clear, so that nothing has to be run to see it.
    let text = String::from_utf8_lossy(&sealed_elsewhere(IDENTITY, 10)).into_owned();
    let header = text.split("\n---").next().unwrap();
    assert!(header.lines().any(|line| line.ends_with(" 10")), "{header}");
    let mut costly = sealed_elsewhere(IDENTITY, 10);
    let at = costly.windows(3).position(|bytes| bytes == b"10\n");
    let at = at.unwrap();
    costly[at..at + 2].copy_from_slice(b"30");
    let found = opened(&costly, PASSPHRASE);
    assert!(matches!(found, FoundIdentity::Costly), "{found:?}");
}

#[test]
fn what_was_altered_opens_nothing() {
    let sealed = sealed_elsewhere(IDENTITY, 10);
    for cut in [0, 1, 20, sealed.len() - 1] {
        let found = opened(&sealed[..cut], PASSPHRASE);
        assert!(matches!(found, FoundIdentity::Damaged), "{cut}: {found:?}");
    }
    for at in (0..sealed.len()).step_by(7) {
        let mut altered = sealed.clone();
        altered[at] ^= 1;
        let found = opened(&altered, PASSPHRASE);
        assert!(!matches!(found, FoundIdentity::Opened(_)), "byte {at}");
    }
}

#[test]
fn another_kind_of_source_opens_nothing() {
    let token: SourceSpec = "pkcs11:token=a?module-path=/nowhere.so".parse().unwrap();
    assert!(token.is_shared() && SourceSpec::Passphrase.is_shared());
    assert!(!SourceSpec::File(None).is_shared());
    let sealed = sealed_elsewhere(IDENTITY, 10);
    for source in [&token, &SourceSpec::File(None)] {
        let found = open_identity(&sealed, source, &secrets(PASSPHRASE)).unwrap();
        assert!(matches!(found, FoundIdentity::OtherSource), "{found:?}");
    }
    let of_token = b"coffer token root key v1\n00\n00\n";
    let found = opened(of_token, PASSPHRASE);
    assert!(matches!(found, FoundIdentity::OtherSource), "{found:?}");
}
