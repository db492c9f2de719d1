//! Plots of HTML, whose letters keep their size however wide a screen is; only lines are SVG, and
//! stretched. Places are shares of a plot's width, and pixels of its height.
//!
//! Colours come from the page's style sheet by class: a placement has its hue everywhere, and
//! contenders are its shades. Whatever has the class `v` tells its figures in `aria-label`, which
//! the page's script shows under the pointer and by keyboard.

mod scale;

mod bars;
mod lines;

pub use bars::{Bar, bars, longest};
pub use lines::{Frame, Line, Mark, Spot, lines};

use crate::record::Series;

/// How many shades of a hue the style sheet has.
const SHADES: usize = 8;

/// The classes of a contender among others: the hue of its placement, and its shade.
pub fn shade(all: &[Series], index: usize) -> String {
    let placement = all[index].contender.placement;
    let before = all[..index].iter();
    let same = before.filter(|one| one.contender.placement == placement);
    format!("{} s{}", placement.word(), same.count() % SHADES)
}

/// A share of a whole, for a style.
fn percent(share: f64) -> String {
    format!("{:.2}%", share * 100.0)
}
