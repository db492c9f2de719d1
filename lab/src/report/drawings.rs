//! What of an experiment is drawn, and how.

use maud::Markup;

use crate::record::published::{Published, of_experiment};
use crate::record::{Axis, Experiment, Observed, Point, Series};
use crate::report::plot::{Mark, bars, lines, shade};
use crate::report::table::{cost, figure, interval, place, waits};
use coffer_measure::comparison::Finding;

/// What was observed of a server, and is drawn below.
const COPIED: &str = "bytes copied between kernel and program for each one delivered";
const CALLS: &str = "system calls of the server for a transfer";
type Count = fn(&Observed) -> f64;
const COUNTS: [(&str, Count); 2] = [
    (COPIED, Observed::copied),
    (CALLS, Observed::calls_of_a_transfer),
];

/// The places that have bars: few, or too far apart for lines. None where lines go over all places.
pub(super) fn bars_at(experiment: &Experiment) -> Option<Vec<u64>> {
    let mut places = experiment.places();
    match (experiment.axis, places.len()) {
        // How many times one thread all of them are is told beside their bars.
        (Axis::Threads, 2) => Some(places.split_off(1)),
        (Axis::Single | Axis::FileBytes, _) | (_, ..=2) => Some(places),
        _ => None,
    }
}

/// Those figures of others that can be set beside its own: they are MB/s, and no instructions.
pub(super) fn comparable<'a>(
    experiment: &Experiment,
    published: &[&'a Published],
) -> Vec<&'a Published> {
    let is_time = experiment.unit.is_megabytes();
    let wanted = |figure: &&&Published| is_time && figure.megabytes().is_some();
    published.iter().filter(wanted).copied().collect()
}

/// Draws it, with figures of others among the measured ones, on one scale with those that do the
/// same in the other direction.
pub(super) fn drawings(
    experiment: &Experiment,
    all: &[&Experiment],
    published: &[Published],
) -> Vec<Markup> {
    let others = |one: &Experiment| {
        let marks = of_others(one, &of_experiment(published, &one.id));
        Vec::from_iter(marks.into_iter().map(|(_, mark)| mark))
    };
    let direction = |one: &Experiment| (one.id.replace("decrypt", "encrypt"), one.unit);
    let kin = all.iter();
    let kin = kin.filter(|one| direction(one) == direction(experiment));
    let family = Vec::from_iter(kin.flat_map(|one| [measured(one), others(one)].concat()));
    let (own, mut others) = (measured(experiment), others(experiment));
    let Some(places) = bars_at(experiment) else {
        others.sort_by_key(|mark| mark.x);
        return Vec::from_iter(lines(experiment, &own, &others, &family));
    };
    let at = |marks: &[Mark], x: u64| -> Vec<Mark> {
        marks.iter().filter(|mark| mark.x == x).cloned().collect()
    };
    let mut drawings = Vec::new();
    for &x in &places {
        let mut rows = best_first(at(&own, x), experiment.unit.less_is_better());
        let mut title = place(experiment.axis, x);
        if experiment.axis == Axis::Threads && x > 1 {
            title += ", and how many times one thread; “?” where the samples don’t tell";
            for row in &mut rows {
                row.note += &times_one(experiment, &row.name, x).unwrap_or_default();
            }
        }
        rows.extend(at(&others, x));
        drawings.extend(bars(&experiment.title, &title, &rows, &at(&family, x)));
    }
    for (what, count) in COUNTS {
        let counted = marks(experiment, |point| {
            let value = count(point.observed.as_ref()?);
            Some((value, (value, value), format!("{} {what}", figure(value))))
        });
        let last = places.last().copied().unwrap_or(0);
        let rows = best_first(at(&counted, last), true);
        let title = format!("{}: {what}; less is better", place(experiment.axis, last));
        drawings.extend(bars(&experiment.title, &title, &rows, &rows));
    }
    drawings
}

/// How many times one thread, by the rounds: whether all threads do more than one is not told by
/// figures of different times.
fn times_one(experiment: &Experiment, name: &str, x: u64) -> Option<String> {
    let series = experiment.of(name)?;
    let found = series.at(x)?.compared(series.at(1)?, experiment.unit)?;
    let (times, range) = (figure(found.ratio.median), interval(&found.ratio));
    let doubt = ["", " ?"][usize::from(found.finding == Finding::CannotTell)];
    Some(format!(" · × {times}{range}{doubt}"))
}

fn best_first(mut rows: Vec<Mark>, less_is_better: bool) -> Vec<Mark> {
    let sign = if less_is_better { 1.0 } else { -1.0 };
    rows.sort_by(|a, b| (sign * a.value).total_cmp(&(sign * b.value)));
    rows
}

/// A mark for each point that has a figure: how much, within which interval, and in words.
fn marks(
    experiment: &Experiment,
    figure: impl Fn(&Point) -> Option<(f64, (f64, f64), String)>,
) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (index, Series { contender, points }) in experiment.series.iter().enumerate() {
        for point in points {
            let Some((value, interval, told)) = figure(point) else {
                continue;
            };
            let (place, note) = (place(experiment.axis, point.x), contender.placement.word());
            let at = if place.is_empty() { "" } else { ", " };
            marks.push(Mark {
                class: shade(&experiment.series, index),
                name: contender.name.clone(),
                note: note.to_owned(),
                x: point.x,
                value,
                interval,
                told: format!("{} ({note}){at}{place}: {told}", contender.name),
            });
        }
    }
    marks
}

/// All figures that were measured, those of a contender together.
fn measured(experiment: &Experiment) -> Vec<Mark> {
    let unit = experiment.unit;
    marks(experiment, |point| {
        let found = point.estimate(unit)?;
        let mut told = format!("{} {}", figure(found.median), unit.name());
        if found.low < found.high {
            told += &format!(", {} to {}", figure(found.low), figure(found.high));
        }
        let cost = cost(point, unit).map(|cost| format!("{cost} {}", unit.cost()));
        for more in waits(experiment, point).into_iter().chain(cost) {
            told += &format!("; {more}");
        }
        Some((found.median, (found.low, found.high), told))
    })
}

/// Figures of others that have a place in its drawing. Those among lines that were measured are
/// named by letters, which the list below the plot explains.
pub(super) fn of_others<'a>(
    experiment: &Experiment,
    published: &[&'a Published],
) -> Vec<(&'a Published, Mark)> {
    let places = bars_at(experiment);
    // Of one process is no figure of two threads.
    let fits = |figure: &Published, place: u64| {
        experiment.axis == Axis::Single || figure.x.is_none_or(|x| x == place)
    };
    let mut letters = 'a'..='z';
    let mark = |figure: &'a Published| {
        let (value, label) = (figure.megabytes()?, figure.label());
        let (x, name) = match places.as_deref() {
            None if figure.required => (figure.x?, format!("required {value}")),
            None => (figure.x?, letters.next().map_or(label, String::from)),
            Some(&[place]) if fits(figure, place) => (place, label),
            Some(places) => (figure.x.filter(|x| places.contains(x))?, label),
        };
        let mark = Mark {
            class: figure.word().to_owned(),
            name,
            note: figure.origin(),
            x,
            value,
            interval: (value, value),
            told: figure.line(),
        };
        Some((figure, mark))
    };
    let comparable = comparable(experiment, published).into_iter();
    comparable.filter_map(mark).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::Unit;
    use crate::record::planted::{experiment, point, series};
    use crate::record::published::published;

    fn threads(id: &str, points: Vec<Point>) -> Experiment {
        let all = vec![series("openssl speed", Placement::User, points)];
        let mut threads = experiment(id, Unit::MegabytesPerSecond, all);
        threads.axis = Axis::Threads;
        threads
    }

    /// The machine was slowed down for a while: its medians are of different rounds.
    #[test]
    fn threads_are_compared_with_one_thread_of_the_same_round() {
        let one = [100.0, 100.0, 100.0, 100.0, 50.0, 50.0];
        let drawn = |two: &[f64]| {
            let threads = threads("raw/x", vec![point(1, &one), point(2, two)]);
            drawings(&threads, &[&threads], &[])[0].0.clone()
        };
        let told = drawn(&[130.0, 130.0, 120.0, 120.0, 62.0, 62.0]);
        assert!(told.contains("user · × 1.24 (1.20–1.30)<"), "{told}");
        // Their medians say 0.90.
        let unsure = drawn(&[90.0, 90.0, 110.0, 110.0, 60.0, 60.0]);
        assert!(unsure.contains("user · × 1.10 (0.90–1.20) ?<"), "{unsure}");
    }

    /// A's are of one process and of four; the bars are of two threads.
    #[test]
    fn figures_of_other_places_are_no_bars() {
        let published = published().unwrap();
        let drawn = |most| {
            let points = [1, most].map(|x| point(x, &[1.0])).into();
            let threads = threads("raw/openssl-speed", points);
            let all = of_others(&threads, &of_experiment(&published, &threads.id));
            Vec::from_iter(all.iter().map(|(_, mark)| mark.x))
        };
        assert!(drawn(2).is_empty());
        let four = drawn(4);
        assert!(!four.is_empty() && four.iter().all(|x| *x == 4), "{four:?}");
    }
}
