//! Whether the files that are to be sealed look so: their shape, and the statistic of their bytes.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;

use coffer_keys::limits::ANCHOR_SLOT_BYTES;
use coffer_keys::{CopyView, inspect_keystore};
use coffer_seal::plaintext_bytes;

use crate::prove::statistic::looks_sealed;

/// A page of a database, and as much of any other file as the statistic looks at in one piece.
const PAGE_BYTES: u64 = 4096;

/// How many pages of a file are looked at: spread evenly, the first and the last among them.
const PAGES_MAX: u64 = 64;

/// A write-ahead log's own header, and that of each frame; SQLite, "File format", section 4.1.
const LOG_HEADER_BYTES: u64 = 32;
const FRAME_HEADER_BYTES: u64 = 24;

/// A segment's header, and a record around its sealed message; `docs/FORMAT.md`, "Audit log".
const SEGMENT_HEADER_BYTES: usize = 72;
const RECORD_HEAD_BYTES: usize = 12;
const RECORD_HASH_BYTES: usize = 32;
const RECORD_SEALED_BYTES: Range<usize> = 106..16_456;

/// How much of an audit segment is read: whole, for it is small.
const SEGMENT_MAX_BYTES: u64 = 128 << 20;

/// What looking at a file came to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// What is wrong with it.
    pub wrong: Option<String>,
    /// Whether that is its length, which is another as long as it is being written.
    pub is_length: bool,
    /// How many pages the statistic was formed of.
    pub page_count: u64,
}

impl Look {
    fn wrong(what: impl Into<String>) -> Self {
        Self {
            wrong: Some(what.into()),
            ..Self::default()
        }
    }
}

/// A blob: the length of a sealed message, and bytes like ciphertext.
pub fn blob(path: &Path) -> io::Result<Look> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if plaintext_bytes(length).is_err() {
        return Ok(Look {
            is_length: true,
            ..Look::wrong(format!("no sealed message has its length, {length} bytes"))
        });
    }
    pages(&file, 0..length, PAGE_BYTES, 0)
}

/// A SQLCipher database: whole pages, none of them readable.
pub fn database(path: &Path) -> io::Result<Look> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let mut first = [0; 16];
    let first_bytes = file.read_at(&mut first, 0)?;
    if first[..first_bytes].starts_with(b"SQLite format 3") {
        return Ok(Look::wrong("it is a database that is not sealed"));
    }
    if length == 0 || length % PAGE_BYTES != 0 {
        return Ok(Look::wrong(format!(
            "no sealed database has its length, {length} bytes"
        )));
    }
    pages(&file, 0..length, PAGE_BYTES, 0)
}

/// A write-ahead log: SQLite's headers are in the clear, the pages in it are not.
pub fn database_log(path: &Path) -> io::Result<Look> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    if length == 0 {
        return Ok(Look::default());
    }
    let mut header = [0; LOG_HEADER_BYTES as usize];
    let is_whole = file.read_exact_at(&mut header, 0).is_ok();
    let page_bytes = u32::from_be_bytes([header[8], header[9], header[10], header[11]]);
    let is_log = header[..4] == [0x37, 0x7f, 0x06, 0x82] || header[..4] == [0x37, 0x7f, 0x06, 0x83];
    if !is_whole || !is_log || u64::from(page_bytes) != PAGE_BYTES {
        return Ok(Look::wrong("it is no write-ahead log of a sealed database"));
    }
    let frame_bytes = FRAME_HEADER_BYTES + PAGE_BYTES;
    // A frame that is being written is not whole yet.
    let whole = (length - LOG_HEADER_BYTES) / frame_bytes * frame_bytes;
    let frames = LOG_HEADER_BYTES..LOG_HEADER_BYTES + whole;
    pages(&file, frames, frame_bytes, FRAME_HEADER_BYTES)
}

/// The keystore: two whole copies, and nothing beside them. Whether they are the same generation is
/// not asked: they differ for a moment while it is being changed.
pub fn keystore(path: &Path) -> io::Result<Look> {
    let copies = inspect_keystore(path).map_err(|error| io::Error::other(error.to_string()))?;
    let file = File::open(path)?;
    let mut look = Look::default();
    for (name, copy) in ["A", "B"].iter().zip(copies) {
        let wrong = match copy {
            CopyView::Whole {
                sealed,
                has_remains: false,
                ..
            } => {
                let sealed = pages(&file, sealed, PAGE_BYTES, 0)?;
                look.page_count += sealed.page_count;
                sealed.wrong
            }
            CopyView::Whole { .. } => Some("something follows it".to_owned()),
            CopyView::Newer { format } => Some(format!("it has format {format}, which is newer")),
            CopyView::Damaged => {
                Some("it is damaged: the next start mends it from the other".to_owned())
            }
        };
        if let Some(wrong) = wrong {
            look.wrong = Some(format!("copy {name}: {wrong}"));
        }
    }
    Ok(look)
}

/// The anchor: one or two copies, sealed.
pub fn anchor(path: &Path) -> io::Result<Look> {
    const FRAME_BYTES: usize = 24;
    let file = File::open(path)?;
    let mut look = Look::default();
    for slot in 0..2 {
        let start = slot * ANCHOR_SLOT_BYTES as u64;
        let mut frame = [0; FRAME_BYTES];
        let read_bytes = file.read_at(&mut frame, start)?;
        if frame[..read_bytes].iter().all(|byte| *byte == 0) {
            continue;
        }
        if read_bytes < FRAME_BYTES || !frame.starts_with(b"cofferAN") {
            return Ok(Look::wrong("it is no anchor"));
        }
        let sealed_bytes = u32::from_be_bytes([frame[20], frame[21], frame[22], frame[23]]);
        let sealed = start + FRAME_BYTES as u64;
        let found = pages(
            &file,
            sealed..sealed + u64::from(sealed_bytes),
            PAGE_BYTES,
            0,
        )?;
        look.page_count += found.page_count;
        look.wrong = look.wrong.or(found.wrong);
    }
    Ok(look)
}

/// A segment of the audit log: records that follow each other, sealed.
pub fn audit_segment(path: &Path) -> io::Result<Look> {
    let length = File::open(path)?.metadata()?.len();
    if length > SEGMENT_MAX_BYTES {
        return Ok(Look::wrong(format!("no segment is {length} bytes long")));
    }
    let segment = std::fs::read(path)?;
    if segment.len() < SEGMENT_HEADER_BYTES || !segment.starts_with(b"cofferAL\0\0\0\x01") {
        return Ok(Look::wrong("it is no segment of the audit log"));
    }
    let mut rest = &segment[SEGMENT_HEADER_BYTES..];
    let mut sealed_count = 0;
    while let Some(head) = rest.first_chunk::<RECORD_HEAD_BYTES>() {
        let sealed_bytes = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
        if !RECORD_SEALED_BYTES.contains(&sealed_bytes) {
            return Ok(Look::wrong("something that is no record is in it"));
        }
        let end = RECORD_HEAD_BYTES + sealed_bytes + RECORD_HASH_BYTES;
        // A record that is being written is not whole yet.
        let Some(record) = rest.get(RECORD_HEAD_BYTES..end) else {
            break;
        };
        if !looks_sealed(record) {
            return Ok(readable((segment.len() - rest.len()) as u64));
        }
        sealed_count += record.len() as u64;
        rest = &rest[end..];
    }
    Ok(Look {
        page_count: sealed_count.div_ceil(PAGE_BYTES),
        ..Look::default()
    })
}

/// Looks at pages of `stride` bytes in a range, leaving out what each begins with.
fn pages(file: &File, range: Range<u64>, stride: u64, skip: u64) -> io::Result<Look> {
    let count = (range.end - range.start).div_ceil(stride);
    let looked = count.min(PAGES_MAX);
    let mut page = vec![0; (stride - skip) as usize];
    let mut page_count = 0;
    for turn in 0..looked {
        // Evenly from the first to the last.
        let index = if looked == 1 {
            0
        } else {
            turn * (count - 1) / (looked - 1)
        };
        let start = range.start + index * stride + skip;
        let end = (start + stride - skip).min(range.end);
        let page = &mut page[..(end.saturating_sub(start)) as usize];
        match file.read_exact_at(page, start) {
            // Cut off since its length was asked for.
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => break,
            read => read?,
        }
        page_count += 1;
        if !looks_sealed(page) {
            return Ok(Look {
                page_count,
                ..readable(start)
            });
        }
    }
    Ok(Look {
        page_count,
        ..Look::default()
    })
}

fn readable(offset_bytes: u64) -> Look {
    Look::wrong(format!(
        "its bytes are not like ciphertext at byte {offset_bytes}"
    ))
}
