//! Which version at the target came of which at the source: a file for each bucket, to which lines
//! are added as versions arrive, and which a later run reads.
//!
//! It is not synced: a line that a crash has cut off costs a comparison, no more. In memory each
//! line is some 70 bytes, whatever the name's length.

use std::collections::{HashMap, HashSet};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use aws_lc_rs::digest;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use crate::limits::LEDGER_LINE_BYTES;
use crate::migrate::error::MigrateError;
use crate::s3::ListedVersion;

/// A version, told from all others of its bucket.
type Mark = [u8; 16];

fn mark(parts: &[&str]) -> Mark {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut mark = Mark::default();
    mark.copy_from_slice(&context.finish().as_ref()[..16]);
    mark
}

/// A version of the source. Where it has an id of its own, nothing of it can change; else another
/// content has another time, length or entity tag.
fn source_mark(key: &str, version: &ListedVersion) -> Mark {
    let object = &version.object;
    let bytes = object.bytes.to_string();
    let etag = object.etag.trim_matches('"');
    mark(&[key, &version.version_id, etag, &object.modified, &bytes])
}

/// What tells a version at the target from others: its id, or the entity tag where it has none.
pub(super) fn identity(version_id: Option<&str>, etag: &str) -> String {
    match version_id.filter(|id| *id != "null") {
        Some(id) => format!("v:{id}"),
        None => format!("e:{}", etag.trim_matches('"')),
    }
}

fn identity_of(version: &ListedVersion) -> String {
    identity(Some(&version.version_id), &version.object.etag)
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
enum Line {
    /// Of what, and where it goes: the first line.
    Of { source: String, target: String },
    /// A version has arrived.
    Arrived {
        key: String,
        version: String,
        etag: String,
        modified: String,
        bytes: u64,
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc64nvme: Option<String>,
    },
    /// An upload of a version in parts was begun.
    Begun { version: String, begun: Begun },
    /// An upload was given up.
    Ended { version: String },
    /// A part of an upload is at the target.
    Part { upload_id: String, part: Part },
}

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Begun {
    pub(super) key: String,
    pub(super) upload_id: String,
    pub(super) compares: bool,
    pub(super) part_bytes: u64,
}

/// A part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) etag: String,
    pub(super) crc: u64,
}

struct Arrived {
    target: Mark,
    crc: Option<u64>,
}

#[derive(Default)]
struct Known {
    arrived: HashMap<Mark, Arrived>,
    /// All that this migration ever stored at the target.
    ours: HashSet<Mark>,
    uploads: HashMap<Mark, (Begun, Vec<Part>)>,
}

/// The ledger of a bucket, which this process holds.
pub(super) struct Ledger {
    path: PathBuf,
    /// None where nothing is to be noted: nothing is moved then.
    file: Option<Mutex<File>>,
    known: Mutex<Known>,
}

impl Ledger {
    /// Opens the ledger of what goes from here to there; to add to it, or to read it alone.
    pub(super) fn open(
        folder: &Path,
        source: &str,
        target: &str,
        adds: bool,
    ) -> Result<Self, MigrateError> {
        let folder = folder.join("migrations");
        let name = hex::encode(mark(&[source, target]));
        let path = folder.join(format!("{name}.jsonl"));
        if !adds {
            let known = match File::open(&path) {
                Ok(file) => read(&file).map_err(MigrateError::local("reading", &path))?,
                Err(_) => Known::default(),
            };
            return Ok(Self {
                path,
                file: None,
                known: Mutex::new(known),
            });
        }
        let mut builder = DirBuilder::new();
        let made = builder.recursive(true).mode(0o700).create(&folder);
        made.map_err(MigrateError::local("making the folder", &folder))?;
        let mut options = OpenOptions::new();
        options.read(true).append(true).create(true).mode(0o600);
        let file = options
            .open(&path)
            .map_err(MigrateError::local("opening", &path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(MigrateError::Busy { path }),
            Err(TryLockError::Error(error)) => {
                return Err(MigrateError::local("locking", &path)(error));
            }
        }
        let known = read(&file).map_err(MigrateError::local("reading", &path))?;
        let ledger = Self {
            path,
            file: Some(Mutex::new(file)),
            known: Mutex::new(known),
        };
        ledger.begin(source, target)?;
        Ok(ledger)
    }

    /// Names what it is of, on a line of its own: the last one may be cut off.
    fn begin(&self, source: &str, target: &str) -> Result<(), MigrateError> {
        let length = fs::metadata(&self.path).map_or(0, |file| file.len());
        if length > 0 {
            return self.write(b"\n");
        }
        self.add(&Line::Of {
            source: source.to_owned(),
            target: target.to_owned(),
        })
    }

    fn add(&self, line: &Line) -> Result<(), MigrateError> {
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        self.write(&text)
    }

    fn write(&self, text: &[u8]) -> Result<(), MigrateError> {
        let Some(file) = &self.file else {
            return Ok(());
        };
        let written = file.lock().write_all(text);
        written.map_err(MigrateError::local("writing", &self.path))
    }

    /// Notes that a version has arrived, as what, and with which CRC-64/NVME.
    pub(super) fn arrived(
        &self,
        key: &str,
        version: &ListedVersion,
        target: &str,
        crc: Option<u64>,
    ) -> Result<(), MigrateError> {
        let line = Line::Arrived {
            key: key.to_owned(),
            version: version.version_id.clone(),
            etag: version.object.etag.trim_matches('"').to_owned(),
            modified: version.object.modified.clone(),
            bytes: version.object.bytes,
            target: target.to_owned(),
            crc64nvme: crc.map(|crc| format!("{crc:016x}")),
        };
        self.add(&line)?;
        take(&mut self.known.lock(), line);
        Ok(())
    }

    /// Whether this version at the target came of that one at the source.
    pub(super) fn came_of(&self, key: &str, at_target: &ListedVersion, of: &ListedVersion) -> bool {
        let known = self.known.lock();
        let arrived = known.arrived.get(&source_mark(key, of));
        arrived.is_some_and(|it| it.target == mark(&[key, &identity_of(at_target)]))
    }

    /// The CRC-64/NVME of what was read of a version of the source.
    pub(super) fn crc_of(&self, key: &str, of: &ListedVersion) -> Option<u64> {
        self.known.lock().arrived.get(&source_mark(key, of))?.crc
    }

    /// Whether this migration stored this version at the target.
    pub(super) fn is_ours(&self, key: &str, at_target: &ListedVersion) -> bool {
        let mark = mark(&[key, &identity_of(at_target)]);
        self.known.lock().ours.contains(&mark)
    }

    /// Notes that an upload of a version was begun.
    pub(super) fn begun(
        &self,
        key: &str,
        version: &ListedVersion,
        begun: &Begun,
    ) -> Result<(), MigrateError> {
        self.add(&Line::Begun {
            version: hex::encode(source_mark(key, version)),
            begun: begun.clone(),
        })
    }

    /// Gives up the uploads that no version of the source needs any more: how they are called.
    pub(super) fn needless_uploads(&self) -> Result<Vec<Begun>, MigrateError> {
        let uploads = std::mem::take(&mut self.known.lock().uploads);
        let mut needless = Vec::new();
        for (version, (begun, _)) in uploads {
            let version = hex::encode(version);
            self.add(&Line::Ended { version })?;
            needless.push(begun);
        }
        Ok(needless)
    }

    /// Notes that a part is at the target.
    pub(super) fn part(&self, upload_id: &str, part: Part) -> Result<(), MigrateError> {
        self.add(&Line::Part {
            upload_id: upload_id.to_owned(),
            part,
        })
    }

    /// The upload of a version that an earlier run left behind, and its parts.
    pub(super) fn upload_of(&self, key: &str, of: &ListedVersion) -> Option<(Begun, Vec<Part>)> {
        self.known.lock().uploads.remove(&source_mark(key, of))
    }
}

/// Reads lines; those that are none mean nothing.
fn read(file: &File) -> std::io::Result<Known> {
    let mut known = Known::default();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(LEDGER_LINE_BYTES);
        if { read }.read_until(b'\n', &mut line)? == 0 {
            return Ok(known);
        }
        if let Ok(line) = serde_json::from_slice(&line) {
            take(&mut known, line);
        }
    }
}

fn take(known: &mut Known, line: Line) {
    match line {
        Line::Of { .. } => {}
        Line::Arrived {
            key,
            version,
            etag,
            modified,
            bytes,
            target,
            crc64nvme,
        } => {
            let source = mark(&[&key, &version, &etag, &modified, &bytes.to_string()]);
            let target = mark(&[&key, &target]);
            let crc = crc64nvme.and_then(|text| u64::from_str_radix(&text, 16).ok());
            known.ours.insert(target);
            known.uploads.remove(&source);
            known.arrived.insert(source, Arrived { target, crc });
        }
        Line::Begun { version, begun } => {
            let version = hex::decode(version).unwrap_or_default();
            if let Ok(version) = version.try_into() {
                known.uploads.insert(version, (begun, Vec::new()));
            }
        }
        Line::Ended { version } => {
            let version: Option<Mark> = hex::decode(version).ok().and_then(|it| it.try_into().ok());
            known.uploads.remove(&version.unwrap_or_default());
        }
        Line::Part { upload_id, part } => {
            let of = { known.uploads.values_mut() }.find(|(begun, _)| begun.upload_id == upload_id);
            if let Some((_, parts)) = of {
                parts.push(part);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::ListedObject;

    fn version(id: &str, etag: &str) -> ListedVersion {
        ListedVersion {
            object: ListedObject {
                key: "k".to_owned(),
                bytes: 3,
                etag: etag.to_owned(),
                modified: "2026".to_owned(),
            },
            version_id: id.to_owned(),
            is_latest: true,
            is_marker: false,
        }
    }

    #[test]
    fn what_arrived_is_known_later_and_lines_that_are_cut_off_mean_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let open = || Ledger::open(folder.path(), "s", "t", true);
        let ledger = open().unwrap();
        let (source, target) = (version("v1", "\"a\""), version("null", "\"b\""));
        ledger.arrived("k", &source, "e:b", Some(7)).unwrap();
        let begun = Begun {
            key: "k".to_owned(),
            upload_id: "u".to_owned(),
            compares: true,
            part_bytes: 5,
        };
        let part = Part {
            number: 1,
            etag: "e".to_owned(),
            crc: 9,
        };
        let other = version("v2", "");
        ledger.begun("k", &other, &begun).unwrap();
        ledger.part("u", part.clone()).unwrap();
        assert!(matches!(open(), Err(MigrateError::Busy { .. })));
        let path = ledger.path.clone();
        drop(ledger);
        let text = fs::read(&path).unwrap();
        fs::write(&path, &text[..text.len() - 4]).unwrap();
        let ledger = open().unwrap();
        assert!(ledger.came_of("k", &target, &source));
        assert_eq!(ledger.crc_of("k", &source), Some(7));
        assert!(ledger.is_ours("k", &target) && !ledger.is_ours("l", &target));
        assert!(!ledger.came_of("k", &version("null", "c"), &source));
        assert!(!ledger.came_of("k", &target, &version("v1", "z")));
        // The part's line was cut off; what is added now is on a line of its own.
        assert_eq!(ledger.upload_of("k", &other), Some((begun.clone(), vec![])));
        ledger.part("u", part.clone()).unwrap();
        drop(ledger);
        let ledger = open().unwrap();
        let needless = ledger.needless_uploads().unwrap();
        assert_eq!(needless, [begun]);
        drop(ledger);
        assert_eq!(open().unwrap().upload_of("k", &other), None);
    }
}
