//! The account that a server is in the eyes of policies and of clients.

use aws_lc_rs::digest::{SHA256, digest};
use coffer_policy::AccountId;
use coffer_seal::KeystoreId;

/// What ids of accounts are below: they have 12 digits.
const IDS: u64 = 1_000_000_000_000;

/// The account's id: 12 digits that follow from the keystore's id, and tell nothing of it.
pub(crate) fn account_id(keystore: KeystoreId) -> AccountId {
    let text = format!("coffer account {keystore}");
    let hash = digest(&SHA256, text.as_bytes());
    let first = hash.as_ref().first_chunk().copied().unwrap_or_default();
    let digits = format!("{:012}", u64::from_be_bytes(first) % IDS);
    digits.parse().expect("twelve digits are an account's id")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_id_follows_from_the_keystore_s() {
        let id = |byte| account_id(KeystoreId([byte; 16])).as_str().to_owned();
        assert_eq!(id(1), id(1));
        assert_ne!(id(1), id(2));
        // For ever: policies that are stored name it.
        assert_eq!(id(0), "620336766305");
    }
}
