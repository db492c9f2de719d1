//! Tables for the terminal.

mod figures;

mod counterparts;
mod warnings;

use std::io::{ErrorKind, Write, stdout};

use crate::contender::{Availability, Contender};
use crate::error::{Doing, Result};
use crate::record::published::{Published, Reached, of_experiment};
use crate::record::shares::{self, Share};
use crate::record::{Axis, Experiment, Point, Record, Series};

pub use counterparts::told as counterparts;
pub use figures::{
    FEW_REQUESTS, NOT_TOLD, cost, figure, interval, none_ended, place, waits, within,
};
pub use warnings::{is_disturbed, scatters, unended, warnings};

/// Prints to standard output. Who reads it may stop before its end, as `head` does.
pub fn print(text: &str) -> Result<()> {
    let printed = stdout().write_all(text.as_bytes());
    match printed.and_then(|()| stdout().flush()) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        printed => printed.doing(|| "writing to standard output".into()),
    }
}

/// The whole record.
pub fn terminal(record: &Record, published: &[Published]) -> String {
    let mut text = format!("{}\n", record.machine.line());
    let loads: Vec<String> = [&record.before, &record.after]
        .iter()
        .map(|c| {
            c.load
                .first()
                .map_or("?".into(), |load| format!("{load:.2}"))
        })
        .collect();
    text += &format!("load {} before, {} after\n", loads[0], loads[1]);
    let counted = |one: &Experiment| one.unit.counts_instructions();
    if record.experiments.iter().any(counted) {
        text += "Instructions, not time: bytes per 1,000 instructions of a simulated processor\n";
    }
    for one in &record.calibration {
        let (counted, unit) = (figure(one.instructions), &one.unit);
        let strange = if one.is_plausible() {
            ""
        } else {
            ": NOT what it should be"
        };
        text += &format!("{}: {counted} instructions a {unit}{strange}\n", one.work);
    }
    for agreement in &record.agreements {
        text += &format!("{}\n", agreement.line());
    }
    for experiment in &record.experiments {
        text += &format!(
            "\n{}",
            one(experiment, &of_experiment(published, &experiment.id))
        );
    }
    text
}

fn one(experiment: &Experiment, published: &[&Published]) -> String {
    let places = experiment.places();
    let mut rows = vec![header(experiment, &places)];
    rows.extend(
        experiment
            .series
            .iter()
            .map(|series| row(experiment, &places, series)),
    );
    let mut text = format!("{} · {}\n", experiment.title, experiment.unit.name());
    text += &align(&rows);
    for published in published {
        text += &format!("  {}\n", published.line());
        if published.required && experiment.unit.is_megabytes() {
            text += &requirement(experiment, published);
        }
    }
    for series in &experiment.series {
        for point in &series.points {
            let at = place(experiment.axis, point.x);
            let name = &series.contender.name;
            if let Some(told) = waits(experiment, point) {
                text += &format!("  a request, {at}, {name}: {told}\n");
            }
            text += &transfer(name, &at, point).unwrap_or_default();
        }
    }
    text += &steps(experiment, published).unwrap_or_default();
    for sentence in counterparts(experiment) {
        text += &format!("  {sentence}\n");
    }
    for warning in warnings(experiment) {
        text += &format!("  ! {warning}\n");
    }
    text
}

/// What each step of a ladder of kernels has of the whole difference.
fn steps(experiment: &Experiment, published: &[&Published]) -> Option<String> {
    let ladder = shares::ladder(experiment)?;
    let mut text = format!("  {}\n", shares::gain(experiment, &ladder, published));
    let unit = shares::unit(experiment.unit);
    for step in &ladder.steps {
        let share = shares::percent(step.share);
        let saved = shares::saved(step);
        text += &match step.share {
            Share::NoDifference | Share::CannotTell => format!("  {}: {share}\n", step.name),
            _ => format!("  {}: {saved} {unit} saved, share: {share}\n", step.name),
        };
    }
    Some(text)
}

/// What a transfer took besides time.
fn transfer(name: &str, at: &str, point: &Point) -> Option<String> {
    let switches = figure(point.switches_of_a_transfer()?);
    let mut text = format!("  a transfer of {at} by {name}: {switches} context switches");
    if let Some(observed) = &point.observed {
        let calls = figure(observed.calls_of_a_transfer());
        let (copied, within) = (figure(observed.copied()), figure(observed.moved_within()));
        text += &format!(", {calls} system calls; of each byte {copied} copied between kernel ");
        text += &format!("and program, {within} moved within the kernel");
    }
    Some(text + "\n")
}

/// Who reaches what was required, and who doesn't.
fn requirement(experiment: &Experiment, required: &Published) -> String {
    let (Some(x), Some(least)) = (required.x, required.megabytes()) else {
        return String::new();
    };
    let mut text = String::new();
    for reached in [Reached::Yes, Reached::Unsure, Reached::No] {
        let names = experiment.series.iter().filter_map(|series| {
            let found = series.at(x)?.estimate(experiment.unit)?;
            (Reached::by(&found, least) == reached).then_some(series.contender.name.as_str())
        });
        let names: Vec<&str> = names.collect();
        if !names.is_empty() {
            text += &format!("    {}: {}\n", reached.words(), names.join(" · "));
        }
    }
    text
}

/// What each of several clients gets of what all get.
fn each(axis: Axis, x: u64, median: f64) -> String {
    if axis == Axis::Clients && x > 1 {
        format!(" ({} each)", figure(median / x as f64))
    } else {
        String::new()
    }
}

fn header(experiment: &Experiment, places: &[u64]) -> Vec<String> {
    let mut cells = vec!["contender".to_owned(), "where".to_owned()];
    if experiment.axis == Axis::Single {
        cells.extend(
            [experiment.unit.short(), "interval", experiment.unit.cost()].map(str::to_owned),
        );
    } else {
        cells.extend(places.iter().map(|&x| place(experiment.axis, x)));
    }
    cells
}

fn row(experiment: &Experiment, places: &[u64], series: &Series) -> Vec<String> {
    let contender = &series.contender;
    let mut cells = vec![
        contender.name.clone(),
        contender.placement.word().to_owned(),
    ];
    if let Availability::CannotRun { why, .. } = &contender.availability {
        cells.push(format!("can't run here: {why}"));
        return cells;
    }
    let estimate = |x| {
        series
            .at(x)
            .and_then(|point| point.estimate(experiment.unit))
    };
    if experiment.axis == Axis::Single {
        let Some(found) = estimate(0) else {
            return cells;
        };
        let cost = series.at(0).and_then(|point| cost(point, experiment.unit));
        cells.push(figure(found.median));
        cells.push(format!("{}–{}", figure(found.low), figure(found.high)));
        cells.push(cost.unwrap_or("?".into()));
        return cells;
    }
    for &x in places {
        let unended = || none_ended(series.at(x)?, experiment.unit);
        cells.push(match estimate(x) {
            Some(found) => figure(found.median) + &each(experiment.axis, x, found.median),
            None => unended().unwrap_or("–".into()),
        });
    }
    cells
}

/// Columns side by side; the first two to the left, figures to the right. A last cell that is a
/// sentence may be as long as it likes.
fn align(rows: &[Vec<String>]) -> String {
    let full = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows
            .iter()
            .filter(|row| row.len() == full)
            .map(|row| &row[column]);
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let names = rows
        .iter()
        .map(|row| row[0].chars().count())
        .max()
        .unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut line = format!("  {:<names$}  {:<6}", row[0], row[1]);
        for (column, cell) in row.iter().enumerate().skip(2) {
            let wide = if row.len() == full { width(column) } else { 0 };
            line += &format!("  {cell:>wide$}");
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// The list of contenders: who can run here, and what would make the others run.
pub fn list(groups: &[(String, Vec<Contender>)]) -> String {
    let names = groups.iter().flat_map(|(_, contenders)| contenders);
    let wide = names.map(|one| one.name.chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    for (group, contenders) in groups {
        text += &format!("{group}\n");
        for one in contenders {
            text += &format!("  {:<wide$}  {:<6}  ", one.name, one.placement.word());
            match &one.availability {
                Availability::Runs => text += &format!("runs: {}\n", one.runs_on),
                Availability::CannotRun {
                    why,
                    what_would_make_it_run,
                } => {
                    text += &format!("can't run here: {why}\n");
                    text += &format!("  {:wide$}  {:6}  would need: ", "", "");
                    text += &format!("{what_would_make_it_run}\n");
                }
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_cannot_run_stays_in_the_list() {
        let one = Contender::new("AF_ALG x", crate::contender::Placement::Kernel, "")
            .available(Availability::cannot("no x", "an x"));
        let text = list(&[("g".into(), vec![one])]);
        assert!(text.contains("AF_ALG x") && text.contains("no x") && text.contains("an x"));
    }
}
