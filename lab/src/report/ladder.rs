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
    let (first, Ladder { steps, .. }) = ladders.first()?;
    if ladders
        .iter()
        .any(|(_, one)| one.steps.len() != steps.len())
    {
        return None;
    }
    let begin = first.series.first().map_or("", |one| &one.contender.name);
    let between = steps.iter().map(|step| step.name.as_str());
    let names = once(begin).chain(between).chain(once("all steps"));
    let columns = Vec::from_iter(ladders.iter().map(|(one, ladder)| column(one, ladder)));
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

/// What the first kernel costs, what each step saves, and what the last one costs: a bar each.
fn column(experiment: &Experiment, ladder: &Ladder) -> Vec<Markup> {
    let unit = shares::unit(experiment.unit);
    let whole = |cost: f64| ((0.0, cost), figure(cost), format!(": {}", figure(cost)));
    let step = |step: &Step| {
        let (after, before) = (step.cost, step.cost + step.saved);
        let (saved, share) = (shares::saved(step), shares::percent(step.share));
        let (name, cost) = (&step.name, figure(after));
        let told = format!(", {name}: {saved} saved; its share: {share}; then {cost}");
        let ends = (after.min(before), after.max(before));
        (ends, format!("saves {saved}"), told)
    };
    let costs = || once(ladder.first).chain(ladder.steps.iter().map(|step| step.cost));
    let (most, last) = (costs().fold(0.0, f64::max), costs().last());
    let cells = once(whole(ladder.first)).chain(ladder.steps.iter().map(step));
    let cells = cells.chain(last.map(whole)).enumerate();
    let drawn = cells.map(|(row, ((from, to), shown, told))| {
        let drawn = html! { (bar((from / most, to / most), None)) b { (shown) } };
        let told = format!("{}{told} {unit}", experiment.title);
        value(&shade(&experiment.series, 0), &told, row, None, &drawn)
    });
    drawn.collect()
}
