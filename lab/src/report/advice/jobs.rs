//! The jobs that there is advice for, and what tells about each.

use crate::record::{Experiment, Series};
use coffer_measure::statistics::{Estimate, ratio};

/// A job that an operator has, and the experiments that tell about it, the nearest first.
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) evidence: &'static [(&'static str, u64)],
    /// What else belongs to the job: the other direction.
    pub(super) also: &'static [(&'static str, u64)],
    /// Only these are for the job, each with what it is compared with: the same without
    /// encryption. All, as they are, when it is empty.
    pub(super) only: &'static [(&'static str, &'static str)],
}

/// Below any program: what the others write needs a program of its own to be read. Those of the
/// kernel are measured on an image in a file, which costs something of its own.
const TRANSPARENT: [(&str, &str); 5] = [
    ("fscrypt", "none, ext4 in an image"),
    ("dm-crypt", "none, ext4 in an image"),
    ("dm-crypt, no work queues", "none, ext4 in an image"),
    ("gocryptfs", "none"),
    ("encfs", "none"),
];

/// The jobs, in the order of the page.
pub(super) const JOBS: [Job; 5] = [
    Job {
        name: "Many small objects",
        about: "authenticated, 1 KiB each",
        evidence: &[("raw/aes-256-gcm/encrypt", 1024)],
        also: &[("raw/aes-256-gcm/decrypt", 1024)],
        only: &[],
    },
    Job {
        name: "Large streams",
        about: "authenticated, 1 MB and more at a time",
        evidence: &[
            ("sendfile/transfer", 100_000_000),
            ("sendfile/transfer", 10_000_000),
            ("raw/aes-256-gcm/decrypt", 1 << 20),
            ("sendfile/transfer", 1_000_000),
        ],
        also: &[],
        only: &[],
    },
    Job {
        name: "Block device",
        about: "sectors of a volume, read and written by a program",
        evidence: &[
            ("raw/aes-256-xts/encrypt", 4096),
            ("raw/aes-256-xts/encrypt", 1024),
        ],
        also: &[
            ("raw/aes-256-xts/decrypt", 4096),
            ("raw/aes-256-xts/decrypt", 1024),
        ],
        only: &[],
    },
    Job {
        name: "Whole disk",
        about: "files below any program",
        evidence: &[("file/write", 0)],
        also: &[("file/read", 0), ("file/read-warm", 0)],
        only: &TRANSPARENT,
    },
    Job {
        name: "Link between two sites",
        about: "all that goes over a wire",
        evidence: &[("net/stream", 0)],
        also: &[("net/copy", 0)],
        only: &[],
    },
];

impl Job {
    /// The figure of a contender that is for the job: what it does, or how much it keeps of what
    /// the same without encryption does.
    pub(super) fn figure(
        &self,
        experiment: &Experiment,
        series: &Series,
        x: u64,
    ) -> Option<Estimate> {
        let at = |series: &Series| series.at(x)?.estimate(experiment.unit);
        if self.only.is_empty() {
            return at(series);
        }
        let name = series.contender.name.as_str();
        let (_, baseline) = self.only.iter().find(|(own, _)| *own == name)?;
        let baseline = experiment
            .series
            .iter()
            .find(|one| one.contender.name == *baseline)?;
        Some(ratio(&at(series)?, &at(baseline)?))
    }

    /// What its figures are.
    pub(super) fn unit(&self, experiment: &Experiment) -> &'static str {
        match self.only {
            [] => experiment.unit.name(),
            _ => "of the same without encryption",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    /// By names that they have where they are measured.
    #[test]
    fn who_is_judged_takes_part() {
        let all: Vec<String> = file::contenders().into_iter().map(|one| one.name).collect();
        let known = |name: &str| all.iter().any(|one| one == name);
        for (contender, baseline) in TRANSPARENT {
            assert!(
                known(contender) && known(baseline),
                "{contender}, {baseline}"
            );
        }
        let crypts = all.iter().filter(|name| name.starts_with("dm-crypt"));
        let judged = TRANSPARENT
            .iter()
            .filter(|(name, _)| name.starts_with("dm-crypt"));
        assert_eq!(crypts.count(), judged.count());
    }
}
