//! What arrived, version by version, and what did not.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::Serialize;

use crate::limits::MIGRATE_TOLD;
use crate::migrate::error::MigrateError;
use crate::mover::Failure;

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
    /// What of both was there.
    pub there: u64,
    /// The bytes of versions that are there now, and proven to be the same.
    pub proven_bytes: u64,
    /// The number of those.
    pub proven: u64,
    /// What came of the source once, is gone there now, and still is at the target.
    pub gone: u64,
    /// What of that was deleted.
    pub deleted: u64,
    /// What came of the source once, and lies where it can't be read now, or is not to be.
    pub unread: u64,
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
    /// `moved`, `there`, `would-move`, `missing`, `gone`, `deleted`, `unread`,
    /// `only-at-target`.
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
    unfinished: PathBuf,
    path: PathBuf,
    failure: Option<std::io::Error>,
}

/// Gathers it.
pub(super) struct Report {
    file: Option<Mutex<Open>>,
    summary: Mutex<Summary>,
}

impl Report {
    /// Writes lines to a file, which has its name when it is whole.
    pub(super) fn new(path: Option<&Path>) -> Result<Self, MigrateError> {
        let open = |path: &Path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let unfinished = path.with_file_name(format!(".{name}.coffer-part"));
            let file = File::create(&unfinished);
            let file = file.map_err(MigrateError::local("writing the report", path))?;
            Ok::<_, MigrateError>(Mutex::new(Open {
                out: BufWriter::new(file),
                unfinished,
                path: path.to_owned(),
                failure: None,
            }))
        };
        Ok(Self {
            file: path.map(open).transpose()?,
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

    /// The whole; the file gets its name.
    pub(super) fn finish(&self) -> Result<Summary, MigrateError> {
        let summary = self.summary.lock().clone();
        if let Some(file) = &self.file {
            for each in &summary.told {
                self.line(each);
            }
            let mut open = file.lock();
            let failed = open.failure.take().map_or(Ok(()), Err);
            let written = failed
                .and_then(|()| open.out.flush())
                .and_then(|()| open.out.get_ref().sync_all())
                .and_then(|()| fs::rename(&open.unfinished, &open.path));
            written.map_err(MigrateError::local("writing the report", &open.path))?;
        }
        Ok(summary)
    }
}
