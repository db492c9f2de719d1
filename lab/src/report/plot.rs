//! Plots of HTML, whose letters keep their size however wide a screen is; only lines are SVG, and
//! stretched. Places are shares of a plot's width, and pixels of its height.
//!
//! Colours come from the page's style sheet by class: a placement has its hue everywhere, and
//! contenders are its shades. Whatever has the class `v` tells its figures in `aria-label`, which
//! the page's script shows under the pointer and by keyboard.

mod scale;

mod lines;

use maud::{Markup, html};

use crate::record::Series;
use crate::report::table::figure;

pub use lines::lines;

/// How many shades of a hue the style sheet has.
const SHADES: usize = 8;

/// One figure.
#[derive(Clone)]
pub struct Mark {
    /// Its colour; `published` or `required`, where it is one of others.
    pub class: String,
    /// Who; among lines, for figures of others: as short as can be.
    pub name: String,
    /// Where it encrypts, or who published.
    pub note: String,
    /// Where on the axis.
    pub x: u64,
    /// How much.
    pub value: f64,
    /// Its interval; the same twice where it has none.
    pub interval: (f64, f64),
    /// All of it, in words.
    pub told: String,
}

/// The classes of a contender among others: the hue of its placement, and its shade.
pub fn shade(all: &[Series], index: usize) -> String {
    let placement = all[index].contender.placement;
    let before = all[..index].iter();
    let same = before.filter(|one| one.contender.placement == placement);
    format!("{} s{}", placement.word(), same.count() % SHADES)
}

/// What is drawn of a figure: it tells all of it. `row` is where arrows go up and down.
pub fn value(class: &str, told: &str, row: usize, style: Option<&str>, drawn: &Markup) -> Markup {
    html! {
        div.v.(class) role="img" aria-label=(told) data-row=(row) tabindex="-1" style=[style] {
            (drawn)
        }
    }
}

/// A bar between two shares of its track, and the interval of its end.
pub fn bar((from, to): (f64, f64), interval: Option<(f64, f64)>) -> Markup {
    let between =
        |from: f64, to: f64| format!("left:{};width:{}", percent(from), percent(to - from));
    html! {
        span.track {
            span.fill style=(between(from, to)) {}
            @if let Some((low, high)) = interval { span.whisker style=(between(low, high)) {} }
        }
    }
}

/// Draws a bar for each figure, in their order, from zero to the longest of `family`, which share a
/// scale. None when there is nothing to draw.
pub fn bars(of: &str, title: &str, rows: &[Mark], family: &[Mark]) -> Option<Markup> {
    let ends = family.iter().map(|mark| mark.interval.1);
    let longest = ends.fold(0.0, f64::max);
    let row = |index: usize, one: &Mark| {
        let (low, high) = one.interval;
        let interval = (low < high).then_some((low / longest, high / longest));
        let drawn = html! {
            span.name { (one.name) " " small { (one.note) } }
            (bar((0.0, one.value / longest), interval))
            b { (figure(one.value)) }
        };
        value(&one.class, &one.told, index, None, &drawn)
    };
    (longest > 0.0 && !rows.is_empty()).then(|| {
        html! {
            @if !title.is_empty() { h4 { (title) } }
            div.chart.bars role="group" aria-label={ (of) ", " (title) } tabindex="0" {
                @for (index, one) in rows.iter().enumerate() { (row(index, one)) }
            }
        }
    })
}

/// A share of a whole, for a style; none where it is no number.
fn percent(share: f64) -> String {
    format!("{:.2}%", share.max(0.0) * 100.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn mark(class: &str, name: &str, x: u64, value: f64) -> Mark {
        let is_of_others = ["published", "required"].contains(&class);
        let within = if is_of_others { 0.0 } else { 0.1 };
        Mark {
            class: class.to_owned(),
            name: name.to_owned(),
            note: "user".to_owned(),
            x,
            value,
            interval: (value * (1.0 - within), value * (1.0 + within)),
            told: format!("{name} told of {value}"),
        }
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let rows = [
            mark("user s0", "a", 0, 100.0),
            mark("required", "b", 0, 55.0),
        ];
        let drawn = bars("t", "here", &rows, &rows).unwrap().0;
        for part in [
            "left:0.00%;width:90.91%",
            "width:50.00%",
            "whisker\" style=\"left:81.82%;width:18.18%",
            "class=\"v required\"",
            "b told of 55",
            "<h4>here</h4>",
        ] {
            assert!(drawn.contains(part), "{part}: {drawn}");
        }
        assert_eq!(drawn.matches("whisker").count(), 1, "{drawn}");
        let nothing = [mark("user s0", "a", 0, 0.0)];
        assert!(bars("t", "", &nothing, &nothing).is_none());
        assert!(bars("t", "", &[], &rows).is_none());
    }
}
