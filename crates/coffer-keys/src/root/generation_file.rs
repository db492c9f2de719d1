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
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use crate::error::KeysError;
use crate::freshness::{HeldGeneration, Outside};
use crate::limits::GENERATION_FILE_MAX_BYTES;
use crate::new_file::{NewFile, clear_away, sync_folder_of};

const HEADING: &str = "coffer keystore generation v1";

/// What the file beside this root-key file holds.
pub(crate) fn read(root_key: &Path, keystore_id: &[u8; 16]) -> Result<Outside, KeysError> {
    let path = beside(root_key);
    let file = match File::open(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Outside::Absent),
        file => file.map_err(KeysError::io("open", &path))?,
    };
    let mut text = Vec::new();
    file.take(GENERATION_FILE_MAX_BYTES)
        .read_to_end(&mut text)
        .map_err(KeysError::io("read", &path))?;
    let held = parse(&text, keystore_id);
    Ok(held.map_or(Outside::Absent, Outside::Held))
}

/// Replaces it.
pub(crate) fn write(
    root_key: &Path,
    keystore_id: &[u8; 16],
    held: HeldGeneration,
) -> Result<(), KeysError> {
    let path = beside(root_key);
    let HeldGeneration {
        generation,
        held_ms,
    } = held;
    let id = hex::encode(keystore_id);
    let new = NewFile::begin(&path)?;
    writeln!(new.file(), "{HEADING}\n{id}\n{generation}\n{held_ms}")
        .map_err(KeysError::io("write", &path))?;
    new.replace()
}

/// Removes it, for the root key has gone elsewhere.
pub(crate) fn remove(root_key: &Path) -> Result<(), KeysError> {
    let path = beside(root_key);
    clear_away(&path)?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => {
            removed.map_err(KeysError::io("remove", &path))?;
            sync_folder_of(&path)
        }
    }
}

fn beside(root_key: &Path) -> PathBuf {
    let mut path = OsString::from(root_key);
    path.push(".generation");
    path.into()
}

/// `None` when that is none, or one of another keystore.
fn parse(text: &[u8], keystore_id: &[u8; 16]) -> Option<HeldGeneration> {
    let mut lines = std::str::from_utf8(text).ok()?.lines();
    let is_own = lines.next()? == HEADING && lines.next()? == hex::encode(keystore_id);
    is_own.then_some(HeldGeneration {
        generation: lines.next()?.parse().ok()?,
        held_ms: lines.next()?.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_comes_back_and_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("root.key");
        assert_eq!(read(&path, &[7; 16]).unwrap(), Outside::Absent);
        for generation in [1, u64::MAX] {
            let held = HeldGeneration {
                generation,
                held_ms: -5,
            };
            write(&path, &[7; 16], held).unwrap();
            assert_eq!(read(&path, &[7; 16]).unwrap(), Outside::Held(held));
            assert_eq!(read(&path, &[8; 16]).unwrap(), Outside::Absent);
        }
        remove(&path).unwrap();
        remove(&path).unwrap();
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
