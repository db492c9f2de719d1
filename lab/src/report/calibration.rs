//! What the simulated processor counted for work whose cost is known.

use maud::{Markup, html};

use crate::record::Calibration;
use crate::report::columns;
use crate::report::table::figure;

pub(super) fn section(all: &[Calibration]) -> Markup {
    let strange = all.iter().filter(|one| !one.is_plausible()).count();
    html! {
        @if all.is_empty() {
            p.warning role="note" {
                "The processor’s counts were not held against work whose cost is known: copies "
                "by rep movsb may have been counted once a byte, ten times what they cost."
            }
        } @else {
            @if strange > 0 {
                p.warning role="note" {
                    (strange) " of its counts are not what such work takes: see below."
                }
            }
            p {
                "Copies by rep movsb, which this processor would count once a byte, are switched "
                "off."
            }
            details open[strange > 0] {
                summary {
                    "How this processor counts: " (all.len()) " kinds of work whose cost is known"
                }
                div.scroll {
                    table {
                        (columns(&["work", "instructions", "each", "should be"]))
                        tbody { @for one in all { (row(one)) } }
                    }
                }
            }
        }
    }
}

fn row(one: &Calibration) -> Markup {
    html! {
        tr {
            th scope="row" { (one.work) }
            td { (figure(one.instructions)) @if !one.is_plausible() { " (!)" } }
            td { (one.unit) }
            td { (figure(one.least)) " to " (figure(one.most)) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Older records were made while copies counted ten times what they cost: no page may say of
    /// them what is true of newer ones.
    #[test]
    fn what_is_said_of_copies_is_true_of_the_record() {
        let copy = Calibration {
            work: "copy".to_owned(),
            unit: "byte".to_owned(),
            instructions: 0.1,
            least: 0.02,
            most: 0.25,
        };
        let (older, newer) = (section(&[]), section(&[copy]));
        let (older, newer) = (older.into_string(), newer.into_string());
        assert!(
            older.contains("counted once a byte, ten times") && !older.contains("switched off")
        );
        assert!(newer.contains("switched off") && !newer.contains("ten times"));
    }
}
