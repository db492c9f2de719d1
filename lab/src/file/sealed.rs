//! A blob as coffer keeps it: one Cobblestone-256 message, sealed as it arrives, in one file.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use coffer_seal::limits::{CHUNK_BYTES, HEADER_BYTES, SEALED_CHUNK_BYTES};
use coffer_seal::{Context, Opener, Sealer, SecretKey};

use crate::error::{Doing, LabError, Result};
use crate::file::folder_store::sync;
use crate::file::store::{Store, evict};
use crate::measuring::content::{Content, Sink};

/// Chunks that are sealed or opened for one write or read.
const CHUNKS_AT_ONCE: usize = 64;

/// A sealed file.
pub(super) struct Sealed {
    path: PathBuf,
    key: SecretKey,
    context: Context,
}

impl Sealed {
    pub(super) fn new(folder: &Path) -> Self {
        Self {
            path: folder.join("blob"),
            key: SecretKey::generate(),
            context: Context::raw(*b"coffer-lab file"),
        }
    }

    fn refused(&self, what: &impl ToString) -> LabError {
        LabError::Cipher {
            contender: "coffer blob".into(),
            what: what.to_string(),
        }
    }
}

impl Store for Sealed {
    fn write(&mut self, content: &mut Content) -> Result<()> {
        let doing = || format!("writing {}", self.path.display());
        let mut file = File::create(&self.path).doing(doing)?;
        let mut sealer = Sealer::new(&self.key, &self.context);
        file.write_all(sealer.header()).doing(doing)?;
        let mut waiting: Vec<u8> = Vec::new();
        let mut out = vec![0; CHUNKS_AT_ONCE * SEALED_CHUNK_BYTES];
        while let Some(block) = content.next() {
            waiting.extend_from_slice(block);
            let full = waiting.len() / CHUNK_BYTES * CHUNK_BYTES;
            for group in waiting[..full].chunks(CHUNKS_AT_ONCE * CHUNK_BYTES) {
                let chunks = group.chunks_exact(CHUNK_BYTES);
                for (chunk, sealed) in chunks.zip(out.chunks_exact_mut(SEALED_CHUNK_BYTES)) {
                    sealer
                        .seal_chunk(chunk, sealed)
                        .map_err(|error| self.refused(&error))?;
                }
                let sealed_bytes = group.len() / CHUNK_BYTES * SEALED_CHUNK_BYTES;
                file.write_all(&out[..sealed_bytes]).doing(doing)?;
            }
            waiting.drain(..full);
        }
        let sealed_bytes = waiting.len() + SEALED_CHUNK_BYTES - CHUNK_BYTES;
        let last = sealer.seal_last(&waiting, &mut out[..sealed_bytes]);
        last.map_err(|error| self.refused(&error))?;
        file.write_all(&out[..sealed_bytes]).doing(doing)?;
        sync(&file, &self.path)
    }

    fn read(&mut self, sink: &mut Sink) -> Result<()> {
        let doing = || format!("reading {}", self.path.display());
        let mut file = File::open(&self.path).doing(doing)?;
        let sealed_bytes = file.metadata().doing(doing)?.len();
        let mut header = [0; HEADER_BYTES];
        file.read_exact(&mut header).doing(doing)?;
        let opener = Opener::new(&self.key, &self.context, &header, sealed_bytes);
        let opener = opener.map_err(|error| self.refused(&error))?;
        let mut sealed = vec![0; CHUNKS_AT_ONCE * SEALED_CHUNK_BYTES];
        let mut plain = vec![0; CHUNK_BYTES];
        let mut index = 0;
        while index < opener.chunk_count() {
            let until = (index + CHUNKS_AT_ONCE as u64).min(opener.chunk_count());
            let from = opener.chunk_range(index).start;
            let group_bytes = (opener.chunk_range(until - 1).end - from) as usize;
            file.read_exact(&mut sealed[..group_bytes]).doing(doing)?;
            for chunk in sealed[..group_bytes].chunks(SEALED_CHUNK_BYTES) {
                let count = opener.open_chunk(index, chunk, &mut plain);
                sink.take(&plain[..count.map_err(|error| self.refused(&error))?]);
                index += 1;
            }
        }
        Ok(())
    }

    fn evict(&mut self) -> Result<()> {
        evict(&self.path)
    }

    fn at_rest(&self) -> Vec<PathBuf> {
        vec![self.path.clone()]
    }
}
