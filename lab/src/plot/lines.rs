//! Lines over a logarithmic axis: throughput against the size of a message, threads, clients.

use maud::{Markup, html};

use crate::plot::scale::{Scale, decades};
use crate::plot::{WIDTH, colour};
use crate::stats::Estimate;
use crate::table::figure;

const HEIGHT: f64 = 270.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 388.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 226.0;

/// One contender.
pub struct Line {
    /// Its colour, by its place among the contenders.
    pub colour: usize,
    /// Drawn dashed: it runs in the kernel.
    pub dashed: bool,
    /// Its points.
    pub points: Vec<(u64, Estimate)>,
}

/// A figure that was published.
pub struct Mark {
    /// Where on the axis.
    pub x: u64,
    /// How much.
    pub value: f64,
}

/// Draws lines, and published figures as hollow diamonds. None when there is nothing to draw.
pub fn lines(
    title: &str,
    unit: &str,
    places: &[u64],
    name_of_place: impl Fn(u64) -> String,
    drawn: &[Line],
    marks: &[Mark],
) -> Option<Markup> {
    let measured = drawn.iter().flat_map(|line| &line.points);
    let ends = measured.flat_map(|(_, estimate)| [estimate.low, estimate.high]);
    let values: Vec<f64> = ends.chain(marks.iter().map(|mark| mark.value)).collect();
    let low = values
        .iter()
        .copied()
        .reduce(f64::min)
        .filter(|low| *low > 0.0)?;
    let high = values.iter().copied().reduce(f64::max)?;
    let ticks = decades(low, high);
    let (bottom, top) = (*ticks.first()?, *ticks.last()?);
    let (first, last) = (*places.first()? as f64, *places.last()? as f64);
    let x = Scale::logarithmic(first, last, LEFT + 12.0, RIGHT - 12.0);
    let y = Scale::logarithmic(bottom, top, BOTTOM, TOP);
    // With many places every other one gets its name.
    let every = places.len().div_ceil(5);
    let named = places.iter().rev().step_by(every).rev();
    Some(html! {
        svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
            @for tick in &ticks {
                line.grid x1=(LEFT) x2=(RIGHT) y1=(round(y.at(*tick))) y2=(round(y.at(*tick))) {}
                text.tick x=(LEFT - 5.0) y=(round(y.at(*tick) + 4.0)) text-anchor="end" {
                    (figure_of_tick(*tick))
                }
            }
            @for &place in named {
                text.tick x=(round(x.at(place as f64))) y=(BOTTOM + 18.0) text-anchor="middle" {
                    (name_of_place(place))
                }
            }
            text.tick x=(LEFT) y=(HEIGHT - 6.0) { (unit) ", both axes logarithmic" }
            @for line in drawn { (one(line, x, y)) }
            @for mark in marks.iter().filter(|mark| places.contains(&mark.x)) {
                path.published d=(diamond(x.at(mark.x as f64), y.at(mark.value))) {}
            }
        }
    })
}

fn one(line: &Line, x: Scale, y: Scale) -> Markup {
    let at = |&(place, estimate): &(u64, Estimate)| {
        let (x, y) = (round(x.at(place as f64)), round(y.at(estimate.median)));
        format!("{x},{y}")
    };
    let path: Vec<String> = line.points.iter().map(at).collect();
    let classes = format!("{} line", colour(line.colour));
    html! {
        g class=(classes) {
            polyline points=(path.join(" ")) stroke-dasharray=[line.dashed.then_some("6 4")] {}
            @for (place, estimate) in &line.points {
                @let (cx, cy) = (round(x.at(*place as f64)), round(y.at(estimate.median)));
                @let (low, high) = (round(y.at(estimate.low)), round(y.at(estimate.high)));
                line x1=(cx) x2=(cx) y1=(low) y2=(high) {}
                circle cx=(cx) cy=(cy) r="3.4" {}
            }
        }
    }
}

fn diamond(x: f64, y: f64) -> String {
    let (x, y) = (round(x), round(y));
    format!(
        "M{x} {}L{} {y}L{x} {}L{} {y}Z",
        y - 5.0,
        x + 5.0,
        y + 5.0,
        x - 5.0
    )
}

fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn figure_of_tick(value: f64) -> String {
    if value >= 1.0 {
        figure(value)
            .trim_end_matches(".00")
            .trim_end_matches(".0")
            .to_owned()
    } else {
        value.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_is_drawn() {
        let point = |x, median: f64| {
            let estimate = Estimate {
                median,
                low: median * 0.9,
                high: median * 1.1,
                confidence: 0.96,
            };
            (x, estimate)
        };
        let line = Line {
            colour: 0,
            dashed: true,
            points: vec![point(16, 10.0), point(1024, 300.0)],
        };
        let mark = Mark {
            x: 1024,
            value: 50.0,
        };
        let name = |x: u64| format!("{x} bytes");
        let svg = lines("<t>", "MB/s", &[16, 1024], name, &[line], &[mark]).unwrap();
        let svg = svg.into_string();
        assert!(svg.contains("aria-label=\"&lt;t&gt;\"") && svg.contains("1024 bytes"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("6 4") && svg.contains("published"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(lines("t", "MB/s", &[], |_| String::new(), &[], &[]).is_none());
    }
}
