//! Two records side by side: two machines, two kernels, or before and after.

use std::fs;
use std::path::Path;

use crate::error::{Doing, LabError, Result};
use crate::record::{Experiment, FORMAT, Record};
use crate::stats::ratio;
use crate::table::{figure, place};

/// Reads a record that `--json` wrote.
pub fn read(path: &Path) -> Result<Record> {
    let text = fs::read_to_string(path).doing(|| format!("reading {}", path.display()))?;
    let broken = |what: String| LabError::Data {
        file: path.display().to_string(),
        what,
    };
    let record: Record = serde_json::from_str(&text)
        .map_err(|error| broken(format!("is no record of the lab: {error}")))?;
    if record.format == FORMAT {
        Ok(record)
    } else {
        Err(broken(format!(
            "has format {}; this lab reads {FORMAT}",
            record.format
        )))
    }
}

/// Says for each figure that both have how many times the first is the second.
pub fn compare(first: &Record, second: &Record) -> String {
    let mut text = format!(
        "A  {} · {}\nB  {} · {}\n",
        first.date,
        first.machine.line(),
        second.date,
        second.machine.line()
    );
    for ours in &first.experiments {
        match second
            .experiments
            .iter()
            .find(|theirs| theirs.id == ours.id)
        {
            Some(theirs) if theirs.unit == ours.unit => text += &one(ours, theirs),
            Some(theirs) => {
                let (a, b) = (ours.unit.name(), theirs.unit.name());
                text += &format!("\n{}: A counts {a}, B {b}: no comparison\n", ours.title);
            }
            None => text += &format!("\n{}: only in A\n", ours.title),
        }
    }
    for theirs in &second.experiments {
        if !first.experiments.iter().any(|ours| ours.id == theirs.id) {
            text += &format!("\n{}: only in B\n", theirs.title);
        }
    }
    text
}

fn one(ours: &Experiment, theirs: &Experiment) -> String {
    let mut text = format!("\n{} · {}\n", ours.title, ours.unit.name());
    for series in &ours.series {
        let name = &series.contender.name;
        let other = theirs
            .series
            .iter()
            .find(|other| other.contender.name == *name);
        let Some(other) = other else {
            text += &format!("  {name}: only in A\n");
            continue;
        };
        match (
            series.contender.availability.runs(),
            other.contender.availability.runs(),
        ) {
            (true, true) => {}
            (false, false) => text += &format!("  {name}: can't run on either\n"),
            (true, false) => text += &format!("  {name}: can't run on B\n"),
            (false, true) => text += &format!("  {name}: can't run on A\n"),
        }
        for point in &series.points {
            let there = other
                .at(point.x)
                .and_then(|point| point.estimate(theirs.unit));
            let (Some(a), Some(b)) = (point.estimate(ours.unit), there) else {
                continue;
            };
            let times = ratio(&a, &b);
            let verdict = if a.overlaps(&b) {
                "no difference".to_owned()
            } else {
                format!(
                    "A is {} times B ({}–{})",
                    figure(times.median),
                    figure(times.low),
                    figure(times.high)
                )
            };
            let at = place(ours.axis, point.x);
            let (a, b) = (figure(a.median), figure(b.median));
            text += &format!("  {name:<34} {at:>8}  {a:>8} {b:>8}  {verdict}\n");
        }
    }
    for other in &theirs.series {
        if !ours
            .series
            .iter()
            .any(|series| series.contender.name == other.contender.name)
        {
            text += &format!("  {}: only in B\n", other.contender.name);
        }
    }
    text
}
