//! Lines over logarithmic axes: throughput against the size of a message, threads, clients. Each
//! has its name at its end, or, where there is no room, in a list below.

use std::collections::BTreeSet;

use maud::{Markup, html};

use crate::record::{Axis, Experiment};
use crate::report::plot::scale::{Scale, spread};
use crate::report::plot::{Mark, percent, value};
use crate::report::table::{figure, place};

/// The least height, and the height of a row of a name, in pixels.
const HEIGHT: f64 = 250.0;
const ROW: f64 = 18.0;

/// How many letters of a name have room in a row, wide ones too.
const LETTERS: usize = 22;

/// How near two names of places may be, as a share of the width.
const BETWEEN_PLACES: f64 = 0.2;

/// Where figures stand: shares of the width, and pixels from the top.
struct Frame {
    x: Scale,
    y: Scale,
    height: f64,
}

impl Frame {
    fn left(&self, place: u64) -> String {
        format!("left:{}", percent(self.x.at(place as f64)))
    }

    fn down(&self, value: f64) -> f64 {
        ((1.0 - self.y.at(value)) * self.height).round()
    }
}

/// Draws a line through the figures of each contender, which stand together; and those of others: a
/// hollow diamond where it was measured, a dash where it was required. All of `family` fit into the
/// vertical axis. None when there is nothing to draw.
pub fn lines(
    experiment: &Experiment,
    measured: &[Mark],
    others: &[Mark],
    family: &[Mark],
) -> Option<Markup> {
    let across = match experiment.axis {
        Axis::Threads => "threads",
        Axis::Clients => "clients",
        _ => "bytes of a call",
    };
    let drawn: Vec<&[Mark]> = measured.chunk_by(|a, b| a.name == b.name).collect();
    let names: f64 = drawn.iter().map(|line| height_of_name(line)).sum();
    let ends = family.iter().map(|mark| <[f64; 2]>::from(mark.interval));
    let frame = Frame {
        // It reaches to figures of others, too.
        x: Scale::over(measured.iter().chain(others).map(|mark| mark.x as f64))?,
        y: Scale::over(ends.flatten())?,
        height: HEIGHT.max(names + ROW),
    };
    let rows = drawn.len();
    let others = others.chunk_by(|a, b| a.x == b.x);
    let groups = drawn.iter().copied().chain(others);
    Some(html! {
        div.chart.lines role="group" aria-label=(experiment.title) tabindex="0" {
            div.frame style=(format!("height:{}px", frame.height)) {
                @for tick in frame.y.ticks() {
                    @let told = figure(tick);
                    span.grid style=(format!("top:{}px", frame.down(tick))) {
                        (told.trim_end_matches(".00").trim_end_matches(".0"))
                    }
                }
                svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true" {
                    @for line in &drawn {
                        polyline class=(line[0].class) points=(path(line, &frame)) {}
                    }
                }
                @for (row, marks) in groups.enumerate() {
                    (points(row.min(rows), marks, row >= rows, &frame))
                }
                @for x in places(measured, frame.x) {
                    span.place style=(frame.left(x)) { (place(experiment.axis, x)) }
                }
                span.axis.across { (across) " · both axes logarithmic" }
            }
            (names_of(&drawn, &frame))
        }
    })
}

fn path(line: &[Mark], frame: &Frame) -> String {
    let at = |mark: &Mark| {
        let (across, up) = (frame.x.at(mark.x as f64), frame.y.at(mark.value));
        format!("{:.2},{:.2}", across * 100.0, (1.0 - up) * 100.0)
    };
    line.iter().map(at).collect::<Vec<_>>().join(" ")
}

/// Those of one line; or, with their names, those of others at one place, which make room for each
/// other.
fn points(row: usize, marks: &[Mark], named: bool, frame: &Frame) -> Markup {
    let ends = marks.iter().map(|mark| (frame.down(mark.value), ROW));
    let tops = spread(ends, frame.height);
    html! {
        @for (mark, top) in marks.iter().zip(tops) {
            @let left = frame.left(mark.x);
            @let (low, high) = (frame.down(mark.interval.0), frame.down(mark.interval.1));
            @if low > high {
                @let height = format!("top:{high}px;height:{}px", low - high);
                span.whisker.(mark.class) style={ (left) ";" (height) } {}
            }
            @let dot = format!("{left};top:{}px", frame.down(mark.value));
            (value(&format!("dot {}", mark.class), &mark.told, row, Some(&dot), &html! {}))
            @if named {
                @let before = frame.x.at(mark.x as f64) > 0.5;
                span.key.before[before] style={ (left) ";top:" (top) "px" } { (mark.name) }
            }
        }
    }
}

/// The places of an axis that have room for their names, the last one first.
fn places(measured: &[Mark], x: Scale) -> Vec<u64> {
    let all: BTreeSet<u64> = measured.iter().map(|mark| mark.x).collect();
    let mut places: Vec<u64> = all.into_iter().rev().collect();
    places.dedup_by(|before, named| x.at(*before as f64) + BETWEEN_PLACES > x.at(*named as f64));
    places
}

/// Broken between words, and within those that are longer than a row.
fn height_of_name(line: &[Mark]) -> f64 {
    textwrap::wrap(&line[0].name, LETTERS).len() as f64 * ROW
}

/// The names of lines, at the heights of their ends.
fn names_of(drawn: &[&[Mark]], frame: &Frame) -> Markup {
    let end = |line: &&[Mark]| (frame.down(line[line.len() - 1].value), height_of_name(line));
    let tops = spread(drawn.iter().map(end), frame.height);
    html! {
        ul.names {
            @for (line, top) in drawn.iter().zip(tops) {
                @let height = height_of_name(line);
                li class=(line[0].class) style=(format!("top:{top}px;--height:{height}px")) {
                    // Its stroke, where it does not stand at its end.
                    svg aria-hidden="true" { line x2="100%" y1="5" y2="5" {} }
                    (line[0].name)
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Unit;
    use crate::report::plot::tests::mark;

    #[test]
    fn every_figure_is_drawn_and_told_and_those_of_others_are_named() {
        let mut experiment = Experiment::new("net/x", Axis::BlockBytes, Unit::MegabytesPerSecond);
        experiment.title = "<t>".to_owned();
        let all = [(16, 10.0), (1024, 300.0)].map(|(x, value)| mark("kernel s1", "one", x, value));
        let others = [
            mark("published", "a", 1024, 50.0),
            mark("published", "b", 4096, 240.0),
            mark("required", "required 40", 16, 40.0),
        ];
        assert!(lines(&experiment, &[], &[], &[]).is_none());
        let drawn = lines(&experiment, &all, &others, &all).unwrap().0;
        for (part, count) in [
            ("aria-label=\"&lt;t&gt;\"", 1),
            (">1 KiB<", 1),
            ("<polyline", 1),
            ("</svg>one</li>", 1),
            ("class=\"v dot kernel s1\"", 2),
            ("class=\"v dot published\"", 2),
            ("class=\"v dot required\"", 1),
            ("NaN", 0),
            ("inf", 0),
        ] {
            assert_eq!(drawn.matches(part).count(), count, "{part}");
        }
        let told = all
            .iter()
            .chain(&others)
            .map(|one| format!("\"{}\"", one.told));
        let named = others.iter().map(|one| format!(">{}</span>", one.name));
        for part in told.chain(named) {
            assert!(drawn.contains(&part), "{part}");
        }
    }

    /// Letters may be wider than those that rows are counted by: what has no room is not drawn over
    /// the next name.
    #[test]
    fn a_name_has_no_more_room_than_the_rows_of_its_words() {
        let long = "ChaCha20-Poly1305, AF_ALG rfc7539(chacha20,poly1305)";
        let wide = "W".repeat(160);
        let names = ["aws-lc-rs", "XAES-256-GCM, RustCrypto", long, &wide];
        for (name, rows) in names.into_iter().zip([1, 2, 4, 8]) {
            let experiment = Experiment::new("net/x", Axis::BlockBytes, Unit::MegabytesPerSecond);
            let all = [(1, 1.0), (2, 2.0)].map(|(x, value)| mark("user s0", name, x, value));
            let drawn = lines(&experiment, &all, &[], &all).unwrap().0;
            let height = format!(";--height:{}px\"><svg", rows * 18);
            assert!(drawn.contains(&height), "{drawn}");
        }
    }
}
