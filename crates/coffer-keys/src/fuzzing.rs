//! Bodies of the fuzz targets: all that the crate reads and others may have written.

use coffer_seal::KeystoreId;

use crate::exports::level::{self, ExportIdentity};
use crate::keystore::contents::Contents;
use crate::keystore::copy::{Copy, FoundCopy};
use crate::receipts::receipt::{Receipt, ReceiptSigner};
use crate::root::record::SourceRecord;
use crate::root::source::RootKey;
use crate::root::spec::SourceSpec;
use crate::root::{file, passphrase, token};

/// Any bytes as a slot of the keystore file, as the body that was sealed in it, and as a root-key
/// file.
///
/// # Panics
///
/// When what was understood doesn't come back the same: what the fuzzer looks for.
pub fn fuzz_keystore(data: &[u8]) {
    let root = RootKey::from_secret(coffer_seal::SecretKey::from_bytes([0xF0; 32]));
    if let FoundCopy::Intact(copy) = FoundCopy::parse(data) {
        assert!(data.starts_with(copy.as_bytes()));
        assert!(copy.open(&root).is_err(), "a forgery opened");
    }
    let _ = file::parse(data);

    let Ok(contents) = Contents::from_bytes(data) else {
        return;
    };
    let body = contents.to_bytes();
    assert_eq!(*body, data, "there is one way only to write a body");
    let copy = Copy::seal(&root, KeystoreId([1; 16]), 7, &body);
    let FoundCopy::Intact(parsed) = FoundCopy::parse(&[copy.as_bytes(), b"what follows"].concat())
    else {
        panic!("a copy was not understood");
    };
    assert_eq!(parsed, copy);
    let opened = parsed
        .open(&root)
        .expect("it was sealed under this root key");
    assert_eq!(opened, body);
}

/// An identity of age that nothing is sealed for.
const IDENTITY: &str = "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX";

/// Any bytes as a receipt.
///
/// # Panics
///
/// When a receipt that was understood doesn't come back the same, verifies under a key that didn't
/// sign it, or doesn't under one that did.
pub fn fuzz_receipt(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Ok(receipt) = Receipt::from_json(text) else {
        return;
    };
    let again = Receipt::from_json(&receipt.to_json()).expect("a receipt that was printed");
    assert_eq!(again, receipt);
    let signer = ReceiptSigner::from_seed(&coffer_seal::SecretKey::from_bytes([0xF1; 32]));
    let key = signer.public_key();
    assert!(receipt.verify(&key).is_err(), "a forgery verified");
    assert!(receipt.sign(&signer).verify(&key).is_ok());
}

/// Any bytes as an export, and as what an export holds.
///
/// # Panics
///
/// When a forgery opens, or when what was understood doesn't come back the same.
pub fn fuzz_export(data: &[u8]) {
    let identity: ExportIdentity = IDENTITY.parse().expect("an identity");
    assert!(level::open(data, &identity).is_err(), "a forgery opened");
    if let Ok((root, contents)) = level::read_plaintext(data) {
        let body = contents.to_bytes();
        assert!(
            data.ends_with(&body),
            "there is one way only to write a body"
        );
        for level in contents.levels.keys() {
            let _ = contents.level_key(&root, *level);
        }
    }
}

/// Any bytes as a root-key source, as a record of one, and as files of sources.
///
/// # Panics
///
/// When what was understood doesn't come back the same.
pub fn fuzz_source(data: &[u8]) {
    let _ = (file::parse(data), token::parse(data));
    let _ = passphrase::parse(data);
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    if let Ok(spec) = text.parse::<SourceSpec>() {
        let printed = spec.to_string();
        assert_eq!(printed.parse::<SourceSpec>().expect("it was printed"), spec);
        assert!(!printed.contains([' ', '\n']), "it fits a record's line");
    }
    if let Some(record) = SourceRecord::parse(text) {
        assert_eq!(
            record.to_string(),
            text,
            "there is one way only to write a record"
        );
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::keystore::body::tests::contents;

    proptest! {
        #[test]
        fn changed_bodies_are_malformed_or_say_something_else(
            contents in contents(), place: prop::sample::Index, mask in 1u8..,
        ) {
            let mut body = contents.to_bytes().to_vec();
            let offset = place.index(body.len());
            body[offset] ^= mask;
            fuzz_keystore(&body);
            if let Ok(other) = Contents::from_bytes(&body) {
                prop_assert_ne!(other, contents);
            }
        }

        #[test]
        fn any_bytes_are_survived(bytes in vec(any::<u8>(), 0..300)) {
            fuzz_keystore(&bytes);
            fuzz_receipt(&bytes);
            fuzz_export(&bytes);
            fuzz_source(&bytes);
        }

        #[test]
        fn texts_like_sources_are_survived(
            text in "(coffer root-key source v1\n)?(file|passphrase|keyring|pkcs11:token=)\
                     [ :a-z/%0-9;?&=]{0,40}(module-path=/x)?( root.(key|token))?\n?",
        ) {
            fuzz_source(text.as_bytes());
        }

        #[test]
        fn changed_receipts_are_malformed_or_forged(place: prop::sample::Index, with: u8) {
            let mut receipt = include_bytes!("../tests/museum/format-1/receipt.json").to_vec();
            fuzz_receipt(&receipt);
            let offset = place.index(receipt.len());
            receipt[offset] = with;
            fuzz_receipt(&receipt);
        }

        #[test]
        fn what_exports_hold_is_survived(contents in contents(), cut: prop::sample::Index) {
            let plaintext = [
                b"coffer level export v1\0".as_slice(), &[7; 32], &contents.to_bytes(),
            ].concat();
            fuzz_export(&plaintext);
            fuzz_export(&plaintext[..cut.index(plaintext.len())]);
        }
    }
}
