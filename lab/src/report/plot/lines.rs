//! Lines over a logarithmic axis: throughput against the size of a message, threads, clients.

use std::cmp::Ordering::Equal;

use maud::{Markup, html};

use crate::report::plot::scale::{Scale, decades};
use crate::report::plot::{WIDTH, colour};
use crate::report::table::figure;
use coffer_measure::statistics::Estimate;

const HEIGHT: f64 = 270.0;
const LEFT: f64 = 54.0;
const RIGHT: f64 = 388.0;
const TOP: f64 = 14.0;
const BOTTOM: f64 = 226.0;

/// Half the length of a required figure's dash.
const DASH: f64 = 20.0;

/// One contender.
pub struct Line {
    /// Its colour, by its place among the contenders.
    pub colour: usize,
    /// Drawn dashed: it runs in the kernel.
    pub dashed: bool,
    /// Its points.
    pub points: Vec<(u64, Estimate)>,
}

/// A figure of others: a hollow diamond where it was measured, a dash where it was required.
pub struct Mark {
    /// Where on the axis.
    pub x: u64,
    /// How much.
    pub value: f64,
    /// What stands beside it: as short as can be.
    pub label: String,
    /// All of it, for those who point at it.
    pub title: String,
    /// Required, not measured.
    pub required: bool,
}

/// Draws lines, and figures of others among them; the axis reaches to these too. None when there is
/// nothing to draw.
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
    let mut places = [places, &marks.iter().map(|mark| mark.x).collect::<Vec<_>>()].concat();
    places.sort_unstable();
    places.dedup();
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
            (figures_of_others(marks, x, y))
        }
    })
}

fn figures_of_others(marks: &[Mark], x: Scale, y: Scale) -> Markup {
    let mut sorted: Vec<&Mark> = marks.iter().collect();
    sorted.sort_by(|a, b| (a.x, a.value).partial_cmp(&(b.x, b.value)).unwrap_or(Equal));
    html! {
        @for (index, mark) in sorted.iter().enumerate() {
            @let (cx, cy) = (round(x.at(mark.x as f64)), round(y.at(mark.value)));
            @if mark.required {
                (requirement(mark, cx, cy))
            } @else {
                // One above another has its label on the other side.
                @let (beside, anchor) = [(8.0, "start"), (-8.0, "end")][index % 2];
                path.published d=(diamond(cx, cy)) { title { (mark.title) } }
                text.key x=(cx + beside) y=(cy + 4.0) text-anchor=(anchor) { (mark.label) }
            }
        }
    }
}

fn requirement(mark: &Mark, cx: f64, cy: f64) -> Markup {
    let (from, to) = ((cx - DASH).max(LEFT), (cx + DASH).min(RIGHT));
    let (end, anchor) = if cx < (LEFT + RIGHT) / 2.0 {
        (from, "start")
    } else {
        (to, "end")
    };
    html! {
        line.required x1=(from) x2=(to) y1=(cy) y2=(cy) { title { (mark.title) } }
        text.key x=(end) y=(cy - 5.0) text-anchor=(anchor) { (mark.label) }
    }
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

    fn line(points: &[(u64, f64)]) -> Line {
        let point = |&(x, median): &(u64, f64)| {
            let estimate = Estimate {
                median,
                low: median * 0.9,
                high: median * 1.1,
                confidence: 0.96,
            };
            (x, estimate)
        };
        Line {
            colour: 0,
            dashed: true,
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

    #[test]
    fn what_was_measured_is_drawn() {
        let line = line(&[(16, 10.0), (1024, 300.0)]);
        let mark = mark(1024, 50.0, "a");
        let name = |x: u64| format!("{x} bytes");
        let svg = lines("<t>", "MB/s", &[16, 1024], name, &[line], &[mark]).unwrap();
        let svg = svg.into_string();
        assert!(svg.contains("aria-label=\"&lt;t&gt;\"") && svg.contains("1024 bytes"));
        assert_eq!(svg.matches("<circle").count(), 2);
        assert!(svg.contains("6 4") && svg.contains("published"));
        assert!(!svg.contains("NaN") && !svg.contains("inf"));
        assert!(lines("t", "MB/s", &[], |_| String::new(), &[], &[]).is_none());
    }

    #[test]
    fn every_figure_of_others_is_drawn_and_named() {
        let drawn = [line(&[(1, 1000.0), (2, 2000.0)])];
        let marks = [
            mark(1, 80.0, "a"),
            mark(4, 240.0, "b"),
            mark(2, 40.0, "required 40"),
        ];
        let name = |x: u64| format!("{x} thr.");
        let svg = lines("t", "MB/s", &[1, 2], name, &drawn, &marks).unwrap();
        let svg = svg.into_string();
        assert_eq!(svg.matches("class=\"published\"").count(), 2);
        assert_eq!(svg.matches("class=\"required\"").count(), 1);
        for name in ["a", "b", "required 40"] {
            let (title, label) = (format!(">title of {name}<"), format!(">{name}</text>"));
            assert!(svg.contains(&title) && svg.contains(&label), "{name}");
        }
        // The axis has their places too, though nothing was measured there.
        assert!(svg.contains("4 thr."));
    }
}
