//! What was measured: figures, series, targets and verdicts.

use std::collections::BTreeMap;

use serde::Serialize;

use coffer_measure::comparison;
use coffer_measure::statistics::{self, Estimate};

/// What a figure tells. The order is that of the table's columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// Seconds.
    Seconds,
    /// CPU seconds of the server, user and system, for 10^9 bytes of bodies.
    ServerCpuSecondsPerGigabyte,
    /// The same, of server and client together.
    BothCpuSecondsPerGigabyte,
    /// CPU seconds of the server for 10^9 bytes, until it has done what it put off.
    LaterCpuSecondsPerGigabyte,
    /// Requests answered, or rows committed, in a second.
    PerSecond,
    /// CPU microseconds of the server for a request.
    ServerCpuMicrosecondsPerRequest,
    /// 10^6 bytes of bodies in a second.
    MegabytesPerSecond,
    /// 10^9 bytes in a second.
    GigabytesPerSecond,
    /// One of many, as a share of the median of all.
    Share,
    /// Resident memory, 10^6 bytes.
    ResidentMegabytes,
    /// Median latency of a request.
    P50Milliseconds,
    /// 99th percentile.
    P99Milliseconds,
    /// Share of the time that the load client's core was busy. Near 100, the client is what is
    /// measured.
    ClientBusyPercent,
}

impl Quantity {
    /// As it stands behind a value.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Seconds => "s",
            Self::ServerCpuSecondsPerGigabyte => "CPU s/GB",
            Self::BothCpuSecondsPerGigabyte => "CPU s/GB of both",
            Self::LaterCpuSecondsPerGigabyte => "CPU s/GB in the end",
            Self::PerSecond => "/s",
            Self::ServerCpuMicrosecondsPerRequest => "CPU µs each",
            Self::MegabytesPerSecond => "MB/s",
            Self::GigabytesPerSecond => "GB/s",
            Self::Share => "of the median",
            Self::ResidentMegabytes => "MB",
            Self::P50Milliseconds => "ms p50",
            Self::P99Milliseconds => "ms p99",
            Self::ClientBusyPercent => "% client",
        }
    }

    /// With as many digits as mean something.
    pub fn format(self, value: f64) -> String {
        match self {
            Self::PerSecond | Self::MegabytesPerSecond | Self::ClientBusyPercent => {
                format!("{value:.0}")
            }
            Self::ServerCpuSecondsPerGigabyte
            | Self::BothCpuSecondsPerGigabyte
            | Self::LaterCpuSecondsPerGigabyte => format!("{value:.3}"),
            Self::Share | Self::P50Milliseconds | Self::P99Milliseconds => format!("{value:.2}"),
            Self::Seconds => format!("{value:.3}"),
            _ => format!("{value:.1}"),
        }
    }
}

/// The figures of one contender in one round.
pub type Sample = BTreeMap<Quantity, f64>;

/// One contender's rounds.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Whose.
    pub contender: String,
    /// In order.
    pub samples: Vec<Sample>,
}

impl Series {
    /// One figure of every round.
    pub fn values(&self, quantity: Quantity) -> Vec<f64> {
        self.samples
            .iter()
            .filter_map(|sample| sample.get(&quantity).copied())
            .collect()
    }

    /// The quantities it has figures of.
    pub fn quantities(&self) -> Vec<Quantity> {
        self.samples
            .first()
            .map(|sample| sample.keys().copied().collect())
            .unwrap_or_default()
    }
}

/// What must be reached.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Target {
    /// Of the ratio to the peer.
    RatioAtMost(f64),
    /// Of the ratio to the peer.
    RatioAtLeast(f64),
    /// Of the upper end of the ratio's 95 % interval.
    IntervalAtMost(f64),
    /// Of the value itself.
    ValueAtMost(f64),
    /// Of the value itself.
    ValueAtLeast(f64),
}

impl Target {
    fn reached(self, work: &Work) -> Option<bool> {
        let value = || Estimate::range(&work.series.first()?.values(work.key));
        Some(match self {
            Self::RatioAtMost(most) => work.ratio()?.median <= most,
            Self::RatioAtLeast(least) => work.ratio()?.median >= least,
            Self::IntervalAtMost(most) => work.interval()?.high <= most,
            Self::ValueAtMost(most) => value()?.median <= most,
            Self::ValueAtLeast(least) => value()?.median >= least,
        })
    }
}

impl std::fmt::Display for Target {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::RatioAtMost(most) => write!(f, "≤ {most:.2} ×"),
            Self::RatioAtLeast(least) => write!(f, "≥ {least:.2} ×"),
            Self::IntervalAtMost(most) => write!(f, "interval ≤ {most:.2} ×"),
            Self::ValueAtMost(most) => write!(f, "≤ {most}"),
            Self::ValueAtLeast(least) => write!(f, "≥ {least}"),
        }
    }
}

/// One line of the table: what was done, by whom, and what it must come to.
#[derive(Debug, Serialize)]
pub struct Work {
    /// What was done.
    pub title: String,
    /// What the ratio and the target are about.
    pub key: Quantity,
    /// coffer first, then the peer, if there is one.
    pub series: Vec<Series>,
    /// None: for orientation.
    pub target: Option<Target>,
}

impl Work {
    /// Adds the rounds of the same work, done once more.
    pub fn append(&mut self, more: Work) {
        for (series, more) in self.series.iter_mut().zip(more.series) {
            series.samples.extend(more.samples);
        }
    }

    /// Ours to the peer's, round by round; None without a peer.
    pub fn ratios(&self) -> Option<Vec<f64>> {
        let [ours, peer] = self.series.as_slice() else {
            return None;
        };
        Some(statistics::ratios(
            &ours.values(self.key),
            &peer.values(self.key),
        ))
    }

    /// The median of [`Work::ratios`].
    pub fn ratio(&self) -> Option<Estimate> {
        Estimate::range(&self.ratios()?)
    }

    /// The median of [`Work::ratios`] with its interval, a bootstrap; None where there are too few
    /// rounds for one of 95 %.
    pub fn interval(&self) -> Option<Estimate> {
        let [ours, peer] = self.series.as_slice() else {
            return None;
        };
        let found = comparison::paired(&ours.values(self.key), &peer.values(self.key))?;
        (found.ratio.confidence >= statistics::CONFIDENCE).then_some(found.ratio)
    }

    /// Whether the target is reached; None: there is no target, or not all was measured.
    pub fn reached(&self) -> Option<bool> {
        self.target?.reached(self)
    }
}

/// All of a run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// RFC 3339, UTC.
    pub date: String,
    /// What it ran on, and how: lines of text.
    pub circumstances: Vec<String>,
    /// What was measured.
    pub works: Vec<Work>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(values: &[f64]) -> Series {
        let sample = |&value| Sample::from([(Quantity::ServerCpuSecondsPerGigabyte, value)]);
        Series {
            contender: String::new(),
            samples: values.iter().map(sample).collect(),
        }
    }

    #[test]
    fn verdicts_follow_the_median_of_ratios() {
        let mut work = Work {
            title: String::new(),
            key: Quantity::ServerCpuSecondsPerGigabyte,
            series: vec![series(&[0.7, 0.5, 0.9]), series(&[1.0, 1.0, 1.0])],
            target: Some(Target::RatioAtMost(0.72)),
        };
        let ratio = work.ratio().unwrap();
        assert_eq!((ratio.median, ratio.low, ratio.high), (0.7, 0.5, 0.9));
        assert_eq!(work.reached(), Some(true));
        work.target = Some(Target::RatioAtLeast(0.72));
        assert_eq!(work.reached(), Some(false));
        work.target = Some(Target::ValueAtMost(0.8));
        assert_eq!(work.reached(), Some(true));
        work.target = Some(Target::ValueAtLeast(0.8));
        assert_eq!(work.reached(), Some(false));
        // Three rounds are too few for an interval.
        work.target = Some(Target::IntervalAtMost(2.0));
        assert_eq!(work.reached(), None);
        // Without the peer there is nothing to compare with.
        work.series.pop();
        work.target = Some(Target::RatioAtMost(0.72));
        assert_eq!(work.reached(), None);
    }

    #[test]
    fn an_interval_is_judged_by_its_upper_end() {
        let ours: Vec<f64> = (0..9).map(|round| 0.96 + 0.01 * f64::from(round)).collect();
        let mut work = Work {
            title: String::new(),
            key: Quantity::ServerCpuSecondsPerGigabyte,
            series: vec![series(&ours), series(&[1.0; 9])],
            target: Some(Target::IntervalAtMost(1.05)),
        };
        let interval = work.interval().unwrap();
        assert!(interval.low < 1.0 && 1.0 < interval.high && interval.high <= 1.04);
        assert_eq!(work.reached(), Some(true));
        work.target = Some(Target::IntervalAtMost(1.0));
        assert_eq!(work.reached(), Some(false));
    }
}
