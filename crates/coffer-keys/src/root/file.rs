//! The root key in a file.
//!
//! Two lines of text, so that it can be printed and typed in again:
//!
//! ```text
//! coffer root key v1
//! 64 lower-case hexadecimal digits
//! ```
//!
//! While the root key is being changed, the same two lines with the other key are at byte 4096.

use std::path::{Path, PathBuf};

use coffer_seal::limits::KEY_BYTES;
use coffer_seal::{KeystoreId, SecretKey};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::freshness::{HeldGeneration, Keeping, Outside};
use crate::root::generation_file;
use crate::root::key_file::{KeyFile, RootText};
use crate::root::source::{RootKey, RootMedium, RootSource, Sanitization};
use crate::root::storage::Storage;

const HEADING: &str = "coffer root key v1\n";

/// A root-key file: mode 0600. A reader of it can open everything, so it is refused while
/// others than its owner have any permission on it. A key that is destroyed is overwritten in
/// place.
#[derive(Debug, Clone)]
pub struct FileRoot {
    path: PathBuf,
    is_elsewhere: bool,
}

impl FileRoot {
    /// The source that keeps its key in this file, whether or not it exists yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            is_elsewhere: false,
        }
    }

    /// As [`FileRoot::new`], of a file that lies outside of the data folder: beside it, in a file
    /// called like it with `.generation` behind, it holds the keystore's generation.
    pub fn elsewhere(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            is_elsewhere: true,
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn on_file(&self) -> Result<KeyFile<'_>, KeysError> {
        KeyFile::new(&self.path, &BareText)
    }
}

impl RootSource for FileRoot {
    fn candidates(&self) -> Result<Vec<RootKey>, KeysError> {
        self.on_file()?.candidates()
    }

    fn add(&self) -> Result<RootKey, KeysError> {
        self.on_file()?.add()
    }

    fn keep_only(&self, kept: Option<&RootKey>) -> Result<(), KeysError> {
        self.on_file()?.keep_only(kept)?;
        if kept.is_none() && self.is_elsewhere {
            generation_file::remove(&self.path)
        } else {
            Ok(())
        }
    }

    fn keeping(&self) -> Keeping {
        if self.is_elsewhere {
            Keeping::OnMedium
        } else {
            Keeping::Nowhere
        }
    }

    fn outside(&self, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
        if self.is_elsewhere {
            generation_file::read(&self.path, keystore_id)
        } else {
            Ok(Outside::Nowhere)
        }
    }

    fn hold_outside(
        &self,
        keystore_id: KeystoreId,
        generation: HeldGeneration,
    ) -> Result<(), KeysError> {
        if self.is_elsewhere {
            generation_file::write(&self.path, keystore_id, generation)
        } else {
            Ok(())
        }
    }

    fn file(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn describe(&self) -> String {
        format!("file {}", self.path.display())
    }

    fn medium(&self) -> RootMedium {
        let storage = Storage::below(&self.path);
        RootMedium {
            category: Sanitization::Clear,
            holder: format!("file {} on {}", self.path.display(), storage.describe()),
            destruction: "overwritten once in place, synced, read back".to_owned(),
            remaining: format!(
                "whoever kept copies of both the keystore and the root-key file from before, such \
                 as a backup or a snapshot, can still open what they hold; {}",
                storage.remains()
            ),
        }
    }
}

/// The key itself, in hexadecimal digits.
pub(crate) struct BareText;

impl RootText for BareText {
    fn parse(&self, text: &[u8]) -> Result<Option<RootKey>, KeysError> {
        Ok(parse(text))
    }

    fn write(&self, root: &RootKey) -> Result<Zeroizing<Vec<u8>>, KeysError> {
        let mut text = Zeroizing::new(vec![b'\n'; HEADING.len() + 2 * KEY_BYTES + 1]);
        text[..HEADING.len()].copy_from_slice(HEADING.as_bytes());
        let digits = &mut text[HEADING.len()..HEADING.len() + 2 * KEY_BYTES];
        hex::encode_to_slice(root.secret().expose(), digits).expect("two digits a byte have room");
        Ok(text)
    }
}

/// The key in a root-key file; `None` when it isn't one. A missing last line end is forgiven, for
/// a key that was typed in again.
pub(crate) fn parse(text: &[u8]) -> Option<RootKey> {
    let digits = text.strip_prefix(HEADING.as_bytes())?;
    let digits = digits.strip_suffix(b"\n").unwrap_or(digits);
    SecretKey::try_filled(|out| hex::decode_to_slice(digits, out))
        .ok()
        .map(RootKey::from_secret)
}
