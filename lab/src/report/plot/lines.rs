//! Lines over logarithmic axes: throughput against the size of a message, threads, clients. Each
//! has its name at its end, or, where there is no room, in a list below.

use maud::{Markup, html};

use crate::report::plot::scale::{Scale, spread};
use crate::report::plot::{Mark, percent, value};
use crate::report::table::figure;

/// The least height, and the height of a row of a line's name, in pixels.
const HEIGHT: f64 = 250.0;
const NAME: f64 = 18.0;

/// How many letters of a name have room in a row, wide ones too.
const LETTERS: usize = 22;

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

/// Draws a line through the figures of each contender, which stand together; and those of others: a
/// hollow diamond where it was measured, a dash where it was required. None when there is nothing
/// to draw.
pub fn lines(frame: &Frame<'_>, measured: &[Mark], others: &[Mark]) -> Option<Markup> {
    let (low, high) = frame.range;
    let places = frame.places.iter().map(|(x, _)| *x);
    // The horizontal axis reaches to figures of others, too.
    let all = || places.clone().chain(others.iter().map(|mark| mark.x));
    let (x, y) = (
        Scale::around(all().min()? as f64, all().max()? as f64),
        Scale::around(low, high),
    );
    if measured.is_empty() || low <= 0.0 || !high.is_finite() {
        return None;
    }
    let drawn: Vec<&[Mark]> = measured.chunk_by(|a, b| a.name == b.name).collect();
    let height = HEIGHT.max(drawn.iter().map(|line| height_of_name(line)).sum::<f64>() + NAME);
    let down = |value: f64| ((1.0 - y.at(value)) * height).round();
    let left = |place: u64| format!("left:{}", percent(x.at(place as f64)));
    Some(html! {
        p.axis { (frame.unit) }
        div.chart.lines role="group" aria-label=(frame.title) tabindex="0" {
            div.frame style=(format!("height:{height}px")) {
                @for tick in y.ticks(9) {
                    span.grid style=(format!("top:{}px", down(tick))) { (round_figure(tick)) }
                }
                svg viewBox="0 0 100 100" preserveAspectRatio="none" aria-hidden="true" {
                    @for line in &drawn {
                        polyline class=(line[0].class) points=(path(line, x, y)) {}
                    }
                }
                @for (row, line) in drawn.iter().enumerate() {
                    @for mark in *line { (point(row, mark, &left(mark.x), down)) }
                }
                @for here in others.chunk_by(|a, b| a.x == b.x) {
                    @let before = x.at(here[0].x as f64) > 0.5;
                    (figures_of_others(here, drawn.len(), before, &left(here[0].x), (down, height)))
                }
                @for (at, name) in named(frame, x) {
                    span.place style=(format!("left:{}", percent(at))) { (name) }
                }
                span.axis.across { (frame.across) " · both axes logarithmic" }
            }
            (names(&drawn, down, height))
        }
    })
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

fn path(line: &[Mark], x: Scale, y: Scale) -> String {
    let at = |mark: &Mark| {
        let (across, up) = (x.at(mark.x as f64), y.at(mark.value));
        format!("{:.2},{:.2}", across * 100.0, (1.0 - up) * 100.0)
    };
    line.iter().map(at).collect::<Vec<_>>().join(" ")
}

fn point(row: usize, mark: &Mark, left: &str, down: impl Fn(f64) -> f64) -> Markup {
    let (low, high) = mark.interval;
    let (top, bottom) = (down(high), down(low));
    let whisker = format!("{left};top:{top}px;height:{}px", bottom - top);
    let dot = format!("{left};top:{}px", down(mark.value));
    html! {
        @if bottom > top { span.whisker.(mark.class) style=(whisker) {} }
        (value(&format!("dot {}", mark.class), &mark.told, row, Some(&dot), &html! {}))
    }
}

/// Those at one place, whose names make room for each other.
fn figures_of_others(
    here: &[Mark],
    row: usize,
    before: bool,
    left: &str,
    (down, height): (impl Fn(f64) -> f64, f64),
) -> Markup {
    let labels = here.iter().map(|one| (down(one.value), NAME));
    let tops = spread(&labels.collect::<Vec<_>>(), height);
    html! {
        @for (mark, top) in here.iter().zip(tops) {
            @let at = format!("{left};top:{}px", down(mark.value));
            (value(&format!("mark {}", mark.class), &mark.told, row, Some(&at), &html! {}))
            span.key.before[before] style=(format!("{left};top:{top}px")) { (mark.name) }
        }
    }
}

/// Broken between words, and within those that are longer than a row.
fn height_of_name(line: &[Mark]) -> f64 {
    let (mut rows, mut filled) = (1_usize, 0_usize);
    for word in line[0].name.split(' ') {
        let letters = word.chars().count();
        if filled > 0 && filled + 1 + letters > LETTERS {
            (rows, filled) = (rows + 1, letters);
        } else {
            filled += letters + usize::from(filled > 0);
        }
        rows += filled.saturating_sub(1) / LETTERS;
        filled -= filled.saturating_sub(1) / LETTERS * LETTERS;
    }
    rows as f64 * NAME
}

/// The names of lines, at the heights of their ends.
fn names(drawn: &[&[Mark]], down: impl Fn(f64) -> f64, height: f64) -> Markup {
    let end = |line: &&[Mark]| (down(line[line.len() - 1].value), height_of_name(line));
    let tops = spread(&drawn.iter().map(end).collect::<Vec<_>>(), height);
    html! {
        ul.names {
            @for (line, top) in drawn.iter().zip(tops) {
                li class=(line[0].class) style=(format!("top:{top}px")) {
                    // Its stroke, where it does not stand at its end.
                    svg aria-hidden="true" { line x2="100%" y1="5" y2="5" {} }
                    (line[0].name)
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
    told.trim_end_matches(".00")
        .trim_end_matches(".0")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::plot::tests::mark;

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
        let all = [(16, 10.0), (1024, 300.0)].map(|(x, value)| mark("kernel s1", "one", x, value));
        let drawn = lines(
            &frame(&[16, 1024]),
            &all,
            &[mark("published", "a", 1024, 50.0)],
        );
        let drawn = drawn.unwrap().into_string();
        assert!(drawn.contains("aria-label=\"&lt;t&gt;\"") && drawn.contains("1024 bytes"));
        assert_eq!(drawn.matches("class=\"v dot kernel s1\"").count(), 2);
        assert_eq!(drawn.matches("<polyline").count(), 1);
        assert!(drawn.contains("one told of 10") && drawn.contains("</svg>one</li>"));
        assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
        assert!(lines(&frame(&[]), &[], &[]).is_none());
    }

    #[test]
    fn names_take_the_rows_that_their_words_need() {
        let rows = |name: &str| height_of_name(&[mark("user s0", name, 1, 1.0)]) / NAME;
        assert_eq!(rows("aws-lc-rs"), 1.0);
        assert_eq!(rows("XAES-256-GCM, RustCrypto"), 2.0);
        assert_eq!(
            rows("ChaCha20-Poly1305, AF_ALG rfc7539(chacha20,poly1305)"),
            4.0
        );
    }

    #[test]
    fn every_figure_of_others_is_drawn_and_named() {
        let all = [(1, 100.0), (2, 200.0)].map(|(x, value)| mark("user s0", "one", x, value));
        let others = [
            mark("published", "a", 1, 80.0),
            mark("published", "b", 4, 240.0),
            mark("required", "required 40", 2, 40.0),
        ];
        let drawn = lines(&frame(&[1, 2]), &all, &others).unwrap().into_string();
        assert_eq!(drawn.matches("class=\"v mark published\"").count(), 2);
        assert_eq!(drawn.matches("class=\"v mark required\"").count(), 1);
        for mark in &others {
            let (told, label) = (
                format!("\"{}\"", mark.told),
                format!(">{}</span>", mark.name),
            );
            assert!(
                drawn.contains(&told) && drawn.contains(&label),
                "{}",
                mark.name
            );
        }
    }
}
