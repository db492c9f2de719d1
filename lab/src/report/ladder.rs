//! A ladder of kernels: one waterfall, whose columns are the ways that were measured under all of
//! them.

use std::iter::once;

use maud::{Markup, html};

use crate::record::Experiment;
use crate::record::published::{Published, of_experiment};
use crate::record::shares::{self, Ladder, Step};
use crate::report::plot::{bar, shade, value};
use crate::report::table::figure;

/// The waterfall of a group; None where its experiments are no ladders of the same steps.
pub(super) fn waterfall(all: &[&Experiment], published: &[Published]) -> Option<Markup> {
    let ladders = all.iter().map(|one| Some((*one, shares::ladder(one)?)));
    let ladders: Vec<(&Experiment, Ladder)> = ladders.collect::<Option<_>>()?;
    let (first, steps) = (ladders.first()?.0, &ladders.first()?.1.steps);
    if ladders
        .iter()
        .any(|(_, ladder)| ladder.steps.len() != steps.len())
    {
        return None;
    }
    let begin = first.series.first().map_or("", |one| &one.contender.name);
    let between = steps.iter().map(|step| step.name.as_str());
    let names = once(begin).chain(between).chain(once("all steps"));
    let columns: Vec<Vec<Markup>> = ladders
        .iter()
        .map(|(one, ladder)| column(one, ladder))
        .collect();
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
                            @for one in all { th scope="col" { (one.title) } }
                        }
                    }
                    tbody {
                        @for (row, name) in names.enumerate() {
                            tr {
                                th scope="row" { (name) }
                                @for column in &columns { td { (column[row]) } }
                            }
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

/// What the first kernel costs, what each step changes, and what the last one costs.
fn column(experiment: &Experiment, ladder: &Ladder) -> Vec<Markup> {
    let mut costs = ladder.steps.iter().map(|step| step.cost);
    let most = costs.clone().fold(ladder.first, f64::max);
    let cell = |row: usize, from: f64, to: f64, shown: &str, told: &str| {
        let drawn = html! { (bar((from / most, to / most), None)) b { (shown) } };
        let told = format!("{}{told}", experiment.title);
        value(&shade(&experiment.series, 0), &told, row, None, &drawn)
    };
    let whole = |row, cost| {
        let shown = figure(cost);
        cell(row, 0.0, cost, &shown, &format!(": {shown}"))
    };
    let step = |(row, step): (usize, &Step)| {
        let (cost, before) = (step.cost, step.cost + step.saved);
        let (saved, share) = (shares::saved(step), shares::percent(step.share));
        let shown = figure(cost);
        let told = format!(
            ", {}: {shown} after it, {saved} saved, {share} of the whole",
            step.name
        );
        cell(
            row + 1,
            cost.min(before),
            cost.max(before),
            &change(step),
            &told,
        )
    };
    let first = once(whole(0, ladder.first));
    let last = costs.next_back().unwrap_or(ladder.first);
    let steps = ladder.steps.iter().enumerate().map(step);
    first
        .chain(steps)
        .chain(once(whole(ladder.steps.len() + 1, last)))
        .collect()
}

/// What a step changes, with its sign.
fn change(step: &Step) -> String {
    if step.saved.abs() < 0.005 {
        return "0".to_owned();
    }
    let sign = if step.saved > 0.0 { "−" } else { "+" };
    format!("{sign}{}", figure(step.saved.abs()))
}
