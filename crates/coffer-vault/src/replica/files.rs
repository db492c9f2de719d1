//! Putting the small files: `system.db`, the audit log, and an anchor for what the head holds.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use coffer_durable::now_ms;
use coffer_keys::Anchor;
use coffer_replica::limits::{PIECE_MAX_BYTES, PIECES_MAX};
use coffer_replica::{CopyWriter, Head, Piece};
use coffer_seal::BucketId;

use super::round::sources::{file_bytes, read_range};
use super::round::{FilesPut, Round};
use crate::blocking::blocking;
use crate::data_folder::failed;
use crate::error::Result;
use crate::freshness::{ANCHOR_FILE, InLog};

/// Where copies of small files are made before they are put; sealed, as all is.
pub(super) const SCRATCH: &str = "copies.scratch";

/// What is to be put.
pub(super) struct FilesRead {
    system: Option<(u64, PathBuf)>,
    audit: Option<coffer_audit::LogExtent>,
    /// With what the keystore may hold once a head has it.
    anchor: Option<(PathBuf, InLog)>,
    generation: u64,
}

impl Round {
    /// Reads what is new, while no bucket is made or goes. `next`: all catalogs of the next head.
    pub(super) async fn read_files(&self, next: &Head) -> Result<FilesRead> {
        let inner = self.inner()?;
        let known = (self.files.system_commits, self.files.audit_record);
        let catalogs: BTreeMap<BucketId, u64> = next
            .buckets
            .iter()
            .filter_map(|(id, state)| Some((BucketId::from_hex(id)?, state.commits)))
            .collect();
        let are_catalogs_new = !self.chains.is_empty();
        let is_renewed = self.files.are_renewed;
        let scratch = inner
            .folder
            .path()
            .join(SCRATCH)
            .join(self.entry.cursor.to_string());
        blocking(move || {
            fs::create_dir_all(&scratch).map_err(failed("make", &scratch))?;
            let generation = inner.keystore.generation();
            let mut commits = inner.system.commit_count()?;
            let system = if known.0 == Some(commits) {
                None
            } else {
                let to = scratch.join("system.db");
                commits = inner.system.copy_into(&inner.folder.system_db(), &to)?;
                Some((commits, to))
            };
            let extent = inner.audit.log_or_open()?.extent();
            let extent_last = extent.last;
            let (record, hash) = (extent_last.sequence, extent_last.hash.0);
            let audit = (known.1 != Some(record)).then_some(extent);
            let is_new = system.is_some() || audit.is_some() || are_catalogs_new || is_renewed;
            let mut anchored = None;
            if is_new {
                let path = scratch.join(ANCHOR_FILE);
                let anchor = Anchor {
                    system_commits: commits,
                    audit_record: record,
                    audit_hash: hash,
                    held_ms: now_ms(),
                    commits: catalogs,
                };
                let in_log = InLog {
                    system_commits: commits,
                    recorded: (record > 0).then_some(extent_last),
                    anchor_number: inner.freshness.anchor_copy(&path, anchor)?,
                };
                anchored = Some((path, in_log));
            }
            Ok(FilesRead {
                system,
                audit,
                anchor: anchored,
                generation,
            })
        })
        .await
    }

    /// Puts it, and has the next head name it.
    pub(super) async fn put_files(
        &mut self,
        writer: &mut CopyWriter,
        read: FilesRead,
        next: &mut Head,
    ) -> Result<()> {
        if let Some((_, path)) = &read.system {
            let pieces = self.put_whole(writer, path).await?;
            next.files.insert("system.db".to_owned(), pieces);
        }
        if let Some(extent) = &read.audit {
            self.put_audit(writer, extent, next).await?;
            if let Some(covers) = &mut next.covers {
                covers.files = extent.last.sequence;
            }
        }
        if let Some((path, in_log)) = &read.anchor {
            self.files.in_log = Some(*in_log);
            let pieces = self.put_whole(writer, path).await?;
            next.files.insert(ANCHOR_FILE.to_owned(), pieces);
            next.keystore_generation = read.generation;
        }
        let scratch = self.inner()?.folder.path().join(SCRATCH);
        // What stays is written over by the next round.
        let _ = fs::remove_dir_all(scratch.join(self.entry.cursor.to_string()));
        // As long as no head has them, they are put again.
        self.files.system_commits = read
            .system
            .map(|(commits, _)| commits)
            .or(self.files.system_commits);
        self.files.audit_record = read
            .audit
            .map(|audit| audit.last.sequence)
            .or(self.files.audit_record);
        Ok(())
    }

    /// All of them are put as a whole, whatever pieces the copy has.
    pub(super) fn renew_files(&mut self) {
        self.files = FilesPut {
            are_renewed: true,
            ..FilesPut::default()
        };
    }

    /// A failed commit of the head: what was put since the last one is put again.
    pub(super) fn forget_files(&mut self) {
        self.files = FilesPut {
            are_renewed: self.files.are_renewed,
            ..FilesPut::default()
        };
    }

    async fn put_audit(
        &self,
        writer: &mut CopyWriter,
        extent: &coffer_audit::LogExtent,
        next: &mut Head,
    ) -> Result<()> {
        let folder = self.inner()?.folder.audit();
        let name_of = |segment: &str| format!("audit/{segment}");
        let (head_name, head) = &extent.head;
        let is_there = |name: &String| {
            let is_segment = extent
                .segments
                .iter()
                .any(|segment| *name == name_of(segment));
            !name.starts_with("audit/") || is_segment
        };
        next.files.retain(|name, _| is_there(name));
        let last = extent.segments.last();
        for segment in &extent.segments {
            let name = name_of(segment);
            let before = next.files.remove(&name).unwrap_or_default();
            let before = if self.files.are_renewed {
                Vec::new()
            } else {
                before
            };
            let path = folder.join(segment);
            let until_bytes = match last {
                Some(last) if last == segment => extent.last_bytes,
                _ => file_bytes(&path)?,
            };
            let pieces = self.put_growing(writer, &path, before, until_bytes).await?;
            next.files.insert(name, pieces);
        }
        let piece = writer.put_piece(head.clone()).await?;
        next.files.insert(name_of(head_name), vec![piece]);
        Ok(())
    }

    /// Puts what a file has more than the pieces that are there.
    async fn put_growing(
        &self,
        writer: &mut CopyWriter,
        path: &Path,
        mut before: Vec<Piece>,
        until_bytes: u64,
    ) -> Result<Vec<Piece>> {
        let mut from_bytes: u64 = before.iter().map(|piece| piece.bytes).sum();
        if from_bytes > until_bytes || before.len() >= PIECES_MAX && from_bytes < until_bytes {
            before.clear();
            from_bytes = 0;
        }
        while from_bytes < until_bytes {
            let length_bytes = (until_bytes - from_bytes).min(PIECE_MAX_BYTES as u64);
            let path = path.to_owned();
            let bytes = blocking(move || read_range(&path, from_bytes, length_bytes)).await?;
            from_bytes += length_bytes;
            self.progress.put(length_bytes);
            before.push(writer.put_piece(bytes).await?);
        }
        Ok(before)
    }

    async fn put_whole(&self, writer: &mut CopyWriter, path: &Path) -> Result<Vec<Piece>> {
        let until_bytes = file_bytes(path)?;
        self.put_growing(writer, path, Vec::new(), until_bytes)
            .await
    }
}

/// A file of mode 0600, in a folder that is made.
pub(crate) fn new_file(folder: &Path, name: &str) -> Result<File> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(failed("make", folder))?;
    let path = folder.join(name);
    let mut options = OpenOptions::new();
    let options = options
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600);
    options.open(&path).map_err(failed("make", &path))
}
