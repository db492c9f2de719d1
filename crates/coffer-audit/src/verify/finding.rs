//! What verification reports.

use std::fmt;

use coffer_durable::rfc3339;

use crate::format::record::Recorded;
use crate::format::segment::segment_name;
use crate::limits::FINDINGS_MAX;

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// How many records were read and are as they were written.
    pub record_count: u64,
    /// How many segments were read.
    pub segment_count: u32,
    /// How many checkpoints verify.
    pub checkpoint_count: u64,
    /// The last record that was pruned, as a signed record says; 0 if none was.
    pub pruned_through: u64,
    /// Records that are missing since an older copy was gone on from, on purpose, as the log says.
    pub rolled_back: Vec<RolledBack>,
    /// The last record that was read.
    pub last: Recorded,
    /// What is wrong, in the order of the log: the first of it comes first.
    pub findings: Vec<Finding>,
    /// How many more findings there are.
    pub more_findings: u64,
    /// Bytes that a crash left at the end, of records not yet acknowledged: cut off when the
    /// log is opened next.
    pub torn_bytes: u64,
}

/// Records that an accepted rollback explains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RolledBack {
    /// The first that is missing.
    pub first: u64,
    /// The last.
    pub through: u64,
    /// The record by which that was accepted.
    pub accepted: u64,
    /// When, in milliseconds since 1970 (UTC).
    pub accepted_ms: i64,
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// The segment.
    pub segment: u32,
    /// The record, where it is about one.
    pub sequence: Option<u64>,
    /// What is wrong.
    pub wrong: Wrong,
}

/// What can be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Wrong {
    /// The record, or what should be one, is not what was written.
    Altered,
    /// Records are missing, up to this one.
    Missing {
        /// The last one that is missing.
        through: u64,
    },
    /// Another record stands in its place.
    Reordered {
        /// The one that stands there.
        found: u64,
    },
    /// The end of the log is missing, up to this record.
    Truncated {
        /// The last one that is missing.
        through: u64,
    },
    /// A checkpoint is not signed by this key, or is one of other records.
    NotSigned,
    /// The segment's file is missing.
    SegmentMissing,
    /// The segment's header is not what was written.
    HeaderAltered,
    /// The segment's header says that it follows other records than those before it.
    HeaderElsewhere,
    /// The head is missing.
    HeadMissing,
    /// The head does not open.
    HeadAltered,
    /// More follows the head than a crash leaves there: it is an old one.
    HeadOld,
    /// The record says that the log was found damaged when it was opened.
    DamageRecorded {
        /// What was found then.
        found: String,
    },
    /// The record that was asked for was pruned.
    Pruned {
        /// The last one that was.
        through: u64,
    },
    /// The record that was asked for is not in the log, or has another hash.
    NotInLog,
}

impl Report {
    /// That of a log of which nothing was looked at yet.
    pub(crate) const EMPTY: Self = Self {
        record_count: 0,
        segment_count: 0,
        checkpoint_count: 0,
        pruned_through: 0,
        rolled_back: Vec::new(),
        last: Recorded::NONE,
        findings: Vec::new(),
        more_findings: 0,
        torn_bytes: 0,
    };

    /// Whether nothing is wrong: all that is there is as it was written, and what is missing was
    /// pruned, or rolled back on purpose.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn add(&mut self, segment: u32, sequence: Option<u64>, wrong: Wrong) {
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                segment,
                sequence,
                wrong,
            });
        } else {
            self.more_findings += 1;
        }
    }
}

impl fmt::Display for RolledBack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            first,
            through,
            accepted,
            accepted_ms,
        } = *self;
        let at = rfc3339(accepted_ms);
        write!(
            f,
            "records {first} to {through} were rolled back, which was accepted at {at}, as record \
             {accepted} says"
        )
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = segment_name(self.segment);
        let record = self.sequence.unwrap_or(0);
        match &self.wrong {
            Wrong::Altered => write!(f, "record {record}, in {file}, was altered"),
            Wrong::Missing { through } => {
                write!(f, "records {record} to {through} are missing, in {file}")
            }
            Wrong::Reordered { found } => write!(
                f,
                "record {found} stands where record {record} belongs, in {file}"
            ),
            Wrong::Truncated { through } => write!(
                f,
                "records {record} to {through} were cut off at the end of {file}"
            ),
            Wrong::NotSigned => write!(
                f,
                "checkpoint {record}, in {file}, is not signed by this key for what is before it"
            ),
            Wrong::SegmentMissing => write!(f, "{file} is missing"),
            Wrong::HeaderAltered => write!(f, "the header of {file} was altered"),
            Wrong::HeaderElsewhere => write!(
                f,
                "{file} follows other records than those that stand before it"
            ),
            Wrong::HeadMissing => f.write_str("head is missing, which names the last record"),
            Wrong::HeadAltered => f.write_str("head was altered, or belongs to another log"),
            Wrong::HeadOld => write!(f, "head is an old one: more follows it than a crash leaves"),
            Wrong::DamageRecorded { found } => write!(
                f,
                "record {record}, in {file}, says that the log was found damaged: {found}"
            ),
            Wrong::Pruned { through } => write!(
                f,
                "record {record}, which was asked for, was pruned, as all through {through} were: \
                 the log can't tell whether it was there"
            ),
            Wrong::NotInLog => {
                write!(
                    f,
                    "record {record}, with the hash asked for, is not in the log"
                )
            }
        }
    }
}
