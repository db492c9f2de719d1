//! What arrived, version by version, and what did not.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use parking_lot::Mutex;
use serde::Serialize;

use crate::limits::{LINKS_MAX, MIGRATE_TOLD};
use crate::migrate::error::MigrateError;
use crate::mover::{Failure, is_open_file, is_trusted, make_own};

/// Something that did not come.
pub type Missing = Failure;

/// How a bucket stands.
#[derive(Debug, Clone, Default, Serialize)]
pub struct BucketReport {
    /// Its name at the source.
    pub bucket: String,
    /// Where it went.
    pub to: String,
    /// Versions that the source has, without delete markers.
    pub versions: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Delete markers that the source has.
    pub markers: u64,
    /// What of both came now, or would.
    pub moved: u64,
    /// The bytes of that.
    pub moved_bytes: u64,
    /// What of that has something of its length at the target, with which only a run compares it.
    pub uncompared: u64,
    /// What of both was there.
    pub there: u64,
    /// The bytes of versions that are there now, and proven to be the same.
    pub proven_bytes: u64,
    /// The number of those.
    pub proven: u64,
    /// What came of the source once, is gone there now, and still is at the target.
    pub gone: u64,
    /// What of that was deleted, or would be.
    pub deleted: u64,
    /// What came of the source once, and lies where it can't be read now, or is not to be.
    pub unread: u64,
    /// What came of names that the source still has, before it had something else there.
    pub older: u64,
    /// What others stored at the target.
    pub others: u64,
    /// What did not come, with settings.
    pub missing: u64,
}

/// How the whole stands.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Bucket by bucket.
    pub buckets: Vec<BucketReport>,
    /// How much did not come.
    pub missing: u64,
    /// The first of that.
    pub told: Vec<Missing>,
}

/// What became of a version.
#[derive(Debug, Serialize)]
pub(super) struct Line<'a> {
    /// `moved`, `there`, `would-move`, `missing`, `gone`, `deleted`, `would-delete`,
    /// `unread`, `older`, `only-at-target`.
    pub(super) outcome: &'static str,
    pub(super) bucket: &'a str,
    pub(super) key: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) source_version: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(super) modified: &'a str,
    pub(super) bytes: u64,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_marker: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target_version: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) checksum: Option<String>,
    /// What shows that it is the same.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) proof: Option<Proof>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) problem: Option<String>,
}

/// What shows that a version is the same at the target.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Proof {
    /// What was read of the source has the checksum that the source tells, and the target tells
    /// the checksum of what was read.
    BothTell,
    /// The target tells the checksum of what was read of the source, which tells none.
    TargetTells,
    /// The ledger has the checksum of what was read, and of the source's version nothing changed.
    Recorded,
    /// A delete marker has no bytes.
    Marker,
}

struct Open {
    out: BufWriter<File>,
    /// What it is called until it is whole; none of what is written as it comes, such as a pipe.
    unfinished: Option<PathBuf>,
    path: PathBuf,
    failure: Option<io::Error>,
}

impl Open {
    fn new(path: &Path) -> Result<Self, MigrateError> {
        let wrong = |problem| MigrateError::Report {
            path: path.to_owned(),
            problem,
        };
        let failed = |error| MigrateError::local("writing the report", path)(error);
        if path == Path::new("-") {
            return Err(wrong("name a file; /dev/stdout is standard output"));
        }
        // Standard output is what this process has, whatever lies at the name.
        if path == Path::new("/dev/stdout") {
            let out = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
            return Ok(Self::as_it_comes(out.into(), path));
        }
        if let Some(link) = planted(path) {
            return Err(MigrateError::Report {
                path: link,
                problem: "is a link that another user may have put there: name the file that is \
                          meant, by a path without it",
            });
        }
        let there = fs::metadata(path).ok();
        if there.as_ref().is_some_and(fs::Metadata::is_dir) {
            return Err(wrong("is a folder: name a file in it"));
        }
        // What a process has open may be a regular file that others write to as well.
        let is_file = there.as_ref().is_none_or(fs::Metadata::is_file);
        if !is_file || is_open_file(path) {
            let file = OpenOptions::new().append(true).open(path);
            return Ok(Self::as_it_comes(file.map_err(failed)?, path));
        }
        // A link stays, and what it points to is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let folder = path
            .parent()
            .filter(|folder| !folder.as_os_str().is_empty());
        if folder.is_some_and(|folder| matches!(folder.try_exists(), Ok(false))) {
            return Err(wrong(
                "lies in a folder that is not there: make it first, or name a file elsewhere",
            ));
        }
        let unfinished = path.with_file_name(format!(".{name}.coffer-part"));
        let file = make_own(&unfinished, 0o666)?;
        // Who could not read the last report, can't read this one. One of another user's, who may
        // have put it there, only takes rights away.
        if let Some(there) = there {
            let made = file.metadata().map_err(failed)?;
            let is_own = there.uid() == made.uid();
            let most = if is_own { 0o777 } else { made.mode() & 0o777 };
            let kept = file.set_permissions(Permissions::from_mode(there.mode() & most));
            kept.map_err(failed)?;
        }
        Ok(Self {
            out: BufWriter::new(file),
            unfinished: Some(unfinished),
            path,
            failure: None,
        })
    }

    fn as_it_comes(file: File, path: &Path) -> Self {
        Self {
            out: BufWriter::new(file),
            unfinished: None,
            path: path.to_owned(),
            failure: None,
        }
    }
}

/// The link that another user may have put there, if a name leads over one, in any part: what it
/// points to, which that user may not be able to change, would be replaced. In a folder that
/// another may have put there, all links are such.
fn planted(path: &Path) -> Option<PathBuf> {
    let mut at = PathBuf::new();
    let mut parts = parts_of(path);
    let (mut links, mut is_of_another) = (0, false);
    while let Some(part) = parts.pop() {
        // Above are no links any more, so that `..` is the folder around.
        at.push(part);
        if matches!(at.components().next_back(), Some(Component::Normal(_))) {
            is_of_another |= !is_trusted(&at);
        }
        let Ok(to) = fs::read_link(&at) else {
            continue;
        };
        if is_of_another {
            return Some(at);
        }
        links += 1;
        if links > LINKS_MAX {
            return None;
        }
        at.pop();
        parts.extend(parts_of(&to));
    }
    None
}

/// The parts of a path, the last first.
fn parts_of(path: &Path) -> Vec<PathBuf> {
    let parts = path.components().rev();
    parts.map(|part| PathBuf::from(part.as_os_str())).collect()
}

/// Gathers it.
pub(super) struct Report {
    file: Option<Mutex<Open>>,
    summary: Mutex<Summary>,
}

impl Report {
    /// Writes lines to a file, which has its name when it is whole. What is no regular file, such
    /// as a device or a pipe, gets them as they come.
    pub(super) fn new(path: Option<&Path>) -> Result<Self, MigrateError> {
        let file = path.map(Open::new).transpose()?;
        Ok(Self {
            file: file.map(Mutex::new),
            summary: Mutex::new(Summary {
                buckets: Vec::new(),
                missing: 0,
                told: Vec::new(),
            }),
        })
    }

    /// A line of the file.
    pub(super) fn line(&self, line: &impl Serialize) {
        let Some(file) = &self.file else { return };
        let mut text = serde_json::to_vec(line).unwrap_or_default();
        text.push(b'\n');
        let mut open = file.lock();
        if let Err(error) = open.out.write_all(&text)
            && open.failure.is_none()
        {
            open.failure = Some(error);
        }
    }

    /// Something that did not come.
    pub(super) fn missing(&self, failure: Failure) {
        let mut summary = self.summary.lock();
        summary.missing += 1;
        if summary.told.len() < MIGRATE_TOLD {
            summary.told.push(failure);
        }
    }

    pub(super) fn bucket(&self, report: BucketReport) {
        self.line(&report);
        self.summary.lock().buckets.push(report);
    }

    /// Leaves nothing where nothing was begun.
    pub(super) fn discard(&self) {
        if let Some(file) = &self.file
            && let Some(unfinished) = &file.lock().unfinished
        {
            let _ = fs::remove_file(unfinished);
        }
    }

    /// The whole; the file gets its name.
    pub(super) fn finish(&self) -> Result<Summary, MigrateError> {
        let summary = self.summary.lock().clone();
        if let Some(file) = &self.file {
            for each in &summary.told {
                self.line(each);
            }
            let mut open = file.lock();
            let failed = open.failure.take().map_or(Ok(()), Err);
            let mut written = failed.and_then(|()| open.out.flush());
            if let Some(unfinished) = &open.unfinished {
                written = written
                    .and_then(|()| open.out.get_ref().sync_all())
                    .and_then(|()| fs::rename(unfinished, &open.path));
            }
            written.map_err(MigrateError::local("writing the report", &open.path))?;
        }
        Ok(summary)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_stays_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let report = Report::new(Some(&link)).unwrap();
        report.line(&1);
        assert_eq!(fs::read(&file).unwrap(), b"old");
        report.finish().unwrap();
        assert_eq!(fs::read(&file).unwrap(), b"1\n");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 2);
        for wrong in [folder.path(), Path::new("-")] {
            let error = Report::new(Some(wrong)).err().unwrap();
            assert_eq!(error.code(), "invalid_argument");
        }
        assert!(fs::read_dir(&folder).unwrap().count() == 2);
        let pipe = folder.path().join("pipe");
        // By no program: a process that begins holds the locks of other tests for a moment.
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let kind = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &pipe, kind, mode, 0).unwrap();
        let reading = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        let report = Report::new(Some(&pipe)).unwrap();
        report.line(&2);
        report.finish().unwrap();
        drop(report);
        assert_eq!(reading.join().unwrap(), b"2\n");
        assert!(!fs::metadata(&pipe).unwrap().is_file());
    }
}
