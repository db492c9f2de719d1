//! Going through a segment record by record, a piece of the file at a time.

use crate::error::AuditError;
use crate::format::record::{Frame, is_cut, parse_frame};
use crate::format::segment::{FIRST_FRAME, Header, segment_name};
use crate::limits::{FRAME_MAX_BYTES, READ_BYTES, SEGMENT_HEADER_BYTES};
use coffer_durable::Disk;

/// A walk through one segment.
pub(crate) struct Walk {
    name: String,
    /// Where the next record begins.
    pub(crate) offset_bytes: u64,
    /// Nothing is read from here on: the file's end, or where what was synced ends.
    end_bytes: u64,
    buffer: Vec<u8>,
    /// Where in the file the buffer begins.
    buffer_offset: u64,
}

/// What comes next.
pub(crate) enum Step {
    /// A record, by its form.
    Frame(Frame),
    /// Nothing more.
    End,
    /// No record.
    Broken {
        /// It is the beginning of one, by its form.
        is_cut: bool,
    },
}

/// A segment's header; an I/O error when there is no such file.
pub(crate) fn read_header(disk: &dyn Disk, segment: u32) -> Result<Header, AuditError> {
    let name = segment_name(segment);
    let bytes = disk
        .read(&name, 0, SEGMENT_HEADER_BYTES)
        .map_err(AuditError::io("read", &name))?;
    Ok(Header::parse(&bytes))
}

impl Walk {
    /// From the first record on, to the end of the file or `until_bytes`.
    pub(crate) fn new(
        disk: &dyn Disk,
        segment: u32,
        until_bytes: Option<u64>,
    ) -> Result<Self, AuditError> {
        let mut walk = Self {
            name: segment_name(segment),
            offset_bytes: FIRST_FRAME,
            end_bytes: FIRST_FRAME,
            buffer: Vec::new(),
            buffer_offset: FIRST_FRAME,
        };
        walk.extend(disk, until_bytes)?;
        Ok(walk)
    }

    /// Reads on to where the segment ends by now.
    pub(crate) fn extend(
        &mut self,
        disk: &dyn Disk,
        until_bytes: Option<u64>,
    ) -> Result<(), AuditError> {
        let length_bytes = disk
            .length_bytes(&self.name)
            .map_err(AuditError::io("read", &self.name))?;
        self.end_bytes = until_bytes.map_or(length_bytes, |until| until.min(length_bytes));
        Ok(())
    }

    /// What is left from here, in bytes.
    pub(crate) fn rest_bytes(&self) -> u64 {
        self.end_bytes.saturating_sub(self.offset_bytes)
    }

    pub(crate) fn next(&mut self, disk: &dyn Disk) -> Result<Step, AuditError> {
        if self.rest_bytes() == 0 {
            return Ok(Step::End);
        }
        let wanted_bytes = self.rest_bytes().min(FRAME_MAX_BYTES as u64);
        if self.buffered().len() < wanted_bytes as usize {
            let length = self.rest_bytes().min(READ_BYTES as u64) as usize;
            self.buffer = disk
                .read(&self.name, self.offset_bytes, length)
                .map_err(AuditError::io("read", &self.name))?;
            self.buffer_offset = self.offset_bytes;
        }
        let Some((frame, length)) = parse_frame(self.buffered()) else {
            let is_cut = is_cut(self.buffered());
            return Ok(Step::Broken { is_cut });
        };
        self.offset_bytes += length as u64;
        Ok(Step::Frame(frame))
    }

    fn buffered(&self) -> &[u8] {
        let start = (self.offset_bytes - self.buffer_offset) as usize;
        self.buffer.get(start..).unwrap_or_default()
    }
}
