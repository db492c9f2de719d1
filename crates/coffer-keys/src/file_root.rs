//! The root key in a file.
//!
//! Two lines of text, so that it can be printed and typed in again:
//!
//! ```text
//! coffer root key v1
//! 64 lower-case hexadecimal digits
//! ```

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use coffer_seal::SecretKey;
use coffer_seal::limits::KEY_BYTES;
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::ROOT_FILE_MAX_BYTES;
use crate::new_file::NewFile;
use crate::root::{RootKey, RootSource};

const HEADING: &str = "coffer root key v1\n";

/// A root-key file: mode 0600, written once, never overwritten. Whoever can read it can open
/// everything, so it is refused while others than its owner have any permission on it.
#[derive(Debug, Clone)]
pub struct FileRoot {
    path: PathBuf,
}

impl FileRoot {
    /// The source that keeps its key in this file, whether or not it exists yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl RootSource for FileRoot {
    fn load(&self) -> Result<RootKey, KeysError> {
        let mut file = File::open(&self.path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => KeysError::RootMissing {
                path: self.path.clone(),
            },
            _ => KeysError::io("open", &self.path)(source),
        })?;
        let metadata = file
            .metadata()
            .map_err(KeysError::io("examine", &self.path))?;
        let mode = metadata.permissions().mode() & 0o7777;
        if mode & 0o077 != 0 {
            return Err(KeysError::RootExposed {
                path: self.path.clone(),
                mode,
            });
        }
        // A buffer that never grows, so that no copy is left in memory that was given back.
        let mut text = Zeroizing::new([0; ROOT_FILE_MAX_BYTES]);
        let text_bytes = read_up_to(&mut file, text.as_mut_slice())
            .map_err(KeysError::io("read", &self.path))?;
        parse(&text[..text_bytes]).ok_or_else(|| KeysError::RootMalformed {
            path: self.path.clone(),
        })
    }

    fn create(&self) -> Result<RootKey, KeysError> {
        let root = RootKey::generate();
        let mut digits = Zeroizing::new([0; 2 * KEY_BYTES]);
        hex::encode_to_slice(root.secret().expose(), digits.as_mut_slice())
            .expect("two digits a byte have room");
        let new = NewFile::begin(&self.path)?;
        let mut file = new.file();
        [HEADING.as_bytes(), digits.as_slice(), b"\n"]
            .into_iter()
            .try_for_each(|piece| file.write_all(piece))
            .map_err(KeysError::io("write", &self.path))?;
        if !new.place()? {
            return Err(KeysError::RootExists {
                path: self.path.clone(),
            });
        }
        Ok(root)
    }

    fn describe(&self) -> String {
        format!("file {}", self.path.display())
    }
}

/// The key in a root-key file; `None` when it isn't one. A missing last line end is forgiven, for
/// a key that was typed in again.
pub(crate) fn parse(text: &[u8]) -> Option<RootKey> {
    let digits = text.strip_prefix(HEADING.as_bytes())?;
    let digits = digits.strip_suffix(b"\n").unwrap_or(digits);
    let mut bytes = Zeroizing::new([0; KEY_BYTES]);
    hex::decode_to_slice(digits, bytes.as_mut_slice()).ok()?;
    Some(RootKey::from_secret(SecretKey::from_bytes(*bytes)))
}

fn read_up_to(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled_bytes = 0;
    while filled_bytes < buffer.len() {
        match file.read(&mut buffer[filled_bytes..]) {
            Ok(0) => break,
            Ok(read_bytes) => filled_bytes += read_bytes,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled_bytes)
}
