//! What a left write-ahead log holds behind a place that does not verify (SQLite, "Database File
//! Format", section 4).
//!
//! SQLite takes a log up to the first frame whose checksum does not follow from the one before, and
//! nothing behind it: that is where a power cut tore the commit under way. A bit that flipped looks
//! the same, and all later commits would be gone in silence. But each commit is synced before the
//! next one begins: so where two commits that follow from each other lie behind such a place, the
//! first had been acknowledged. And what a torn commit wrote is never in the database.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;

use crate::limits::{LOG_PIECE_BYTES, PAGE_BYTES};

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const PAGE: usize = PAGE_BYTES as usize;

/// Its lowest bit says whether checksums take big-endian words.
const MAGIC: u32 = 0x377f_0682;

type Sum = [u32; 2];

/// Whether commits that were acknowledged, or copied into the database, lie in `log` where SQLite
/// won't look. `database` is the file that it belongs to.
pub(crate) fn has_lost_commits(log: &File, database: &File) -> io::Result<bool> {
    let mut reader = BufReader::with_capacity(LOG_PIECE_BYTES, log);
    let mut header = [0; HEADER_BYTES];
    if !read_whole(&mut reader, &mut header)? {
        return Ok(false);
    }
    let mut look = Look::new(&header);
    let mut bytes = vec![0; FRAME_HEADER_BYTES + PAGE];
    let mut offset_bytes = HEADER_BYTES as u64;
    while read_whole(&mut reader, &mut bytes)? {
        look.at(&bytes, offset_bytes + FRAME_HEADER_BYTES as u64);
        offset_bytes += bytes.len() as u64;
    }
    look.end(log, database)
}

fn read_whole(reader: &mut impl Read, bytes: &mut [u8]) -> io::Result<bool> {
    match reader.read_exact(bytes) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        read => read.map(|()| true),
    }
}

struct Look {
    is_header_whole: bool,
    is_big_endian: bool,
    /// Of the frames that the header announces; or, when it is not whole, of the first that follow
    /// from each other.
    salt: Option<[u8; 8]>,
    /// What the next frame follows from, as long as all is whole.
    whole: Option<Sum>,
    /// What the next frame may follow from, behind the first that did not.
    behind: Vec<Sum>,
    /// Of the frames behind, since the last that did not follow from the one before: how many
    /// there are, and how many of them commit.
    run: (usize, u32),
    /// The most commits that follow from each other behind the break.
    commits: u32,
    /// Pages in frames behind the break, and where they begin.
    pages: Vec<(u32, u64)>,
    /// How many of them are certainly committed.
    committed: usize,
}

impl Look {
    fn new(header: &[u8; HEADER_BYTES]) -> Self {
        let magic = word(header, 0);
        let is_big_endian = if magic & !1 == MAGIC {
            magic & 1 == 1
        } else {
            cfg!(target_endian = "big")
        };
        let formed = sum([0; 2], &header[..24], is_big_endian);
        let stored = [word(header, 24), word(header, 28)];
        let is_header_whole =
            magic & !1 == MAGIC && word(header, 8) == PAGE_BYTES && formed == stored;
        Self {
            is_header_whole,
            is_big_endian,
            salt: is_header_whole.then(|| salt_in(&header[16..24])),
            whole: is_header_whole.then_some(stored),
            // Either may be the right one when the header is not.
            behind: if is_header_whole {
                Vec::new()
            } else {
                vec![formed, stored]
            },
            run: (0, 0),
            commits: 0,
            pages: Vec::new(),
            committed: 0,
        }
    }

    fn at(&mut self, frame: &[u8], page_offset_bytes: u64) {
        let (header, page) = frame.split_at(FRAME_HEADER_BYTES);
        let stored = [word(header, 16), word(header, 20)];
        let follows = |from: &Sum| {
            let formed = sum(*from, &header[..8], self.is_big_endian);
            sum(formed, page, self.is_big_endian) == stored
        };
        let salt = salt_in(&header[8..16]);
        let is_current = self.salt.is_none_or(|current| current == salt);
        if let Some(from) = self.whole {
            if is_current && follows(&from) {
                self.whole = Some(stored);
                return;
            }
            self.whole = None;
        }
        let has_followed = is_current && self.behind.iter().any(follows);
        self.behind.clear();
        if !has_followed {
            self.run = (0, 0);
        } else if self.salt.is_none() {
            // What came before is of other times, or nothing.
            self.salt = Some(salt);
            let first = self.pages.len() - self.run.0;
            self.pages.drain(..first);
        }
        if is_current {
            self.behind.push(stored);
            self.run.0 += 1;
            self.run.1 += u32::from(word(header, 4) > 0);
            self.pages.push((word(header, 0), page_offset_bytes));
        }
        if has_followed {
            self.commits = self.commits.max(self.run.1);
            if word(header, 4) > 0 {
                self.committed = self.pages.len();
            }
        }
    }

    fn end(self, log: &File, database: &File) -> io::Result<bool> {
        let mut buffers = ([0; PAGE], [0; PAGE]);
        let mut is_in_database = |(page, offset_bytes): (u32, u64)| {
            let at = u64::from(page.wrapping_sub(1)) * u64::from(PAGE_BYTES);
            let (ours, theirs) = (&mut buffers.0, &mut buffers.1);
            log.read_exact_at(ours, offset_bytes)?;
            match database.read_exact_at(theirs, at) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
                read => read.map(|()| ours == theirs),
            }
        };
        if self.is_header_whole {
            // A page that was copied is of a commit; what comes before in the log is older.
            for page in self.pages.iter().rev() {
                if self.commits >= 2 || is_in_database(*page)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        // The header is written anew when all of the log has been copied, and a power cut may tear
        // it: then the database has the last of each page.
        let committed = self.pages.into_iter().take(self.committed);
        for page in committed.collect::<HashMap<u32, u64>>() {
            if !is_in_database(page)? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

fn salt_in(bytes: &[u8]) -> [u8; 8] {
    let mut salt = [0; 8];
    salt.copy_from_slice(bytes);
    salt
}

fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[at..at + 4]);
    u32::from_be_bytes(word)
}

/// SQLite's checksum of whole pairs of words.
fn sum(from: Sum, bytes: &[u8], is_big_endian: bool) -> Sum {
    let (pairs, _) = bytes.as_chunks::<8>();
    pairs.iter().fold(from, |[first, second], pair| {
        let word = |at: usize| {
            let word = [pair[at], pair[at + 1], pair[at + 2], pair[at + 3]];
            if is_big_endian {
                u32::from_be_bytes(word)
            } else {
                u32::from_le_bytes(word)
            }
        };
        let first = first.wrapping_add(word(0)).wrapping_add(second);
        [first, second.wrapping_add(word(4)).wrapping_add(first)]
    })
}
