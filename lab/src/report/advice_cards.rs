//! The advice at the top of the page: one screen of jobs by placements, and a card for each job.

use maud::{Markup, html};

use crate::contender::Placement;
use crate::report::advice::{Advice, Best, Known, Resource, Row, Standing, Verdict, amount, times};
use crate::report::experiments::anchor;
use crate::report::plot::{bar, value};
use crate::report::table::figure;
use coffer_measure::comparison::Comparison;
use coffer_measure::statistics::CONFIDENCE;

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
                    "samples don’t tell, “≥” and “≤” where CPU time came in too few ticks, “or” "
                    "where two of a placement can’t be told apart. A job leads to its figures."
                }
                thead {
                    tr {
                        th scope="col" { "Job, and where its encryption should run" }
                        @for placement in Placement::ALL {
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
    let dearer = dearer.map_or(String::new(), |dearer| format!(" {dearer}"));
    sentence(advice) + &dearer
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
            @for placement in Placement::ALL { (cell(index, advice, placement)) }
        }
    }
}

fn cell(index: usize, advice: &Advice, placement: Placement) -> Markup {
    let row = advice.rows.get(advice.decided_by);
    let most = row.map_or(1.0, |row| {
        row.best.iter().map(Best::times).fold(1.0, f64::max)
    });
    let found = row.and_then(|row| Some((row, row.at(placement)?)));
    let absent = advice.absent.iter().any(|one| one.placement == placement);
    let Some((row, best)) = found else {
        let why = if absent { "can’t run here" } else { "–" };
        return html! { td.none { small { (why) } } };
    };
    let doubted = if best.is_told() {
        ""
    } else {
        ", which the samples don’t tell"
    };
    let alike = match &best.alike[..] {
        [] => String::new(),
        [other] => format!(", or {other}"),
        others => format!(", or {} others", others.len()),
    };
    let (name, unit) = (&best.contender, &row.unit);
    let (times, cost) = (times(row, best), amount(best));
    let told = format!("{name}{alike}: {times} times the best{doubted}, {cost} {unit}");
    let shown = (best.times() / most.min(WIDEST)).clamp(0.004, 1.0);
    let drawn = html! {
        small.where { (heading(placement)) }
        (bar((0.0, shown), None))
        b { (multiple(row, best)) }
        small { (best.contender) (alike) }
    };
    html! { td { (value(placement.word(), &told, index, None, &drawn)) } }
}

/// How many times the first, as it stands in a cell.
fn multiple(row: &Row, best: &Best) -> String {
    let end = match row.known(best) {
        Known::All => "",
        Known::Least => "≥ ",
        Known::Most => "≤ ",
        Known::Nothing => return "?".to_owned(),
    };
    let doubt = if best.is_told() { "" } else { " ?" };
    let times = best.times();
    let times = if times < 0.095 {
        format!("{times:.2}")
    } else if times < 99.5 {
        format!("{times:.1}")
    } else {
        figure(times)
    };
    format!("{end}{times} ×{doubt}")
}

/// The advice in a sentence.
fn sentence(advice: &Advice) -> String {
    let row = advice.rows.get(advice.decided_by);
    let (between, out) = (between(&advice.open), ruled_out(advice));
    match (advice.verdict, row) {
        (Verdict::Choose(placement), Some(row)) => {
            let (chosen, choice) = (capital(place(placement)), choice(row));
            let in_c = if advice.in_c { IN_C } else { "" };
            let opposed = opposed(advice).unwrap_or_default();
            format!("{chosen}: {choice}.{out}{opposed}{in_c}")
        }
        (Verdict::NoDifference, _) => {
            format!("No difference between {between}: they are within 5 %.{out}")
        }
        (Verdict::CannotTell, Some(row)) => {
            let why = why_not(row, &advice.open);
            format!("Can’t tell between {between}: {why}.{out}")
        }
        (Verdict::OnlyOneRan(placement), _) => {
            let why = if advice.absent.is_empty() {
                "none does this elsewhere"
            } else {
                "only this ran"
            };
            format!("{}: {why}, so it is no choice.", capital(place(placement)))
        }
        _ => advice.reasons.first().cloned().unwrap_or_default(),
    }
}

/// Another resource, and what is to be chosen by that.
fn opposed(advice: &Advice) -> Option<String> {
    let row = advice.rows.get(advice.opposed_by?)?;
    let other = heading(row.first()?.placement).to_lowercase();
    Some(format!(" By {}: {other}.", what(row)))
}

/// What a placement is called: above a column, as a place, and as one of several.
fn words(placement: Placement) -> [&'static str; 3] {
    match placement {
        Placement::None => ["No encryption", "nowhere", "no encryption"],
        Placement::User => ["User space", "in user space", "user space"],
        Placement::Kernel => ["Kernel", "in the kernel", "the kernel"],
        Placement::Client => ["Client", "at the client", "the client"],
    }
}

fn heading(placement: Placement) -> &'static str {
    words(placement)[0]
}

fn place(placement: Placement) -> &'static str {
    words(placement)[1]
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The placements that remain in question.
fn between(open: &[Placement]) -> String {
    let names: Vec<&str> = open.iter().map(|one| words(*one)[2]).collect();
    match &names[..] {
        [first, second] => format!("{first} and {second}"),
        [first, second, third] => format!("{first}, {second} and {third}"),
        _ => names.join(", "),
    }
}

/// Which placements other resources than the one that the cells are of put out of the question.
fn ruled_out(advice: &Advice) -> String {
    let told = |(index, row): (usize, &Row)| {
        let places: Vec<&str> = row.ruled_out.iter().map(|one| place(*one)).collect();
        let is_other = index != advice.decided_by && !places.is_empty();
        is_other.then(|| format!(" Not {}, by {}.", places.join(" nor "), what(row)))
    };
    advice.rows.iter().enumerate().filter_map(told).collect()
}

/// Why a resource leaves placements in question.
fn why_not(row: &Row, open: &[Placement]) -> String {
    let others = row.others().filter(|one| open.contains(&one.placement));
    let others: Vec<&Best> = others.collect();
    let has = |standing: Standing| others.iter().any(|one| one.standing == standing);
    let sparse = |found: Comparison| found.ratio.confidence < CONFIDENCE;
    let what = what(row);
    let is_missing = open.iter().any(|one| row.at(*one).is_none()) || !row.untold.is_empty();
    let is_unsure = is_missing || has(Standing::CannotTell);
    let mut leading = row.first().into_iter().chain(others.iter().copied());
    let has_few_ticks = is_missing || leading.any(|one| one.at_most);
    if others.iter().filter_map(|one| one.compared).any(sparse) {
        "too few rounds were made".to_owned()
    } else if is_unsure && has_few_ticks && row.resource == Resource::Cpu {
        format!("{what} came in too few ticks")
    } else if is_missing {
        format!("{what} was not measured of all")
    } else if has(Standing::CannotTell) {
        "the samples scatter too much".to_owned()
    } else if has(Standing::AsPlain) {
        format!("none of them is told to take more {what} than the best without encryption")
    } else {
        let most = others.iter().map(|one| one.times()).fold(1.0, f64::max);
        let most = figure(most);
        format!("{most} times the {what} is too little to choose by")
    }
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

/// What decides between the first and the next.
fn choice(row: &Row) -> String {
    let Some(next) = row.others().next() else {
        return String::new();
    };
    let (name, times, what) = (&next.contender, times(row, next), what(row));
    let beside = if row.is_relative() {
        ", each beside the same without encryption"
    } else {
        ""
    };
    format!("{name} takes {times} times the {what}{beside}")
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

/// The style of a verdict: a placement has its hue.
fn class(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Choose(placement) => placement.word(),
        Verdict::NoDifference | Verdict::CannotTell => "even",
        Verdict::OnlyOneRan(_) | Verdict::NotMeasured => "open",
    }
}
