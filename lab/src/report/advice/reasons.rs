//! Why: what the resources say of a job, in sentences.

use crate::contender::Placement;
use crate::host::kernel_crypto::aes_in_c;
use crate::host::machine::Machine;
use crate::record::Point;
use crate::report::advice::jobs::{Job, Resource, SERVER};
use crate::report::advice::row::{Known, why_untold};
use crate::report::advice::{Best, Found, Row, Verdict, listed};
use crate::report::table::{figure, interval, place};
use coffer_measure::comparison::{COUNTED_WITHIN, Finding, ROUNDED_BY};
use coffer_measure::statistics::CONFIDENCE;

/// What a row says, in a sentence.
pub(super) fn reason(row: &Row) -> String {
    let Some(first) = row.first() else {
        return String::new();
    };
    let mut text = format!("{}: {}", row.unit, told(row, first));
    let which = [("", "the second"), (";", "the third")];
    for (one, (stop, which)) in row.others().zip(which) {
        let (other, finding) = (told(row, one), finding(row, one, which));
        text += &format!("{stop} against {other}: {finding}");
    }
    text + "."
}

fn told(row: &Row, one: &Best) -> String {
    let most = most(one);
    let amounts = one.amounts.map_or(String::new(), |(with, without)| {
        let (with, without) = (figure(with), figure(without));
        let unit = &row.amount;
        format!(" (medians: {most}{with} with encryption, {without} without, in {unit})")
    });
    let (name, placement) = (&one.contender, one.placement.word());
    format!("{name} ({placement}) {}{amounts}", amount(one))
}

/// What one takes, as far as it is told.
pub fn amount(one: &Best) -> String {
    let range = interval(&one.cost);
    let range = if one.at_most { "" } else { range.as_str() };
    format!("{}{}{range}", most(one), figure(one.cost.median))
}

fn most(one: &Best) -> &'static str {
    ["", "less than "][usize::from(one.at_most)]
}

/// How many times the first it takes, in words.
pub fn times(row: &Row, one: &Best) -> String {
    let times = figure(one.times());
    match row.known(one) {
        Known::All => times,
        Known::Least => format!("at least {times}"),
        Known::Most => format!("at most {times}"),
        Known::Nothing => "an unknown number of".to_owned(),
    }
}

fn finding(row: &Row, one: &Best, which: &str) -> String {
    let (Some(found), true) = (one.compared, row.known(one) != Known::Nothing) else {
        return "can’t tell".to_owned();
    };
    let times = times(row, one);
    let range = interval(&found.ratio);
    let range = match row.known(one) {
        Known::All => range.as_str(),
        _ => "",
    };
    match found.finding {
        Finding::More | Finding::Less if row.is_relative() => {
            format!("{which}’s is {times} times as much{range}")
        }
        Finding::More | Finding::Less => format!("{which} takes {times} times as much{range}"),
        Finding::Same => "no difference".to_owned(),
        Finding::CannotTell => format!("can’t tell, {times} times{range}"),
    }
}

/// Who took part and can't be told: that keeps its placement in question.
pub(super) fn untold(row: &Row) -> Option<String> {
    let (unit, why) = (&row.unit, why_untold(row.resource));
    let names = listed(row.untold.iter().map(String::as_str))?;
    Some(format!("{unit}: {why}: {names}."))
}

/// What is to be said where the same without encryption takes more.
pub(super) fn dearer(row: &Row) -> Option<String> {
    Some(format!("{}: {}", row.unit, row.told_dearer()?))
}

impl Row {
    /// The same as a sentence of its own.
    pub fn told_dearer(&self) -> Option<String> {
        let times = figure(self.dearer_without()?);
        // What is divided by may be less.
        let bound = ["", "at least "][usize::from(self.first()?.at_most)];
        let why = if self.counted {
            "the bytes take another way"
        } else {
            "that is drift, noise or another way of the bytes, and less than that can’t be told \
             here"
        };
        Some(format!(
            "Without encryption it took {bound}{times} times as much. Encryption saves no work: \
             {why}."
        ))
    }
}

/// The kernel's AES, where it is in C although the processor has instructions for it, and the row
/// has a contender that uses it. WireGuard's cipher is another.
pub(super) fn in_c(row: &Row, machine: &Machine) -> Option<String> {
    let kernel = row.at(Placement::Kernel)?;
    let driver = &aes_in_c(&machine.drivers, &machine.instructions)?.driver;
    (!kernel.contender.contains("WireGuard")).then(|| {
        format!(
            "The processor has instructions for AES, but /proc/crypto lists no driver that uses \
             them, and {driver} comes first: what this kernel encrypts tells nothing of one that \
             has such a driver."
        )
    })
}

/// What a client on the same cores spends is in the time that decides.
pub(super) fn shared(
    job: &Job,
    rows: &[Row],
    (verdict, decided_by): (Verdict, usize),
) -> Option<String> {
    let decides = rows.get(decided_by)?.resource;
    let is_choice = matches!(verdict, Verdict::Choose(_));
    (is_choice && job.cpu_of == SERVER && decides != Resource::Cpu).then(|| {
        "Client and server share the cores here: this time is that of both, and tells less of a \
         server by itself."
            .to_owned()
    })
}

/// Where the figures stand.
pub(super) fn told_by((evidence, experiments): &Found<'_>) -> String {
    let titles: Vec<&str> = experiments.iter().map(|one| one.title.as_str()).collect();
    let mut text = format!("Told by: {}", titles.join(" · "));
    let at = place(experiments[0].axis, evidence.x);
    if !at.is_empty() {
        text += &format!(", {at}");
    }
    let all = experiments[0].series.iter();
    let mut lengths = all.filter_map(|one| length(one.at(evidence.x)?));
    if let Some((rounds, amount)) = lengths.next() {
        text += &format!("; {rounds}");
        // Where samples last as long as each other, amounts differ.
        if lengths.all(|(_, other)| other == amount) {
            text += &format!(" of {amount}");
        }
    }
    text + "."
}

/// How many rounds, and how much in each.
fn length(point: &Point) -> Option<(String, String)> {
    let first = point.samples.first()?;
    let amount = match first.counts.map(|counts| counts.transfers) {
        Some(1) => "1 request".to_owned(),
        Some(count) => format!("{count} requests"),
        None => format!("{} MB", figure(first.bytes as f64 / 1e6)),
    };
    let rounds = match point.samples.len() {
        1 => "one round".to_owned(),
        count => format!("{count} rounds"),
    };
    Some((rounds, amount))
}

/// Where too few rounds were made for the intervals to hold what they should.
pub(super) fn doubt(rows: &[Row], decided_by: usize) -> Option<String> {
    let confidence = rows.get(decided_by)?.compared?.ratio.confidence;
    (confidence < CONFIDENCE).then(|| {
        format!(
            "With so few rounds these intervals hold with {:.0} % only: try more (--rounds).",
            confidence * 100.0
        )
    })
}

/// What the advised placement takes of each resource of which another takes less.
pub(super) fn advised(rows: &[Row], verdict: Verdict) -> Vec<String> {
    let Verdict::Choose(placement) = verdict else {
        return Vec::new();
    };
    let told = |row: &Row| {
        let own = row.at(placement)?;
        let found = own.compared?;
        let takes_more = found.finding != Finding::Same && found.ratio.median > 1.0 + ROUNDED_BY;
        let doubt = ["", " (the samples don’t tell that)"][usize::from(!own.is_told())];
        let (name, most, cost) = (&own.contender, most(own), figure(own.cost.median));
        let (unit, times) = (&row.unit, times(row, own));
        takes_more.then(|| {
            format!(
                "Of what is advised, {name} takes {most}{cost} {unit}: {times} times the \
                 best{doubt}."
            )
        })
    };
    rows.iter().filter_map(told).collect()
}

/// Who of a placement can’t be told from its best, or differs too little to choose by.
pub(super) fn alike(row: &Row) -> Option<String> {
    let told = row.best.iter().filter(|one| !one.alike.is_empty());
    let told = told.map(|one| {
        let (first, others) = (&one.contender, one.alike.join(" · "));
        format!("{first} · {others} ({})", one.placement.word())
    });
    let told: Vec<String> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "{}: these can’t be told apart, or differ too little to choose by: {}.",
            row.unit,
            told.join("; ")
        )
    })
}

/// What counts are worth.
pub(super) fn counted(rows: &[Row]) -> Option<String> {
    let has_counts = |row: &Row| row.resource == Resource::Cpu;
    let what = if rows.iter().any(has_counts) {
        "instructions and simulated time"
    } else {
        "simulated time only"
    };
    rows.iter().any(|row| row.counted).then(|| {
        format!(
            "This is judged by {what}: nothing here is CPU time, or time of a real processor. \
             Counts are of a run of this length; one of another length may count the same work up \
             to 16 % otherwise. Less than {:.0} % between two is no ground to choose.",
            COUNTED_WITHIN * 100.0
        )
    })
}
