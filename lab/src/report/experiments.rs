//! The experiments: a plot each, its figures, its method.

mod figures;

use maud::{Markup, html};

use crate::contender::{Availability, Contender};
use crate::raw::memory::ID as MEMORY_COPY;
use crate::record::published::{Published, of_experiment};
use crate::record::{Experiment, Record};
use crate::report::beside;
use crate::report::columns;
use crate::report::drawings::{comparable, drawings};
use crate::report::experiments::figures::figures;
use crate::report::ladder::waterfall;
use crate::report::requirements::requirements;
use crate::report::table::{FEW_REQUESTS, NOT_TOLD, counterparts, warnings, within};

/// Experiments that belong together: the same contenders, other directions.
pub(super) struct Group<'a> {
    pub(super) anchor: String,
    pub(super) title: String,
    pub(super) experiments: Vec<&'a Experiment>,
}

pub(super) fn groups(record: &Record) -> Vec<Group<'_>> {
    let mut groups: Vec<Group<'_>> = Vec::new();
    for experiment in &record.experiments {
        let anchor = anchor(&experiment.id);
        match groups.iter_mut().find(|group| group.anchor == anchor) {
            Some(group) => group.experiments.push(experiment),
            None => groups.push(Group {
                title: title(&anchor, experiment),
                anchor,
                experiments: vec![experiment],
            }),
        }
    }
    groups.sort_by_key(|group| rank(&group.anchor));
    groups
}

/// What lies nearest to an operator's work comes first, ciphers last.
fn rank(anchor: &str) -> usize {
    const ORDER: [&str; 6] = ["file", "sendfile", "net", "server", "kernel", "raw-"];
    let family = ORDER.iter().position(|begins| anchor.starts_with(begins));
    family.unwrap_or(ORDER.len())
}

/// The section of an experiment: `raw/aes-256-gcm/encrypt` stands in `raw-aes-256-gcm`,
/// `raw/table-a-loop` with its likes in `raw`, `net/stream` in `net`.
pub(super) fn anchor(id: &str) -> String {
    match id.split('/').collect::<Vec<_>>()[..] {
        [first, second, _] => format!("{first}-{second}"),
        [first, ..] => first.to_owned(),
        [] => String::new(),
    }
}

/// What stands above a section.
fn title(anchor: &str, experiment: &Experiment) -> String {
    let told = match anchor {
        "raw" => "The published loops",
        "file" => "Files",
        "sendfile" => "From file to network",
        "net" => "Links",
        "server-upload" => "Servers that encrypt and keep what clients upload",
        "server" => "Servers that encrypt what clients ask for",
        "kernel-configs" => "What a kernel’s configuration costs",
        _ => experiment.title.split(',').next().unwrap_or(""),
    };
    told.to_owned()
}

pub(super) fn section(group: &Group<'_>, record: &Record, published: &[Published]) -> Markup {
    let all = &group.experiments;
    let waterfall = waterfall(all, published);
    html! {
        section id=(group.anchor) {
            h2 { (group.title) }
            @if let Some(missing) = without_memory(group, record) { (missing) }
            div.plots {
                @if let Some(drawn) = waterfall {
                    (drawn)
                    @for experiment in all { (behind(experiment, published)) }
                } @else {
                    @for experiment in all { (one(experiment, all, published)) }
                }
            }
            (contenders(&everybody(group)))
        }
    }
}

/// What stands with ciphers where there is no figure of what memory gives.
fn without_memory(group: &Group<'_>, record: &Record) -> Option<Markup> {
    let is_cipher = group.anchor.starts_with("raw-") && anchor(MEMORY_COPY) != group.anchor;
    let measured = |one: &Experiment| !one.places().is_empty();
    if !is_cipher || record.experiment(MEMORY_COPY).is_some_and(measured) {
        return None;
    }
    let mut all = group.experiments.iter();
    let is_counted = all.any(|one| one.unit.counts_instructions());
    Some(html! {
        p.quiet {
            @if is_counted {
                "What memory gives is missing here: where instructions are counted, none is "
                "simulated."
            } @else {
                "What memory gives (raw/memory/copy) is missing in this record: whether it sets a "
                "limit to these speeds is not told. " code { "coffer-lab raw --json FILE.json" }
                " measures it, where 1 GiB of memory is available, or eight times what the caches "
                "of the last level hold together where that is more."
            }
        }
    })
}

fn one(experiment: &Experiment, all: &[&Experiment], published: &[Published]) -> Markup {
    let of_others = of_experiment(published, &experiment.id);
    let comparable = comparable(experiment, &of_others);
    let parts = drawings(experiment, all, published);
    html! {
        figure.wide[parts.len() > 1] {
            figcaption {
                h3 { (experiment.title) }
                p.axis { (unit(experiment)) }
            }
            @if parts.is_empty() { p.empty { "Not measured here: no contender could run this." } }
            div.parts {
                @for part in &parts { div { (part) } }
            }
            (absentees(experiment))
            (beside::list(experiment, &of_others))
            (requirements(experiment, &comparable))
            @for sentence in counterparts(experiment) { p { (sentence) } }
            @let cautions = warnings(experiment).join("; ");
            @if !cautions.is_empty() { p.warning role="note" { (cautions) } }
            (behind(experiment, published))
        }
    }
}

/// What figures are, and which of two is the better one.
fn unit(experiment: &Experiment) -> String {
    let better = if experiment.unit.less_is_better() {
        "less"
    } else {
        "more"
    };
    format!("{}; {better} is better", experiment.unit.name())
}

/// Every figure as text, and how it was measured.
fn behind(experiment: &Experiment, published: &[Published]) -> Markup {
    html! {
        details {
            summary { "Figures: " (experiment.title) }
            div.scroll { (figures(experiment)) }
            @if has_few_requests(experiment) {
                p.quiet { (NOT_TOLD) " in place of a share: " (FEW_REQUESTS) "." }
            }
            (beside::table(&of_experiment(published, &experiment.id)))
            p.quiet { (experiment.how) }
        }
    }
}

/// Whether a share of requests can't be told of one of its figures.
fn has_few_requests(experiment: &Experiment) -> bool {
    let mut points = experiment.series.iter().flat_map(|series| &series.points);
    points.any(|point| {
        within(experiment, point).is_some_and(|told| told.contains(&NOT_TOLD.to_owned()))
    })
}

fn absentees(experiment: &Experiment) -> Markup {
    let all = experiment.series.iter().map(|series| &series.contender);
    let absent = all.filter(|one| !one.availability.runs());
    let absent: Vec<&str> = absent.map(|one| one.name.as_str()).collect();
    html! {
        @if !absent.is_empty() {
            p.absentees { "Can’t run here: " (absent.join(" · ")) }
        }
    }
}

/// All who took part in any experiment of a group, each once.
fn everybody<'a>(group: &Group<'a>) -> Vec<&'a Contender> {
    let mut everybody: Vec<&Contender> = Vec::new();
    for series in group.experiments.iter().flat_map(|one| &one.series) {
        let one = &series.contender;
        if everybody.iter().all(|known| known.name != one.name) {
            everybody.push(one);
        }
    }
    everybody
}

/// Who took part, with which settings, and what the others would need.
fn contenders(everybody: &[&Contender]) -> Markup {
    html! {
        details.contenders {
            summary { "Contenders and their settings" }
            div.scroll {
                table {
                    (columns(&["contender", "where", "runs on", "settings"]))
                    tbody {
                        @for one in everybody {
                            tr {
                                th scope="row" { (one.name) }
                                td.words { (one.placement.word()) }
                                @if let Availability::CannotRun { why, what_would_make_it_run }
                                    = &one.availability {
                                    td.words colspan="2" {
                                        "Can’t run here: " (why) ". It would need: "
                                        (what_would_make_it_run) "."
                                    }
                                } @else {
                                    td.words { (one.runs_on) }
                                    td.words { (one.settings.join("; ")) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::Unit;
    use crate::record::planted::{self, experiment, point, series};

    #[test]
    fn ciphers_say_that_memory_was_not_measured() {
        let time = Unit::MegabytesPerCpuSecond;
        let of = |id: &str, unit| {
            let all = vec![series("one", Placement::User, vec![point(0, &[1.0])])];
            experiment(id, unit, all)
        };
        let said = |experiments: Vec<Experiment>| {
            let record = planted::record(experiments);
            let groups = groups(&record);
            let sections = groups.iter().map(|group| section(group, &record, &[]));
            sections.map(Markup::into_string).collect::<String>()
        };
        let alone = said(vec![
            of("raw/aes-256-gcm/encrypt", time),
            of("net/stream", time),
        ]);
        for part in ["is missing in this record", "<code>coffer-lab raw --json"] {
            assert_eq!(alone.matches(part).count(), 1, "{alone}");
        }
        let both = said(vec![
            of("raw/aes-256-gcm/encrypt", time),
            of(MEMORY_COPY, time),
        ]);
        assert!(!both.contains("is missing"), "{both}");
        let counted = Unit::BytesPerThousandInstructions;
        let counted = said(vec![of("raw/aes-256-gcm/encrypt", counted)]);
        assert!(
            counted.contains("where instructions are counted"),
            "{counted}"
        );
    }
}
