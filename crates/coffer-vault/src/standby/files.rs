//! The small files: `system.db`, the anchor and the audit log, of which only what is new is
//! fetched.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use coffer_durable::sync_folder;
use coffer_replica::{CopyReader, Piece};

use super::Standby;
use crate::blocking::blocking;
use crate::data_folder::{Folder, failed};
use crate::error::Result;
use crate::replica::new_file;

impl Standby {
    /// Brings the small files up to a head. Each is replaced in one step, or grows at its end.
    pub(super) async fn fetch_files(&mut self, reader: &CopyReader) -> Result<()> {
        let wanted = &reader.head().files;
        for (name, pieces) in wanted {
            let Some(path) = place_of(self.data(), name) else {
                continue;
            };
            if self.held.files.get(name) == Some(pieces) {
                continue;
            }
            self.held.files.remove(name);
            let fetched_bytes = fetch(reader, &path, pieces).await?;
            self.link.change(|told| told.fetched_bytes += fetched_bytes);
            self.held.files.insert(name.clone(), pieces.clone());
        }
        self.held.files.retain(|name, _| wanted.contains_key(name));
        let (data, wanted) = (self.data().to_owned(), wanted.clone());
        blocking(move || {
            remove_others(&data.join("audit"), &wanted)?;
            sync_folder(&data).map_err(failed("sync", &data))
        })
        .await
    }
}

/// Where a file of a head belongs; nowhere, if it is of a later version.
fn place_of(data: &Path, name: &str) -> Option<PathBuf> {
    let (folder, file_name) = match name.split_once('/') {
        Some(("audit", file)) => (data.join("audit"), file),
        None if ["system.db", "anchor"].contains(&name) => (data.to_owned(), name),
        _ => return None,
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    let is_fit = file_name.bytes().all(is_plain) && !file_name.starts_with('.');
    is_fit.then(|| folder.join(file_name))
}

/// Fetches the pieces that a file lacks. How many bytes that were.
async fn fetch(reader: &CopyReader, path: &Path, pieces: &[Piece]) -> Result<u64> {
    let (there, has) = (path.to_owned(), pieces.to_vec());
    let kept = blocking(move || pieces_there(&there, &has)).await?;
    let kept_bytes: u64 = pieces[..kept].iter().map(|piece| piece.bytes).sum();
    let folder = path.parent().unwrap_or(path).to_owned();
    let unfinished = path.with_extension("new");
    Folder::assure_own(path)?;
    let mut file = if kept > 0 {
        // What is there is the beginning: states have no other name for a file that grows.
        let mut file = OpenOptions::new().write(true).open(path);
        let begin = |file: &mut File| {
            file.set_len(kept_bytes)?;
            file.seek(SeekFrom::End(0)).map(drop)
        };
        let begun = file
            .as_mut()
            .map_err(|error| std::io::Error::from(error.kind()));
        begun.and_then(begin).map_err(failed("write", path))?;
        file.map_err(failed("open", path))?
    } else {
        let name = unfinished.file_name().unwrap_or_default();
        new_file(&folder, &name.to_string_lossy())?
    };
    let mut fetched_bytes = 0;
    for piece in &pieces[kept..] {
        let bytes = reader.piece(piece).await?;
        fetched_bytes += bytes.len() as u64;
        file.write_all(&bytes).map_err(failed("write", path))?;
    }
    let path = path.to_owned();
    blocking(move || {
        file.sync_all().map_err(failed("sync", &path))?;
        Folder::assure_own(&path)?;
        if kept == 0 {
            fs::rename(&unfinished, &path).map_err(failed("rename", &unfinished))?;
        }
        sync_folder(&folder).map_err(failed("sync", &folder))
    })
    .await?;
    Ok(fetched_bytes)
}

/// How many pieces a file begins with.
fn pieces_there(path: &Path, pieces: &[Piece]) -> Result<usize> {
    let Ok(mut file) = File::open(path) else {
        return Ok(0);
    };
    for (at, piece) in pieces.iter().enumerate() {
        let mut bytes = Vec::new();
        let read = (&mut file).take(piece.bytes).read_to_end(&mut bytes);
        read.map_err(failed("read", path))?;
        if !piece.is(&bytes) {
            return Ok(at);
        }
    }
    Ok(pieces.len())
}

/// Removes segments of the audit log that were pruned at the original.
fn remove_others(audit: &Path, wanted: &BTreeMap<String, Vec<Piece>>) -> Result<()> {
    let Ok(entries) = fs::read_dir(audit) else {
        return Ok(());
    };
    Folder::assure_own(audit)?;
    for entry in entries {
        let path = entry.map_err(failed("read", audit))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if !wanted.contains_key(&format!("audit/{name}")) {
            fs::remove_file(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}
