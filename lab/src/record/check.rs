//! Whether a record can have been measured. What others send may hold anything: nothing can be
//! drawn of a speed without time, tables go to terminals, and a million samples take hours.

use std::collections::HashSet;
use std::hash::Hash;

use serde_json::Value;

use crate::record::{Axis, Experiment, Point, Record, Sample, Series, versions};

/// The most bytes of a record's file: ten times those of the largest.
pub const BYTES_MAX: u64 = 16 << 20;

/// The most samples of a point: as many rounds as the lab can be asked for.
const SAMPLES_MAX: usize = 1000;

/// The most contenders of an experiment, places of its axis, and experiments: twice those of the
/// largest record, or more.
const SERIES_MAX: usize = 100;
const PLACES_MAX: usize = 100;
const EXPERIMENTS_MAX: usize = 100;

/// The most points and samples of a record: ten times those of the largest. Each is drawn.
const POINTS_MAX: usize = 10_000;
const SAMPLES_MAX_IN_ALL: usize = 100_000;

/// The most letters of a name, which pads the lines of a table, and of any other text: twice those
/// of the longest.
const NAME_MAX: usize = 160;
const TEXT_MAX: usize = 2000;

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
    let calibrated = calibrated.flat_map(|one| [one.instructions, one.least, one.most]);
    let conditions = [&record.before, &record.after].into_iter();
    let conditions = conditions.flat_map(|one| one.load.iter().chain(&one.frequencies_mhz));
    if !calibrated.chain(conditions.copied()).all(is_amount) {
        return Some("has counts that can't be".to_owned());
    }
    // Who reads by a name reads the first.
    if !are_different(all.iter().map(|one| &one.id)) {
        return Some("has an experiment twice".to_owned());
    }
    all.iter().find_map(fault_of)
}

fn fault_of(one: &Experiment) -> Option<String> {
    let points = || one.series.iter().flat_map(|series| &series.points);
    let names = || one.series.iter().map(|series| &series.contender.name);
    let long = |name: &String| name.chars().count() > NAME_MAX;
    if names().chain([&one.id, &one.title]).any(long) {
        return Some(format!("has names of more than {NAME_MAX} letters"));
    }
    if one.version > versions::version(&one.id) {
        return Some(format!("was measured by a newer lab: {}", one.id));
    }
    let places = |most: usize| one.series.iter().any(|series| series.points.len() > most);
    let noise = [one.noise.others_share, one.noise.stolen_share];
    let once = one.series.iter().all(|series| {
        let places = series.points.iter().map(|point| point.x);
        are_different(places)
    });
    let what = if one.series.len() > SERIES_MAX
        || points().any(|point| point.samples.len() > SAMPLES_MAX)
    {
        "more figures than can be"
    } else if places(PLACES_MAX) {
        "more places than can be"
    } else if !once || !are_different(names()) {
        "a contender twice at a place"
    } else if !noise.into_iter().all(is_amount) {
        "shares of the machine that can't be"
    } else {
        return one.series.iter().find_map(|series| fault_at(one, series));
    };
    Some(format!("has {what}, of {}", one.id))
}

fn are_different<T: Eq + Hash>(mut all: impl Iterator<Item = T>) -> bool {
    let mut known = HashSet::new();
    all.all(|one| known.insert(one))
}

/// What of all its texts, names of fields among them, no record has: signs that steer a terminal,
/// that turn the direction of writing, or that are not seen. A line break would forge lines of
/// tables. None when there is nothing.
pub fn fault_of_texts(value: &Value) -> Option<String> {
    let fault = |text: &str| {
        if text.chars().any(is_hidden) {
            Some("holds signs that no record has".to_owned())
        } else if text.len() > TEXT_MAX && text.chars().count() > TEXT_MAX {
            Some(format!("holds a text of more than {TEXT_MAX} letters"))
        } else {
            None
        }
    };
    match value {
        Value::String(text) => fault(text),
        Value::Array(all) => all.iter().find_map(fault_of_texts),
        Value::Object(all) => all
            .iter()
            .find_map(|(name, one)| fault(name).or_else(|| fault_of_texts(one))),
        _ => None,
    }
}

/// A text as a record may hold it, whatever it was made of: a name of a file may hold anything.
pub fn as_text(found: &str) -> String {
    let signs = found.chars().take(TEXT_MAX);
    signs
        .map(|sign| {
            if is_hidden(sign) {
                char::REPLACEMENT_CHARACTER
            } else {
                sign
            }
        })
        .collect()
}

fn is_hidden(sign: char) -> bool {
    sign.is_control()
        || matches!(
            sign,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
        )
}

/// More than anything that is measured: sums and ratios of such stay numbers.
const AMOUNT_MAX: f64 = 1e18;

fn is_amount(value: f64) -> bool {
    (0.0..=AMOUNT_MAX).contains(&value)
}

/// The first figure of a contender that can't be, with all that finds it in the file.
fn fault_at(experiment: &Experiment, series: &Series) -> Option<String> {
    series.points.iter().find_map(|point| {
        let what = strange(experiment, point)?;
        let (id, name, x) = (&experiment.id, &series.contender.name, point.x);
        Some(format!(
            "has figures that can't be, of {id}: {name}, at {x}: {what}"
        ))
    })
}

fn strange(experiment: &Experiment, point: &Point) -> Option<String> {
    if (experiment.axis == Axis::Single) != (point.x == 0) {
        return Some("no place of this axis".to_owned());
    }
    let observed = point.observed.as_ref();
    if observed.is_some_and(|one| one.transfers == 0 || one.bytes == 0) {
        return Some("system calls of no transfer".to_owned());
    }
    let mut samples = point.samples.iter();
    let index = samples.position(|one| !is_possible(one, experiment))?;
    let one = &point.samples[index];
    let (bytes, wall, cpu) = (one.bytes, one.wall_seconds, one.cpu_seconds);
    let number = index + 1;
    Some(format!(
        "sample {number}, of {bytes} B in {wall:?} s, {cpu:?} s of CPU time"
    ))
}

/// Of what clients ask for, nothing may have ended within its time.
fn is_possible(sample: &Sample, experiment: &Experiment) -> bool {
    let unit = experiment.unit;
    let unended = experiment.axis == Axis::Clients && sample.ended_nothing(unit);
    let positive = |value: f64| is_amount(value) && value > 0.0;
    let took = sample
        .latency
        .map_or([0.0; 3], |one| [one.half, one.most, one.nearly_all]);
    positive(sample.wall_seconds)
        && is_amount(sample.cpu_seconds)
        && (unended || positive(sample.value(unit)))
        && sample.counts.is_none_or(|counts| counts.transfers > 0)
        && took.into_iter().all(|seconds| is_amount(seconds * 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::Unit;
    use crate::record::planted::{self, experiment, point};

    fn record() -> Record {
        let points = || [1, 2].map(|x| point(x, &[1.0])).into();
        let series = |name| planted::series(name, Placement::User, points());
        let both = vec![series("one"), series("two")];
        let mut one = experiment("net/x", Unit::MegabytesPerSecond, both);
        one.axis = Axis::Threads;
        planted::record(vec![one])
    }

    #[test]
    fn what_stands_twice_or_is_endless_is_no_record() {
        assert_eq!(fault(&record()), None);
        let spoilt = |spoil: fn(&mut Record)| {
            let mut record = record();
            spoil(&mut record);
            fault(&record).unwrap()
        };
        let twice = spoilt(|record| record.experiments.extend(record.experiments.clone()));
        assert!(twice.contains("an experiment twice"), "{twice}");
        let name = spoilt(|record| {
            record.experiments[0].series[1].contender.name = "one".into();
        });
        assert!(name.contains("a contender twice"), "{name}");
        let place = spoilt(|record| record.experiments[0].series[0].points[1].x = 1);
        assert!(place.contains("a contender twice at a place"), "{place}");
        let long = spoilt(|record| record.experiments[0].title = "W".repeat(161));
        assert!(long.contains("more than 160 letters"), "{long}");
        let load = spoilt(|record| record.after.load = vec![1e308]);
        assert!(load.contains("counts that can't be"), "{load}");
    }

    /// A name and a number find it in a file of thousands of lines.
    #[test]
    fn figures_that_can_not_be_are_named() {
        let told = |spoil: fn(&mut Sample)| {
            let mut record = record();
            let samples = &mut record.experiments[0].series[1].points[1].samples;
            samples.extend(samples.clone());
            spoil(&mut samples[1]);
            fault(&record).unwrap()
        };
        let nothing = told(|sample| sample.bytes = 0);
        assert_eq!(
            nothing,
            "has figures that can't be, of net/x: two, at 2: sample 2, of 0 B in 1.0 s, 1.0 s of \
             CPU time"
        );
        let endless = told(|sample| sample.wall_seconds = 1e300);
        assert!(endless.contains("two, at 2: sample 2"), "{endless}");
        assert!(endless.len() < 200, "{endless}");
    }

    /// Clients that are not answered in time are no fault of the record.
    #[test]
    fn nothing_ended_is_a_record_where_clients_ask() {
        let mut record = record();
        let one = &mut record.experiments[0];
        one.axis = Axis::Clients;
        one.series[1].points[1].samples[0].bytes = 0;
        assert_eq!(fault(&record), None);
        record.experiments[0].series[1].points[1].samples[0].wall_seconds = 0.0;
        assert!(fault(&record).unwrap().contains("sample 1"));
    }

    #[test]
    fn what_the_lab_itself_writes_is_not_refused() {
        let mut record = record();
        let long = "é".repeat(TEXT_MAX + 1);
        for command in ["file --folder a\nb", "raw --json \u{202e}.json", &long] {
            record.command = as_text(command);
            assert_eq!(
                fault_of_texts(&serde_json::to_value(&record).unwrap()),
                None
            );
        }
        assert_eq!(as_text("all --folder a\nb"), "all --folder a\u{fffd}b");
    }

    /// Whatever text it is: all of them stand in tables, in lists or on pages.
    #[test]
    fn no_text_forges_a_line_or_hides_a_sign() {
        let mut value = serde_json::to_value(record()).unwrap();
        assert_eq!(fault_of_texts(&value), None);
        for field in ["processor", "kernel", "kernel_build", "system"] {
            for sign in [
                '\n', '\t', '\r', '\u{1b}', '\u{2028}', '\u{202e}', '\u{200b}',
            ] {
                let whole = value["machine"][field].take();
                value["machine"][field] = format!("Linux{sign}A is 9.00 times B").into();
                assert!(fault_of_texts(&value).unwrap().contains("signs"), "{field}");
                value["machine"][field] = whole;
            }
        }
        value["date"] = "2026\n".into();
        assert!(fault_of_texts(&value).is_some());
        value["date"] = "é".repeat(TEXT_MAX).into();
        assert_eq!(fault_of_texts(&value), None);
        value["date"] = "é".repeat(TEXT_MAX + 1).into();
        assert!(fault_of_texts(&value).unwrap().contains("2000 letters"));
    }
}
