//! Whether the files of an open database are as its writer left them.
//!
//! SQLite looks at the files again only where it has to: it has pages and the index of the log in
//! memory. An older copy that is written over an open database would so be mixed with what is known
//! of the newer one, and a file that is cut off be written on. So after each write it is noted when
//! the files were written, and looked at before the next one and every few seconds. Times alone
//! prove nothing (a program may have touched the file, a file system may tell them late): then the
//! contents decide. Whenever a page is sealed it ends in other bytes than before, so the end of the
//! page that counts commits tells which checkpoint a file is of; and the log's header is another
//! one whenever it begins anew.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::database::log::log_of;
use crate::database::stamps::Stamps;
use crate::limits::PAGE_BYTES;

/// What a page ends with: its initialisation vector and its code.
const SEAL_BYTES: usize = 48;

/// The header of a log, and of each frame in it (SQLite, "Database File Format", section 4).
const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: u64 = 24;

type Seals = [[u8; SEAL_BYTES]; 2];
type Header = [u8; HEADER_BYTES];

/// What is known of them. For the writer alone, between two writes.
pub struct OwnFiles {
    path: PathBuf,
    noted: Mutex<Option<Noted>>,
}

struct Noted {
    stamps: Stamps,
    /// The page that counts commits, from 1.
    page: u32,
    /// Of the first page, and of that one.
    seals: Option<Seals>,
    /// Of the log, if that has any.
    header: Option<Header>,
    /// How many frames the log certainly has.
    frames: u32,
}

impl OwnFiles {
    /// Of the database at `path`, of which nothing is noted yet.
    pub fn new(path: PathBuf) -> Self {
        Self {
            path,
            noted: Mutex::new(None),
        }
    }

    /// The database's file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes the files as they are: their writer has written them. `page` counts its commits, and
    /// the log has at least so many frames. What can't be read is not looked at until the next
    /// time.
    pub fn note(&self, page: u32, frames: u32) {
        let mut noted = self.noted.lock();
        let stamps = Stamps::of(&self.path);
        let known = noted.take();
        let same = |known: &&Noted| known.stamps.has_same_database(&stamps) && known.page == page;
        let seals = match known.as_ref().filter(same) {
            Some(known) => Ok(known.seals),
            None => self.seals(page),
        };
        // It begins anew with fewer frames than it had.
        let goes_on = |known: &&Noted| known.header.is_some() && known.frames < frames;
        let header = match known.as_ref().filter(goes_on) {
            Some(known) => Ok(known.header),
            None => self.header(),
        };
        if let (Ok(seals), Ok(header)) = (seals, header) {
            *noted = Some(Noted {
                stamps,
                page,
                seals,
                header,
                frames,
            });
        }
    }

    /// Whether they are as they were noted. What can't be read now says nothing.
    ///
    /// # Errors
    /// What has become of them, in words.
    pub fn check(&self) -> Result<(), &'static str> {
        let mut noted = self.noted.lock();
        let Some(known) = &mut *noted else {
            return Ok(());
        };
        let stamps = Stamps::of(&self.path);
        if stamps == known.stamps {
            return Ok(());
        }
        let (Ok(seals), Ok(header), Ok(has_frames)) = (
            self.seals(known.page),
            self.header(),
            self.has_frame(known.frames, known.header.as_ref()),
        ) else {
            return Ok(());
        };
        if seals != known.seals {
            return Err("another program wrote over its file");
        }
        if header != known.header || !has_frames {
            return Err("another program wrote over its log");
        }
        known.stamps = stamps;
        Ok(())
    }

    /// `None` where the file is too short for them.
    fn seals(&self, page: u32) -> io::Result<Option<Seals>> {
        let mut seals = [[0; SEAL_BYTES]; 2];
        read(&self.path, |file| {
            for (seal, page) in seals.iter_mut().zip([1, page]) {
                let end = u64::from(page) * u64::from(PAGE_BYTES);
                file.read_exact_at(seal, end - SEAL_BYTES as u64)?;
            }
            Ok(())
        })
        .map(|read| read.map(|()| seals))
    }

    fn header(&self) -> io::Result<Option<Header>> {
        let mut header = [0; HEADER_BYTES];
        let read = read(&log_of(&self.path), |log| log.read_exact_at(&mut header, 0));
        read.map(|read| read.map(|()| header))
    }

    /// Whether the log has this frame, from 1, of the times of its header.
    fn has_frame(&self, frame: u32, header: Option<&Header>) -> io::Result<bool> {
        let (Some(before), Some(header)) = (frame.checked_sub(1), header) else {
            return Ok(true);
        };
        let at =
            HEADER_BYTES as u64 + u64::from(before) * (FRAME_HEADER_BYTES + u64::from(PAGE_BYTES));
        let mut salts = [0; 8];
        let read = read(&log_of(&self.path), |log| {
            log.read_exact_at(&mut salts, at + 8)
        })?;
        Ok(read.is_some() && salts == header[16..24])
    }
}

/// `None` where there is no such file, or it ends before.
fn read(path: &Path, read: impl FnOnce(&File) -> io::Result<()>) -> io::Result<Option<()>> {
    match File::open(path).and_then(|file| read(&file)) {
        Ok(()) => Ok(Some(())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::UnexpectedEof) => {
            Ok(None)
        }
        Err(error) => Err(error),
    }
}
