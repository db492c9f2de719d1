//! A small file with room for two texts, of which one is always whole.
//!
//! At rest there is one text, at the beginning, and nothing behind it. A second one is put at
//! [`PLACE_BYTES`], in a block of its own: so no write that is torn, however badly, touches the
//! text that must survive it. The one that goes is overwritten in place, made durable and read
//! back; a second one that stays is copied to the beginning first, which overwrites the other.

use std::path::Path;

use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::PLACE_BYTES;
use crate::medium::Medium;

/// Such a file, open.
pub(crate) struct Places<'a> {
    medium: Box<dyn Medium>,
    path: &'a Path,
    content: Zeroizing<Vec<u8>>,
}

impl<'a> Places<'a> {
    /// Reads the file.
    pub(crate) fn read(medium: Box<dyn Medium>, path: &'a Path) -> Result<Self, KeysError> {
        let content = medium
            .read(0, 2 * PLACE_BYTES)
            .map_err(KeysError::io("read", path))?;
        Ok(Self {
            medium,
            path,
            content: Zeroizing::new(content),
        })
    }

    /// The texts: what was torn or overwritten is among them, and for the caller to tell.
    pub(crate) fn texts(&self) -> [&[u8]; 2] {
        let (first, second) = self.content.split_at(self.content.len().min(PLACE_BYTES));
        [first, second].map(without_zeros)
    }

    /// Whether there is nothing behind the first text.
    pub(crate) fn is_single(&self) -> bool {
        self.content.len() == self.texts()[0].len()
    }

    /// Puts a second text behind the first. It is durable when this returns.
    pub(crate) fn add(&mut self, text: &[u8]) -> Result<(), KeysError> {
        assert!(text.len() < PLACE_BYTES, "limits.rs: a text fits its place");
        let mut padded = Zeroizing::new(vec![0; self.texts()[1].len().max(text.len())]);
        padded[..text.len()].copy_from_slice(text);
        self.overwrite(PLACE_BYTES, &padded)
    }

    /// Overwrites the other text; `None` overwrites both. Nothing is written when there is none.
    pub(crate) fn keep_only(&mut self, kept: Option<usize>) -> Result<(), KeysError> {
        let [first, second] = self.texts();
        let kept_text = Zeroizing::new(kept.map_or(&[][..], |kept| [first, second][kept]).to_vec());
        let used_bytes = first.len();
        if kept != Some(0) && used_bytes > 0 || kept == Some(1) {
            let mut padded = Zeroizing::new(vec![0; used_bytes.max(kept_text.len())]);
            padded[..kept_text.len()].copy_from_slice(&kept_text);
            self.overwrite(0, &padded)?;
        }
        if self.content.len() > PLACE_BYTES {
            let zeros = vec![0; self.content.len() - PLACE_BYTES];
            self.overwrite(PLACE_BYTES, &zeros)?;
        }
        if self.content.len() > kept_text.len() {
            self.medium
                .truncate(kept_text.len() as u64)
                .map_err(KeysError::io("truncate", self.path))?;
            self.sync()?;
            self.content.truncate(kept_text.len());
        }
        Ok(())
    }

    /// Writes, syncs and reads back.
    fn overwrite(&mut self, offset_bytes: usize, bytes: &[u8]) -> Result<(), KeysError> {
        let end = offset_bytes + bytes.len();
        self.medium
            .write(offset_bytes as u64, bytes)
            .map_err(KeysError::io("write", self.path))?;
        self.sync()?;
        let read_back = self
            .medium
            .read(offset_bytes as u64, bytes.len())
            .map(Zeroizing::new)
            .map_err(KeysError::io("read back", self.path))?;
        if *read_back != bytes {
            return Err(KeysError::NotReadBack {
                path: self.path.to_path_buf(),
            });
        }
        if self.content.len() < end {
            // Within the room of two places; an outgrown buffer is zeroized like the new one.
            let mut grown = Zeroizing::new(vec![0; end]);
            grown[..self.content.len()].copy_from_slice(&self.content);
            self.content = grown;
        }
        self.content[offset_bytes..end].copy_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<(), KeysError> {
        self.medium.sync().map_err(KeysError::io("sync", self.path))
    }
}

fn without_zeros(place: &[u8]) -> &[u8] {
    let used_bytes = place.iter().rposition(|byte| *byte != 0);
    &place[..used_bytes.map_or(0, |last| last + 1)]
}
