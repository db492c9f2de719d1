//! What of an experiment is drawn, and how.

use maud::Markup;

use crate::record::published::{Published, of_experiment};
use crate::record::{Axis, Experiment, Observed, Point, Series};
use crate::report::plot::{Frame, Mark, bars, lines, shade};
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
) -> Vec<Part> {
    let others = |one: &Experiment| -> Vec<Mark> {
        let marks = of_others(one, &of_experiment(published, &one.id));
        marks.into_iter().map(|(_, mark)| mark).collect()
    };
    let direction = |one: &Experiment| (one.id.replace("decrypt", "encrypt"), one.unit);
    let mut family = Vec::new();
    for one in all {
        if direction(one) == direction(experiment) {
            family.extend(measured(one));
            family.extend(others(one));
        }
    }
    let (form, places) = (form(experiment), experiment.places());
    let last = places.last().copied().unwrap_or(0);
    let drawn = match form {
        Form::Lines => {
            let drawing = as_lines(experiment, &family, others(experiment));
            return part(String::new(), drawing).into_iter().collect();
        }
        Form::BarsByPlace => &places[..],
        _ => &[last],
    };
    let mut parts = Vec::new();
    for &x in drawn {
        let here = |mark: &Mark| mark.x == x;
        let mut rows: Vec<Mark> = measured(experiment).into_iter().filter(here).collect();
        best_first(&mut rows, experiment.unit.less_is_better());
        rows.extend(others(experiment).into_iter().filter(here));
        let kin = family.iter().filter(|mark| here(mark));
        let longest = kin.map(|mark| mark.interval.1).fold(0.0, f64::max);
        let title = match form {
            Form::BarsOfThreads => format!("{last} threads, and how many times one thread"),
            Form::BarsByPlace => place(experiment.axis, x),
            _ => String::new(),
        };
        let name = format!("{}, {title}", experiment.title);
        parts.extend(part(title, bars(&name, &rows, longest)));
    }
    let counts = |what: &str, count: fn(&Observed) -> f64| counted(experiment, last, what, count);
    parts.extend(counts(
        "copied between kernel and program",
        Observed::copied,
    ));
    parts.extend(counts(
        "system calls of the server",
        Observed::calls_of_a_transfer,
    ));
    parts
}

fn part(title: String, drawing: Option<Markup>) -> Option<Part> {
    drawing.map(|drawing| Part { title, drawing })
}

fn as_lines(experiment: &Experiment, family: &[Mark], mut others: Vec<Mark>) -> Option<Markup> {
    others.sort_by_key(|mark| mark.x);
    let ends = family.iter().map(|mark| mark.interval);
    let range = ends.fold((f64::INFINITY, 0.0), |(low, high): (f64, f64), end| {
        (low.min(end.0), high.max(end.1))
    });
    let across = match experiment.axis {
        Axis::Threads => "threads",
        Axis::Clients => "clients",
        _ => "bytes of a call",
    };
    let named = |x: u64| match experiment.axis {
        Axis::Threads | Axis::Clients => x.to_string(),
        _ => place(Axis::BlockBytes, x),
    };
    let frame = Frame {
        title: &experiment.title,
        unit: experiment.unit.name(),
        across,
        range,
        places: experiment
            .places()
            .into_iter()
            .map(|x| (x, named(x)))
            .collect(),
    };
    lines(&frame, &measured(experiment), &others)
}

/// A figure, in words.
fn told(experiment: &Experiment, series: &Series, point: &Point) -> Option<String> {
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

/// All figures that were measured, those of a contender together.
fn measured(experiment: &Experiment) -> Vec<Mark> {
    let of_threads = form(experiment) == Form::BarsOfThreads;
    let mark = |index: usize, series: &Series, point: &Point| {
        let found = point.estimate(experiment.unit)?;
        let told = told(experiment, series, point)?;
        let mut mark = mark(experiment, index, point.x, found.median, told);
        mark.interval = (found.low, found.high);
        if let Some(one) = series.at(1).filter(|_| of_threads) {
            let times = found.median / one.estimate(experiment.unit)?.median;
            mark.note += &format!(" · × {times:.2}");
        }
        Some(mark)
    };
    let all = experiment.series.iter().enumerate();
    let marks = all.flat_map(|(index, series)| {
        let points = series.points.iter();
        points.filter_map(move |point| mark(index, series, point))
    });
    marks.collect()
}

/// Figures of others that have a place in its drawing. Those among lines that were measured are
/// named by letters, which the list below the plot explains.
pub(super) fn of_others<'a>(
    experiment: &Experiment,
    published: &[&'a Published],
) -> Vec<(&'a Published, Mark)> {
    let (form, places) = (form(experiment), experiment.places());
    let mut letters = 'a'..='z';
    let mark = |figure: &'a Published| {
        let (value, label) = (figure.megabytes()?, figure.label());
        let (x, name) = match form {
            Form::Lines if figure.required => (figure.x?, format!("required {value}")),
            Form::Lines => (figure.x?, letters.next().map_or(label, String::from)),
            Form::BarsByPlace => (figure.x.filter(|x| places.contains(x))?, label),
            Form::Bars | Form::BarsOfThreads => (places.last().copied().unwrap_or(0), label),
        };
        let class = if figure.required {
            "required"
        } else {
            "published"
        };
        let mark = Mark {
            class: class.to_owned(),
            name,
            note: figure.origin(),
            x,
            value,
            interval: (value, value),
            told: figure.line(),
        };
        Some((figure, mark))
    };
    comparable(experiment, published)
        .into_iter()
        .filter_map(mark)
        .collect()
}

/// A bar for each contender whose system calls were observed, at one place of the axis.
fn counted(
    experiment: &Experiment,
    x: u64,
    what: &str,
    count: fn(&Observed) -> f64,
) -> Option<Part> {
    let row = |(index, series): (usize, &Series)| {
        let value = count(series.at(x)?.observed.as_ref()?);
        let told = format!("{}: {} {what}", series.contender.name, figure(value));
        Some(mark(experiment, index, x, value, told))
    };
    let mut rows: Vec<Mark> = experiment
        .series
        .iter()
        .enumerate()
        .filter_map(row)
        .collect();
    best_first(&mut rows, true);
    let longest = rows.iter().map(|row| row.value).fold(0.0, f64::max);
    let title = format!("{}: {what}", place(experiment.axis, x));
    let drawing = bars(&title, &rows, longest);
    part(title, drawing)
}

fn mark(experiment: &Experiment, index: usize, x: u64, value: f64, told: String) -> Mark {
    let contender = &experiment.series[index].contender;
    Mark {
        class: shade(&experiment.series, index),
        name: contender.name.clone(),
        note: contender.placement.word().to_owned(),
        x,
        value,
        interval: (value, value),
        told,
    }
}

fn best_first(rows: &mut [Mark], less_is_better: bool) {
    rows.sort_by(|a, b| b.value.total_cmp(&a.value));
    if less_is_better {
        rows.reverse();
    }
}
