//! What others published, or required, and the plot does not say in words.

use maud::{Markup, html};

use crate::record::Experiment;
use crate::record::published::Published;
use crate::record::shares;
use crate::report::drawings::{bars_at, comparable, of_others};

/// A list below the plot: what its signs mean, and what has no place in it.
pub(super) fn list(experiment: &Experiment, published: &[&Published]) -> Markup {
    let mut drawn = of_others(experiment, published);
    let is_drawn = |one: &&Published| drawn.iter().any(|(figure, _)| std::ptr::eq(*figure, *one));
    let comparable = comparable(experiment, published).into_iter();
    let mut rest: Vec<&Published> = comparable.filter(|one| !is_drawn(one)).collect();
    // What was said of a ladder stands in its own table.
    if shares::ladder(experiment).is_none() {
        rest.extend(published.iter().filter(|one| one.says.is_some()));
    }
    // Bars have their names beside them.
    drawn.retain(|_| bars_at(experiment).is_none());
    html! {
        @if !drawn.is_empty() || !rest.is_empty() {
            ul.beside {
                @for (figure, mark) in &drawn {
                    li {
                        span.sign {
                            @if figure.required { "╌ " } @else { "◇ " (mark.name) }
                        }
                        (figure.line())
                    }
                }
                @for figure in rest { li { (figure.line()) } }
            }
        }
    }
}

/// All of them, behind the plot.
pub(super) fn table(published: &[&Published]) -> Markup {
    html! {
        @if !published.is_empty() {
            div.scroll {
                table {
                    caption { "What others published or required" }
                    tbody {
                        @for figure in published {
                            tr {
                                th scope="row" { (figure.label()) }
                                td.words { (figure.told()) }
                                td { (figure.origin()) }
                            }
                        }
                    }
                }
            }
        }
    }
}
