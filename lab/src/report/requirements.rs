//! What was required, and who reaches it.

use maud::{Markup, html};

use crate::record::published::{Published, Reached};
use crate::record::{Experiment, Series};
use crate::report::table;

pub(super) fn requirements(experiment: &Experiment, published: &[&Published]) -> Markup {
    let required: Vec<(u64, f64, &Published)> = published
        .iter()
        .filter(|figure| figure.required)
        .filter_map(|figure| Some((figure.x?, figure.megabytes()?, *figure)))
        .collect();
    html! {
        @if !required.is_empty() {
            div.scroll {
                table.required {
                    caption { "Reached? MB/s" }
                    thead {
                        tr {
                            th scope="col" { "contender" }
                            @for (_, least, figure) in &required {
                                th scope="col" {
                                    (figure.origin()) " for " (figure.label()) ": " (least)
                                }
                            }
                        }
                    }
                    tbody {
                        @for series in &experiment.series {
                            tr {
                                th scope="row" { (series.contender.name) }
                                @for (x, least, _) in &required {
                                    (reached(experiment, series, *x, *least))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn reached(experiment: &Experiment, series: &Series, x: u64, required: f64) -> Markup {
    let found = series
        .at(x)
        .and_then(|point| point.estimate(experiment.unit));
    let unended = || table::none_ended(series.at(x)?, experiment.unit);
    html! {
        @match found {
            Some(found) => {
                @let reached = Reached::by(&found, required);
                @let (class, sign) = match reached {
                    Reached::Yes => ("yes", "✓"),
                    Reached::No => ("no", "✗"),
                    Reached::Unsure => ("unsure", "?"),
                };
                td.(class) title=(reached.words()) {
                    (table::figure(found.median)) " " (sign) span.spoken { (reached.words()) }
                }
            }
            None => { td { (unended().unwrap_or("–".into())) } }
        }
    }
}
