//! Which root-key source a keystore has: the file `keystore.source` beside it.
//!
//! ```text
//! coffer root-key source v1
//! passphrase root.passphrase
//! ```
//!
//! A line names the source and, if that keeps one in the data folder, its file there. While the
//! root key is being moved there are two lines: the source that it had, and the one that it gets.
//! The keystore opens with one of them. Nothing in it is secret, and it decides nothing: a record
//! that was changed names a source that doesn't open the keystore.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use coffer_seal::random_bytes;

use coffer_durable::write_file_atomically;

use crate::error::KeysError;
use crate::limits::SOURCE_RECORD_MAX_BYTES;
use crate::root::spec::SourceSpec;

const HEADING: &str = "coffer root-key source v1";

/// Its name in the data folder.
pub(crate) const RECORD_FILE: &str = "keystore.source";

/// The files that sources keep in the data folder. A passphrase or a token may be changed for
/// another, so they have two, used in turn.
const PLAIN_FILE: &str = "root.key";
const PASSPHRASE_FILES: [&str; 2] = ["root.passphrase", "root-2.passphrase"];
const TOKEN_FILES: [&str; 2] = ["root.token", "root-2.token"];

/// A source, and its file in the data folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlacedSource {
    pub(crate) spec: SourceSpec,
    pub(crate) file: Option<&'static str>,
}

/// Where a keystore's root key is, and where it is being moved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceRecord {
    pub(crate) current: PlacedSource,
    pub(crate) next: Option<PlacedSource>,
}

impl SourceRecord {
    /// The source that the root key is in, or was before a move that isn't complete.
    pub fn current(&self) -> &SourceSpec {
        &self.current.spec
    }

    /// The source that it is being moved to.
    pub fn next(&self) -> Option<&SourceSpec> {
        self.next.as_ref().map(|placed| &placed.spec)
    }

    /// Whether a passphrase is needed to open the keystore.
    pub fn needs_passphrase(&self) -> bool {
        self.specs().any(SourceSpec::needs_passphrase)
    }

    /// Whether a PIN is needed that no file holds.
    pub fn needs_pin(&self) -> bool {
        self.specs().any(SourceSpec::needs_pin)
    }

    fn specs(&self) -> impl Iterator<Item = &SourceSpec> {
        [self.current()].into_iter().chain(self.next())
    }

    /// The record of a source that nothing else is known of.
    pub(crate) fn of(spec: SourceSpec) -> Self {
        Self {
            current: PlacedSource::apart_from(spec, None),
            next: None,
        }
    }

    /// Reads the record; `None` when there is none.
    pub(crate) fn read(folder: &Path) -> Result<Option<Self>, KeysError> {
        let path = record_path(folder);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file.map_err(KeysError::io("open", &path))?,
        };
        let mut text = String::new();
        let read = file
            .take(SOURCE_RECORD_MAX_BYTES as u64 + 1)
            .read_to_string(&mut text);
        match read {
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(KeysError::SourceRecord { path });
            }
            Err(error) => return Err(KeysError::io("read", &path)(error)),
        }
        let record = Self::parse(&text).ok_or(KeysError::SourceRecord { path })?;
        Ok(Some(record))
    }

    /// Puts the record into the folder, in place of another, durably.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), KeysError> {
        let path = record_path(folder);
        let written = write_file_atomically(&path, self.to_string().as_bytes());
        written.map_err(KeysError::durable(&path))
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        if text.len() > SOURCE_RECORD_MAX_BYTES {
            return None;
        }
        let mut lines = text.strip_suffix('\n')?.split('\n');
        if lines.next()? != HEADING {
            return None;
        }
        let current = PlacedSource::parse(lines.next()?)?;
        let next = lines.next().map(PlacedSource::parse);
        if lines.next().is_some() || next == Some(None) {
            return None;
        }
        Some(Self {
            current,
            next: next.flatten(),
        })
    }
}

impl std::fmt::Display for SourceRecord {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{HEADING}")?;
        for PlacedSource { spec, file } in [&self.current].into_iter().chain(&self.next) {
            write!(f, "{spec}")?;
            if let Some(file) = file {
                write!(f, " {file}")?;
            }
            f.write_char('\n')?;
        }
        Ok(())
    }
}

impl PlacedSource {
    /// The source with a file of its own, where its kind has several: not the one of `other`.
    pub(crate) fn apart_from(spec: SourceSpec, other: Option<&Self>) -> Self {
        let taken = other.and_then(|other| other.file);
        let spec = match spec {
            SourceSpec::Keyring(None) => {
                let name = format!("coffer-{}", hex::encode(random_bytes::<4>()));
                SourceSpec::Keyring(Some(name))
            }
            spec => spec,
        };
        let files = files(&spec);
        let free = files.iter().find(|file| Some(**file) != taken);
        Self {
            file: free.or(files.first()).copied(),
            spec,
        }
    }

    /// A line of the record. Specifications have no spaces as they are printed.
    fn parse(line: &str) -> Option<Self> {
        let (spec, file) = match line.split_once(' ') {
            Some((spec, file)) => (spec, Some(file)),
            None => (line, None),
        };
        let spec: SourceSpec = spec.parse().ok()?;
        let file = match (files(&spec), file) {
            ([], None) => None,
            (files, Some(file)) => Some(*files.iter().find(|known| **known == file)?),
            _ => return None,
        };
        let placed = Self { spec, file };
        (placed.spec != SourceSpec::Keyring(None) && placed.line() == line).then_some(placed)
    }

    fn line(&self) -> String {
        match self.file {
            Some(file) => format!("{} {file}", self.spec),
            None => self.spec.to_string(),
        }
    }
}

/// The files in the data folder that a source of this kind may use.
fn files(spec: &SourceSpec) -> &'static [&'static str] {
    match spec {
        SourceSpec::File(None) => &[PLAIN_FILE],
        SourceSpec::Passphrase => &PASSPHRASE_FILES,
        SourceSpec::Token(_) => &TOKEN_FILES,
        SourceSpec::File(Some(_)) | SourceSpec::Keyring(_) => &[],
    }
}

fn record_path(folder: &Path) -> PathBuf {
    folder.join(RECORD_FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_from_its_file() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(SourceRecord::read(folder.path()).unwrap(), None);
        let mut record = SourceRecord::of(SourceSpec::Passphrase);
        record.write(folder.path()).unwrap();
        let read = || SourceRecord::read(folder.path()).unwrap().unwrap();
        assert_eq!(read(), record);
        let next = PlacedSource::apart_from(SourceSpec::Passphrase, Some(&record.current));
        assert_eq!(next.file, Some("root-2.passphrase"));
        record.next = Some(next);
        record.write(folder.path()).unwrap();
        assert_eq!(read(), record);
        assert!(read().needs_passphrase() && !read().needs_pin());
        let named = SourceRecord::of(SourceSpec::Keyring(None));
        assert!(named.to_string().contains("keyring:coffer-"), "{named}");
        named.write(folder.path()).unwrap();
        assert_eq!(read(), named);
    }

    #[test]
    fn what_is_no_record_is_refused() {
        for text in [
            "",
            "coffer root-key source v1\n",
            "coffer root-key source v1\nfile root.key",
            "coffer root-key source v2\nfile root.key\n",
            "coffer root-key source v1\nfile\n",
            "coffer root-key source v1\nfile ../root.key\n",
            "coffer root-key source v1\npassphrase root.key\n",
            "coffer root-key source v1\nkeyring\n",
            "coffer root-key source v1\nkeyring:a root.key\n",
            "coffer root-key source v1\nfile root.key\nfile\n",
            "coffer root-key source v1\nfile root.key\nkeyring:a\nkeyring:b\n",
        ] {
            assert_eq!(SourceRecord::parse(text), None, "{text:?}");
        }
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(RECORD_FILE), [0xff]).unwrap();
        let error = SourceRecord::read(folder.path()).unwrap_err();
        assert!(matches!(error, KeysError::SourceRecord { .. }), "{error}");
    }
}
