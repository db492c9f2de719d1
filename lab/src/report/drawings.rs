//! What of an experiment is drawn, and how.

use maud::Markup;

use crate::contender::Placement;
use crate::record::published::Published;
use crate::record::{Axis, Experiment, Observed, Series};
use crate::report::plot::{Bar, Line, Mark, bars, lines};
use crate::report::table::place;

/// A drawing, and what stands above it where there are several.
pub(super) struct Part {
    pub(super) title: Option<String>,
    pub(super) drawing: Markup,
}

/// How an experiment is drawn.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Lines over an axis.
    Lines,
    /// A bar for each contender: there is no axis, or one place of it.
    Bars,
    /// Bars for each size of a file: they lie too far apart for lines.
    BarsBySize,
}

pub(super) fn form(experiment: &Experiment) -> Form {
    match experiment.axis {
        Axis::FileBytes => Form::BarsBySize,
        Axis::Single => Form::Bars,
        _ if experiment.places().len() < 2 => Form::Bars,
        _ => Form::Lines,
    }
}

/// Draws it; figures of others stand among the measured ones where that is possible.
pub(super) fn drawings(experiment: &Experiment, published: &[&Published]) -> Vec<Part> {
    let places = experiment.places();
    let drawing = match form(experiment) {
        Form::BarsBySize => return by_size(experiment, &places),
        Form::Lines => as_lines(experiment, published),
        Form::Bars => {
            let mut all = rows(experiment, places.first().copied().unwrap_or(0));
            all.extend(published.iter().filter_map(|figure| row_of_others(figure)));
            bars(&experiment.title, experiment.unit.name(), &all)
        }
    };
    let part = |drawing| Part {
        title: None,
        drawing,
    };
    drawing.map(part).into_iter().collect()
}

/// Bars for each size, and what a transfer of the greatest took besides time.
fn by_size(experiment: &Experiment, places: &[u64]) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut add = |title: String, unit: &str, rows: &[Bar]| {
        let drawing = bars(&format!("{}: {title}", experiment.title), unit, rows);
        parts.extend(drawing.map(|drawing| Part {
            title: Some(title),
            drawing,
        }));
    };
    for &x in places {
        let title = place(experiment.axis, x);
        add(title, experiment.unit.name(), &rows(experiment, x));
    }
    if let Some(&x) = places.last() {
        let at = place(experiment.axis, x);
        let copied = counted(experiment, x, Observed::copied);
        let title = format!("Copied between kernel and program, {at}");
        add(title, "bytes for each byte of the file", &copied);
        let calls = counted(experiment, x, Observed::calls_of_a_transfer);
        add(format!("System calls of the server, {at}"), "calls", &calls);
    }
    parts
}

fn as_lines(experiment: &Experiment, published: &[&Published]) -> Option<Markup> {
    let line = |(index, series): (usize, &Series)| Line {
        colour: index,
        dashed: series.contender.placement == Placement::Kernel,
        points: series
            .points
            .iter()
            .filter_map(|point| Some((point.x, point.estimate(experiment.unit)?)))
            .collect(),
    };
    let drawn: Vec<Line> = experiment.series.iter().enumerate().map(line).collect();
    let marks = marks(experiment, published);
    let marks: Vec<Mark> = marks.into_iter().map(|(_, mark)| mark).collect();
    let name = |x| place(experiment.axis, x);
    lines(
        &experiment.title,
        experiment.unit.name(),
        &experiment.places(),
        name,
        &drawn,
        &marks,
    )
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
        let label = if figure.required {
            format!("required {value}")
        } else {
            letters.next().map_or(String::new(), String::from)
        };
        let (title, required) = (figure.line(), figure.required);
        let mark = Mark {
            x,
            value,
            label,
            title,
            required,
        };
        Some((figure, mark))
    };
    published.iter().filter_map(mark).collect()
}

fn name(series: &Series) -> String {
    let contender = &series.contender;
    format!("{} · {}", contender.name, contender.placement.word())
}

/// A bar for each contender, at one place of the axis.
fn rows(experiment: &Experiment, x: u64) -> Vec<Bar> {
    let row = |(colour, series): (usize, &Series)| {
        let point = series.at(x);
        match point.and_then(|point| point.estimate(experiment.unit)) {
            Some(estimate) => Bar::Measured {
                name: name(series),
                colour,
                estimate,
            },
            None => Bar::Absent { name: name(series) },
        }
    };
    experiment.series.iter().enumerate().map(row).collect()
}

/// A bar for each contender whose system calls were observed, at one place of the axis.
fn counted(experiment: &Experiment, x: u64, count: fn(&Observed) -> f64) -> Vec<Bar> {
    let row = |(colour, series): (usize, &Series)| {
        let observed = series.at(x).and_then(|point| point.observed.as_ref());
        match observed {
            Some(observed) => Bar::Counted {
                name: name(series),
                colour,
                value: count(observed),
            },
            None => Bar::Absent { name: name(series) },
        }
    };
    experiment.series.iter().enumerate().map(row).collect()
}

fn row_of_others(figure: &Published) -> Option<Bar> {
    let value = figure.megabytes()?;
    let name = format!("{}: {}", figure.origin(), figure.label());
    Some(if figure.required {
        Bar::Required { name, value }
    } else {
        Bar::Published { name, value }
    })
}
