//! What of an experiment is drawn, and how.

use maud::Markup;

use crate::record::published::{Published, of_experiment};
use crate::record::{Axis, Experiment, Observed, Point, Series};
use crate::report::plot::{Bar, Frame, Line, Mark, Spot, bars, lines, longest, shade};
use crate::report::table::{cost, figure, place};

/// A drawing, and what stands above it.
pub(super) struct Part {
    pub(super) title: String,
    pub(super) drawing: Markup,
}

/// How an experiment is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines over an axis.
    Lines,
    /// A bar for each contender: there is no axis, or one place of it.
    Bars,
    /// Bars for each place: there are two of them, or they lie too far apart for lines.
    BarsByPlace,
    /// A bar for each contender with all cores, and how many times one thread that is.
    BarsOfThreads,
}

pub(super) fn form(experiment: &Experiment) -> Form {
    match (experiment.axis, experiment.places().len()) {
        (Axis::Single, _) | (_, 0 | 1) => Form::Bars,
        (Axis::Threads, 2) => Form::BarsOfThreads,
        (Axis::FileBytes, _) | (_, 2) => Form::BarsByPlace,
        _ => Form::Lines,
    }
}

/// Those of its figures that can stand in its plot: they are MB/s, and no instructions.
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
) -> Vec<Part> {
    let of_others = of_experiment(published, &experiment.id);
    let of_others = comparable(experiment, &of_others);
    let kin = |one: &&&Experiment| {
        family(&one.id) == family(&experiment.id) && one.unit == experiment.unit
    };
    let family: Vec<&Experiment> = all.iter().filter(kin).copied().collect();
    let places = experiment.places();
    let last = places.last().copied().unwrap_or(0);
    if form(experiment) == Form::Lines {
        let drawing = as_lines(experiment, &of_others, range(&family, published));
        return part(String::new(), drawing).into_iter().collect();
    }
    let drawn = match form(experiment) {
        Form::BarsByPlace => &places[..],
        _ => &[last],
    };
    let mut parts = Vec::new();
    for &x in drawn {
        let mut rows = rows(experiment, x);
        let others = of_others.iter();
        rows.extend(others.filter_map(|one| row_of_others(one, x, drawn.len())));
        let kin = family.iter().map(|one| longest(&self::rows(one, x)));
        let end = kin.fold(longest(&rows), f64::max);
        let title = match form(experiment) {
            Form::BarsOfThreads => format!("{last} threads, and how many times one thread"),
            Form::BarsByPlace => place(experiment.axis, x),
            _ => String::new(),
        };
        let name = format!("{}, {title}", experiment.title);
        parts.extend(part(title, bars(&name, &rows, end)));
    }
    let counts = |what: &str, count: fn(&Observed) -> f64| counted(experiment, last, what, count);
    let copied = "copied between kernel and program";
    parts.extend(counts(copied, Observed::copied));
    let calls = "system calls of the server";
    parts.extend(counts(calls, Observed::calls_of_a_transfer));
    parts
}

fn part(title: String, drawing: Option<Markup>) -> Option<Part> {
    Some(Part {
        title,
        drawing: drawing?,
    })
}

/// The same for both directions.
fn family(id: &str) -> String {
    id.replace("decrypt", "encrypt")
}

/// From the least to the greatest figure, also of others.
fn range(family: &[&Experiment], published: &[Published]) -> (f64, f64) {
    let ends = family.iter().flat_map(|one| {
        let points = one.series.iter().flat_map(|series| &series.points);
        let measured = points.filter_map(|point| point.estimate(one.unit));
        let figures = comparable(one, &of_experiment(published, &one.id));
        let of_others = marks(one, &figures).into_iter();
        let measured = measured.flat_map(|found| [found.low, found.high]);
        measured.chain(of_others.map(|(_, mark)| mark.value))
    });
    ends.fold((f64::INFINITY, 0.0), |(low, high), end| {
        (low.min(end), high.max(end))
    })
}

fn as_lines(
    experiment: &Experiment,
    published: &[&Published],
    range: (f64, f64),
) -> Option<Markup> {
    let spot = |series: &Series, point: &Point| {
        Some(Spot {
            x: point.x,
            estimate: point.estimate(experiment.unit)?,
            told: told(experiment, series, point)?,
        })
    };
    let all = experiment.series.iter().enumerate();
    let measured = all.filter(|(_, series)| !series.points.is_empty());
    let drawn = measured.map(|(index, series)| {
        let points = series.points.iter();
        Line {
            class: shade(&experiment.series, index),
            name: series.contender.name.clone(),
            points: points.filter_map(|point| spot(series, point)).collect(),
        }
    });
    let (across, bare): (&str, fn(u64) -> String) = match experiment.axis {
        Axis::Threads => ("threads", |x| x.to_string()),
        Axis::Clients => ("clients", |x| x.to_string()),
        _ => ("bytes of a call", |x| place(Axis::BlockBytes, x)),
    };
    let places = experiment.places().into_iter();
    let frame = Frame {
        title: &experiment.title,
        unit: experiment.unit.name(),
        across,
        range,
        places: places.map(|x| (x, bare(x))).collect(),
    };
    let marks = marks(experiment, published).into_iter();
    let marks: Vec<Mark> = marks.map(|(_, mark)| mark).collect();
    lines(&frame, &drawn.collect::<Vec<_>>(), &marks)
}

/// A figure, in words.
pub(super) fn told(experiment: &Experiment, series: &Series, point: &Point) -> Option<String> {
    let found = point.estimate(experiment.unit)?;
    let (who, unit) = (&series.contender, experiment.unit.name());
    let at = place(experiment.axis, point.x);
    let at = if at.is_empty() { at } else { format!(", {at}") };
    let mut told = format!("{} ({}){at}: ", who.name, who.placement.word());
    told += &format!("{} {unit}", figure(found.median));
    if found.low < found.high {
        told += &format!(", {} to {}", figure(found.low), figure(found.high));
    }
    if let Some(took) = point.latency() {
        let within = [took.half, took.most, took.nearly_all].map(|one| figure(one * 1e6));
        let [half, most, nearly_all] = within;
        told += &format!("; 50 % of requests within {half} µs, 95 % {most}, 99 % {nearly_all}");
    }
    if let Some(cost) = cost(point) {
        told += &format!("; {cost} {}", experiment.unit.cost());
    }
    Some(told)
}

/// Figures of others that have a place among lines. Those that were measured are named by letters,
/// which the list below the plot explains.
pub(super) fn marks<'a>(
    experiment: &Experiment,
    published: &[&'a Published],
) -> Vec<(&'a Published, Mark)> {
    if form(experiment) != Form::Lines {
        return Vec::new();
    }
    let mut letters = 'a'..='z';
    let mark = |&figure: &&'a Published| {
        let (x, value) = (figure.x?, figure.megabytes()?);
        let mark = Mark {
            x,
            value,
            label: if figure.required {
                format!("required {value}")
            } else {
                letters.next().map_or(String::new(), String::from)
            },
            title: figure.line(),
            required: figure.required,
        };
        Some((figure, mark))
    };
    published.iter().filter_map(mark).collect()
}

/// A bar for each contender that was measured, at one place of the axis, the best first.
fn rows(experiment: &Experiment, x: u64) -> Vec<Bar> {
    let row = |index: usize, series: &Series| {
        let point = series.at(x)?;
        let found = point.estimate(experiment.unit)?;
        let mut bar = bar(
            experiment,
            index,
            found.median,
            told(experiment, series, point)?,
        );
        bar.interval = (found.low < found.high).then_some((found.low, found.high));
        if form(experiment) == Form::BarsOfThreads
            && let Some(one) = series.at(1).and_then(|one| one.estimate(experiment.unit))
        {
            bar.note += &format!(" · × {:.2}", found.median / one.median);
        }
        Some(bar)
    };
    sorted(experiment, row, experiment.unit.less_is_better())
}

/// A bar for each contender whose system calls were observed, at one place of the axis.
fn counted(
    experiment: &Experiment,
    x: u64,
    what: &str,
    count: fn(&Observed) -> f64,
) -> Option<Part> {
    let row = |index: usize, series: &Series| {
        let value = count(series.at(x)?.observed.as_ref()?);
        let told = format!("{}: {} {what}", series.contender.name, figure(value));
        Some(bar(experiment, index, value, told))
    };
    let rows = sorted(experiment, row, true);
    let title = format!("{}: {what}", place(experiment.axis, x));
    let drawing = bars(&title, &rows, longest(&rows));
    part(title, drawing)
}

fn bar(experiment: &Experiment, index: usize, value: f64, told: String) -> Bar {
    let contender = &experiment.series[index].contender;
    Bar {
        class: shade(&experiment.series, index),
        name: contender.name.clone(),
        note: contender.placement.word().to_owned(),
        value,
        interval: None,
        told,
    }
}

fn sorted(
    experiment: &Experiment,
    row: impl Fn(usize, &Series) -> Option<Bar>,
    less_is_better: bool,
) -> Vec<Bar> {
    let all = experiment.series.iter().enumerate();
    let mut rows: Vec<Bar> = all.filter_map(|(index, one)| row(index, one)).collect();
    rows.sort_by(|a, b| b.value.total_cmp(&a.value));
    if less_is_better {
        rows.reverse();
    }
    rows
}

/// Of others: all where there is one drawing, else those of its place.
fn row_of_others(figure: &Published, x: u64, drawn: usize) -> Option<Bar> {
    let value = figure.megabytes()?;
    let here = drawn == 1 || figure.x == Some(x);
    let class = ["published", "required"][usize::from(figure.required)];
    here.then(|| Bar {
        class: class.to_owned(),
        name: figure.label(),
        note: figure.origin(),
        value,
        interval: None,
        told: figure.line(),
    })
}
