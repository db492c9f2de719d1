//! Many machines beside each other: a page with a column for each, and figures relative to the one
//! that is picked.

use std::fs;
use std::path::Path;

use maud::{Markup, html};

use crate::error::{Doing, LabError, Result};
use crate::record::published::published;
use crate::record::{COMMIT, Experiment, Point, Record};
use crate::report::advice::{Advice, Verdict, advice};
use crate::report::advice_cards::told;
use crate::report::experiments::groups;
use crate::report::table::{figure, interval, none_ended, place};
use crate::report::{STYLE, commit, compare, counts_instructions, day, framed, page, remarks};
use coffer_measure::comparison::{EQUIVALENT_WITHIN, ROUNDED_BY};
use coffer_measure::statistics::CONFIDENCE;

const SITE_SCRIPT: &str = include_str!("site.js");
const SITE_STYLE: &str = include_str!("site.css");

/// How many records there may be.
const RECORDS_MAX: usize = 200;

/// At most so many places of an axis stand in the tables; the machine's own page has all.
const PLACES_MAX: usize = 3;

/// A machine's record, and what its page is called.
pub struct Machine {
    /// The name of its file, without ending.
    pub name: String,
    /// What it found.
    pub record: Record,
}

/// Reads all records of a folder, in the order of their names.
///
/// # Errors
///
/// Names the first file that is no record, or whose name can't be a page's.
pub fn read(folder: &Path) -> Result<Vec<Machine>> {
    let doing = || format!("reading {}", folder.display());
    let refused = |path: &Path, what: &str| LabError::Data {
        file: path.display().to_string(),
        what: what.to_owned(),
    };
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).doing(doing)? {
        let path = entry.doing(doing)?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    if paths.is_empty() {
        let what = "holds no record; `coffer-lab all --json FILE.json` writes one";
        return Err(refused(folder, what));
    }
    if paths.len() > RECORDS_MAX {
        return Err(refused(
            folder,
            &format!("holds more than {RECORDS_MAX} records"),
        ));
    }
    let machine = |path: &std::path::PathBuf| {
        let name = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let fits = |letter: char| letter.is_ascii_alphanumeric() || "-._".contains(letter);
        if name == "index" {
            return Err(refused(
                path,
                "would have the page of all machines, index.html: call it otherwise, or keep \
                 what is no record in another folder",
            ));
        }
        if !name.chars().all(fits) {
            return Err(refused(
                path,
                "has a name of other letters than A-Z a-z 0-9 - . _",
            ));
        }
        let file = fs::metadata(path).doing(|| format!("reading {}", path.display()))?;
        if !file.is_file() {
            return Err(refused(path, "is no file"));
        }
        let record = compare::read(path)?;
        Ok(Machine { name, record })
    };
    paths.iter().map(machine).collect()
}

/// Writes the page of all machines, and a page for each; gives how many.
///
/// # Errors
///
/// When a file can't be written.
pub fn write(machines: &[Machine], folder: &Path) -> Result<usize> {
    fs::create_dir_all(folder).doing(|| format!("making {}", folder.display()))?;
    let published = published()?;
    let write = |name: &str, text: String| {
        let path = folder.join(format!("{name}.html"));
        fs::write(&path, text).doing(|| format!("writing {}", path.display()))
    };
    for one in machines {
        write(&one.name, page(&one.record, &published))?;
    }
    write("index", index(machines))?;
    Ok(machines.len() + 1)
}

fn index(machines: &[Machine]) -> String {
    let body = html! {
        header {
            h1 { "Where should encryption run? " (machines.len()) " machines" }
            p.quiet { "Drawn by " (commit(COMMIT)) ". A name leads to the page of a machine." }
        }
        (picker(machines))
        main {
            section #advice {
                h2 { "The advice" }
                div.scroll { (advices(machines)) }
            }
            @for (id, title) in experiments(machines) { (experiment(machines, &id, &title)) }
        }
    };
    let style = [STYLE, SITE_STYLE].concat();
    let title = "Machines · coffer-lab";
    framed(title, &style, Some("site"), &body, SITE_SCRIPT)
}

/// Which machines are shown, and which one the others are held against.
fn picker(machines: &[Machine]) -> Markup {
    html! {
        form #picker data-within=(EQUIVALENT_WITHIN) data-rounded=(ROUNDED_BY)
            data-length=(compare::SAME_LENGTH) {
            label {
                "Figures relative to "
                select name="base" {
                    option value="" { "none: as they are" }
                    @for (index, one) in machines.iter().enumerate() {
                        option value=(index) selected[index == 0] { (one.name) }
                    }
                }
            }
            fieldset {
                legend { "Machines" }
                @for (index, one) in machines.iter().enumerate() {
                    label {
                        input type="checkbox" name="shown" value=(index) checked;
                        " " (one.name)
                        small {
                            " " (one.record.machine.line()) ", " (day(&one.record.date)) ", by "
                            (commit(&one.record.commit)) (remarks(&one.record))
                        }
                    }
                }
            }
        }
    }
}

fn heads(machines: &[Machine]) -> Markup {
    html! {
        @for (index, one) in machines.iter().enumerate() {
            th scope="col" data-machine=(index) {
                a href=(format!("{}.html", one.name)) { (one.name) }
                @if counts_instructions(&one.record) { " " small { "instructions, not time" } }
            }
        }
    }
}

fn advices(machines: &[Machine]) -> Markup {
    let all: Vec<Vec<Advice>> = machines.iter().map(|one| advice(&one.record)).collect();
    let jobs = all.first().map_or(0, Vec::len);
    html! {
        table {
            thead { tr { th scope="col" { "job" } (heads(machines)) } }
            tbody {
                @for job in 0..jobs {
                    tr {
                        th scope="row" { (all[0][job].job) }
                        @for (index, advices) in all.iter().enumerate() {
                            (verdict(&advices[job], index))
                        }
                    }
                }
            }
        }
    }
}

fn verdict(advice: &Advice, machine: usize) -> Markup {
    let (class, word) = match advice.verdict {
        Verdict::Choose(placement) => (placement.word(), placement.word()),
        Verdict::NoDifference => ("even", "no difference"),
        Verdict::CannotTell => ("even", "can’t tell"),
        Verdict::OnlyOneRan(placement) => ("even", placement.word()),
        Verdict::NotMeasured => ("even", "–"),
    };
    html! {
        td.verdict-cell.(class) data-machine=(machine) { b { (word) } small { (told(advice)) } }
    }
}

/// All that one of them measured, in the order of the pages, with every title that it has: amounts
/// differ between machines.
fn experiments(machines: &[Machine]) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for machine in machines {
        let groups = groups(&machine.record);
        for one in groups.iter().flat_map(|group| &group.experiments) {
            match all.iter_mut().find(|(id, _)| *id == one.id) {
                Some((_, titles)) if titles.split(" / ").any(|title| title == one.title) => {}
                Some((_, titles)) => *titles += &format!(" / {}", one.title),
                None => all.push((one.id.clone(), one.title.clone())),
            }
        }
    }
    all
}

fn experiment(machines: &[Machine], id: &str, title: &str) -> Markup {
    let found = machines.iter().map(|one| one.record.experiment(id));
    let found: Vec<Option<&Experiment>> = found.collect();
    let mut names: Vec<(&str, &str)> = Vec::new();
    for series in found.iter().flatten().flat_map(|one| &one.series) {
        let who = (
            series.contender.name.as_str(),
            series.contender.placement.word(),
        );
        if !names.contains(&who) {
            names.push(who);
        }
    }
    let places = places(&found);
    html! {
        details id=(id.replace('/', "-")) {
            summary { (title) }
            div.scroll {
                table {
                    thead {
                        tr {
                            th scope="col" { "contender" }
                            th scope="col" { "at" }
                            (heads(machines))
                        }
                    }
                    tbody {
                        @for (name, placement) in &names {
                            @for &x in &places { (row(&found, name, placement, x)) }
                        }
                    }
                }
            }
        }
    }
}

/// The first, the last and the one between, of all places.
fn places(found: &[Option<&Experiment>]) -> Vec<u64> {
    let mut all: Vec<u64> = found
        .iter()
        .flatten()
        .flat_map(|one| one.places())
        .collect();
    all.sort_unstable();
    all.dedup();
    if all.len() > PLACES_MAX {
        all = vec![all[0], all[all.len() / 2], all[all.len() - 1]];
    }
    all
}

/// How much was done in a round, where figures of another amount are of other work. Counts are:
/// what begins and ends once weighs more in a shorter run.
fn amount(experiment: &Experiment, point: &Point) -> Option<f64> {
    if experiment.unit.counts_instructions() {
        return point.length();
    }
    experiment.amount(point).map(|bytes| bytes as f64)
}

fn row(found: &[Option<&Experiment>], name: &str, placement: &str, x: u64) -> Markup {
    let point = |experiment: &&Experiment| {
        let point = experiment.of(name)?.at(x)?;
        point.estimate(experiment.unit)
    };
    let unended = |experiment: &&Experiment| {
        let point = experiment.of(name)?.at(x)?;
        none_ended(point, experiment.unit)
    };
    let is_there = |one: &&Experiment| point(one).is_some() || unended(one).is_some();
    if !found.iter().flatten().any(is_there) {
        return html! {};
    }
    let axis = found.iter().flatten().next().map(|one| one.axis);
    html! {
        tr {
            th.(placement) scope="row" { (name) " " small { (placement) } }
            td { (axis.map_or(String::new(), |axis| place(axis, x))) }
            @for (index, experiment) in found.iter().enumerate() {
                @match experiment.and_then(|one| Some((one, point(&one)?))) {
                    Some((one, found)) => {
                        // Only the same unit of the same version and amount may be divided.
                        @let (unit, counted) = (one.unit, one.unit.counts_instructions());
                        @let amount = one.of(name).and_then(|of| amount(one, of.at(x)?));
                        @let few = !counted && found.confidence < CONFIDENCE;
                        td data-machine=(index) data-unit=(unit.name()) data-version=(one.version)
                            data-amount=[amount] data-median=(found.median)
                            data-low=(found.low) data-high=(found.high)
                            data-less[unit.less_is_better()] data-few[few] data-counted[counted] {
                            (figure(found.median)) " "
                            small { (one.unit.short()) (interval(&found)) }
                        }
                    }
                    None => td data-machine=(index) {
                        (experiment.as_ref().and_then(unended).unwrap_or("–".into()))
                    },
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
