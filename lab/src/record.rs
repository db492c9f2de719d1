//! What the lab found: every sample, in a form that `--json` writes and `compare` reads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::host::machine::{Conditions, Machine};

pub mod published;

pub mod shares;

use coffer_measure::statistics::Estimate;

/// The version of the JSON form.
pub const FORMAT: u32 = 1;

/// All that one run found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the lab.
    pub version: String,
    /// When it began, RFC 3339.
    pub date: String,
    /// The command line, without the program.
    pub command: String,
    /// Where it ran.
    pub machine: Machine,
    /// Load and frequency before.
    pub before: Conditions,
    /// Load and frequency after.
    pub after: Conditions,
    /// What was compared byte for byte before anything was timed.
    pub agreements: Vec<Agreement>,
    /// What was measured.
    pub experiments: Vec<Experiment>,
}

impl Record {
    /// One record of several that were made of the same machine: experiments in their order,
    /// conditions before the first and after the last. None, where there are no records.
    pub fn join(records: Vec<Self>) -> Option<Self> {
        records.into_iter().reduce(|mut whole, next| {
            whole.agreements.extend(next.agreements);
            whole.experiments.extend(next.experiments);
            whole.after = next.after;
            whole
        })
    }
}

/// Contenders that were found to give the same bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agreement {
    /// The algorithm.
    pub algorithm: String,
    /// Who was compared.
    pub contenders: Vec<String>,
    /// How many published vectors each was held against.
    pub vector_count: usize,
    /// How many random messages were compared between them, in each direction.
    pub random_count: usize,
}

/// What the horizontal axis counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Axis {
    /// Bytes of one call.
    BlockBytes,
    /// Threads at work.
    Threads,
    /// Clients at work.
    Clients,
    /// Bytes of a file.
    FileBytes,
    /// Nothing: one figure a contender.
    Single,
}

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// 1,000,000 bytes a second of wall time.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// Bytes for each thousand instructions of a simulated processor that counts them.
    #[serde(rename = "bytes per 1,000 instructions")]
    BytesPerThousandInstructions,
}

impl Unit {
    /// As it stands at an axis.
    pub fn name(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::BytesPerThousandInstructions => "bytes per 1,000 instructions",
        }
    }

    /// As it stands above a narrow column.
    pub fn short(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::BytesPerThousandInstructions => "B/1,000 instr.",
        }
    }

    /// What the processor had to do, in the same clock.
    pub fn cost(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "CPU s/GB",
            Self::BytesPerThousandInstructions => "instr./B",
        }
    }
}

/// One measurement.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes that were moved or encrypted.
    pub bytes: u64,
    /// Wall time. With several threads: what all bytes at the sum of their rates take.
    pub wall_seconds: f64,
    /// CPU time, user and system, of what was measured.
    pub cpu_seconds: f64,
    /// What else was counted, where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<Counts>,
}

/// What a server did for a number of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// How many transfers.
    pub transfers: u64,
    /// How often the kernel took it off its core, or put it back after it had waited.
    pub context_switches: u64,
}

/// The system calls of a server, observed from outside in a run that is not timed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Observed {
    /// How many transfers.
    pub transfers: u64,
    /// Bytes that were delivered by all of them.
    pub bytes: u64,
    /// By the names of the calls.
    pub calls: BTreeMap<String, Tally>,
}

/// What calls of one name did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// How often.
    pub count: u64,
    /// Bytes that they said they moved, where they move bytes; else 0.
    pub bytes: u64,
}

impl Observed {
    /// System calls of one transfer.
    pub fn calls_of_a_transfer(&self) -> f64 {
        let all: u64 = self.calls.values().map(|tally| tally.count).sum();
        all as f64 / self.transfers as f64
    }

    /// Bytes that the kernel copied into the program or out of it, for each byte delivered.
    pub fn copied(&self) -> f64 {
        self.share(crossing::COPYING)
    }

    /// Bytes that calls moved from one of the kernel's places to another, for each byte delivered.
    pub fn moved_within(&self) -> f64 {
        self.share(crossing::WITHIN)
    }

    fn share(&self, names: &[&str]) -> f64 {
        let tallies = names.iter().filter_map(|name| self.calls.get(*name));
        let bytes: u64 = tallies.map(|tally| tally.bytes).sum();
        bytes as f64 / self.bytes as f64
    }
}

/// System calls that move bytes, by what that means (their manual pages, section 2).
pub mod crossing {
    /// The kernel copies between its memory and the program's.
    pub const COPYING: &[&str] = &[
        "read", "pread64", "readv", "preadv", "preadv2", "recvfrom", "recvmsg", "write",
        "pwrite64", "writev", "pwritev", "pwritev2", "sendto", "sendmsg",
    ];

    /// The program gives an order, and never sees the bytes.
    pub const WITHIN: &[&str] = &["sendfile", "splice", "tee", "copy_file_range"];
}

impl Sample {
    /// The figure, in the experiment's unit.
    pub fn value(&self, unit: Unit) -> f64 {
        let per_second = self.bytes as f64 / self.wall_seconds;
        match unit {
            Unit::MegabytesPerSecond => per_second / 1e6,
            // There a nanosecond is an instruction.
            Unit::BytesPerThousandInstructions => per_second / 1e6,
        }
    }

    /// CPU seconds for each 1,000,000,000 bytes; where instructions are counted: instructions for
    /// each byte, which is the same number.
    pub fn cpu_seconds_per_gigabyte(&self) -> f64 {
        self.cpu_seconds / (self.bytes as f64 / 1e9)
    }
}

/// The samples of one contender at one place of the axis, one a round.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// Where on the axis; 0 when there is none.
    pub x: u64,
    /// All samples, in the order in which they were taken.
    pub samples: Vec<Sample>,
    /// Its system calls, where they were observed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
}

impl Point {
    /// The figure; None without samples.
    pub fn estimate(&self, unit: Unit) -> Option<Estimate> {
        Estimate::of(
            &self
                .samples
                .iter()
                .map(|s| s.value(unit))
                .collect::<Vec<_>>(),
        )
    }

    /// The median of context switches of a transfer; None where none were counted.
    pub fn switches_of_a_transfer(&self) -> Option<f64> {
        let counts = self.samples.iter().filter_map(|sample| sample.counts);
        let each = counts.map(|one| one.context_switches as f64 / one.transfers as f64);
        Some(Estimate::of(&each.collect::<Vec<_>>())?.median)
    }

    /// CPU seconds per gigabyte; None without samples.
    pub fn cpu(&self) -> Option<Estimate> {
        let costs = self.samples.iter().map(Sample::cpu_seconds_per_gigabyte);
        Estimate::of(&costs.collect::<Vec<_>>())
    }
}

/// What one contender did in an experiment.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Who. Also those that can't run, without points.
    pub contender: Contender,
    /// Its figures.
    pub points: Vec<Point>,
}

impl Series {
    /// The point at `x`.
    pub fn at(&self, x: u64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x)
    }
}

/// How calm the machine was during an experiment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Noise {
    /// CPU time that others used, as a share of all cores: 0.5 is half of the machine.
    pub others_share: f64,
    /// CPU time that the host took away, as a share of all cores.
    pub stolen_share: f64,
}

/// One plot: contenders against each other.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// A name that stays: `raw/aes-256-gcm/encrypt`.
    pub id: String,
    /// For people.
    pub title: String,
    /// What the horizontal axis counts.
    pub axis: Axis,
    /// What the figures count.
    pub unit: Unit,
    /// How it was measured, in a sentence or two.
    pub how: String,
    /// The contenders.
    pub series: Vec<Series>,
    /// How calm the machine was.
    pub noise: Noise,
}

impl Experiment {
    /// All places of the axis, in order.
    pub fn places(&self) -> Vec<u64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut places: Vec<u64> = points.map(|point| point.x).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
