//! A copy of a log that is written meanwhile, up to where it is durable.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use coffer_durable::write_file_atomically;

use crate::error::AuditError;
use crate::format::head::HEAD_NAME;
use crate::format::record::{AuditKey, Recorded};
use crate::format::segment::segment_name;
use crate::read::end::End;

/// Copies the log in `from` up to this end into the folder `to`, which holds nothing else. Nothing
/// is pruned meanwhile.
pub(crate) fn copy(from: &Path, to: &Path, key: &AuditKey, end: &End) -> Result<(), AuditError> {
    for number in end.cut.segment.max(1)..=end.segment {
        let name = segment_name(number);
        let is_last = number == end.segment;
        let until_bytes = if is_last { end.offset_bytes } else { u64::MAX };
        match copy_segment(&from.join(&name), &to.join(&name), until_bytes) {
            // A log without records has none yet.
            Err(error) if is_last && error.kind() == io::ErrorKind::NotFound => {}
            copied => copied.map_err(AuditError::io("copy", &name))?,
        }
    }
    let head = end.head().to_file(key);
    let written = write_file_atomically(&to.join(HEAD_NAME), &head);
    let written = written.map_err(io::Error::from);
    written.map_err(AuditError::io("write the copy of", HEAD_NAME))
}

/// What of a log is durable at one moment. Files but for the head only grow.
#[derive(Clone, Debug)]
pub struct LogExtent {
    /// The last record.
    pub last: Recorded,
    /// The files of segments, in order; and how long the last one is, in bytes: all others are
    /// whole.
    pub segments: Vec<String>,
    /// Of the last one so much counts, in bytes.
    pub last_bytes: u64,
    /// The name and the bytes of the head.
    pub head: (&'static str, Vec<u8>),
}

impl LogExtent {
    pub(crate) fn new(end: &End, key: &AuditKey) -> Self {
        let numbers = end.cut.segment.max(1)..=end.segment;
        Self {
            last: end.last,
            segments: numbers.map(segment_name).collect(),
            last_bytes: end.offset_bytes,
            head: (HEAD_NAME, end.head().to_file(key)),
        }
    }
}

fn copy_segment(from: &Path, to: &Path, until_bytes: u64) -> io::Result<()> {
    let mut from = File::open(from)?.take(until_bytes);
    let _ = fs::remove_file(to);
    let mut options = OpenOptions::new();
    let mut to = options.write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to)?;
    to.sync_all()
}
