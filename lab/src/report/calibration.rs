//! What the simulated processor counted for work whose cost is known.

use maud::{Markup, html};

use crate::record::Calibration;
use crate::report::table::figure;

pub(super) fn section(all: &[Calibration]) -> Markup {
    let strange = all.iter().filter(|one| !one.is_plausible()).count();
    html! {
        @if all.is_empty() {
            p.warning role="note" {
                "The processor’s counts were not held against work whose cost is known."
            }
        } @else {
            @if strange > 0 {
                p.warning role="note" {
                    (strange) " of its counts are not what such work takes: see below."
                }
            }
            details open[strange > 0] {
                summary {
                    "How this processor counts: " (all.len()) " kinds of work whose cost is known"
                }
                div.scroll {
                    table {
                        thead {
                            tr {
                                @for head in ["work", "instructions", "each", "should be"] {
                                    th scope="col" { (head) }
                                }
                            }
                        }
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
