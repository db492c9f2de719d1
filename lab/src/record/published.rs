//! Published figures, beside the measured ones: `lab/published.json`, each with its source.

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};
use coffer_measure::statistics::{CONFIDENCE, Estimate};

/// A figure that was published, or a finding without one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The experiment that measures the same: its [`id`](crate::record::Experiment::id).
    pub experiment: String,
    /// What ran.
    pub contender: String,
    /// On which machine; empty where that was not told.
    #[serde(default)]
    pub machine: String,
    /// What was measured, where one experiment has several figures.
    #[serde(default)]
    pub what: String,
    /// Where on the experiment's axis; none where the experiment has no axis, or it is not told.
    #[serde(default)]
    pub x: Option<u64>,
    /// In MB/s; none where something else [was said](Self::says).
    #[serde(default)]
    megabytes_per_second: Option<f64>,
    /// The same in MiB/s, where that is what its source counts.
    #[serde(default)]
    mebibytes_per_second: Option<f64>,
    /// What was said in place of a figure in MB/s.
    #[serde(default)]
    pub says: Option<String>,
    /// How that stands to what the lab measures: not the source's words.
    #[serde(default)]
    pub note: String,
    /// What was asked for, not what was measured.
    #[serde(default)]
    pub required: bool,
    /// Which of [`SOURCES`].
    pub source: String,
}

const MEBIBYTE: f64 = 1_048_576.0;

/// What the letters stand for.
pub const SOURCES: [(&str, &str); 3] = [
    (
        "A",
        "Hildstrom, the secure storage server, 2007, and its follow-up on kernel configuration, \
         2008",
    ),
    (
        "B",
        "Burnside and Keromytis, crypto in the data path of the kernel (Columbia, OpenBSD)",
    ),
    (
        "C",
        "Cloudflare, the kernel crypto API for user programs, 2023",
    ),
];

impl Published {
    /// What ran, where, and what of it.
    pub fn label(&self) -> String {
        let parts = [&self.contender, &self.machine, &self.what];
        let told: Vec<&str> = parts.into_iter().map(String::as_str).collect();
        let told: Vec<&str> = told.into_iter().filter(|part| !part.is_empty()).collect();
        told.join(", ")
    }

    /// Whether it was measured or asked for.
    pub fn word(&self) -> &'static str {
        if self.required {
            "required"
        } else {
            "published"
        }
    }

    /// The same, and by whom.
    pub fn origin(&self) -> String {
        format!("{} ({})", self.word(), self.source)
    }

    /// In MB/s, whatever its source counts.
    pub fn megabytes(&self) -> Option<f64> {
        let converted = self
            .mebibytes_per_second
            .map(|value| value * MEBIBYTE / 1e6);
        self.megabytes_per_second.or(converted)
    }

    /// The figure with its unit, in as many digits as its source has; or what was said.
    pub fn told(&self) -> String {
        let figure = match (self.megabytes_per_second, self.mebibytes_per_second) {
            (Some(value), _) => Some(format!("{value} MB/s")),
            (None, Some(value)) => {
                let converted = (value * MEBIBYTE / 1e6).round();
                Some(format!("{value} MiB/s, which is {converted} MB/s"))
            }
            (None, None) => None,
        };
        let mut told = figure.or_else(|| self.says.clone()).unwrap_or_default();
        if !self.note.is_empty() {
            told += &format!(" ({})", self.note);
        }
        told
    }

    /// All of it.
    pub fn line(&self) -> String {
        format!("{}: {}: {}", self.origin(), self.label(), self.told())
    }
}

/// How a contender stands to what was required.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reached {
    /// The whole interval is at or above it.
    Yes,
    /// The whole interval is below it.
    No,
    /// The interval holds it.
    Unsure,
}

impl Reached {
    /// By a contender whose figure is `measured`.
    pub fn by(measured: &Estimate, required: f64) -> Self {
        if measured.confidence < CONFIDENCE {
            Self::Unsure
        } else if measured.low >= required {
            Self::Yes
        } else if measured.high < required {
            Self::No
        } else {
            Self::Unsure
        }
    }

    /// As it stands in tables.
    pub fn words(self) -> &'static str {
        match self {
            Self::Yes => "reached",
            Self::No => "not reached",
            Self::Unsure => "can’t be told",
        }
    }
}

/// All of them.
pub fn published() -> Result<Vec<Published>> {
    serde_json::from_str(include_str!("../../published.json")).map_err(|error| LabError::Data {
        file: "lab/published.json".into(),
        what: error.to_string(),
    })
}

/// Those of one experiment.
pub fn of_experiment<'a>(all: &'a [Published], id: &str) -> Vec<&'a Published> {
    all.iter()
        .filter(|figure| figure.experiment == id)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net;
    use crate::raw;
    use crate::report::compare;
    use crate::server;
    use std::path::Path;

    #[test]
    fn every_figure_has_a_source() {
        let all = published().unwrap();
        assert!(all.len() >= 20);
        for figure in &all {
            assert!(
                SOURCES.iter().any(|(letter, _)| *letter == figure.source),
                "{figure:?}"
            );
            let positive = figure.megabytes().is_some_and(|value| value > 0.0);
            assert!(positive != figure.says.is_some(), "{figure:?}");
            assert!(positive || !figure.required, "{figure:?}");
        }
        assert_eq!(of_experiment(&all, "raw/table-a-loop").len(), 6);
    }

    /// The experiments on calculation by themselves, all others as the committed records have them.
    fn experiments() -> Vec<String> {
        let mut ids = [raw::ids(), server::ids(), net::ids()].concat();
        for name in ["example.json", "configs-debian-6.1.json"] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab");
            let record = compare::read(&folder.join(name)).unwrap();
            let measured = record.experiments.into_iter().map(|one| one.id);
            ids.extend(measured.filter(|id| !id.starts_with("raw/")));
        }
        ids
    }

    #[test]
    fn every_figure_stands_beside_an_experiment() {
        let experiments = experiments();
        let strays = |figures: &[Published]| {
            let strays = figures.iter().map(|one| one.experiment.clone());
            let strays = strays.filter(|id| !experiments.contains(id));
            strays.collect::<Vec<_>>()
        };
        let mut all = published().unwrap();
        assert_eq!(strays(&all), Vec::<String>::new());
        all[0].experiment = "raw/table-a-lop".into();
        assert_eq!(strays(&all), ["raw/table-a-lop"], "a misspelt one is seen");
    }

    #[test]
    fn what_was_required_is_not_called_published() {
        let all = published().unwrap();
        let lines = |id| {
            let figures = of_experiment(&all, id).into_iter();
            figures.map(Published::line).collect::<Vec<_>>()
        };
        let required = "required (A): a single client: 40 MB/s".to_owned();
        assert!(lines("server/1-mb").contains(&required));
        let null = lines("raw/null-cipher");
        assert!(null[0].ends_with("64 B: dominated by overhead"), "{null:?}");
        assert!(null[1].ends_with("at 1,024 B: 52.5 MB/s"), "{null:?}");
    }

    #[test]
    fn a_requirement_is_reached_by_the_whole_interval() {
        let measured = Estimate {
            median: 45.0,
            low: 40.0,
            high: 50.0,
            confidence: 0.96,
        };
        let reached = |required| Reached::by(&measured, required);
        assert_eq!(reached(40.0), Reached::Yes);
        assert_eq!(reached(44.0), Reached::Unsure);
        assert_eq!(reached(50.0), Reached::Unsure);
        assert_eq!(reached(50.1), Reached::No);
        let rounds = |count| Estimate::of(&vec![45.0; count]).unwrap();
        assert_eq!(
            Reached::by(&rounds(5), 1.0),
            Reached::Unsure,
            "five rounds tell nothing"
        );
        assert_eq!(Reached::by(&rounds(6), 1.0), Reached::Yes);
        let required = published().unwrap().into_iter().filter(|one| one.required);
        let required: Vec<_> = required.map(|one| (one.x, one.megabytes())).collect();
        let one_way = [(Some(1), Some(40.0)), (Some(100), Some(200.0))];
        assert_eq!(required, one_way.repeat(2), "to store, and to send");
    }
}
