//! What the lab found: every sample, in a form that `--json` writes and `compare` reads.

use serde::{Deserialize, Serialize};

use crate::contender::Contender;
use crate::host::machine::{Conditions, Machine};

mod agreement;
mod latency;
mod observed;
mod unit;
pub mod versions;

pub mod check;

pub mod published;

pub mod shares;

pub mod sent;

#[cfg(test)]
pub(crate) mod planted;

use coffer_measure::comparison::{self, Comparison};
use coffer_measure::statistics::{Estimate, median};

pub use agreement::Agreement;
pub use latency::Latency;
pub use observed::{Observed, Tally, crossing};
pub use unit::{Compare, Unit};

/// The version of the JSON form.
pub const FORMAT: u32 = 1;

/// The commit that this lab was built from, with `-dirty` where files had changed; empty where that
/// is not known.
pub const COMMIT: &str = env!("COFFER_LAB_COMMIT");

/// All that one run found.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// [`FORMAT`].
    pub format: u32,
    /// The version of the lab.
    pub version: String,
    /// The commit that the lab was built from, as `git describe` tells it; empty in older records.
    #[serde(default)]
    pub commit: String,
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
    /// What a simulated processor counts for work whose cost is known; empty where time is
    /// measured.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calibration: Vec<Calibration>,
    /// What was measured.
    pub experiments: Vec<Experiment>,
}

/// What a simulated processor counted for work whose cost is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// The work.
    pub work: String,
    /// What it is counted by: `byte`, `turn`, `call`.
    pub unit: String,
    /// Instructions of one.
    pub instructions: f64,
    /// The fewest that a processor of its kind could do with.
    pub least: f64,
    /// The most that it should need.
    pub most: f64,
}

impl Calibration {
    /// Whether the count lies within its limits.
    pub fn is_plausible(&self) -> bool {
        (self.least..=self.most).contains(&self.instructions)
    }
}

impl Record {
    /// Of this machine, without figures so far.
    pub fn begin(date: String, command: String) -> Self {
        Self {
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            commit: COMMIT.to_owned(),
            date,
            command,
            machine: Machine::look(),
            before: Conditions::look(),
            after: Conditions::look(),
            agreements: Vec::new(),
            calibration: Vec::new(),
            experiments: Vec::new(),
        }
    }

    /// The experiment of an id.
    pub fn experiment(&self, id: &str) -> Option<&Experiment> {
        self.experiments.iter().find(|one| one.id == id)
    }

    /// One record of several that were made of the same machine: experiments in their order,
    /// conditions before the first and after the last. None, where there are no records.
    pub fn join(records: Vec<Self>) -> Option<Self> {
        records.into_iter().reduce(|mut whole, next| {
            whole.agreements.extend(next.agreements);
            if whole.calibration.is_empty() {
                whole.calibration = next.calibration;
            }
            whole.experiments.extend(next.experiments);
            whole.after = next.after;
            whole
        })
    }
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
    /// How long requests took, where each was timed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Latency>,
}

impl Sample {
    /// Of one thread, or of one machine, without counts.
    pub fn new(bytes: u64, wall_seconds: f64, cpu_seconds: f64) -> Self {
        Self {
            bytes,
            wall_seconds,
            cpu_seconds,
            counts: None,
            latency: None,
        }
    }
}

/// What a server did for a number of transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// How many transfers.
    pub transfers: u64,
    /// How often the kernel took it off its core, or put it back after it had waited; None where
    /// that was not counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_switches: Option<u64>,
}

impl Sample {
    /// Whether nothing ended within its time, of which there is no speed.
    pub fn ended_nothing(&self, unit: Unit) -> bool {
        unit == Unit::MegabytesPerSecond && self.bytes == 0
    }

    /// The figure, in the experiment's unit.
    pub fn value(&self, unit: Unit) -> f64 {
        let megabytes = self.bytes as f64 / 1e6;
        let requests = self.counts.map_or(1, |counts| counts.transfers) as f64;
        match unit {
            // Where instructions are counted, a nanosecond is one.
            Unit::MegabytesPerSecond | Unit::BytesPerThousandInstructions => {
                megabytes / self.wall_seconds
            }
            Unit::MegabytesPerCpuSecond => megabytes / self.cpu_seconds,
            Unit::HandshakesPerCpuSecond => requests / self.cpu_seconds,
            Unit::MicrosecondsPerRequest => self.wall_seconds * 1e6 / requests,
            Unit::InstructionsPerRequest => self.wall_seconds * 1e9 / requests,
        }
    }
}

/// The kernel tells CPU time of other processes, and of the whole machine, in ticks (proc(5)).
const TICK_SECONDS: f64 = 0.01;

/// A clock that counts nanoseconds comes as near as this to whole ticks by chance only.
const TICK_TOLERANCE: f64 = 1e-4;

/// Fewer ticks tell more about when the clock ticked than about the work.
pub const COARSE_SECONDS: f64 = 5.0 * TICK_SECONDS;

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
    /// In how many rounds nothing ended.
    pub fn unended(&self, unit: Unit) -> usize {
        let all = self.samples.iter();
        all.filter(|one| one.ended_nothing(unit)).count()
    }

    /// How many transfers, or else bytes, each round is of.
    pub fn length(&self) -> Option<f64> {
        let first = self.samples.first()?;
        Some(first.counts.map_or(first.bytes, |counts| counts.transfers) as f64)
    }

    /// The figures of all rounds. None at all where nothing ended in one of them: it has none, and
    /// the others alone would flatter.
    pub fn values(&self, unit: Unit) -> Vec<f64> {
        if self.unended(unit) > 0 {
            return Vec::new();
        }
        self.samples.iter().map(|one| one.value(unit)).collect()
    }

    /// The figure; None without samples, or where nothing ended in one.
    pub fn estimate(&self, unit: Unit) -> Option<Estimate> {
        Estimate::of(&self.values(unit))
    }

    /// How many times this figure is that of another contender, which took turns with it.
    pub fn compared(&self, other: &Self, unit: Unit) -> Option<Comparison> {
        unit.comparing(comparison::paired)(&self.values(unit), &other.values(unit))
    }

    /// How many times this figure is that of another point, which another machine gave, or another
    /// run: there are no rounds that belong together.
    pub fn compared_apart(&self, other: &Self, unit: Unit) -> Option<Comparison> {
        unit.comparing(comparison::apart)(&self.values(unit), &other.values(unit))
    }

    /// The median of context switches of a transfer; None where none were counted.
    pub fn switches_of_a_transfer(&self) -> Option<f64> {
        let counts = self.samples.iter().filter_map(|sample| sample.counts);
        let each = counts.filter_map(|one| {
            let switches = one.context_switches?;
            Some(switches as f64 / one.transfers as f64)
        });
        median(&each.collect::<Vec<_>>())
    }

    /// What requests stayed within, the medians of all rounds; None where they were not timed.
    pub fn latency(&self) -> Option<Latency> {
        let all: Vec<Latency> = self.samples.iter().filter_map(|one| one.latency).collect();
        let median = |of: fn(&Latency) -> f64| median(&all.iter().map(of).collect::<Vec<_>>());
        Some(Latency {
            half: median(|one| one.half)?,
            most: median(|one| one.most)?,
            nearly_all: median(|one| one.nearly_all)?,
        })
    }

    /// Whether its CPU time was counted in ticks, and in too few of them to say more than that it
    /// is less than [`COARSE_SECONDS`].
    pub fn cpu_is_coarse(&self) -> bool {
        self.cpu_ticks_are_within(COARSE_SECONDS)
    }

    /// Whether its CPU time was counted in ticks, and in fewer of them than these seconds have.
    pub fn cpu_ticks_are_within(&self, seconds: f64) -> bool {
        let in_ticks = self.samples.iter().all(|sample| {
            let ticks = sample.cpu_seconds / TICK_SECONDS;
            (ticks - ticks.round()).abs() < TICK_TOLERANCE
        });
        let spent: Vec<f64> = self.samples.iter().map(|one| one.cpu_seconds).collect();
        let least = seconds - TICK_TOLERANCE * TICK_SECONDS;
        in_ticks && median(&spent).is_some_and(|spent| spent < least)
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
    /// Of what it does: see [`versions`].
    #[serde(default = "versions::first")]
    pub version: u32,
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
    /// Without contenders, of a quiet machine, and of the version that this lab measures.
    pub fn new(id: impl Into<String>, axis: Axis, unit: Unit) -> Self {
        let id = id.into();
        Self {
            version: versions::version(&id),
            title: id.clone(),
            id,
            axis,
            unit,
            how: String::new(),
            series: Vec::new(),
            noise: Noise::default(),
        }
    }

    /// Whether this lab does something else under that id.
    pub fn is_outdated(&self) -> bool {
        self.version < versions::version(&self.id)
    }

    /// The bytes of a sample at a point, where the experiment goes on until so many are through,
    /// and not for so long: of another amount its figures are of other work.
    pub fn amount(&self, point: &Point) -> Option<u64> {
        let whole = ["file/", "net/"]
            .iter()
            .any(|family| self.id.starts_with(family));
        (whole || self.id == "server/upload/file").then(|| Some(point.samples.first()?.bytes))?
    }

    /// What a contender did in it.
    pub fn of(&self, name: &str) -> Option<&Series> {
        self.series.iter().find(|one| one.contender.name == name)
    }

    /// All places of the axis, in order.
    pub fn places(&self) -> Vec<u64> {
        let points = self.series.iter().flat_map(|series| &series.points);
        let mut places: Vec<u64> = points.map(|point| point.x).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
