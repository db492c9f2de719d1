//! What is to be deleted at the target, until both lists have come to their ends in order. It lies
//! in a file without a name, for there may be more than memory holds.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;

use serde::{Deserialize, Serialize};

use super::Ledger;
use crate::migrate::error::MigrateError;
use crate::s3::{ListedObject, ListedVersion};

/// A version of the target, as a line of that file.
#[derive(Serialize, Deserialize)]
struct Leaver {
    /// Its name at the source.
    key: String,
    /// Its name at the target.
    name: String,
    bytes: u64,
    etag: String,
    modified: String,
    version_id: String,
    is_latest: bool,
    is_marker: bool,
    /// Whether the source had nothing at all of that name when it was listed.
    is_name_gone: bool,
}

/// What that line says.
pub(in crate::migrate) type Noted = (String, ListedVersion, bool);

impl Leaver {
    fn of(key: &str, there: &ListedVersion, is_name_gone: bool) -> Self {
        Self {
            key: key.to_owned(),
            name: there.object.key.clone(),
            bytes: there.object.bytes,
            etag: there.object.etag.clone(),
            modified: there.object.modified.clone(),
            version_id: there.version_id.clone(),
            is_latest: there.is_latest,
            is_marker: there.is_marker,
            is_name_gone,
        }
    }

    fn parted(self) -> Noted {
        let object = ListedObject {
            key: self.name,
            bytes: self.bytes,
            etag: self.etag,
            modified: self.modified,
        };
        let there = ListedVersion {
            object,
            version_id: self.version_id,
            is_latest: self.is_latest,
            is_marker: self.is_marker,
        };
        (self.key, there, self.is_name_gone)
    }
}

impl Ledger {
    /// Notes a version of the target that is to be deleted, if nothing comes out of order.
    pub(in crate::migrate) fn leaves(
        &self,
        key: &str,
        there: &ListedVersion,
        is_name_gone: bool,
    ) -> Result<(), MigrateError> {
        let leaver = Leaver::of(key, there, is_name_gone);
        let mut line = serde_json::to_vec(&leaver).unwrap_or_default();
        line.push(b'\n');
        let mut file = self.leaving.lock();
        let file = match &mut *file {
            Some(file) => file,
            none => none.insert(self.unnamed()?),
        };
        let whole = file.stream_position().map_err(self.failed("writing"))?;
        let written = file.write_all(&line);
        if written.is_err() {
            // Half a line would spoil the next one.
            let cut = file.set_len(whole);
            let sought = cut.and_then(|()| file.seek(SeekFrom::Start(whole)));
            sought.map_err(self.failed("writing"))?;
        }
        written.map_err(self.failed("writing"))
    }

    /// All that was noted so, with the names at the source, and whether that had nothing of them,
    /// from the first.
    pub(in crate::migrate) fn leaving(
        &self,
    ) -> Result<impl Iterator<Item = Result<Noted, MigrateError>>, MigrateError> {
        let mut file = self.leaving.lock().take();
        if let Some(file) = &mut file {
            let sought = file.seek(SeekFrom::Start(0));
            sought.map_err(self.failed("reading"))?;
        }
        let lines = { file.into_iter() }.flat_map(|file| BufReader::new(file).lines());
        Ok(lines.map(|line| {
            let read = line.and_then(|line| Ok(serde_json::from_str::<Leaver>(&line)?));
            read.map(Leaver::parted).map_err(self.failed("reading"))
        }))
    }

    /// Another process may tell what would go meanwhile.
    fn unnamed(&self) -> Result<File, MigrateError> {
        let path = self
            .path
            .with_extension(format!("{}.leaving", std::process::id()));
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true);
        let opened = options.mode(0o600).open(&path);
        let opened = opened.map_err(self.failed("opening"))?;
        std::fs::remove_file(&path).map_err(self.failed("removing"))?;
        Ok(opened)
    }

    fn failed(&self, doing: &'static str) -> impl FnOnce(io::Error) -> MigrateError + use<> {
        MigrateError::local(doing, &self.path.with_extension("leaving"))
    }
}
