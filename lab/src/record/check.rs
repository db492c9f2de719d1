//! Whether a record can have been measured. What others send may hold anything: nothing can be
//! drawn of a speed without time, tables go to terminals, and a million samples take hours.

use serde_json::Value;

use crate::record::{Axis, Experiment, Point, Record, Sample, Unit, versions};

/// The most samples of a point: as many rounds as the lab can be asked for.
const SAMPLES_MAX: usize = 1000;

/// The most contenders of an experiment, places of its axis, and experiments: several times those
/// of the largest record.
const SERIES_MAX: usize = 100;
const PLACES_MAX: usize = 100;
const EXPERIMENTS_MAX: usize = 200;

/// The most points and samples of a record: ten times those of the largest. Each is drawn.
const POINTS_MAX: usize = 10_000;
const SAMPLES_MAX_IN_ALL: usize = 100_000;

/// What is wrong with a record; None when nothing is.
pub fn fault(record: &Record) -> Option<String> {
    let all = &record.experiments;
    if all.len() > EXPERIMENTS_MAX {
        return Some(format!("has more than {EXPERIMENTS_MAX} experiments"));
    }
    let series = all.iter().flat_map(|one| &one.series);
    let points: Vec<&Point> = series.flat_map(|series| &series.points).collect();
    let samples: usize = points.iter().map(|point| point.samples.len()).sum();
    if points.len() > POINTS_MAX || samples > SAMPLES_MAX_IN_ALL {
        return Some("has more figures than can be drawn".to_owned());
    }
    let calibrated = record.calibration.iter();
    if !calibrated
        .flat_map(|one| [one.instructions, one.least, one.most])
        .all(is_amount)
    {
        return Some("has counts that can't be".to_owned());
    }
    all.iter().find_map(|one| {
        let points = || one.series.iter().flat_map(|series| &series.points);
        if one.series.len() > SERIES_MAX || points().any(|point| point.samples.len() > SAMPLES_MAX)
        {
            return Some(format!("has more figures than can be, of {}", one.id));
        }
        if one
            .series
            .iter()
            .any(|series| series.points.len() > PLACES_MAX)
        {
            return Some(format!("has more places than can be, of {}", one.id));
        }
        // They stand in lines of tables, which a line break would forge.
        let names = one.series.iter().map(|series| &series.contender.name);
        if names
            .chain([&one.id, &one.title])
            .any(|name| name.contains(char::is_control))
        {
            return Some("has names of several lines".to_owned());
        }
        if one.version > versions::version(&one.id) {
            return Some(format!("was measured by a newer lab: {}", one.id));
        }
        let noise = [one.noise.others_share, one.noise.stolen_share];
        let possible = noise.into_iter().all(is_amount) && points().all(|point| fits(one, point));
        (!possible).then(|| format!("has figures that can't be, of {}", one.id))
    })
}

/// Whether any text, anywhere, holds signs that steer a terminal or turn the direction of writing.
pub fn steers(value: &Value) -> bool {
    let bad = |text: &str| {
        text.chars().any(|sign| {
            let turns = matches!(sign, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
            // What a failed program said may be of several lines.
            turns || sign.is_control() && !"\n\t".contains(sign)
        })
    };
    match value {
        Value::String(text) => bad(text),
        Value::Array(all) => all.iter().any(steers),
        Value::Object(all) => all.iter().any(|(name, one)| bad(name) || steers(one)),
        _ => false,
    }
}

/// More than anything that is measured: sums and ratios of such stay numbers.
const AMOUNT_MAX: f64 = 1e18;

fn is_amount(value: f64) -> bool {
    (0.0..=AMOUNT_MAX).contains(&value)
}

fn fits(experiment: &Experiment, point: &Point) -> bool {
    let has_place = (experiment.axis == Axis::Single) == (point.x == 0);
    let observed = point.observed.as_ref();
    has_place
        && observed.is_none_or(|one| one.transfers > 0 && one.bytes > 0)
        && point
            .samples
            .iter()
            .all(|one| is_possible(one, experiment.unit))
}

fn is_possible(sample: &Sample, unit: Unit) -> bool {
    let positive = |value: f64| is_amount(value) && value > 0.0;
    let took = sample
        .latency
        .map_or([0.0; 3], |one| [one.half, one.most, one.nearly_all]);
    positive(sample.wall_seconds)
        && is_amount(sample.cpu_seconds)
        && positive(sample.value(unit))
        && sample.counts.is_none_or(|counts| counts.transfers > 0)
        && took.into_iter().all(|seconds| is_amount(seconds * 1e6))
}
