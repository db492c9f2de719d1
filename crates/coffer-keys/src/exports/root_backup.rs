//! A backup of the root key, sealed by age: what it opens to is a root-key file (`root/file.rs`),
//! whatever source the root key is in.
//!
//! Who opens it opens every level: so it is an export of each, counted as such, and there is none
//! where any level forbids exports.

use serde::{Deserialize, Serialize};

use crate::error::KeysError;
use crate::exports::level::{ExportRecipient, Seal};
use crate::keystore::state::Keystore;
use crate::root::file::BareText;
use crate::root::key_file::RootText;
use crate::root::source::RootKey;

/// What marks are derived with from root keys.
const MARK_LABEL: &[u8] = b"coffer root backup mark v1\0";

const MARK_BYTES: usize = 16;

/// A backup, and what tells later whether it still opens the keystore.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RootBackup {
    /// An armored age file.
    pub sealed: Vec<u8>,
    /// The mark of the root key that is in it.
    pub mark: RootMark,
}

/// Tells one root key from another, and nothing of either.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RootMark(String);

impl RootMark {
    fn of(root: &RootKey) -> Self {
        let derived = root.secret().derive(MARK_LABEL);
        Self(hex::encode(&derived.expose()[..MARK_BYTES]))
    }
}

impl Keystore {
    /// Seals the root key for these recipients, counted as an export of every level, durably,
    /// before it is given out.
    ///
    /// # Errors
    ///
    /// [`KeysError::NoBackup`] where a level forbids it; when there is no recipient, or the
    /// keystore can't be written.
    pub fn back_up_root(&self, recipients: &[ExportRecipient]) -> Result<RootBackup, KeysError> {
        let seal = Seal::for_recipients(recipients)?;
        let (text, mark) = self.change(|contents, root| {
            for (level, _) in contents.levels.values_mut() {
                if !level.options.exportable {
                    let name = level.name.clone();
                    let what = "a backup of the root key";
                    return Err(KeysError::NoBackup { what, name });
                }
                level.export_count = level.export_count.saturating_add(1);
            }
            Ok((BareText.write(root)?, RootMark::of(root)))
        })?;
        let sealed = seal.seal(&text)?;
        Ok(RootBackup { sealed, mark })
    }

    /// Whether a backup with this mark opens the keystore as it is now.
    pub fn opens_with(&self, mark: &RootMark) -> bool {
        RootMark::of(&self.state().root) == *mark
    }
}
