//! The experiments: a plot each, its legend, its figures, its method.

use maud::{Markup, html};

use crate::contender::{Availability, Contender, Placement};
use crate::record::published::{Published, of_experiment};
use crate::record::{Axis, Experiment, Point, Record, Series};
use crate::report::beside;
use crate::report::drawings::drawings;
use crate::report::ladder::ladder;
use crate::report::plot::colour;
use crate::report::requirements::requirements;
use crate::report::table::{cost, counterparts, figure, place, warnings};

/// Experiments that belong together: the same contenders, other directions.
pub(super) struct Group<'a> {
    pub(super) anchor: String,
    pub(super) title: String,
    experiments: Vec<&'a Experiment>,
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
    groups
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
        "server" => "Servers",
        "kernel-configs" => "What a kernel’s configuration costs",
        _ => experiment.title.split(',').next().unwrap_or(""),
    };
    told.to_owned()
}

pub(super) fn section(group: &Group<'_>, published: &[Published]) -> Markup {
    html! {
        section id=(group.anchor) {
            h2 { (group.title) }
            div.plots {
                @for experiment in &group.experiments {
                    (one(experiment, &of_experiment(published, &experiment.id)))
                }
            }
            (contenders(&everybody(group)))
        }
    }
}

fn one(experiment: &Experiment, published: &[&Published]) -> Markup {
    let comparable = beside::comparable(experiment, published);
    let parts = drawings(experiment, &comparable);
    let wide = parts.len() > 1;
    html! {
        figure.wide[wide] {
            figcaption {
                h3 { (experiment.title) }
                @if experiment.unit.counts_instructions() {
                    p.quiet { (experiment.unit.name()) }
                }
            }
            @if parts.is_empty() { p.empty { "Not measured here: no contender could run this." } }
            div.parts {
                @for part in &parts {
                    div {
                        @if let Some(title) = &part.title { h4 { (title) } }
                        (part.drawing)
                    }
                }
            }
            @if experiment.axis != Axis::Single && !wide { (legend(experiment)) }
            (beside::list(experiment, published))
            (requirements(experiment, &comparable))
            @for sentence in counterparts(experiment) { p { (sentence) } }
            (ladder(experiment, published))
            @let cautions = warnings(experiment).join("; ");
            @if !cautions.is_empty() { p.warning role="note" { (cautions) } }
            details {
                summary { "Figures" }
                div.scroll { (figures(experiment)) }
                (beside::table(published))
                p.quiet { (experiment.how) }
            }
        }
    }
}

fn legend(experiment: &Experiment) -> Markup {
    let absent = experiment
        .series
        .iter()
        .filter(|one| !one.contender.availability.runs());
    let absent: Vec<&str> = absent.map(|one| one.contender.name.as_str()).collect();
    html! {
        ul.legend {
            @for (index, series) in experiment.series.iter().enumerate() {
                @if series.contender.availability.runs() {
                    li class=(colour(index)) {
                        span.swatch.dashed[series.contender.placement == Placement::Kernel] {}
                        (series.contender.name)
                    }
                }
            }
        }
        @if !absent.is_empty() {
            p.absentees { "Can’t run here: " (absent.join(" · ")) }
        }
    }
}

fn figures(experiment: &Experiment) -> Markup {
    let mut points = experiment.series.iter().flat_map(|series| &series.points);
    let counted = points.any(|point| point.switches_of_a_transfer().is_some());
    html! {
        table {
            caption { (experiment.title) ", " (experiment.unit.name()) }
            thead {
                tr {
                    th scope="col" { "contender" }
                    @if experiment.axis != Axis::Single { th scope="col" { "at" } }
                    th scope="col" { "median" }
                    th scope="col" { "interval" }
                    th scope="col" { "sure" }
                    th scope="col" { (experiment.unit.cost()) }
                    @if experiment.axis == Axis::Clients { th scope="col" { "each client" } }
                    @if counted {
                        th scope="col" { "switches" }
                        th scope="col" { "calls" }
                        th scope="col" { "copied" }
                        th scope="col" { "in kernel" }
                    }
                }
            }
            tbody {
                @for series in &experiment.series {
                    @for point in &series.points { (figures_row(experiment, series, point)) }
                    @if series.points.is_empty() {
                        tr.absent {
                            th scope="row" { (series.contender.name) }
                            td.words colspan="5" { (why(series)) }
                        }
                    }
                }
            }
        }
    }
}

fn figures_row(experiment: &Experiment, series: &Series, point: &Point) -> Markup {
    html! {
        @if let (Some(found), Some(cost)) = (point.estimate(experiment.unit), cost(point)) {
            tr {
                th scope="row" { (series.contender.name) }
                @if experiment.axis != Axis::Single { td { (place(experiment.axis, point.x)) } }
                td { (figure(found.median)) }
                td { (figure(found.low)) "–" (figure(found.high)) }
                td { (format!("{:.0} %", found.confidence * 100.0)) }
                td { (cost) }
                @if experiment.axis == Axis::Clients {
                    td { (figure(found.median / point.x as f64)) }
                }
                @if let Some(switches) = point.switches_of_a_transfer() {
                    td { (figure(switches)) }
                }
                @if let Some(observed) = &point.observed {
                    td { (figure(observed.calls_of_a_transfer())) }
                    td { (figure(observed.copied())) }
                    td { (figure(observed.moved_within())) }
                }
            }
        }
    }
}

fn why(series: &Series) -> String {
    match &series.contender.availability {
        Availability::Runs => "gave no figure".to_owned(),
        Availability::CannotRun { why, .. } => format!("can’t run here: {why}"),
    }
}

/// All who took part in any experiment of a group, each once.
fn everybody<'a>(group: &Group<'a>) -> Vec<&'a Contender> {
    let mut everybody: Vec<&Contender> = Vec::new();
    for series in group
        .experiments
        .iter()
        .flat_map(|experiment| &experiment.series)
    {
        if !everybody
            .iter()
            .any(|known| known.name == series.contender.name)
        {
            everybody.push(&series.contender);
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
                    thead {
                        tr {
                            th scope="col" { "contender" }
                            th scope="col" { "where" }
                            th scope="col" { "runs on" }
                            th scope="col" { "settings" }
                        }
                    }
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
