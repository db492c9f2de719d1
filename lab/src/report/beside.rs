//! What others published, or required, and the plot does not say in words.

use maud::{Markup, html};

use crate::record::Experiment;
use crate::record::published::Published;
use crate::record::shares;
use crate::report::drawings::{Form, comparable, form, marks};

/// A list below the plot: what its signs mean, and what has no place in it.
pub(super) fn list(experiment: &Experiment, published: &[&Published]) -> Markup {
    let comparable = comparable(experiment, published);
    let drawn = marks(experiment, &comparable);
    let is_drawn = |one: &&Published| drawn.iter().any(|(figure, _)| std::ptr::eq(*figure, *one));
    // Bars have their names beside them.
    let places = experiment.places();
    let has_bar = |one: &&&Published| match form(experiment) {
        Form::Lines => false,
        Form::BarsByPlace => one.x.is_some_and(|x| places.contains(&x)),
        Form::Bars | Form::BarsOfThreads => true,
    };
    let figures = comparable.iter().filter(|one| !has_bar(one));
    let mut rest: Vec<&Published> = figures.filter(|one| !is_drawn(one)).copied().collect();
    // What was said of a ladder stands in its own table.
    if shares::ladder(experiment).is_none() {
        rest.extend(published.iter().filter(|one| one.says.is_some()));
    }
    html! {
        @if !drawn.is_empty() || !rest.is_empty() {
            ul.beside {
                @for (figure, mark) in &drawn {
                    li {
                        span.sign {
                            @if mark.required { "╌ " } @else { "◇ " (mark.label) }
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
