//! What the operator keeps apart from the data so that it is not lost, source by source; and what
//! becomes of that with a new root key.

use crate::root::spec::SourceSpec;

impl SourceSpec {
    /// What has to be kept apart.
    pub fn to_keep(&self) -> String {
        match self {
            Self::File(_) => format!(
                "keep a copy of {} apart: data is lost without it",
                self.changing()
            ),
            Self::Passphrase => {
                "keep the passphrase, and a copy of root.passphrase: data is lost without either"
                    .to_owned()
            }
            Self::Keyring(_) => {
                "the root key is in the kernel's keyring alone: a reboot destroys it, and with it \
                 all data, unless a copy is put back"
                    .to_owned()
            }
            Self::Token(_) => {
                "keep the token, its PIN, and a copy of root.token: data is lost without one of \
                 them"
                    .to_owned()
            }
        }
    }

    /// What an act means for copies that were kept apart, when it has put the keystore under a new
    /// root key.
    pub fn copies_are_stale(&self) -> String {
        let what = self.changing();
        let reboot = match self {
            Self::Keyring(_) => ", before a reboot destroys it",
            _ => "",
        };
        let otherwise = match self {
            Self::Keyring(_) => "move the root key elsewhere by `coffer keystore move`",
            _ => "copy the file",
        };
        format!(
            "{what} has changed: copies of it from before do not open the data any more. Keep a \
             new one apart{reboot}: by `coffer keystore backup`, or, where a level forbids \
             exports, {otherwise}"
        )
    }

    /// What changes with the root key.
    fn changing(&self) -> String {
        match self {
            Self::File(None) => "root.key".to_owned(),
            Self::File(Some(path)) => path.display().to_string(),
            Self::Passphrase => "root.passphrase".to_owned(),
            Self::Keyring(_) => "the root key in the kernel's keyring".to_owned(),
            Self::Token(_) => "root.token".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_names_what_changes_and_a_keyring_that_a_reboot_ends_all() {
        let cases = [
            ("file", "root.key"),
            ("file:/mnt/key", "/mnt/key"),
            ("passphrase", "root.passphrase"),
            ("keyring:n", "keyring"),
            ("pkcs11:token=t?module-path=/m.so", "root.token"),
        ];
        for (source, named) in cases {
            let source: SourceSpec = source.parse().unwrap();
            let (keep, stale) = (source.to_keep(), source.copies_are_stale());
            assert!(
                keep.contains(named) && stale.contains(named),
                "{keep} {stale}"
            );
            assert!(stale.contains("coffer keystore backup"), "{stale}");
            let is_keyring = named == "keyring";
            assert_eq!(keep.contains("reboot"), is_keyring, "{keep}");
            assert_eq!(stale.contains("reboot"), is_keyring, "{stale}");
            // No backup is made where a level forbids exports.
            let otherwise = if is_keyring {
                "keystore move"
            } else {
                "copy the file"
            };
            assert!(stale.contains(otherwise), "{stale}");
        }
    }
}
