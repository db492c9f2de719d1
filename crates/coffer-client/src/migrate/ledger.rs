//! Which version at the target came of which at the source: a file for each bucket, to which lines
//! are added as versions arrive, and which a later run reads.
//!
//! It is not synced: a line that a crash has cut off costs a comparison, no more. In memory each
//! line is some 80 bytes, whatever the name's length.

mod lines;

mod given;

mod settings;

mod mounts;

mod leaving;

#[cfg(test)]
mod tests;

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::migrate::error::MigrateError;
use crate::s3::ListedVersion;

pub(super) use self::lines::{Begun, Given, Part};

use self::lines::{Known, Line, Mark, mark, read, take};

/// A version of the source. Where it has an id of its own, nothing of it can change; else another
/// content has another time, length or entity tag, for which a file has what its inode says.
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

/// Whether a version at the target may be one that was there by this second: of those without an
/// id, others may have stored the same since.
fn was_there_by(at_target: &ListedVersion, by: u32) -> bool {
    let modified = || at_target.object.modified_at();
    by == u32::MAX || modified().is_none_or(|at| at.unix_timestamp() <= by.into())
}

/// A mark of the headers that an upload is begun with.
pub(super) fn mark_of_headers(headers: &[(String, String)]) -> String {
    let texts = { headers.iter() }.flat_map(|(name, value)| [name.as_str(), value.as_str()]);
    hex::encode(mark(&texts.collect::<Vec<_>>()))
}

fn identity_of(version: &ListedVersion) -> String {
    identity(Some(&version.version_id), &version.object.etag)
}

/// The folder of ledgers, in that of what this program notes.
pub(super) const LEDGERS: &str = "migrations";

/// A ledger in the place of another would have what others stored taken for what came.
fn check_of(known: &Known, source: &str, target: &str, path: &Path) -> Result<(), MigrateError> {
    let is_other = |of: &&(String, String)| (of.0.as_str(), of.1.as_str()) != (source, target);
    match { known.of.iter() }.find(is_other).cloned() {
        None => Ok(()),
        Some((source_text, target)) => Err(MigrateError::OtherLedger {
            path: path.to_owned(),
            source_text,
            target,
        }),
    }
}

/// The ledger of a bucket, which this process holds.
pub(super) struct Ledger {
    path: PathBuf,
    /// None where nothing is to be noted: nothing is moved then.
    file: Option<Mutex<File>>,
    known: Mutex<Known>,
    /// What is to be deleted at the target.
    leaving: Mutex<Option<File>>,
}

impl Ledger {
    /// Opens the ledger of what goes from here to there; to add to it, or to read it alone.
    pub(super) fn open(
        folder: &Path,
        source: &str,
        target: &str,
        adds: bool,
    ) -> Result<Self, MigrateError> {
        let folder = folder.join(LEDGERS);
        let name = hex::encode(mark(&[source, target]));
        let path = folder.join(format!("{name}.jsonl"));
        if !adds {
            let known = match File::open(&path) {
                Ok(file) => read(&file).map_err(MigrateError::local("reading", &path))?,
                Err(error) if error.kind() == ErrorKind::NotFound => Known::default(),
                Err(error) => return Err(MigrateError::local("opening", &path)(error)),
            };
            check_of(&known, source, target, &path)?;
            return Ok(Self {
                path,
                file: None,
                known: Mutex::new(known),
                leaving: Mutex::default(),
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
        check_of(&known, source, target, &path)?;
        let ledger = Self {
            path,
            file: Some(Mutex::new(file)),
            known: Mutex::new(known),
            leaving: Mutex::default(),
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

    /// Notes that a version has arrived, as what, by when, and with which CRC-64/NVME.
    pub(super) fn arrived(
        &self,
        key: &str,
        version: &ListedVersion,
        (target, by): (&str, Option<u32>),
        crc: Option<u64>,
    ) -> Result<(), MigrateError> {
        let line = Line::Arrived {
            key: key.to_owned(),
            version: version.version_id.clone(),
            etag: version.object.etag.trim_matches('"').to_owned(),
            modified: version.object.modified.clone(),
            bytes: version.object.bytes,
            target: target.to_owned(),
            by,
            crc64nvme: crc.map(|crc| format!("{crc:016x}")),
        };
        self.note(line)
    }

    /// Whether this version at the target came of that one at the source.
    pub(super) fn came_of(&self, key: &str, at_target: &ListedVersion, of: &ListedVersion) -> bool {
        let known = self.known.lock();
        let arrived = known.arrived.get(&source_mark(key, of));
        arrived.is_some_and(|it| {
            it.target == mark(&[key, &identity_of(at_target)]) && was_there_by(at_target, it.by)
        })
    }

    /// The CRC-64/NVME of what was read of a version of the source.
    pub(super) fn crc_of(&self, key: &str, of: &ListedVersion) -> Option<u64> {
        self.known.lock().arrived.get(&source_mark(key, of))?.crc
    }

    /// Whether this migration stored this version at the target.
    pub(super) fn is_ours(&self, key: &str, at_target: &ListedVersion) -> bool {
        let mark = mark(&[key, &identity_of(at_target)]);
        let by = self.known.lock().ours.get(&mark).copied();
        by.is_some_and(|by| was_there_by(at_target, by))
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

    /// Notes which versions of a name the source has: an upload of one is needed, though it may not
    /// be read in this run.
    pub(super) fn listed(&self, key: &str, from: &[ListedVersion]) {
        let mut known = self.known.lock();
        if known.uploads.is_empty() {
            return;
        }
        let marks = from.iter().map(|of| source_mark(key, of));
        let needed: Vec<Mark> = { marks }
            .filter(|mark| known.uploads.contains_key(mark))
            .collect();
        known.needed.extend(needed);
    }

    /// Whether versions with ids of their own have come.
    pub(super) fn knows_ids(&self) -> bool {
        self.known.lock().has_ids
    }

    /// The uploads of earlier runs that no version of the source needs any more, and what they
    /// are noted by.
    pub(super) fn needless_uploads(&self) -> Vec<(Mark, Begun)> {
        let mut known = self.known.lock();
        let mut uploads = std::mem::take(&mut known.uploads);
        uploads.retain(|version, _| !known.needed.contains(version));
        let needless = uploads.into_iter();
        needless.map(|(of, (begun, _))| (of, begun)).collect()
    }

    /// Notes that such an upload is ended.
    pub(super) fn ended(&self, of: Mark) -> Result<(), MigrateError> {
        let version = hex::encode(of);
        self.add(&Line::Ended { version })
    }

    /// Notes that an upload may still be at the target, though no version needs it: a later run
    /// ends it.
    pub(super) fn left(&self, begun: &Begun) -> Result<(), MigrateError> {
        self.add(&Line::Begun {
            version: hex::encode(mark(&["left", &begun.upload_id])),
            begun: begun.clone(),
        })
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

    /// Notes that a version of the source goes out with this: should its answer be lost, what is
    /// at the target is known for what it is.
    pub(super) fn sending(
        &self,
        key: &str,
        of: &ListedVersion,
        given: Given,
    ) -> Result<(), MigrateError> {
        let version = hex::encode(source_mark(key, of));
        self.note(Line::Sending { version, given })
    }

    /// Notes that what was stored of a version, as this and by then, is other than what was sent.
    pub(super) fn spoilt(
        &self,
        key: &str,
        (target, by): (&str, Option<u32>),
    ) -> Result<(), MigrateError> {
        self.note(Line::Spoilt {
            key: key.to_owned(),
            target: target.to_owned(),
            by,
        })
    }

    /// Notes that it did not arrive.
    pub(super) fn unsent(&self, key: &str, of: &ListedVersion) -> Result<(), MigrateError> {
        let version = hex::encode(source_mark(key, of));
        self.note(Line::Unsent { version })
    }

    /// Whether it went out, and it is not known whether it arrived.
    pub(super) fn was_sent(&self, key: &str, of: &ListedVersion) -> bool {
        let sending = &self.known.lock().sending;
        sending.contains_key(&source_mark(key, of))
    }

    /// Notes that a version is at the target, which another has stored there.
    pub(super) fn same(
        &self,
        key: &str,
        of: &ListedVersion,
        target: &str,
        crc: Option<u64>,
    ) -> Result<(), MigrateError> {
        self.note(Line::Same {
            key: key.to_owned(),
            version: hex::encode(source_mark(key, of)),
            target: target.to_owned(),
            crc64nvme: crc.map(|crc| format!("{crc:016x}")),
        })
    }

    fn note(&self, line: Line) -> Result<(), MigrateError> {
        self.add(&line)?;
        take(&mut self.known.lock(), line);
        Ok(())
    }
}
