//! The advice at the top of the page.

use maud::{Markup, html};

use crate::contender::Placement;
use crate::report::advice::{Advice, Best, Verdict};
use crate::report::experiments::anchor;
use crate::report::table::figure;

pub(super) fn cards(all: &[Advice]) -> Markup {
    // A run of one experiment that no job is judged by has no advice to give.
    let measured = all.iter().any(|one| one.experiment.is_some());
    html! {
        @if measured {
            section #advice aria-label="Advice" {
                h2 { "Advice" }
                div.cards { @for one in all { (card(one)) } }
            }
        }
    }
}

fn card(advice: &Advice) -> Markup {
    html! {
        article.card {
            h3 { (advice.job) }
            p.quiet { (advice.about) }
            p.verdict class=(class(&advice.verdict)) { (headline(&advice.verdict)) }
            (comparison(&advice.best))
            @for reason in &advice.reasons { p.reason { (reason) } }
            @if let Some(experiment) = &advice.experiment {
                p { a href=(format!("#{}", anchor(experiment))) { "See the plot" } }
            }
        }
    }
}

fn headline(verdict: &Verdict) -> String {
    match verdict {
        Verdict::Choose(placement) => place(*placement).to_owned(),
        Verdict::NoDifference => "No difference".to_owned(),
        Verdict::OnlyOneRan(placement) => format!("{}: only this ran", place(*placement)),
        Verdict::NotMeasured => "Not measured here".to_owned(),
    }
}

fn place(placement: Placement) -> &'static str {
    match placement {
        Placement::None => "No encryption",
        Placement::User => "User space",
        Placement::Kernel => "Kernel",
        Placement::Client => "Client",
    }
}

fn class(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Choose(_) => "chosen",
        Verdict::NoDifference => "even",
        Verdict::OnlyOneRan(_) | Verdict::NotMeasured => "open",
    }
}

/// The best of each placement, as bars beside each other.
fn comparison(best: &[Best]) -> Markup {
    let longest = best
        .iter()
        .map(|one| one.estimate.median)
        .fold(0.0, f64::max);
    html! {
        @if best.len() > 1 {
            dl.comparison {
                @for one in best {
                    dt { (one.placement.word()) }
                    dd {
                        span.track {
                            span.fill style=(width(one.estimate.median / longest)) {}
                        }
                        (figure(one.estimate.median))
                    }
                }
            }
        }
    }
}

fn width(share: f64) -> String {
    format!("width:{:.1}%", share * 100.0)
}
