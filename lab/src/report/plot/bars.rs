//! Bars with their intervals: one figure a contender. Names stand above the bars, so that long ones
//! fit on a phone.

use maud::{Markup, html};

use crate::report::plot::{WIDTH, colour};
use crate::report::table::figure;
use coffer_measure::statistics::Estimate;

const ROW: f64 = 36.0;
const LEFT: f64 = 6.0;
const BAR: f64 = 12.0;
const LONGEST: f64 = 300.0;

/// One row.
pub enum Bar {
    /// What was measured.
    Measured {
        /// Who.
        name: String,
        /// Its colour.
        colour: usize,
        /// How much.
        estimate: Estimate,
    },
    /// What was counted once.
    Counted {
        /// Who.
        name: String,
        /// Its colour.
        colour: usize,
        /// How much.
        value: f64,
    },
    /// What was published.
    Published {
        /// Who, where and when.
        name: String,
        /// How much.
        value: f64,
    },
    /// What was required.
    Required {
        /// Of whom.
        name: String,
        /// How much.
        value: f64,
    },
    /// Who can't run here: a place without a bar.
    Absent {
        /// Who.
        name: String,
    },
}

impl Bar {
    fn end(&self) -> f64 {
        match self {
            Self::Measured { estimate, .. } => estimate.high,
            Self::Counted { value, .. }
            | Self::Published { value, .. }
            | Self::Required { value, .. } => *value,
            Self::Absent { .. } => 0.0,
        }
    }
}

/// Draws rows from zero. None when there is nothing to draw.
pub fn bars(title: &str, unit: &str, rows: &[Bar]) -> Option<Markup> {
    let longest = rows.iter().map(Bar::end).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let wide = |value: f64| (value / longest * LONGEST * 10.0).round() / 10.0;
    let height = ROW * rows.len() as f64 + 24.0;
    Some(html! {
        svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
            @for (index, row) in rows.iter().enumerate() {
                (one(row, index as f64 * ROW, wide))
            }
            text.tick x=(LEFT) y=(height - 4.0) { (unit) }
        }
    })
}

fn one(row: &Bar, top: f64, wide: impl Fn(f64) -> f64) -> Markup {
    let (name_y, bar_y) = (top + 13.0, top + 18.0);
    let value_y = bar_y + BAR - 2.0;
    html! {
        @match row {
            Bar::Measured { name, colour: index, estimate } => {
                @let classes = format!("{} bar", colour(*index));
                @let middle = bar_y + BAR / 2.0;
                @let (low, high) = (LEFT + wide(estimate.low), LEFT + wide(estimate.high));
                text.name x=(LEFT) y=(name_y) { (name) }
                g class=(classes) {
                    rect x=(LEFT) y=(bar_y) width=(wide(estimate.median)) height=(BAR) rx="2" {}
                }
                line.interval x1=(low) x2=(high) y1=(middle) y2=(middle) {}
                line.interval x1=(low) x2=(low) y1=(middle - 4.0) y2=(middle + 4.0) {}
                line.interval x1=(high) x2=(high) y1=(middle - 4.0) y2=(middle + 4.0) {}
                text.value x=(high + 6.0) y=(value_y) { (figure(estimate.median)) }
            }
            Bar::Counted { name, colour: index, value } => {
                text.name x=(LEFT) y=(name_y) { (name) }
                g class=(format!("{} bar", colour(*index))) {
                    rect x=(LEFT) y=(bar_y) width=(wide(*value)) height=(BAR) rx="2" {}
                }
                text.value x=(LEFT + wide(*value) + 6.0) y=(value_y) { (figure(*value)) }
            }
            Bar::Published { name, value } => {
                text.name.quiet x=(LEFT) y=(name_y) { (name) }
                rect.published x=(LEFT) y=(bar_y) width=(wide(*value)) height=(BAR) rx="2" {}
                text.value x=(LEFT + wide(*value) + 6.0) y=(value_y) { (value) }
            }
            Bar::Required { name, value } => {
                text.name.quiet x=(LEFT) y=(name_y) { (name) }
                rect.required x=(LEFT) y=(bar_y) width=(wide(*value)) height=(BAR) rx="2" {}
                text.value x=(LEFT + wide(*value) + 6.0) y=(value_y) { (value) }
            }
            Bar::Absent { name } => {
                text.name.quiet x=(LEFT) y=(name_y) { (name) }
                text.value.quiet x=(LEFT) y=(value_y) { "can’t run here" }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_who_cannot_run_gets_a_bar() {
        let estimate = Estimate::of(&[1.0, 2.0, 3.0]).unwrap();
        let rows = [
            Bar::Measured {
                name: "a".into(),
                colour: 0,
                estimate,
            },
            Bar::Absent { name: "b".into() },
        ];
        let svg = bars("t", "MB/s", &rows).unwrap().into_string();
        assert_eq!(svg.matches("<rect").count(), 1);
        assert!(svg.contains(">b</text>") && svg.contains("can’t run here"));
        assert!(bars("t", "MB/s", &rows[1..]).is_none());
    }

    #[test]
    fn what_was_required_looks_unlike_what_was_published() {
        let (name, value) = ("x".to_owned(), 52.5);
        let svg = |row| bars("t", "MB/s", &[row]).unwrap().into_string();
        let published = svg(Bar::Published {
            name: name.clone(),
            value,
        });
        let required = svg(Bar::Required { name, value });
        assert!(published.contains("class=\"published\"") && published.contains(">52.5<"));
        assert!(required.contains("class=\"required\"") && !required.contains("published"));
    }
}
