//! A ladder of kernels: one waterfall, whose columns are the ways that were measured under all of
//! them.

use maud::{Markup, html};

use crate::record::Experiment;
use crate::record::published::{Published, of_experiment};
use crate::record::shares::{self, Ladder, Step};
use crate::report::plot::shade;
use crate::report::table::figure;

/// The waterfall of a group; None where its experiments are no ladders of the same steps.
pub(super) fn waterfall(all: &[&Experiment], published: &[Published]) -> Option<Markup> {
    let ladders = all.iter().map(|one| Some((*one, shares::ladder(one)?)));
    let ladders: Vec<(&Experiment, Ladder)> = ladders.collect::<Option<_>>()?;
    let (first, steps) = (ladders.first()?.0, &ladders.first()?.1.steps);
    let same = |ladder: &Ladder| ladder.steps.len() == steps.len();
    if !ladders.iter().all(|(_, ladder)| same(ladder)) {
        return None;
    }
    let begin = first.series.first().map_or("", |one| &one.contender.name);
    Some(html! {
        figure.wide {
            figcaption {
                h3 { "What each byte takes, and what each step saves" }
                p.quiet { (shares::unit(first.unit)) ", from zero; each has one change more" }
            }
            div.chart role="group" tabindex="0" aria-label="The steps from one kernel to another" {
                table.waterfall {
                    thead {
                        tr {
                            th scope="col" { "kernel" }
                            @for (one, _) in &ladders { th scope="col" { (one.title) } }
                        }
                    }
                    tbody {
                        tr {
                            th scope="row" { (begin) }
                            @for (one, ladder) in &ladders { (whole(one, ladder, 0)) }
                        }
                        @for (row, step) in steps.iter().enumerate() {
                            tr {
                                th scope="row" { (step.name) }
                                @for (one, ladder) in &ladders { (cell(one, ladder, row)) }
                            }
                        }
                        tr {
                            th scope="row" { "all steps" }
                            @for (one, ladder) in &ladders { (whole(one, ladder, steps.len())) }
                        }
                    }
                }
            }
            @for (one, ladder) in &ladders {
                @let beside = of_experiment(published, &one.id);
                p { strong { (one.title) ": " } (shares::gain(one, ladder, &beside)) }
            }
        }
    })
}

/// The cost under the first kernel, or under the last.
fn whole(experiment: &Experiment, ladder: &Ladder, row: usize) -> Markup {
    let last = ladder.steps.last().map_or(ladder.first, |last| last.cost);
    let (cost, row) = if row == 0 {
        (ladder.first, 0)
    } else {
        (last, row + 1)
    };
    let told = format!("{}: {}", experiment.title, figure(cost));
    let place = (0.0, cost / scale(ladder));
    drawn(experiment, row, place, &figure(cost), &told)
}

fn cell(experiment: &Experiment, ladder: &Ladder, row: usize) -> Markup {
    let step = &ladder.steps[row];
    let before = step.cost + step.saved;
    let (from, to) = (step.cost.min(before), step.cost.max(before));
    let share = shares::percent(step.share);
    let cost = figure(step.cost);
    let told = format!(
        "{}, {}: {cost} after it, {} saved, {share} of the whole",
        experiment.title,
        step.name,
        shares::saved(step)
    );
    let place = (from / scale(ladder), (to - from) / scale(ladder));
    drawn(experiment, row + 1, place, &change(step), &told)
}

/// What a step changes, with its sign.
fn change(step: &Step) -> String {
    if step.saved.abs() < 0.005 {
        return "0".to_owned();
    }
    let sign = if step.saved > 0.0 { "−" } else { "+" };
    format!("{sign}{}", figure(step.saved.abs()))
}

/// The greatest cost.
fn scale(ladder: &Ladder) -> f64 {
    let costs = ladder.steps.iter().map(|step| step.cost);
    costs.fold(ladder.first, f64::max)
}

fn drawn(
    experiment: &Experiment,
    row: usize,
    (from, wide): (f64, f64),
    figure: &str,
    told: &str,
) -> Markup {
    let place = format!("left:{:.2}%;width:{:.2}%", from * 100.0, wide * 100.0);
    html! {
        td {
            div.v.(shade(&experiment.series, 0)) role="img" aria-label=(told) data-row=(row)
                tabindex="-1" {
                span.track { span.fill style=(place) {} }
                b { (figure) }
            }
        }
    }
}
