//! Bars with their intervals, one figure a contender, the best first.

use maud::{Markup, html};

use crate::report::plot::percent;
use crate::report::table::figure;

/// One row.
pub struct Bar {
    /// Its colour; `published`, or `required`.
    pub class: String,
    /// Who.
    pub name: String,
    /// Where it encrypts, or who published.
    pub note: String,
    /// How much.
    pub value: f64,
    /// Its interval.
    pub interval: Option<(f64, f64)>,
    /// All of it, in words.
    pub told: String,
}

impl Bar {
    fn end(&self) -> f64 {
        self.interval.map_or(self.value, |(_, high)| high)
    }
}

/// The end of the longest.
pub fn longest(rows: &[Bar]) -> f64 {
    rows.iter().map(Bar::end).fold(0.0, f64::max)
}

/// Draws rows from zero to `longest`, in their order. None when there is nothing to draw.
pub fn bars(title: &str, rows: &[Bar], longest: f64) -> Option<Markup> {
    if longest <= 0.0 || rows.is_empty() {
        return None;
    }
    let wide = |value: f64| percent(value / longest);
    Some(html! {
        ol.chart.bars role="group" aria-label=(title) tabindex="0" {
            @for (index, row) in rows.iter().enumerate() {
                li.v.(row.class) role="img" aria-label=(row.told) data-row=(index) tabindex="-1" {
                    span.name { (row.name) " " small { (row.note) } }
                    span.track {
                        span.fill style=(format!("width:{}", wide(row.value))) {}
                        @if let Some((low, high)) = row.interval {
                            @let place = format!("left:{};width:{}", wide(low), wide(high - low));
                            span.whisker style=(place) {}
                        }
                    }
                    b { (figure(row.value)) }
                }
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bar(class: &str, value: f64) -> Bar {
        Bar {
            class: class.to_owned(),
            name: "a".to_owned(),
            note: "user".to_owned(),
            value,
            interval: (class != "required").then_some((value * 0.9, value * 1.1)),
            told: format!("told of {value}"),
        }
    }

    #[test]
    fn bars_are_as_long_as_their_figures() {
        let rows = [bar("user s0", 100.0), bar("required", 55.0)];
        let drawn = bars("t", &rows, longest(&rows)).unwrap().into_string();
        assert!(
            drawn.contains("width:90.91%") && drawn.contains("width:50.00%"),
            "{drawn}"
        );
        assert!(
            drawn.contains("left:81.82%;width:18.18%"),
            "its interval: {drawn}"
        );
        assert_eq!(drawn.matches("whisker").count(), 1, "{drawn}");
        assert!(drawn.contains("class=\"v required\"") && drawn.contains("told of 55"));
        assert!(bars("t", &[], 1.0).is_none() && bars("t", &rows, 0.0).is_none());
    }
}
