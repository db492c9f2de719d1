//! The end of a log: what it is read up to, and where it is written on.

use crate::format::head::Head;
use crate::format::record::Recorded;
use crate::format::segment::{Cut, FIRST_FRAME};

/// Where the log ends, as far as it is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) last: Recorded,
    pub(crate) segment: u32,
    /// Where the next record goes, in bytes.
    pub(crate) offset_bytes: u64,
    /// Where the log begins.
    pub(crate) cut: Cut,
}

impl End {
    /// Of a log without records.
    pub(crate) const OF_NONE: Self = Self {
        last: Recorded::NONE,
        segment: 1,
        offset_bytes: FIRST_FRAME,
        cut: Cut::NONE,
    };

    pub(crate) fn head(&self) -> Head {
        Head {
            last: self.last,
            segment: self.segment,
            cut: self.cut,
        }
    }
}
