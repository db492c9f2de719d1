//! Published figures, beside the measured ones: `lab/published.json`, each with its source.

use serde::{Deserialize, Serialize};

use crate::error::{LabError, Result};

/// A figure that somebody published.
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
    /// In MB/s.
    pub megabytes_per_second: f64,
    /// Which of [`SOURCES`].
    pub source: String,
}

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
}

/// All of them.
pub fn published() -> Result<Vec<Published>> {
    serde_json::from_str(include_str!("../published.json")).map_err(|error| LabError::Data {
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

    #[test]
    fn every_figure_has_a_source() {
        let all = published().unwrap();
        assert!(all.len() >= 20);
        for figure in &all {
            assert!(
                SOURCES.iter().any(|(letter, _)| *letter == figure.source),
                "{figure:?}"
            );
            assert!(figure.megabytes_per_second > 0.0);
        }
        assert_eq!(of_experiment(&all, "raw/table-a-loop").len(), 10);
    }
}
