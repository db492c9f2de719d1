//! The report: one HTML file that needs nothing else. People look at the plots; every figure also
//! stands in a table.

pub mod table;

pub mod plot;

pub mod advice;

pub mod compare;

mod drawings;

mod beside;
mod ladder;
mod requirements;

mod calibration;
mod contradictions;
mod experiments;

mod advice_cards;
mod machine_facts;

pub mod site;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use self::advice::advice;
use self::table::{is_disturbed, scatters, unended, warnings};
use crate::record::published::{Published, SOURCES};
use crate::record::{COMMIT, Experiment, Record};

/// From so many rounds on an interval holds what it says.
const ROUNDS_SOUND: usize = 6;

const STYLE: &str = include_str!("report/style.css");
const SCRIPT: &str = include_str!("report/page.js");

/// The whole page.
pub fn page(record: &Record, published: &[Published]) -> String {
    let groups = experiments::groups(record);
    let body = html! {
        header {
            h1 { "Where should encryption run, on this machine?" }
            p.machine { (record.machine.line()) }
            p.quiet {
                "Measured " (day(&record.date)) " by "
                code { "coffer-lab " (record.command) }
                " " (record.version) ", built from " (commit(&record.commit))
                "; drawn by " (commit(COMMIT)) "."
            }
            (cautions(record))
        }
        main {
            (advice_cards::advice(&advice(record)))
            nav aria-label="Experiments" {
                @for group in &groups { a href=(format!("#{}", group.anchor)) { (group.title) } }
                a href="#contradictions" { "What contradicts what" }
                a href="#machine" { "The machine" }
                a href="#method" { "Method" }
            }
            @for group in &groups { (experiments::section(group, record, published)) }
            (contradictions::section())
            (machine_facts::section(record))
            (method(record))
        }
        footer { p { "Sources of published figures" } (sources()) }
    };
    let title = "Where should encryption run? · coffer-lab";
    framed(title, STYLE, None, &body, SCRIPT)
}

/// A page that needs nothing else.
fn framed(title: &str, style: &str, class: Option<&str>, body: &Markup, script: &str) -> String {
    let markup = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(style)) }
            }
            body class=[class] { (body) script { (PreEscaped(script)) } }
        }
    };
    markup.into_string()
}

/// The names of a table's columns.
fn columns(names: &[&str]) -> Markup {
    html! { thead { tr { @for name in names { th scope="col" { (name) } } } } }
}

fn commit(commit: &str) -> Markup {
    html! {
        @if commit.is_empty() { "a commit that it does not say" }
        @else { "commit " code { (commit) } }
    }
}

/// What stands between these figures and a conclusion, each in a line, and more of it behind it.
fn cautions(record: &Record) -> Markup {
    html! {
        (outdated(record))
        @if is_quick(record) {
            details.warning {
                summary { strong { "A quick run (--quick)." } }
                "Samples are shorter, sizes and rounds fewer than in a full one, so what begins "
                "and ends once weighs more: another length may tell otherwise. Each card of the "
                "advice says how much was measured for it."
            }
        }
        @if counts_instructions(record) {
            details.warning {
                summary { strong { "Instructions, not time." } }
                (INSTRUCTIONS)
                (calibration::section(&record.calibration))
            }
        }
        (noise(record))
    }
}

/// What is to be known of a machine's figures beside those of others; nothing where they are sound.
fn remarks(record: &Record) -> String {
    let hasty = |one: &Experiment| {
        let mut points = one.series.iter().flat_map(|series| &series.points);
        let few = points.any(|point| point.samples.len() < ROUNDS_SOUND);
        few && !one.unit.counts_instructions()
    };
    let counted = [
        (
            count(record, Experiment::is_outdated),
            "are older than what the lab does now",
        ),
        (
            count(record, is_disturbed),
            "were disturbed by other programs",
        ),
        (count(record, hasty), "have fewer than six rounds"),
    ];
    let all = record.experiments.len();
    let counted = counted.iter().filter(|(count, _)| *count > 0);
    let mut remarks: Vec<String> = counted
        .map(|(count, what)| format!("{count} of {all} experiments {what}"))
        .collect();
    remarks.extend(is_quick(record).then(|| "a quick run".to_owned()));
    let changed = record.commit.ends_with("-dirty");
    remarks.extend(changed.then(|| "by a lab with changed files".to_owned()));
    remarks.iter().map(|one| format!("; {one}")).collect()
}

fn count(record: &Record, wanted: impl Fn(&Experiment) -> bool) -> usize {
    record.experiments.iter().filter(|one| wanted(one)).count()
}

fn is_quick(record: &Record) -> bool {
    record.command.split(' ').any(|word| word == "--quick")
}

/// What the lab measures otherwise by now.
fn outdated(record: &Record) -> Markup {
    let outdated = record.experiments.iter().filter(|one| one.is_outdated());
    let titles: Vec<&str> = outdated.map(|one| one.title.as_str()).collect();
    html! {
        @if !titles.is_empty() {
            details.warning {
                summary {
                    strong { "Older than what the lab does now: " }
                    (titles.len()) " of " (record.experiments.len()) " experiments."
                }
                "They have changed since they were measured here; set them beside newer figures "
                "with care: " (titles.join(" · ")) "."
            }
        }
    }
}

fn day(date: &str) -> &str {
    date.split('T').next().unwrap_or(date)
}

const INSTRUCTIONS: &str = "Bytes per 1,000 instructions are no speed. A simulated processor ran \
     this kernel, whose clock moves on by one with each instruction, whatever that one costs \
     on a real one: one round of AES by AES-NI counts as much as an addition. The figures are the \
     same in every run of one length, which says nothing of runs of another, and tell how much \
     work each way makes; where one end waits, time passes \
     without instructions. What a count can’t show: caches and memory (a miss counts nothing), \
     units that work side by side, how long an instruction takes. “Simulated time” is what that \
     clock tells, waiting included.";

fn counts_instructions(record: &Record) -> bool {
    count(record, |one| one.unit.counts_instructions()) > 0
}

/// One banner for all experiments that were disturbed, or whose figures scatter by themselves.
fn noise(record: &Record) -> Markup {
    let all = record.experiments.len();
    let disturbed = count(record, is_disturbed);
    let warned = count(record, |one| !warnings(one).is_empty());
    let scattered = count(record, scatters);
    let unended = count(record, |one| unended(one) > 0);
    let most = |share: fn(&Experiment) -> f64| {
        let most = record.experiments.iter().map(share).fold(0.0, f64::max);
        // Ticks of two clocks may come to more than there is.
        format!("{:.0} %", most.min(1.0) * 100.0)
    };
    let others = most(|one| one.noise.others_share);
    let stolen = most(|one| one.noise.stolen_share);
    html! {
        @if disturbed > 0 {
            details.warning {
                summary {
                    strong { "The machine was not quiet: " }
                    (warned) " of " (all) " experiments carry a warning."
                }
                "Other programs used up to " (others) " of the machine, and its host took up to "
                (stolen) ". Compare nothing closely: run again on a quiet one."
            }
        } @else if scattered > 0 {
            details.warning {
                summary {
                    strong { "Some figures scatter: " }
                    (scattered) " of " (all) " experiments have figures less sure than ±10 %."
                }
                "Nothing disturbed them enough for a warning of its own: other programs used "
                (others) " of the machine at most, and its host took " (stolen) ". More rounds "
                "(--rounds) narrow what scatters by itself."
            }
        }
        @if unended > 0 {
            details.warning {
                summary {
                    strong { "Some contenders were too slow: " }
                    "in " (unended) " of " (all) " experiments nothing ended in a sample’s time."
                }
                "Of a contender with such a sample there is no figure at that place: the others "
                "alone would flatter it."
            }
        }
    }
}

fn method(record: &Record) -> Markup {
    html! {
        section #method {
            h2 { "Method" }
            ul {
                li {
                    "First the bytes, then the speed: contenders were held against published "
                    "vectors and against each other."
                    @for one in &record.agreements { br; span.quiet { (one.line()) } }
                }
                li {
                    "Rounds are interleaved, after one that warms up and is not counted. Points "
                    "are medians; whiskers hold the true median with 95 % probability from six "
                    "rounds on, and are all samples with fewer."
                    @if counts_instructions(record) {
                        " Counted instructions are the same in each round, so one is enough, and "
                        "there are no whiskers. Bars, lines and waterfalls go by the machine’s "
                        "clock; “instr./B” and “instr./request” in tables are CPU time; whose, is "
                        "said below each table."
                    }
                }
                li {
                    "Two contenders are compared by their ratio in each round. “No difference” is "
                    "said only where tests show less than 5 %, “can’t tell” in all other cases "
                    "whose interval holds 1. The advice chooses by what differs enough to matter: "
                    "by 5 % of time, or by 25 % of counted instructions. What can’t run here is "
                    "named with its reason and never counts as zero."
                }
                li {
                    "MB/s are 1,000,000 bytes a second. CPU seconds are user and system together."
                }
            }
        }
    }
}

fn sources() -> Markup {
    html! {
        ul { @for (letter, source) in SOURCES { li { strong { (letter) } " " (source) } } }
    }
}
