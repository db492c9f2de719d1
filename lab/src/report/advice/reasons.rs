//! Why: what the resources say of a job, in sentences.

use crate::contender::Placement;
use crate::host::kernel_crypto::aes_in_c;
use crate::host::machine::Machine;
use crate::record::Point;
use crate::report::advice::jobs::{Job, Resource, SERVER};
use crate::report::advice::{Best, Found, Row, Verdict};
use crate::report::table::{figure, interval, place};
use coffer_measure::comparison::{COUNTED_WITHIN, Comparison, Finding};
use coffer_measure::statistics::CONFIDENCE;

/// What a row says, in a sentence.
pub(super) fn reason(row: &Row) -> String {
    let told = |one: &Best| {
        let (median, range) = (figure(one.cost.median), interval(&one.cost));
        let placement = one.placement.word();
        let amounts = one.amounts.map_or(String::new(), |(with, without)| {
            let (with, without) = (figure(with), figure(without));
            let unit = &row.amount;
            format!(" (medians: {with} with encryption, {without} without, in {unit})")
        });
        format!("{} ({placement}) {median}{range}{amounts}", one.contender)
    };
    let unit = &row.unit;
    match (row.leaders(), row.compared) {
        ((Some(first), Some(second)), Some(compared)) => {
            let both = format!("{} against {}", told(first), told(second));
            format!("{unit}: {both}: {}.", times(&compared, row.is_relative()))
        }
        ((Some(first), _), _) => format!("{unit}: {}.", told(first)),
        _ => String::new(),
    }
}

fn times(compared: &Comparison, is_relative: bool) -> String {
    let (median, range) = (figure(compared.ratio.median), interval(&compared.ratio));
    match compared.finding {
        Finding::More | Finding::Less => {
            let what = ["the second takes", "the second’s is"][usize::from(is_relative)];
            format!("{what} {median} times as much{range}")
        }
        Finding::Same => "no difference".to_owned(),
        Finding::CannotTell => format!("can’t tell, {median} times{range}"),
    }
}

/// What is to be said where the same without encryption takes more.
pub(super) fn dearer(row: &Row) -> Option<String> {
    Some(format!("{}: {}", row.unit, row.told_dearer()?))
}

impl Row {
    /// The same as a sentence of its own.
    pub fn told_dearer(&self) -> Option<String> {
        let times = figure(self.dearer_without()?);
        let why = if self.counted {
            "the bytes take another way"
        } else {
            "that is drift, noise or another way of the bytes, and less than that can’t be told \
             here"
        };
        Some(format!(
            "Without encryption it took {times} times as much. Encryption saves no work: {why}."
        ))
    }
}

/// The kernel's AES, where it is in C although the processor has instructions for it, and the row
/// has a contender that uses it. WireGuard's cipher is another.
pub(super) fn in_c<'a>(row: &Row, machine: &'a Machine) -> Option<&'a str> {
    let kernel = row.at(Placement::Kernel)?;
    let driver = aes_in_c(&machine.drivers, &machine.instructions)?;
    (!kernel.contender.contains("WireGuard")).then_some(driver.driver.as_str())
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
        let (best, own) = (row.leaders().0?, row.at(placement)?);
        let doubt = if own.is_told {
            ""
        } else {
            " (the samples don’t tell that)"
        };
        (own.placement != best.placement).then(|| {
            format!(
                "Of what is advised, {} takes {} {}: {} times the best{doubt}.",
                own.contender,
                figure(own.cost.median),
                row.unit,
                figure(own.times)
            )
        })
    };
    rows.iter().filter_map(told).collect()
}

/// Who of a placement can’t be told from its cheapest, or differs too little to choose by.
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
pub(super) fn of_this_length(rows: &[Row]) -> Option<String> {
    rows.iter().any(|row| row.counted).then(|| {
        format!(
            "Counts are of a run of this length; one of another length may count the same work up \
             to 16 % otherwise. Less than {:.0} % between two is no ground to choose.",
            COUNTED_WITHIN * 100.0
        )
    })
}
