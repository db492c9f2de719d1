//! What was required, and who reaches it.

use maud::{Markup, html};

use crate::published::{Published, Reached};
use crate::record::{Experiment, Series};
use crate::table;

pub(super) fn requirements(experiment: &Experiment, published: &[&Published]) -> Markup {
    let required: Vec<(u64, &Published)> = published
        .iter()
        .filter(|figure| figure.required)
        .filter_map(|figure| Some((figure.x?, *figure)))
        .collect();
    html! {
        @if !required.is_empty() {
            div.scroll {
                table.required {
                    caption { "Reached? MB/s" }
                    thead {
                        tr {
                            th scope="col" { "contender" }
                            @for (_, figure) in &required {
                                th scope="col" {
                                    (figure.source) ", " (figure.label()) ": "
                                    (table::figure(figure.megabytes_per_second))
                                }
                            }
                        }
                    }
                    tbody {
                        @for series in &experiment.series {
                            tr {
                                th scope="row" { (series.contender.name) }
                                @for (x, figure) in &required {
                                    (reached(experiment, series, *x, figure))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn reached(experiment: &Experiment, series: &Series, x: u64, required: &Published) -> Markup {
    let found = series
        .at(x)
        .and_then(|point| point.estimate(experiment.unit));
    html! {
        @match found {
            Some(found) => {
                @let reached = Reached::by(&found, required.megabytes_per_second);
                @let (class, sign) = match reached {
                    Reached::Yes => ("yes", "✓"),
                    Reached::No => ("no", "✗"),
                    Reached::Unsure => ("unsure", "?"),
                };
                td.(class) title=(reached.words()) {
                    (table::figure(found.median)) " " (sign) span.spoken { (reached.words()) }
                }
            }
            None => { td { "–" } }
        }
    }
}
