//! What a command has moved of a folder, noted as it goes: after an interruption, or where
//! something failed, the same command goes on from there. A folder of which all was moved leaves no
//! notes, so nothing is passed over by the next command.
//!
//! A line counts only where both sides are as they were left: the source is what was moved, and
//! what it became is there. Nothing is synced: a line that is lost has a file go again.

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

use aws_lc_rs::digest;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::block_in_place;

use super::Journal;
use crate::limits::{FOLDER_NOTE_BYTES, FOLDER_NOTES};
use crate::mover::error::MoverError;
use crate::s3::{KeptTime, Since};

/// A file or object, told from all that has another name or content.
pub(in crate::mover) type Mark = [u8; 16];

/// A line. Marks stand in it as hexadecimal digits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(in crate::mover) enum FolderLine {
    /// What is moved, and where it goes: for people.
    Folder { from: String, to: String },
    /// A file goes out as one piece, and may arrive without an answer that says so.
    Begun(String, KeptTime),
    /// It did not arrive, or not for certain.
    Ended(String),
    /// Something was moved, and what it became; and whether a checksum was compared.
    Moved(String, String, bool),
}

/// What something became that was moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::mover) struct Left {
    pub(in crate::mover) at: Mark,
    pub(in crate::mover) was_verified: bool,
}

/// The notes of a folder, which this process holds.
pub(in crate::mover) struct Notes {
    /// None, where there is no place for them, or another process moves the same.
    journal: Option<Journal>,
    /// The first line.
    folder: Option<FolderLine>,
    /// What commands before this one have moved.
    pub(in crate::mover) moved: HashMap<Mark, Left>,
    /// What they have begun, and not moved.
    begun: HashMap<Mark, KeptTime>,
    /// Whether something was moved, and noted, since they were opened.
    has_moved: AtomicBool,
    /// How many lines there are.
    lines: AtomicU64,
    /// What could not be noted since that was told.
    lost: Mutex<Option<Lost>>,
}

/// That not all is noted that was moved.
pub(in crate::mover) struct Lost {
    /// Why.
    pub(in crate::mover) problem: String,
    /// Whether what was noted before is gone as well.
    pub(in crate::mover) is_all: bool,
}

/// A file of a folder, and where it is noted.
pub(in crate::mover) struct Noting<'a> {
    notes: &'a Notes,
    of: Mark,
    /// Whether a line says that it goes out.
    is_begun: AtomicBool,
}

impl Noting<'_> {
    /// When a command before this one began to store it as one piece.
    pub(in crate::mover) fn began(&self) -> Option<Since> {
        self.notes.begun.get(&self.of)?.since()
    }

    /// Notes that it goes out.
    pub(in crate::mover) fn begin(&self, now: KeptTime) {
        let begun = FolderLine::Begun(hex::encode(self.of), now);
        let is_noted = self.notes.add(&begun);
        self.is_begun.fetch_or(is_noted, Relaxed);
    }

    /// Notes that it did not arrive, or not for certain. Where there is no room for that, all that
    /// was noted goes: what is there would else be taken for it.
    pub(in crate::mover) fn end(&self) {
        let is_noted = self.notes.add(&FolderLine::Ended(hex::encode(self.of)));
        if self.is_begun.load(Relaxed) && !is_noted {
            self.notes.clear();
        }
    }
}

impl Notes {
    /// Those that are nowhere.
    pub(in crate::mover) fn none() -> Self {
        Self {
            journal: None,
            moved: HashMap::new(),
            begun: HashMap::new(),
            has_moved: AtomicBool::new(false),
            lines: AtomicU64::new(0),
            folder: None,
            lost: Mutex::default(),
        }
    }

    /// Opens them, and keeps others out.
    ///
    /// # Errors
    /// Those of [`Journal::open`].
    pub(in crate::mover) fn open(path: &Path, folder: FolderLine) -> Result<Self, MoverError> {
        let mut notes = Self {
            journal: Some(Journal::open(path)?),
            folder: Some(folder),
            ..Self::none()
        };
        let read = File::open(path).and_then(|file| notes.read(&file));
        read.map_err(MoverError::local("reading", path))?;
        if *notes.lines.get_mut() == 0 {
            notes.begin();
        } else {
            // The last line may be cut off.
            notes.add(&FolderLine::Ended(String::new()));
        }
        Ok(notes)
    }

    /// Takes the lines in; those that are damaged mean nothing.
    fn read(&mut self, file: &File) -> io::Result<()> {
        let mut reader = BufReader::new(file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let read = reader.by_ref().take(FOLDER_NOTE_BYTES);
            if { read }.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            *self.lines.get_mut() += 1;
            if let Ok(line) = serde_json::from_slice(&line) {
                self.take(line);
            }
        }
    }

    fn take(&mut self, line: FolderLine) {
        match line {
            FolderLine::Folder { .. } => {}
            FolderLine::Begun(of, at) => {
                if let Some(of) = mark_of(&of) {
                    self.begun.insert(of, at);
                }
            }
            FolderLine::Ended(of) => {
                if let Some(of) = mark_of(&of) {
                    self.begun.remove(&of);
                }
            }
            FolderLine::Moved(of, at, was_verified) => {
                if let (Some(of), Some(at)) = (mark_of(&of), mark_of(&at)) {
                    self.begun.remove(&of);
                    self.moved.insert(of, Left { at, was_verified });
                }
            }
        }
    }

    /// Whether it is noted now. What can't be noted goes all the same.
    fn add(&self, line: &FolderLine) -> bool {
        let Some(journal) = &self.journal else {
            return false;
        };
        if self.lines.fetch_add(1, Relaxed) >= FOLDER_NOTES {
            self.lose(format!(
                "notes of a folder have {FOLDER_NOTES} lines at most"
            ));
            return false;
        }
        match block_in_place(|| journal.add(line)) {
            Ok(()) => true,
            Err(error) => {
                self.lose(error.to_string());
                false
            }
        }
    }

    fn lose(&self, problem: String) {
        let is_all = false;
        self.lost.lock().get_or_insert(Lost { problem, is_all });
    }

    /// What could not be noted since this was asked.
    pub(in crate::mover) fn lost(&self) -> Option<Lost> {
        self.lost.lock().take()
    }

    /// Begins anew, with the line that says what is moved.
    fn begin(&self) {
        if let (Some(journal), Some(folder)) = (&self.journal, &self.folder) {
            if let Err(error) = block_in_place(|| journal.begin(folder)) {
                self.lose(error.to_string());
            }
            self.lines.store(1, Relaxed);
        }
    }

    /// Forgets all of it.
    fn clear(&self) {
        self.begin();
        if let Some(lost) = &mut *self.lost.lock() {
            lost.is_all = true;
        }
    }

    /// Notes that something was moved, and what it became.
    pub(in crate::mover) fn note(&self, of: &Mark, at: &Mark, was_verified: bool) {
        let line = FolderLine::Moved(hex::encode(of), hex::encode(at), was_verified);
        let is_noted = self.add(&line);
        self.has_moved.fetch_or(is_noted, Relaxed);
    }

    /// What ended a folder, and that what was moved of it by then is noted, where that is so.
    pub(in crate::mover) fn of_error(&self, error: MoverError) -> MoverError {
        if !self.has_moved.load(Relaxed) && self.moved.is_empty() {
            return error;
        }
        match error.with_kept(NOTED) {
            ended @ MoverError::Ended { .. } => MoverError::Kept {
                error: Box::new(ended),
                kept: GOES_ON,
            },
            error => error,
        }
    }

    /// A file of the folder; none, where nothing is noted.
    pub(in crate::mover) fn of(&self, of: Mark) -> Option<Noting<'_>> {
        let is_begun = AtomicBool::new(self.begun.contains_key(&of));
        self.journal.is_some().then_some(Noting {
            notes: self,
            of,
            is_begun,
        })
    }

    /// Begins anew with what counts, where there are so many lines that there may be no room.
    pub(in crate::mover) fn shorten(&mut self) {
        if *self.lines.get_mut() <= FOLDER_NOTES / 2 {
            return;
        }
        self.begin();
        for (of, left) in &self.moved {
            self.note(of, &left.at, left.was_verified);
        }
        for (of, at) in &self.begun {
            self.add(&FolderLine::Begun(hex::encode(of), at.clone()));
        }
    }

    /// Is at its end. What was not all moved, can be gone on with.
    pub(in crate::mover) fn end(self: Arc<Self>, is_all_moved: bool) {
        let Some(mut notes) = Arc::into_inner(self) else {
            return;
        };
        let has_any = *notes.lines.get_mut() > 1;
        if let Some(journal) = notes.journal
            && (is_all_moved || !has_any)
        {
            journal.remove();
        }
    }
}

/// What stays of a folder where its mover is not let in any more.
const NOTED: &str = "what was moved is noted: the same command, once it is let in again (by new \
                     credentials, or a login), goes on from there";

/// The same where it was let in.
const GOES_ON: &str = "what was moved is noted: the same command goes on from there";

/// What tells these from all others.
pub(in crate::mover) fn mark(parts: &[&str]) -> Mark {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut mark = Mark::default();
    mark.copy_from_slice(&context.finish().as_ref()[..16]);
    mark
}

/// A mark as it stands in a line.
fn mark_of(text: &str) -> Option<Mark> {
    hex::decode(text).ok()?.try_into().ok()
}
