//! The keystore's generation, beside a root-key file that lies outside of the data folder.
//!
//! ```text
//! coffer keystore generation v1
//! 32 digits: the keystore's id
//! 48
//! 1795199339260
//! ```
//!
//! The last lines are the generation and, in milliseconds since 1970, when it was so. The file is
//! replaced whole. It is no secret, and as trustworthy as the root-key file beside it.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use coffer_durable::{Disk, Folder, clear_away, remove_durably, write_file_atomically};
use coffer_seal::KeystoreId;

use crate::error::KeysError;
use crate::freshness::{HeldGeneration, Outside};
use crate::limits::GENERATION_FILE_MAX_BYTES;

const HEADING: &str = "coffer keystore generation v1";

/// What the file beside this root-key file holds.
pub(crate) fn read(root_key: &Path, keystore_id: KeystoreId) -> Result<Outside, KeysError> {
    let path = beside(root_key);
    let (folder, name) = Folder::of(&path).map_err(KeysError::io("find", &path))?;
    let text = match folder.read(name, 0, GENERATION_FILE_MAX_BYTES) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Outside::Absent),
        text => text.map_err(KeysError::io("read", &path))?,
    };
    let held = parse(&text, keystore_id);
    Ok(held.map_or(Outside::Absent, Outside::Held))
}

/// Replaces it.
pub(crate) fn write(
    root_key: &Path,
    keystore_id: KeystoreId,
    held: HeldGeneration,
) -> Result<(), KeysError> {
    let path = beside(root_key);
    let HeldGeneration {
        generation,
        held_ms,
    } = held;
    let text = format!("{HEADING}\n{keystore_id}\n{generation}\n{held_ms}\n");
    write_file_atomically(&path, text.as_bytes()).map_err(KeysError::durable(&path))
}

/// Removes it, for the root key has gone elsewhere.
pub(crate) fn remove(root_key: &Path) -> Result<(), KeysError> {
    let path = beside(root_key);
    let (folder, name) = Folder::of(&path).map_err(KeysError::io("find", &path))?;
    let removed = clear_away(&folder, name).and_then(|()| remove_durably(&folder, name));
    removed.map_err(KeysError::durable(&path))
}

fn beside(root_key: &Path) -> PathBuf {
    let mut path = OsString::from(root_key);
    path.push(".generation");
    path.into()
}

/// `None` when that is none, or one of another keystore.
fn parse(text: &[u8], keystore_id: KeystoreId) -> Option<HeldGeneration> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let is_own = lines.next()? == HEADING && lines.next()? == keystore_id.to_string();
    is_own.then_some(HeldGeneration {
        generation: lines.next()?.parse().ok()?,
        held_ms: lines.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: KeystoreId = KeystoreId([7; 16]);

    #[test]
    fn what_is_held_comes_back_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.key");
        assert_eq!(read(&path, OWN).unwrap(), Outside::Absent);
        for generation in [1, u64::MAX] {
            let held = HeldGeneration {
                generation,
                held_ms: -5,
            };
            write(&path, OWN, held).unwrap();
            assert_eq!(read(&path, OWN).unwrap(), Outside::Held(held));
            assert_eq!(read(&path, KeystoreId([8; 16])).unwrap(), Outside::Absent);
        }
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
