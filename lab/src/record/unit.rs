//! What figures count.

use coffer_measure::comparison::{self, Comparison};
use serde::{Deserialize, Serialize};

use crate::record::Sample;

/// Compares the figures of two contenders.
pub type Compare = fn(&[f64], &[f64]) -> Option<Comparison>;

/// What a figure counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Unit {
    /// 1,000,000 bytes a second of wall time.
    #[serde(rename = "MB/s")]
    MegabytesPerSecond,
    /// 1,000,000 bytes a second of CPU time, where one thread works: what others do on the machine
    /// meanwhile does not count.
    #[serde(rename = "MB per CPU second")]
    MegabytesPerCpuSecond,
    /// Wall time of a request; the less the better.
    #[serde(rename = "µs a request")]
    MicrosecondsPerRequest,
    /// Handshakes in a second of the server's CPU time.
    #[serde(rename = "handshakes a CPU second")]
    HandshakesPerCpuSecond,
    /// Bytes for each thousand instructions of a simulated processor that counts them.
    #[serde(rename = "bytes per 1,000 instructions")]
    BytesPerThousandInstructions,
    /// Instructions of both ends for a request; the less the better.
    #[serde(rename = "instructions a request")]
    InstructionsPerRequest,
}

impl Unit {
    /// As it stands at an axis.
    pub fn name(self) -> &'static str {
        match self {
            Self::MegabytesPerSecond => "MB/s",
            Self::MegabytesPerCpuSecond => "MB per CPU second",
            Self::MicrosecondsPerRequest => "µs a request",
            Self::HandshakesPerCpuSecond => "handshakes a CPU second",
            Self::BytesPerThousandInstructions => "bytes per 1,000 instructions",
            Self::InstructionsPerRequest => "instructions a request",
        }
    }

    /// As it stands above a narrow column.
    pub fn short(self) -> &'static str {
        match self {
            Self::MegabytesPerCpuSecond => "MB/CPU s",
            Self::MicrosecondsPerRequest => "µs",
            Self::HandshakesPerCpuSecond => "1/CPU s",
            Self::BytesPerThousandInstructions => "B/1,000 instr.",
            Self::InstructionsPerRequest => "instr.",
            Self::MegabytesPerSecond => self.name(),
        }
    }

    /// What the processor had to do for a byte, or for a request, in the same clock.
    pub fn cost(self) -> &'static str {
        match self {
            Self::MicrosecondsPerRequest => "CPU µs/request",
            Self::HandshakesPerCpuSecond => "CPU µs/handshake",
            Self::InstructionsPerRequest => "instr./request",
            Self::BytesPerThousandInstructions => "instr./B",
            _ => "CPU s/GB",
        }
    }

    /// How much of what costs are told of was done: gigabytes, or millions of requests or
    /// handshakes. Where instructions are counted, a nanosecond is one.
    pub fn amount(self, sample: &Sample) -> f64 {
        let requests = sample.counts.map_or(1, |counts| counts.transfers) as f64;
        match self {
            Self::MicrosecondsPerRequest | Self::HandshakesPerCpuSecond => requests / 1e6,
            Self::InstructionsPerRequest => requests / 1e9,
            _ => sample.bytes as f64 / 1e9,
        }
    }

    /// Whether the clock is one of instructions, and not of time.
    pub fn counts_instructions(self) -> bool {
        matches!(
            self,
            Self::BytesPerThousandInstructions | Self::InstructionsPerRequest
        )
    }

    /// How its figures are compared: what is counted is the same each time.
    pub fn comparing(self, measured: Compare) -> Compare {
        if self.counts_instructions() {
            comparison::exact
        } else {
            measured
        }
    }

    /// Whether it is what others publish as MB/s.
    pub fn is_megabytes(self) -> bool {
        matches!(self, Self::MegabytesPerSecond | Self::MegabytesPerCpuSecond)
    }

    /// Whether the smaller figure is the better one.
    pub fn less_is_better(self) -> bool {
        matches!(
            self,
            Self::MicrosecondsPerRequest | Self::InstructionsPerRequest
        )
    }
}
