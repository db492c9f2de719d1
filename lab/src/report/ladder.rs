//! A ladder of kernels: the share of each step.

use maud::{Markup, html};

use crate::record::Experiment;
use crate::record::published::Published;
use crate::record::shares;
use crate::report::table::figure;

pub(super) fn ladder(experiment: &Experiment, published: &[&Published]) -> Markup {
    html! {
        @if let Some(found) = shares::ladder(experiment) {
            div.scroll {
                table {
                    caption {
                        (shares::gain(experiment, &found, published))
                        ". Below: " (shares::unit(experiment.unit))
                    }
                    thead {
                        tr {
                            th scope="col" { "step" }
                            th scope="col" { "after it" }
                            th scope="col" { "saved" }
                            th scope="col" { "share" }
                        }
                    }
                    tbody {
                        tr {
                            th scope="row" { "before" }
                            td { (figure(found.first)) }
                            td { "–" }
                            td { "–" }
                        }
                        @for step in &found.steps {
                            tr {
                                th scope="row" { (step.name) }
                                td { (figure(step.cost)) }
                                td { (shares::saved(step)) }
                                td { (shares::percent(step.share)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
