//! A small file with room for two texts, of which one is always whole.
//!
//! At rest there is one text, in the first slot, and nothing behind it. A second one is put into
//! the second slot, a block of its own: so no write that is torn, however badly, touches the text
//! that must survive it. The one that goes is overwritten; a second one that stays is copied into
//! the first slot before that, which overwrites the other.

use std::path::Path;

use coffer_durable::{DiskFile, DurableError, Slot, TwoSlots};
use zeroize::Zeroizing;

use crate::error::KeysError;
use crate::limits::TEXT_SLOT_BYTES;

/// Such a file, open.
pub(crate) struct TwoTexts<'a> {
    slots: TwoSlots,
    path: &'a Path,
    texts: [Zeroizing<Vec<u8>>; 2],
    length_bytes: u64,
}

impl<'a> TwoTexts<'a> {
    /// Reads the file.
    pub(crate) fn read(file: Box<dyn DiskFile>, path: &'a Path) -> Result<Self, KeysError> {
        let failed = || KeysError::io("read", path);
        let mut slots = TwoSlots::new(file, TEXT_SLOT_BYTES);
        let mut text = |slot| {
            let mut content = Zeroizing::new(slots.read(slot).map_err(failed())?);
            content.truncate(slots.used_bytes(slot));
            Ok::<_, KeysError>(content)
        };
        let texts = [text(Slot::A)?, text(Slot::B)?];
        Ok(Self {
            length_bytes: slots.length_bytes().map_err(failed())?,
            slots,
            path,
            texts,
        })
    }

    /// The texts: what was torn or overwritten is among them, and for the caller to tell.
    pub(crate) fn texts(&self) -> [&[u8]; 2] {
        self.texts.each_ref().map(|text| text.as_slice())
    }

    /// Whether there is nothing behind the first text.
    pub(crate) fn is_single(&self) -> bool {
        self.length_bytes == self.texts[0].len() as u64
    }

    /// Puts a second text behind the first. It is durable when this returns.
    pub(crate) fn add(&mut self, text: &[u8]) -> Result<(), KeysError> {
        assert!(
            text.len() < TEXT_SLOT_BYTES,
            "limits.rs: a text fits its slot"
        );
        self.slots.overwrite(Slot::B, text).map_err(self.failed())
    }

    /// Overwrites the other text; `None` overwrites both. Nothing is written when there is none.
    pub(crate) fn keep_only(&mut self, kept: Option<Slot>) -> Result<(), KeysError> {
        let kept_text = match kept {
            Some(slot) => self.texts[slot as usize].clone(),
            None => Zeroizing::default(),
        };
        if kept != Some(Slot::A) && !(kept.is_none() && self.texts[0].is_empty()) {
            self.slots
                .overwrite(Slot::A, &kept_text)
                .map_err(self.failed())?;
        }
        if self.length_bytes > TEXT_SLOT_BYTES as u64 {
            self.slots.overwrite(Slot::B, b"").map_err(self.failed())?;
        }
        let kept_bytes = kept_text.len() as u64;
        if self.length_bytes > kept_bytes {
            self.slots.cut(kept_bytes).map_err(self.failed())?;
        }
        Ok(())
    }

    fn failed(&self) -> impl FnOnce(DurableError) -> KeysError + use<'a> {
        KeysError::durable(self.path)
    }
}
