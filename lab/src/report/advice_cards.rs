//! The advice at the top of the page: one screen of jobs by placements, and a card for each job.

use maud::{Markup, html};

use crate::contender::Placement;
use crate::report::advice::{Advice, Resource, Row, Verdict};
use crate::report::experiments::anchor;
use crate::report::plot::{bar, value};
use crate::report::table::{figure, interval};
use coffer_measure::comparison::{Comparison, Finding};
use coffer_measure::statistics::CONFIDENCE;

/// The columns.
const PLACEMENTS: [Placement; 4] = [
    Placement::None,
    Placement::User,
    Placement::Kernel,
    Placement::Client,
];

/// The most times the best that a bar is drawn for: longer ones end there.
const WIDEST: f64 = 10.0;

/// Behind a sentence that compares the kernel, where its AES is slower than it need be.
const IN_C: &str = " This kernel lists AES in C only.";

pub(super) fn advice(all: &[Advice]) -> Markup {
    // A run of one experiment that no job is judged by has no advice to give. Who could not run is
    // named all the same.
    let found = |one: &Advice| !one.rows.is_empty() || !one.absent.is_empty();
    let measured = all.iter().any(found);
    let mut sorted: Vec<&Advice> = all.iter().collect();
    sorted.sort_by(|a, b| weight(b).total_cmp(&weight(a)));
    html! {
        @if measured {
            section #advice aria-label="Advice" {
                (matrix(&sorted))
                details {
                    summary { "What the advice rests on: who ran, who did not, and what each cost" }
                    div.cards { @for one in &sorted { (card(one)) } }
                }
            }
        }
    }
}

/// How much depends on the choice: the jobs where it matters most come first.
fn weight(advice: &Advice) -> f64 {
    match advice.verdict {
        Verdict::Choose(_) => compared(advice).map_or(1.0, |one| 1.0 + one.ratio.median),
        Verdict::NoDifference | Verdict::CannotTell => 1.0,
        Verdict::OnlyOneRan(_) => 0.5,
        Verdict::NotMeasured => 0.0,
    }
}

fn compared(advice: &Advice) -> Option<&Comparison> {
    advice.rows.get(advice.decided_by)?.compared.as_ref()
}

fn matrix(all: &[&Advice]) -> Markup {
    html! {
        div.chart role="group" aria-label="Jobs by placements" tabindex="0" {
            table.matrix {
                caption {
                    "How many times the best of those that encrypt, by what decides; “?” where the "
                    "samples don’t tell, “or” where two of a placement can’t be told apart. A job "
                    "leads to its figures."
                }
                thead {
                    tr {
                        th scope="col" { "Job, and where its encryption should run" }
                        @for placement in PLACEMENTS {
                            th.(placement.word()) scope="col" { (heading(placement)) }
                        }
                    }
                }
                tbody { @for (index, one) in all.iter().enumerate() { (row(index, one)) } }
            }
        }
    }
}

/// What is to be done, in a sentence or two: on a machine's page, and on that of all machines.
pub(super) fn told(advice: &Advice) -> String {
    let decisive = advice.rows.get(advice.decided_by);
    let dearer = decisive.and_then(Row::told_dearer);
    [Some(sentence(advice)), dearer]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join(" ")
}

fn row(index: usize, advice: &Advice) -> Markup {
    html! {
        tr {
            th.(class(advice.verdict)) scope="row" {
                @match &advice.experiment {
                    Some(id) => a href=(format!("#{}", anchor(id))) { (advice.job) },
                    None => span.job { (advice.job) },
                }
                span.quiet { (advice.about) }
                span.advice { (told(advice)) }
            }
            @for placement in PLACEMENTS { (cell(index, advice, placement)) }
        }
    }
}

fn cell(index: usize, advice: &Advice, placement: Placement) -> Markup {
    let row = advice.rows.get(advice.decided_by);
    let most = row.map_or(1.0, |row| {
        row.best.iter().map(|one| one.times).fold(1.0, f64::max)
    });
    let found = row.and_then(|row| Some((row, row.at(placement)?)));
    let absent = advice.absent.iter().any(|one| one.placement == placement);
    let Some((row, best)) = found else {
        let why = if absent { "can’t run here" } else { "–" };
        return html! { td.none { small { (why) } } };
    };
    let (cost, times) = (figure(best.cost.median), multiple(best.times));
    let (cost, name) = (cost + &interval(&best.cost), &best.contender);
    let (doubt, doubted) = if best.is_told {
        ("", "")
    } else {
        (" ?", ", which the samples don’t tell")
    };
    let alike = match &best.alike[..] {
        [] => String::new(),
        [other] => format!(", or {other}"),
        others => format!(", or {} others", others.len()),
    };
    let told = format!(
        "{name}{alike}: {times} the best{doubted}, {cost} {}",
        row.unit
    );
    let shown = (best.times / most.min(WIDEST)).clamp(0.004, 1.0);
    let drawn = html! {
        small.where { (heading(placement)) }
        (bar((0.0, shown), None))
        b { (times) (doubt) }
        small { (best.contender) (alike) }
    };
    html! { td { (value(placement.word(), &told, index, None, &drawn)) } }
}

fn multiple(times: f64) -> String {
    if times < 0.095 {
        format!("{times:.2} ×")
    } else if times < 99.5 {
        format!("{times:.1} ×")
    } else {
        format!("{} ×", figure(times))
    }
}

/// The advice in a sentence.
fn sentence(advice: &Advice) -> String {
    let row = advice.rows.get(advice.decided_by);
    let where_to = |placement| match placement {
        Placement::None => "Nowhere",
        Placement::User => "In user space",
        Placement::Kernel => "In the kernel",
        Placement::Client => "At the client",
    };
    match (advice.verdict, row, compared(advice)) {
        (Verdict::Choose(placement), Some(row), Some(compared)) => {
            let in_c = if advice.in_c { IN_C } else { "" };
            let opposed = advice.opposed_by.and_then(|index| advice.rows.get(index));
            let opposed = opposed.and_then(|row| Some((row, row.leaders().0?)));
            let opposed = opposed.map_or_else(String::new, |(row, best)| {
                let other = heading(best.placement).to_lowercase();
                format!(" By {}: {other}.", what(row))
            });
            let choice = choice(row, compared);
            format!("{}: {choice}.{opposed}{in_c}", where_to(placement))
        }
        (Verdict::NoDifference, ..) => {
            "No difference between the best two: they are within 5 %.".to_owned()
        }
        (Verdict::CannotTell, _, Some(compared)) if is_sparse(compared) => {
            "Can’t tell: too few rounds were made.".to_owned()
        }
        (Verdict::CannotTell, ..) => match too_small(advice) {
            Some((row, one)) => {
                let (times, what) = (figure(one.ratio.median), what(row));
                format!("Can’t tell: {times} times the {what} is too little to choose by.")
            }
            None => "Can’t tell: the samples scatter too much.".to_owned(),
        },
        (Verdict::OnlyOneRan(placement), ..) => {
            let why = if advice.absent.is_empty() {
                "none does this elsewhere"
            } else {
                "only this ran"
            };
            format!("{}: {why}, so it is no choice.", where_to(placement))
        }
        _ => advice.reasons.first().cloned().unwrap_or_default(),
    }
}

/// The row whose samples tell a difference, though too small a one to choose by: the first, or any
/// where none scatters.
fn too_small(advice: &Advice) -> Option<(&Row, &Comparison)> {
    let finding = |row: &Row| row.compared.map(|one| one.finding);
    let scatters = |row: &Row| finding(row) == Some(Finding::CannotTell);
    let tells = |row: &&Row| finding(row) == Some(Finding::More);
    let first = advice.rows.first().filter(tells);
    let calm = !advice.rows.iter().any(scatters);
    let row = first.or_else(|| advice.rows.iter().find(|row| calm && tells(row)))?;
    Some((row, row.compared.as_ref()?))
}

fn is_sparse(compared: &Comparison) -> bool {
    compared.ratio.confidence < CONFIDENCE
}

/// What a row is of.
fn what(row: &Row) -> &'static str {
    match (row.resource, row.counted) {
        (Resource::Cpu, true) => "instructions",
        (_, true) => "simulated time",
        (Resource::Latency, _) => "time a request",
        (Resource::Cpu, _) => "CPU time",
        (Resource::Time, _) => "time",
    }
}

/// What decides between the best and the next.
fn choice(row: &Row, compared: &Comparison) -> String {
    let what = what(row);
    let (Some(first), Some(next)) = row.leaders() else {
        return String::new();
    };
    if row.is_relative() {
        let [first_cost, next_cost] = [first, next].map(|one| figure(one.cost.median));
        let without = format!("{first_cost} times the {what} without encryption");
        format!(
            "{} takes {without}, {} {next_cost} times",
            first.contender, next.contender
        )
    } else {
        let times = figure(compared.ratio.median);
        format!("{} takes {times} times the {what}", next.contender)
    }
}

fn card(advice: &Advice) -> Markup {
    html! {
        article.card {
            h3 { (advice.job) }
            p.quiet { (advice.about) }
            p.verdict.(class(advice.verdict)) { (headline(advice.verdict)) }
            @for reason in &advice.reasons { p { (reason) } }
            @if !advice.ran.is_empty() { p { strong { "Ran: " } (advice.ran.join(" · ")) } }
            @if !advice.absent.is_empty() {
                p { strong { "Did not run:" } }
                ul { @for one in &advice.absent { li { (one.text) } } }
            }
        }
    }
}

fn headline(verdict: Verdict) -> String {
    match verdict {
        Verdict::Choose(placement) => heading(placement).to_owned(),
        Verdict::NoDifference => "No difference".to_owned(),
        Verdict::CannotTell => "Can’t tell".to_owned(),
        Verdict::OnlyOneRan(placement) => format!("{}: only this ran", heading(placement)),
        Verdict::NotMeasured => "Not measured here".to_owned(),
    }
}

fn heading(placement: Placement) -> &'static str {
    match placement {
        Placement::None => "No encryption",
        Placement::User => "User space",
        Placement::Kernel => "Kernel",
        Placement::Client => "Client",
    }
}

/// The style of a verdict: a placement has its hue.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Choose(placement) => placement.word(),
        Verdict::NoDifference | Verdict::CannotTell => "even",
        Verdict::OnlyOneRan(_) | Verdict::NotMeasured => "open",
    }
}
