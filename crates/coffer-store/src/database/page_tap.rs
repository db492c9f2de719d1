//! Which pages of a database were changed since they were last taken, for those who copy it page by
//! page, sealed as they are.
//!
//! The connection that writes reads the numbers of new frames in the log before each checkpoint,
//! for afterwards the log may begin anew; and when pages are taken. A bit a page is all that is
//! kept, however long nothing is taken. Where frames may have been missed, all pages count as
//! changed.
//!
//! Pages are taken some at a time, each time in the place of a write: nothing is committed and no
//! log is copied meanwhile. What changes between two times is noted again. So when none are left
//! after a time, all that were taken, the later ones over the earlier, make the database as it was
//! at that time.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;

use crate::database::log::log_of;
use crate::error::{Result, StoreError};
use crate::limits::PAGE_BYTES;

mod cursor;

use self::cursor::Cursor;

const HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// Pages of a database, as they lie there.
#[derive(Debug)]
pub struct TakenPages {
    /// How many commits the database had.
    pub commit_count: u64,
    /// How many pages it had.
    pub page_count: u32,
    /// Some that changed, with their numbers, which begin at 1.
    pub pages: Vec<(u32, Vec<u8>)>,
    /// Whether these are the first of all pages that there are.
    pub is_base: bool,
    /// Whether no others were changed.
    pub is_last: bool,
    /// How many commits the database had when all was taken before; none, for the first of all
    /// pages.
    pub since: Option<u64>,
}

/// What was changed in one database, for each of those who copy it. It outlasts the database's
/// being closed and opened again.
#[derive(Debug, Default)]
pub struct PageTap(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    cursors: BTreeMap<u32, Cursor>,
    /// How far the log was read.
    seen: Option<Seen>,
    /// The newest frame of each page in the log, as far as it was read.
    frames: HashMap<u32, u64>,
    /// How many pages the last commit in the log left, if there was one.
    page_count: Option<u32>,
    /// Whether the log was empty, and known to its end, when the database was closed.
    is_closed_whole: bool,
}

/// What of the log was read: of which beginning, and how many frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    salts: [u8; 8],
    frame_count: u64,
}

impl PageTap {
    /// From now on changes are noted for `cursor`, for whom all is new.
    pub fn follow(&self, cursor: u32) {
        self.0.lock().cursors.entry(cursor).or_default();
    }

    /// The same, for one who takes only what was changed since `leader` took all, and nothing
    /// before that.
    pub fn follow_behind(&self, cursor: u32, leader: u32) {
        let mut state = self.0.lock();
        state.cursors.entry(cursor).or_default().leader = Some(leader);
    }

    /// No more.
    pub fn unfollow(&self, cursor: u32) {
        self.0.lock().cursors.remove(&cursor);
    }

    /// Whether pages were changed that `cursor` has not. What is in the log is not known before it
    /// is looked at.
    pub fn changed_pages(&self, cursor: u32) -> u64 {
        let state = self.0.lock();
        state.cursors.get(&cursor).map_or(0, |cursor| {
            let taken = cursor.in_flight.len() as u64;
            match &cursor.pages {
                Some(pages) => pages.count() + taken,
                None => u64::from(cursor.is_touched) + taken,
            }
        })
    }

    /// What was taken last arrived.
    pub fn arrived(&self, cursor: u32) {
        if let Some(cursor) = self.0.lock().cursors.get_mut(&cursor) {
            cursor.arrived();
        }
    }

    /// What was taken last did not arrive: it is to be taken again.
    pub fn give_back(&self, cursor: u32) {
        if let Some(cursor) = self.0.lock().cursors.get_mut(&cursor) {
            cursor.give_back();
        }
    }

    /// All is to be taken again, as soon as anything changes or is taken.
    pub fn start_over(&self, cursor: u32) {
        if let Some(cursor) = self.0.lock().cursors.get_mut(&cursor) {
            cursor.lose();
            cursor.is_touched = true;
        }
    }

    /// Reads what is new in the log. Nothing is written meanwhile.
    pub(crate) fn note(&self, path: &Path) {
        let mut state = self.0.lock();
        if let Err(error) = state.note(path) {
            tracing::warn!(%error, "a log could not be read for copies: all pages are copied");
            state.lose();
        }
    }

    fn attach(&self, path: &Path) {
        let mut state = self.0.lock();
        let log_bytes = std::fs::metadata(log_of(path)).map_or(0, |log| log.len());
        if !std::mem::take(&mut state.is_closed_whole) || log_bytes > 0 {
            state.lose();
        }
        state.seen = None;
        state.frames.clear();
        state.page_count = None;
    }

    fn take(
        &self,
        cursor: u32,
        path: &Path,
        commit_count: u64,
        page_max: usize,
    ) -> io::Result<Option<TakenPages>> {
        let mut state = self.0.lock();
        state.note(path)?;
        let database = File::open(path)?;
        let in_file = database.metadata()?.len() / u64::from(PAGE_BYTES);
        let in_file = u32::try_from(in_file).map_err(|_| ErrorKind::InvalidData)?;
        let page_count = state.page_count.unwrap_or(in_file);
        let who = cursor;
        let Some(cursor) = state.cursors.get_mut(&who) else {
            return Ok(None);
        };
        cursor.give_back();
        if cursor.leader.is_some() && cursor.pages.is_none() {
            return Ok(None);
        }
        let is_base = cursor.pages.is_none();
        let bits = cursor.pages.get_or_insert_default();
        if is_base {
            bits.insert_all(page_count);
        }
        bits.cut_off(page_count);
        let numbers = bits.first(page_max);
        numbers.iter().for_each(|number| bits.remove(*number));
        let is_last = bits.count() == 0;
        cursor.in_flight.clone_from(&numbers);
        cursor.in_flight_commits = is_last.then_some(commit_count);
        let since = cursor.since.filter(|_| !is_base);
        if is_last {
            state.has_taken_all(who, commit_count);
        }
        let pages = state.read(path, &database, numbers)?;
        Ok(Some(TakenPages {
            commit_count,
            page_count,
            pages,
            is_base,
            is_last,
            since,
        }))
    }
}

impl State {
    /// Frames may have been missed.
    fn lose(&mut self) {
        for cursor in self.cursors.values_mut() {
            cursor.lose();
        }
    }

    /// From here on those are told of changes who follow behind this one, and did not know what
    /// there is.
    fn has_taken_all(&mut self, leader: u32, commit_count: u64) {
        let cursors = self.cursors.values_mut();
        for cursor in cursors.filter(|cursor| cursor.leader == Some(leader)) {
            cursor.begin(commit_count);
        }
    }

    fn note(&mut self, path: &Path) -> io::Result<()> {
        let log = match File::open(log_of(path)) {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.note_empty();
                return Ok(());
            }
            log => log?,
        };
        let mut header = [0; HEADER_BYTES as usize];
        match log.read_exact_at(&mut header, 0) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => {
                self.note_empty();
                return Ok(());
            }
            read => read?,
        }
        let mut salts = [0; 8];
        salts.copy_from_slice(&header[16..24]);
        if self.seen.is_none_or(|seen| seen.salts != salts) {
            self.note_empty();
        }
        let mut at = self.seen.map_or(0, |seen| seen.frame_count);
        self.seen = Some(Seen {
            salts,
            frame_count: at,
        });
        // Frames of a transaction that is not committed, or was undone, commit nothing.
        let mut waiting = Vec::new();
        let mut frame = [0; FRAME_HEADER_BYTES as usize];
        loop {
            match log.read_exact_at(&mut frame, offset_bytes(at)) {
                Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            if frame[8..16] != salts {
                return Ok(());
            }
            let word = |from: usize| {
                u32::from_be_bytes([
                    frame[from],
                    frame[from + 1],
                    frame[from + 2],
                    frame[from + 3],
                ])
            };
            waiting.push((word(0), at));
            at += 1;
            let page_count = word(4);
            if page_count > 0 {
                self.commit(&mut waiting, page_count);
                self.seen = Some(Seen {
                    salts,
                    frame_count: at,
                });
            }
        }
    }

    fn commit(&mut self, frames: &mut Vec<(u32, u64)>, page_count: u32) {
        self.page_count = Some(page_count);
        for cursor in self.cursors.values_mut() {
            cursor.is_touched = true;
            if let Some(pages) = &mut cursor.pages {
                frames.iter().for_each(|(number, _)| pages.insert(*number));
            }
        }
        self.frames.extend(frames.drain(..));
    }

    /// The log is empty, or begins anew: all that it had is in the database.
    fn note_empty(&mut self) {
        self.seen = None;
        self.frames.clear();
        self.page_count = None;
    }

    fn read(
        &self,
        path: &Path,
        database: &File,
        numbers: Vec<u32>,
    ) -> io::Result<Vec<(u32, Vec<u8>)>> {
        let log = if self.frames.is_empty() {
            None
        } else {
            Some(File::open(log_of(path))?)
        };
        let mut pages = Vec::with_capacity(numbers.len());
        for number in numbers {
            let mut page = vec![0; PAGE_BYTES as usize];
            match (&log, self.frames.get(&number)) {
                (Some(log), Some(frame)) => {
                    log.read_exact_at(&mut page, offset_bytes(*frame) + FRAME_HEADER_BYTES)?;
                }
                _ => {
                    let offset_bytes = u64::from(number - 1) * u64::from(PAGE_BYTES);
                    database.read_exact_at(&mut page, offset_bytes)?;
                }
            }
            pages.push((number, page));
        }
        Ok(pages)
    }
}

/// Where a frame begins.
fn offset_bytes(frame: u64) -> u64 {
    HEADER_BYTES + frame * (FRAME_HEADER_BYTES + u64::from(PAGE_BYTES))
}

/// The tap of a database that is open, if there is one.
#[derive(Debug)]
pub(crate) struct Tapped {
    path: PathBuf,
    tap: OnceLock<Arc<PageTap>>,
}

impl Tapped {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self {
            path,
            tap: OnceLock::new(),
        }
    }

    /// Before anything is committed, or while nothing is.
    pub(crate) fn attach(&self, tap: Arc<PageTap>) {
        if self.tap.get().is_none() {
            tap.attach(&self.path);
            let _ = self.tap.set(tap);
        }
    }

    /// Notes what the log has, before it is copied.
    pub(crate) fn note(&self) {
        if let Some(tap) = self.tap.get() {
            tap.note(&self.path);
        }
    }

    /// Another connection writes from now on.
    pub(crate) fn reopened(&self) {
        if let Some(tap) = self.tap.get() {
            let mut state = tap.0.lock();
            state.lose();
            state.note_empty();
        }
    }

    /// All of the log was noted and copied, and nothing is written any more.
    pub(crate) fn closed_whole(&self) {
        if let Some(tap) = self.tap.get() {
            tap.0.lock().is_closed_whole = true;
        }
    }

    pub(crate) fn take(
        &self,
        cursor: u32,
        commit_count: u64,
        page_max: usize,
    ) -> Result<Option<TakenPages>> {
        let Some(tap) = self.tap.get() else {
            return Ok(None);
        };
        let taken = tap.take(cursor, &self.path, commit_count, page_max);
        taken.map_err(|error| StoreError::io("read pages for a copy", &self.path, error))
    }
}
