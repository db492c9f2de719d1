//! The report as a table: aligned for a terminal, or Markdown for the README.

use std::fmt::Write;

use crate::report::figures::{Report, Series, Target, Work};
use coffer_measure::statistics::Estimate;

const HEADINGS: [&str; 6] = [
    "work",
    "who",
    "figure (min–max)",
    "ratio (min–max)",
    "target",
    "",
];

/// Columns aligned by spaces, then every other figure.
pub fn terminal(report: &Report) -> String {
    let rows: Vec<Row> = report.works.iter().flat_map(rows).collect();
    let mut widths = HEADINGS.map(width);
    for row in &rows {
        for (most, cell) in widths.iter_mut().zip(row) {
            *most = (*most).max(width(cell));
        }
    }
    let line = |cells: [&str; 6]| {
        let mut line = String::new();
        for (cell, most) in cells.iter().zip(widths) {
            let padding = most - width(cell) + 2;
            let _ = write!(line, "{cell}{:padding$}", "");
        }
        line.trim_end().to_owned() + "\n"
    };
    let mut text = head(report);
    text.push_str(&line(HEADINGS));
    for row in &rows {
        text.push_str(&line(row.each_ref().map(String::as_str)));
    }
    text.push('\n');
    for work in &report.works {
        text.extend(
            work.series
                .iter()
                .filter_map(|series| details(work, series)),
        );
    }
    text
}

/// A table and what belongs to it.
pub fn markdown(report: &Report) -> String {
    let mut text = format!(
        "| {} |\n|{}\n",
        HEADINGS.join(" | "),
        "---|".repeat(HEADINGS.len())
    );
    for row in report.works.iter().flat_map(rows) {
        let _ = writeln!(text, "| {} |", row.join(" | "));
    }
    let _ = write!(text, "\n{}", head(report));
    text
}

fn head(report: &Report) -> String {
    let mut text = format!("{}\n", report.date);
    for line in &report.circumstances {
        let _ = writeln!(text, "{line}");
    }
    text.push('\n');
    text
}

type Row = [String; 6];

/// A row for each contender; ratio and verdict stand with ours.
fn rows(work: &Work) -> Vec<Row> {
    let row = |(index, series): (usize, &Series)| {
        let ours = index == 0;
        let spread = Estimate::range(&series.values(work.key));
        let figure = |spread| figure(spread, |value| work.key.format(value));
        let ratio = if ours { work.ratio() } else { None };
        let target = work
            .target
            .filter(|_| ours)
            .map(|target| target.to_string());
        let verdict = match work.reached().filter(|_| ours) {
            Some(true) => "pass",
            Some(false) => "MISS",
            None => "",
        };
        [
            if ours {
                work.title.clone()
            } else {
                String::new()
            },
            series.contender.clone(),
            spread
                .map(|s| format!("{} {}", figure(s), work.key.unit()))
                .unwrap_or_default(),
            ratio.map(|s| self::ratio(work, s)).unwrap_or_default(),
            target.unwrap_or_default(),
            verdict.into(),
        ]
    };
    work.series.iter().enumerate().map(row).collect()
}

/// The ratio, with its interval where that is what the target is about.
fn ratio(work: &Work, spread: Estimate) -> String {
    let text = figure(spread, |value| format!("{value:.3}"));
    match (work.target, work.interval()) {
        (Some(Target::IntervalAtMost(_)), Some(Estimate { low, high, .. })) => {
            format!("{text}, 95 % {low:.3}–{high:.3}")
        }
        _ => text,
    }
}

/// All figures but the one in the table; None: there are no others.
fn details(work: &Work, series: &Series) -> Option<String> {
    let others = series
        .quantities()
        .into_iter()
        .filter(|&quantity| quantity != work.key);
    let figures: Vec<String> = others
        .filter_map(|quantity| {
            let spread = Estimate::range(&series.values(quantity))?;
            let text = figure(spread, |value| quantity.format(value));
            Some(format!("{text} {}", quantity.unit()))
        })
        .collect();
    let (title, contender) = (&work.title, &series.contender);
    (!figures.is_empty()).then(|| format!("{title} · {contender}: {}\n", figures.join(", ")))
}

/// The median, and the spread where there is one.
fn figure(spread: Estimate, format: impl Fn(f64) -> String) -> String {
    let [median, min, max] = [spread.median, spread.low, spread.high].map(format);
    if min == max {
        median
    } else {
        format!("{median} ({min}–{max})")
    }
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::figures::{Quantity, Sample};

    fn report() -> Report {
        let series = |contender: &str, values: [f64; 2]| Series {
            contender: contender.into(),
            samples: values
                .map(|v| Sample::from([(Quantity::PerSecond, v)]))
                .into(),
        };
        Report {
            date: "today".into(),
            circumstances: vec!["here".into()],
            works: vec![Work {
                title: "count".into(),
                key: Quantity::PerSecond,
                series: vec![
                    series("ours", [90.0, 100.0]),
                    series("theirs", [200.0, 200.0]),
                ],
                target: Some(Target::RatioAtLeast(0.5)),
            }],
        }
    }

    #[test]
    fn one_row_a_contender_and_the_verdict_with_ours() {
        let text = markdown(&report());
        assert!(text.contains(
            "| count | ours | 95 (90–100) /s | 0.475 (0.450–0.500) | ≥ 0.50 × | MISS |\n\
             |  | theirs | 200 /s |  |  |  |\n"
        ));
    }

    #[test]
    fn terminal_columns_stand_below_their_headings() {
        let text = terminal(&report());
        let lines: Vec<&str> = text.lines().filter(|line| !line.is_empty()).collect();
        let column = |line: &str, word: &str| {
            line.find(word)
                .map(|byte| line[..byte].chars().count())
                .unwrap()
        };
        let heading = lines.iter().find(|line| line.starts_with("work")).unwrap();
        let ours = lines.iter().find(|line| line.starts_with("count")).unwrap();
        assert_eq!(column(heading, "target"), column(ours, "≥"));
    }
}
