//! Records of figures that are planted, for tests.

use crate::contender::{Contender, Placement};
use crate::record::{Axis, Experiment, Point, Record, Sample, Series, Unit};

/// Rounds of these speeds, in MB/s, or in bytes per 1,000 instructions.
pub(crate) fn point(x: u64, speeds: &[f64]) -> Point {
    let sample = |speed: &f64| Sample::new((speed * 1e6) as u64, 1.0, 1.0);
    Point {
        x,
        samples: speeds.iter().map(sample).collect(),
        observed: None,
    }
}

pub(crate) fn series(name: &str, placement: Placement, points: Vec<Point>) -> Series {
    Series {
        contender: Contender::new(name, placement, ""),
        points,
    }
}

pub(crate) fn experiment(id: &str, unit: Unit, series: Vec<Series>) -> Experiment {
    Experiment {
        series,
        ..Experiment::new(id, Axis::Single, unit)
    }
}

pub(crate) fn record(experiments: Vec<Experiment>) -> Record {
    Record {
        experiments,
        ..Record::begin(String::new(), String::new())
    }
}
