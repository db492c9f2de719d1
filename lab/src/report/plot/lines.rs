//! Lines over logarithmic axes: throughput against the size of a message, threads, clients. Each
//! has its name at its end, or, where there is no room, in a list below.

use maud::{Markup, html};

use crate::report::plot::percent;
use crate::report::plot::scale::{Scale, spread};
use crate::report::table::figure;
use coffer_measure::statistics::Estimate;

/// The least height, and the height of a row of a line's name, in pixels.
const HEIGHT: f64 = 250.0;
const NAME: f64 = 18.0;

/// How many letters of a name have room in a row.
const LETTERS: usize = 24;

/// How near two names of places may be, as a share of the width.
const BETWEEN_PLACES: f64 = 0.2;

/// What all lines stand in.
pub struct Frame<'a> {
    /// For those who don't see it.
    pub title: &'a str,
    /// What figures are.
    pub unit: &'a str,
    /// What the horizontal axis counts.
    pub across: &'a str,
    /// The least figure and the greatest, also of those that are drawn beside this one.
    pub range: (f64, f64),
    /// Where something was measured, in order, and what these places are called.
    pub places: Vec<(u64, String)>,
}

/// One contender.
pub struct Line {
    /// Its colour.
    pub class: String,
    /// Who.
    pub name: String,
    /// Its points.
    pub points: Vec<Spot>,
}

/// One figure.
pub struct Spot {
    /// Where on the axis.
    pub x: u64,
    /// How much.
    pub estimate: Estimate,
    /// All of it, in words.
    pub told: String,
}

/// A figure of others: a hollow diamond where it was measured, a dash where it was required.
pub struct Mark {
    /// Where on the axis.
    pub x: u64,
    /// How much.
    pub value: f64,
    /// What stands beside it: as short as can be.
    pub label: String,
    /// All of it, in words.
    pub title: String,
    /// Required, not measured.
    pub required: bool,
}

/// Draws them. None when there is nothing to draw.
pub fn lines(frame: &Frame<'_>, drawn: &[Line], marks: &[Mark]) -> Option<Markup> {
    let (low, high) = frame.range;
    let x = places(frame, marks)?;
    if drawn.is_empty() || low <= 0.0 || !high.is_finite() {
        return None;
    }
    let y = Scale::around(low, high);
    let height = HEIGHT.max(drawn.iter().map(height_of_name).sum::<f64>() + NAME);
    let down = |value: f64| ((1.0 - y.at(value)) * height).round();
    Some(html! {
        p.axis { (frame.unit) }
        div.chart.lines role="group" aria-label=(frame.title) tabindex="0" {
            div.frame style=(format!("height:{height}px")) {
                @for tick in y.ticks(9) {
                    span.grid style=(format!("top:{}px", down(tick))) { (round_figure(tick)) }
                }
                (strokes(drawn, x, y))
                @for (row, line) in drawn.iter().enumerate() {
                    @for spot in &line.points { (point(row, line, spot, x, down)) }
                }
                (figures_of_others(marks, x, down, height, drawn.len()))
                @for (at, name) in named(frame, x) {
                    span.place style=(format!("left:{}", percent(at))) { (name) }
                }
                span.axis.across { (frame.across) " · both axes logarithmic" }
            }
            (names(drawn, down, height))
        }
    })
}

/// The horizontal axis: it reaches to figures of others, too.
fn places(frame: &Frame<'_>, marks: &[Mark]) -> Option<Scale> {
    let measured = frame.places.iter().map(|(x, _)| *x);
    let all = || measured.clone().chain(marks.iter().map(|mark| mark.x));
    Some(Scale::around(all().min()? as f64, all().max()? as f64))
}

/// The places that have room for their names, the last one first.
fn named<'a>(frame: &'a Frame<'_>, x: Scale) -> Vec<(f64, &'a str)> {
    let mut named: Vec<(f64, &str)> = Vec::new();
    for (place, name) in frame.places.iter().rev() {
        let at = x.at(*place as f64);
        let next = named.last();
        if next.is_none_or(|(next, _)| next - at >= BETWEEN_PLACES) {
            named.push((at, name));
        }
    }
    named
}

fn strokes(drawn: &[Line], x: Scale, y: Scale) -> Markup {
    let path = |line: &Line| {
        let at = |spot: &Spot| {
            let across = x.at(spot.x as f64) * 100.0;
            let down = (1.0 - y.at(spot.estimate.median)) * 100.0;
            format!("{across:.2},{down:.2}")
        };
        line.points.iter().map(at).collect::<Vec<_>>().join(" ")
    };
    html! {
        svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true" {
            @for line in drawn { polyline class=(line.class) points=(path(line)) {} }
        }
    }
}

fn point(row: usize, line: &Line, spot: &Spot, x: Scale, down: impl Fn(f64) -> f64) -> Markup {
    let left = percent(x.at(spot.x as f64));
    let (top, bottom) = (down(spot.estimate.high), down(spot.estimate.low));
    let whisker = format!("left:{left};top:{top}px;height:{}px", bottom - top);
    let dot = format!("left:{left};top:{}px", down(spot.estimate.median));
    html! {
        @if bottom > top { span.whisker.(line.class) style=(whisker) {} }
        span.v.dot.(line.class) style=(dot) role="img" aria-label=(spot.told) data-row=(row)
            tabindex="-1" {}
    }
}

fn height_of_name(line: &Line) -> f64 {
    line.name.chars().count().div_ceil(LETTERS) as f64 * NAME
}

/// The names of lines, at the heights of their ends.
fn names(drawn: &[Line], down: impl Fn(f64) -> f64, height: f64) -> Markup {
    let end = |line: &Line| {
        let last = line.points.last().map_or(1.0, |spot| spot.estimate.median);
        down(last) - height_of_name(line) / 2.0
    };
    let wanted: Vec<f64> = drawn.iter().map(end).collect();
    let heights: Vec<f64> = drawn.iter().map(height_of_name).collect();
    let tops = spread(&wanted, &heights, height);
    html! {
        ul.names {
            @for (line, top) in drawn.iter().zip(tops) {
                li class=(line.class) style=(format!("top:{top}px")) {
                    // Its stroke, where it does not stand at its end.
                    svg aria-hidden="true" { line x2="100%" y1="5" y2="5" {} }
                    (line.name)
                }
            }
        }
    }
}

fn figures_of_others(
    marks: &[Mark],
    x: Scale,
    down: impl Fn(f64) -> f64,
    height: f64,
    rows: usize,
) -> Markup {
    let mut places: Vec<u64> = marks.iter().map(|mark| mark.x).collect();
    places.sort_unstable();
    places.dedup();
    html! {
        @for place in places {
            @let here: Vec<&Mark> = marks.iter().filter(|mark| mark.x == place).collect();
            @let wanted: Vec<f64> = here.iter().map(|one| down(one.value) - NAME / 2.0).collect();
            @let at = x.at(place as f64);
            @for (mark, top) in here.iter().zip(spread(&wanted, &vec![NAME; here.len()], height)) {
                @let left = percent(at);
                @let sign = if mark.required { "required" } else { "published" };
                span.v.mark.(sign) role="img" aria-label=(mark.title) data-row=(rows) tabindex="-1"
                    style=(format!("left:{left};top:{}px", down(mark.value))) {}
                span.key.before[at > 0.5] style=(format!("left:{left};top:{top}px")) {
                    (mark.label)
                }
            }
        }
    }
}

fn round_figure(value: f64) -> String {
    if value < 1.0 {
        return value.to_string();
    }
    let told = figure(value);
    let told = told.trim_end_matches(".00").trim_end_matches(".0");
    told.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, points: &[(u64, f64)]) -> Line {
        let point = |&(x, median): &(u64, f64)| Spot {
            x,
            estimate: Estimate {
                median,
                low: median * 0.9,
                high: median * 1.1,
                confidence: 0.96,
            },
            told: format!("{name} told at {x}"),
        };
        Line {
            class: "kernel s1".to_owned(),
            name: name.to_owned(),
            points: points.iter().map(point).collect(),
        }
    }

    fn mark(x: u64, value: f64, label: &str) -> Mark {
        Mark {
            x,
            value,
            label: label.into(),
            title: format!("title of {label}"),
            required: label.starts_with("required"),
        }
    }

    fn frame(places: &[u64]) -> Frame<'static> {
        Frame {
            title: "<t>",
            unit: "MB/s",
            across: "bytes",
            range: (9.0, 330.0),
            places: places.iter().map(|x| (*x, format!("{x} bytes"))).collect(),
        }
    }

    #[test]
    fn what_was_measured_is_drawn_and_told() {
        let all = [line("one", &[(16, 10.0), (1024, 300.0)])];
        let drawn = lines(&frame(&[16, 1024]), &all, &[mark(1024, 50.0, "a")]);
        let drawn = drawn.unwrap().into_string();
        assert!(drawn.contains("aria-label=\"&lt;t&gt;\"") && drawn.contains("1024 bytes"));
        assert_eq!(drawn.matches("class=\"v dot kernel s1\"").count(), 2);
        assert!(drawn.contains("one told at 16") && drawn.contains("</svg>one</li>"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        assert!(lines(&frame(&[]), &[], &[]).is_none());
    }

    #[test]
    fn every_figure_of_others_is_drawn_and_named() {
        let all = [line("one", &[(1, 100.0), (2, 200.0)])];
        let marks = [(1, 80.0, "a"), (4, 240.0, "b"), (2, 40.0, "required 40")];
        let marks = marks.map(|(x, value, label)| mark(x, value, label));
        let drawn = lines(&frame(&[1, 2]), &all, &marks).unwrap().into_string();
        assert_eq!(drawn.matches("class=\"v mark published\"").count(), 2);
        assert_eq!(drawn.matches("class=\"v mark required\"").count(), 1);
        for name in ["a", "b", "required 40"] {
            let (title, label) = (format!("\"title of {name}\""), format!(">{name}</span>"));
            assert!(drawn.contains(&title) && drawn.contains(&label), "{name}");
        }
    }
}
