//! Bodies of the fuzz targets: keystore copies, keystore bodies and root-key files.

use crate::contents::Contents;
use crate::file_root;
use crate::root::RootKey;
use crate::slot::{Copy, Slot};

/// Any bytes as a slot of the keystore file, as the body that was sealed in it, and as a root-key
/// file.
///
/// # Panics
///
/// When what was understood doesn't come back the same: what the fuzzer looks for.
pub fn fuzz_keystore(data: &[u8]) {
    let root = RootKey::from_secret(coffer_seal::SecretKey::from_bytes([0xF0; 32]));
    if let Slot::Intact(copy) = Slot::parse(data) {
        assert!(data.starts_with(copy.as_bytes()));
        assert!(copy.open(&root).is_err(), "a forgery opened");
    }
    let _ = file_root::parse(data);

    let Ok(contents) = Contents::from_bytes(data) else {
        return;
    };
    let body = contents.to_bytes();
    assert_eq!(*body, data, "there is one way only to write a body");
    let copy = Copy::seal(&root, [1; 16], 7, &body);
    let Slot::Intact(parsed) = Slot::parse(&[copy.as_bytes(), b"what follows"].concat()) else {
        panic!("a copy was not understood");
    };
    assert_eq!(parsed, copy);
    let opened = parsed
        .open(&root)
        .expect("it was sealed under this root key");
    assert_eq!(opened, body);
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;
    use crate::body::tests::contents;

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
        }
    }
}
