//! Plots in SVG, drawn by hand: lines over logarithmic axes, and bars with their intervals.
//!
//! Colours come from the page's style sheet by class, so that one drawing serves light and dark.
//! A drawing is 400 units wide and scales with the page; its letters stay readable on a phone.

mod scale;

mod bars;
mod lines;

pub use bars::{Bar, bars};
pub use lines::{Line, Mark, lines};

/// The width of every drawing, in units.
const WIDTH: f64 = 400.0;

/// How many colours the style sheet has.
pub const COLOUR_COUNT: usize = 8;

/// The class of a series' colour.
pub fn colour(index: usize) -> String {
    format!("c{}", index % COLOUR_COUNT)
}
