//! Every figure of an experiment as text, a row for each point.

use maud::{Markup, html};

use crate::contender::Availability;
use crate::record::{Axis, Experiment, Point, Series};
use crate::report::columns;
use crate::report::table::{cost, figure, none_ended, place, within};

/// Every figure of an experiment.
pub(super) fn figures(experiment: &Experiment) -> Markup {
    let mut points = experiment.series.iter().flat_map(|series| &series.points);
    let timed = points.clone().any(|point| point.latency().is_some());
    let observed = points.clone().any(|point| point.observed.is_some());
    let counted = points.any(|point| point.switches_of_a_transfer().is_some());
    let wanted = Columns {
        timed,
        counted,
        observed,
    };
    let at = (experiment.axis != Axis::Single).then_some("at");
    let mut heads: Vec<&str> = ["contender"].into_iter().chain(at).collect();
    heads.extend(["median", "interval", "sure", experiment.unit.cost()]);
    heads.extend((experiment.axis == Axis::Clients).then_some("each client"));
    heads.extend(
        timed
            .then_some(["half within, µs", "95 %", "99 %"])
            .into_iter()
            .flatten(),
    );
    heads.extend(counted.then_some("switches"));
    let calls = ["calls", "copied", "in kernel"];
    heads.extend(observed.then_some(calls).into_iter().flatten());
    html! {
        table {
            caption { (experiment.title) ", " (experiment.unit.name()) }
            (columns(&heads))
            tbody {
                @for series in &experiment.series {
                    @for point in &series.points {
                        (figures_row(experiment, series, point, wanted))
                    }
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

/// Which columns there are, as one of an experiment's points has figures for them. The others have
/// none there.
#[derive(Clone, Copy)]
struct Columns {
    timed: bool,
    counted: bool,
    observed: bool,
}

impl Columns {
    fn cells(self, experiment: &Experiment, point: &Point) -> Vec<String> {
        let none = || NOT_MEASURED.to_owned();
        let mut cells = Vec::new();
        if self.timed {
            cells.extend(within(experiment, point).unwrap_or_else(|| [0; 3].map(|_| none())));
        }
        if self.counted {
            cells.push(point.switches_of_a_transfer().map_or_else(none, figure));
        }
        if self.observed {
            cells.extend(match &point.observed {
                None => [0; 3].map(|_| none()),
                Some(one) => {
                    [one.calls_of_a_transfer(), one.copied(), one.moved_within()].map(figure)
                }
            });
        }
        cells
    }
}

/// What stands in a cell where a point has no figure.
const NOT_MEASURED: &str = "";

fn figures_row(
    experiment: &Experiment,
    series: &Series,
    point: &Point,
    columns: Columns,
) -> Markup {
    html! {
        @let unit = experiment.unit;
        @if let (Some(found), Some(cost)) = (point.estimate(unit), cost(point, unit)) {
            tr {
                th scope="row" { (series.contender.name) }
                @if experiment.axis != Axis::Single { td { (place(experiment.axis, point.x)) } }
                td { (figure(found.median)) }
                @if experiment.unit.counts_instructions() && found.low == found.high {
                    td { "counted" }
                    td { "–" }
                } @else {
                    td { (figure(found.low)) "–" (figure(found.high)) }
                    td { (format!("{:.0} %", found.confidence * 100.0)) }
                }
                td { (cost) }
                @if experiment.axis == Axis::Clients {
                    td { (figure(found.median / point.x as f64)) }
                }
                @for told in columns.cells(experiment, point) { td { (told) } }
            }
        } @else if let Some(told) = none_ended(point, unit) {
            tr.absent {
                th scope="row" { (series.contender.name) }
                @if experiment.axis != Axis::Single { td { (place(experiment.axis, point.x)) } }
                td.words colspan="5" { (told) }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::planted::{experiment, point, series};
    use crate::record::{Counts, Latency, Unit};

    /// A contender whose requests were not timed stands among others whose were.
    #[test]
    fn a_figure_that_is_missing_moves_no_other() {
        let [mut timed, mut plain] = [1, 2].map(|_| point(0, &[100.0; 6]));
        for sample in timed.samples.iter_mut().chain(&mut plain.samples) {
            sample.counts = Some(Counts {
                transfers: 100,
                context_switches: Some(700),
            });
        }
        for sample in &mut timed.samples {
            sample.latency = Some(Latency {
                half: 1e-6,
                most: 2e-6,
                nearly_all: 3e-6,
            });
        }
        let all = vec![
            series("timed", Placement::User, vec![timed]),
            series("plain", Placement::User, vec![plain]),
        ];
        let drawn = figures(&experiment("sendfile/x", Unit::MegabytesPerSecond, all)).into_string();
        let rows: Vec<&str> = drawn.split("<tr>").skip(2).collect();
        let cells = |row: &str| row.matches("<td>").count();
        assert_eq!((rows.len(), cells(rows[0])), (2, cells(rows[1])), "{drawn}");
        assert!(rows[0].contains("<td>3.00</td><td>7.00</td>"), "{drawn}");
        assert!(rows[1].contains("<td></td><td>7.00</td>"), "{drawn}");
    }
}
