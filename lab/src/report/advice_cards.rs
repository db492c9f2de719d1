//! The advice at the top of the page: one screen of jobs by placements, and a card for each job.

use maud::{Markup, html};

use crate::contender::Placement;
use crate::report::advice::{Advice, Best, Resource, Row, Verdict};
use crate::report::experiments::anchor;
use crate::report::table::figure;

/// The columns.
const PLACEMENTS: [Placement; 4] = [
    Placement::None,
    Placement::User,
    Placement::Kernel,
    Placement::Client,
];

pub(super) fn advice(all: &[Advice]) -> Markup {
    // A run of one experiment that no job is judged by has no advice to give.
    let measured = all.iter().any(|one| !one.rows.is_empty());
    html! {
        @if measured {
            section #advice aria-label="Advice" {
                (matrix(all))
                details {
                    summary { "What the advice rests on: who ran, who did not, and what each cost" }
                    div.cards { @for one in all { (card(one)) } }
                }
            }
        }
    }
}

/// The most times the best that has a bar of its own length.
const WIDEST: f64 = 10.0;

fn matrix(all: &[Advice]) -> Markup {
    html! {
        div.scroll {
            table.matrix {
                caption {
                    "How many times the best: 1.0 takes least of what decides. A job leads to its "
                    "figures."
                }
                thead {
                    tr {
                        th scope="col" { "Job" }
                        th scope="col" { "Advice" }
                        @for placement in PLACEMENTS {
                            th scope="col" { (heading(placement)) }
                        }
                    }
                }
                tbody { @for one in all { (matrix_row(one)) } }
            }
        }
    }
}

fn matrix_row(advice: &Advice) -> Markup {
    let row = advice.rows.get(advice.decided_by);
    html! {
        tr {
            th scope="row" {
                @match &advice.experiment {
                    Some(id) => a href=(format!("#{}", anchor(id))) { (advice.job) },
                    None => (advice.job),
                }
                span.quiet { (advice.about) }
            }
            td.words.(class(advice.verdict)) {
                strong { (headline(advice.verdict)) }
                span.quiet { (because(advice)) }
            }
            @for placement in PLACEMENTS { (cell(advice, row, placement)) }
        }
    }
}

fn cell(advice: &Advice, row: Option<&Row>, placement: Placement) -> Markup {
    let least = row.and_then(|row| {
        let encrypts = |one: &&Best| one.placement != Placement::None;
        Some(row.best.iter().find(encrypts)?.cost.median)
    });
    let found = row.and_then(|row| Some((row, row.at(placement)?)));
    let absent = advice.absent.iter().any(|one| one.placement == placement);
    html! {
        @match (found, least) {
            (Some((row, best)), Some(least)) => {
                @let times = best.cost.median / least;
                @let tip = format!("{}: {} {}", best.contender, figure(best.cost.median), row.unit);
                td.cell class=(placement.word()) tabindex="0" data-tip=(tip) {
                    span.track { span.fill style=(width(times / WIDEST)) {} }
                    b { (multiple(times)) }
                    span.quiet { (best.contender) }
                }
            }
            _ => td.cell.none { span.quiet { @if absent { "can’t run here" } @else { "–" } } },
        }
    }
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

fn width(share: f64) -> String {
    format!("width:{:.1}%", share.clamp(0.004, 1.0) * 100.0)
}

fn because(advice: &Advice) -> String {
    let Some(row) = advice.rows.get(advice.decided_by) else {
        return "no experiment of this run tells".to_owned();
    };
    match (advice.verdict, row.compared) {
        (Verdict::Choose(_), Some(compared)) => {
            let times = figure(compared.ratio.median);
            let what = match row.resource {
                Resource::Cpu => "CPU",
                Resource::Time => "time",
                Resource::Latency => "time a request",
            };
            format!("the next takes {times} times the {what}")
        }
        (Verdict::NoDifference, _) => "within 5 % of each other".to_owned(),
        (Verdict::CannotTell, _) => "the samples scatter too much".to_owned(),
        _ => row.unit.clone(),
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
