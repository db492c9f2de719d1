//! The jobs that there is advice for, and what tells about each.

use coffer_measure::statistics::median;

use crate::contender::{Contender, Placement};
use crate::record::{COARSE_SECONDS, Experiment, Point, Record, Sample, Unit};
use crate::sendfile::way::{DEVICE, SPLICE};

/// A job that an operator has.
pub(super) struct Job {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    /// What tells about it, the nearest first.
    pub(super) evidence: &'static [Evidence],
    /// Figures are of a request, and not of a gigabyte.
    pub(super) by_request: bool,
    /// Whose CPU time it is.
    pub(super) cpu_of: &'static str,
    /// What tells how long a request takes, where that is another experiment.
    pub(super) latency: Option<Evidence>,
    /// Only these are for the job, each with what it is compared with: the same without
    /// encryption. All, as they are, when it is empty.
    pub(super) only: &'static [(&'static str, &'static str)],
    /// These are not: they do less than the job asks for.
    pub(super) except: &'static [&'static str],
}

/// Experiments that belong together, there and back, and where on their axis to look.
#[derive(Clone, Copy)]
pub(super) struct Evidence {
    pub(super) ids: &'static [&'static str],
    pub(super) x: u64,
}

/// What a job takes, the one that decides first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    /// Of the server, where it is known apart.
    Cpu,
    /// From the first to the last byte.
    Time,
    /// From a question to its answer.
    Latency,
}

impl Resource {
    pub(super) const ALL: [Self; 3] = [Self::Cpu, Self::Time, Self::Latency];
}

const fn at(ids: &'static [&'static str], x: u64) -> Evidence {
    Evidence { ids, x }
}

/// A file system on a block device, with what lies below it.
const DM_CRYPT: [(&str, &str); 2] = [
    ("dm-crypt", "none, ext4 in an image"),
    ("dm-crypt, no work queues", "none, ext4 in an image"),
];

/// Below any program: what the others write needs a program of its own to be read. Those of the
/// kernel are measured on an image in a file, which costs something of its own.
const TRANSPARENT: [(&str, &str); 5] = [
    DM_CRYPT[0],
    DM_CRYPT[1],
    ("fscrypt", "none, ext4 in an image"),
    ("gocryptfs", "none"),
    ("encfs", "none"),
];

/// These protect one connection, and nothing else that goes over the wire.
const ONE_CONNECTION: &[&str] = &[
    "TLS, rustls",
    "TLS, OpenSSL",
    "kernel TLS",
    "kernel TLS by a network card",
    "SSH tunnel",
];

/// Disks at the other end of a link. Protocols differ more than ciphers do: each is compared with
/// itself without encryption.
const FAR_DISKS: [(&str, &str); 5] = [
    ("NBD over TLS", "NBD"),
    ("NBD over WireGuard", "NBD"),
    ("iSCSI over IPsec", "iSCSI"),
    ("iSCSI over WireGuard", "iSCSI"),
    ("iSCSI over WireGuard in a program", "iSCSI"),
];

/// The same without encryption, where that is not just any that does not encrypt.
pub fn baseline(name: &str) -> Option<&'static str> {
    let mut all = TRANSPARENT.iter().chain(&FAR_DISKS);
    all.find(|(one, _)| *one == name)
        .map(|(_, without)| *without)
}

/// Files that are read from the disk. What is read again from memory lies there decrypted, and
/// tells nothing of reading.
pub(super) const COLD: &str = "file/read";
pub(super) const WARM: &str = "file/read-warm";
const FILES: [Evidence; 1] = [at(&["file/write", COLD], 0)];

/// Whose CPU time it is, where clients are others.
pub(super) const SERVER: &str = "the server";

const PLAIN: Job = Job {
    name: "",
    about: "",
    evidence: &[],
    by_request: false,
    cpu_of: "the thread that encrypts",
    latency: None,
    only: &[],
    except: &[],
};

/// What B compared encrypts in counter mode, which does not show who changes it.
const UNAUTHENTICATED: &[&str] = &[DEVICE, SPLICE];

/// The jobs, in the order of the page.
pub(super) const JOBS: [Job; 8] = [
    Job {
        name: "Many small objects",
        about: "authenticated, 1 KiB each, there and back",
        evidence: &[at(
            &["raw/aes-256-gcm/encrypt", "raw/aes-256-gcm/decrypt"],
            1024,
        )],
        ..PLAIN
    },
    Job {
        name: "Small requests",
        about: "15 B from a file to a connection that stands, authenticated",
        except: UNAUTHENTICATED,
        evidence: &[at(&["sendfile/request"], 15)],
        by_request: true,
        cpu_of: SERVER,
        ..PLAIN
    },
    Job {
        name: "Large streams",
        about: "from one long file to a connection, authenticated",
        except: UNAUTHENTICATED,
        evidence: &[
            at(&["sendfile/transfer"], 100_000_000),
            at(&["sendfile/transfer"], 10_000_000),
            at(&["sendfile/transfer"], 1_000_000),
        ],
        cpu_of: SERVER,
        latency: Some(at(&["sendfile/transfer"], 1_000_000)),
        ..PLAIN
    },
    Job {
        name: "Uploads",
        about: "plaintext that the server encrypts and keeps, a file in requests of 1 MB",
        evidence: &[at(&["server/upload/file"], 0)],
        cpu_of: SERVER,
        ..PLAIN
    },
    Job {
        name: "Block device",
        about: "a volume below a file system, written and read cold",
        evidence: &FILES,
        cpu_of: "the whole machine",
        only: &DM_CRYPT,
        ..PLAIN
    },
    Job {
        name: "Whole disk",
        about: "files below any program, written and read cold",
        evidence: &FILES,
        cpu_of: "the whole machine",
        only: &TRANSPARENT,
        ..PLAIN
    },
    Job {
        name: "Link between two sites",
        about: "all that goes over a wire",
        except: ONE_CONNECTION,
        evidence: &[at(&["net/stream", "net/copy"], 0)],
        cpu_of: "both ends",
        ..PLAIN
    },
    Job {
        name: "Disk over a network",
        about: "NBD or iSCSI, written and read",
        evidence: &[at(&["net/block-write", "net/block-read"], 0)],
        cpu_of: "both ends",
        only: &FAR_DISKS,
        ..PLAIN
    },
];

/// What a contender costs.
#[derive(Debug, Clone)]
pub(super) struct Costs {
    /// In each round; how many times the same without encryption, where a job compares so.
    pub(super) rounds: Vec<f64>,
    /// Whether it may cost less: its CPU time came in too few ticks to be told.
    pub(super) at_most: bool,
    /// There: what it takes with encryption, and what without.
    pub(super) amounts: Option<(f64, f64)>,
}

impl Costs {
    pub(super) fn of(rounds: Vec<f64>) -> Self {
        Self {
            rounds,
            at_most: false,
            amounts: None,
        }
    }
}

impl Evidence {
    /// The experiments of a record, where it has all of them with figures there: what was only
    /// written tells nothing of reading.
    pub(super) fn of(self, record: &Record) -> Option<Vec<&Experiment>> {
        let has_place = |one: &&Experiment| one.places().contains(&self.x);
        let find = |id: &&str| record.experiment(id).filter(has_place);
        self.ids.iter().map(find).collect()
    }
}

impl Job {
    /// Whether it does what the job asks for.
    pub(super) fn is_meant(&self, one: &Contender) -> bool {
        let name = one.name.as_str();
        let meant = self.only.is_empty() || self.only.iter().any(|(own, _)| *own == name);
        one.placement != Placement::None && meant && !self.except.contains(&name)
    }

    /// Who took part: of whom there is the time of each round, in all experiments.
    pub(super) fn participants<'a>(
        &self,
        experiments: &[&'a Experiment],
        x: u64,
    ) -> Vec<&'a Contender> {
        let all = experiments[0].series.iter().map(|one| &one.contender);
        let all = all.filter(|one| !self.except.contains(&one.name.as_str()));
        let measured = |name: &str| self.costs(experiments, x, name, Resource::Time).is_some();
        all.filter(|one| measured(&one.name)).collect()
    }

    /// What a contender's rounds cost, over all experiments: of a gigabyte or of a request, in
    /// [its unit](Self::amount). None where it was not measured in all of them, or where that of
    /// the same without encryption can't be told.
    pub(super) fn costs(
        &self,
        experiments: &[&Experiment],
        x: u64,
        name: &str,
        resource: Resource,
    ) -> Option<Costs> {
        let by_request = self.by_request || resource == Resource::Latency;
        let own = sums(experiments, x, name, resource, by_request)?;
        if self.only.is_empty() {
            // Where instructions are counted, a nanosecond is one.
            let scale = if by_request { 1e6 } else { 1.0 };
            let rounds = own.rounds.iter().map(|one| one * scale).collect();
            return Some(Costs { rounds, ..own });
        }
        let (_, baseline) = self.only.iter().find(|(one, _)| *one == name)?;
        let baseline = sums(experiments, x, baseline, resource, by_request)?;
        if baseline.at_most {
            return None;
        }
        let pairs = own.rounds.iter().zip(&baseline.rounds);
        Some(Costs {
            amounts: Some((median(&own.rounds)?, median(&baseline.rounds)?)),
            rounds: pairs.map(|(with, without)| with / without).collect(),
            at_most: own.at_most,
        })
    }

    /// What its figures are.
    pub(super) fn unit(&self, resource: Resource, counted: bool) -> String {
        if self.only.is_empty() {
            return self.amount(resource, counted);
        }
        let what = match (resource, counted) {
            (Resource::Cpu, false) => &format!("CPU time of {}", self.cpu_of),
            (Resource::Cpu, true) => &format!("instructions of {}", self.cpu_of),
            (_, false) => "time",
            (_, true) => "simulated time",
        };
        format!("times the {what} without encryption")
    }

    /// What it costs to do it once.
    pub(super) fn amount(&self, resource: Resource, counted: bool) -> String {
        let by_request = self.by_request || resource == Resource::Latency;
        let time = ["s/GB", "µs a request"][usize::from(by_request)];
        let cpu_of = self.cpu_of;
        match (resource, counted, by_request) {
            (Resource::Cpu, false, _) => format!("CPU {time} of {cpu_of}"),
            (Resource::Cpu, true, true) => format!("thousand instructions a request of {cpu_of}"),
            (Resource::Cpu, true, false) => format!("instructions a byte of {cpu_of}"),
            (_, false, _) => time.to_owned(),
            // That clock counts instructions, and waiting.
            (_, true, true) => "simulated µs a request".to_owned(),
            (_, true, false) => "simulated ns a byte".to_owned(),
        }
    }
}

/// Where instructions are counted nothing scatters, which would show how coarse ticks are: one must
/// be little of them all. It is 2.5 % of so much.
const COUNTED_SECONDS: f64 = 0.4;

/// The CPU seconds that a point took less than, where they came in too few ticks to tell more.
fn most_seconds(point: &Point, unit: Unit) -> Option<f64> {
    let most = if unit.counts_instructions() {
        COUNTED_SECONDS
    } else {
        COARSE_SECONDS
    };
    point.cpu_ticks_are_within(most).then_some(most)
}

/// The sum over experiments, round by round. None where one of them has no rounds of it, or one in
/// which nothing ended: what is missing is not free.
fn sums(
    experiments: &[&Experiment],
    x: u64,
    name: &str,
    resource: Resource,
    by_request: bool,
) -> Option<Costs> {
    let mut sums = Costs::of(Vec::new());
    for (at, experiment) in experiments.iter().enumerate() {
        let point = experiment.of(name)?.at(x)?;
        let most = most_seconds(point, experiment.unit).filter(|_| resource == Resource::Cpu);
        let cost = |sample: &Sample| {
            let seconds = match resource {
                Resource::Cpu => sample.cpu_seconds.max(most.unwrap_or(0.0)),
                Resource::Time | Resource::Latency => sample.wall_seconds,
            };
            if !by_request {
                let gigabytes = sample.bytes as f64 / 1e9;
                return (gigabytes > 0.0).then_some(seconds / gigabytes);
            }
            let counts = sample.counts?;
            Some(seconds / counts.transfers as f64)
        };
        let costs: Option<Vec<f64>> = point.samples.iter().map(cost).collect();
        let costs = costs.filter(|costs| !costs.is_empty())?;
        sums.at_most |= most.is_some();
        if at == 0 {
            sums.rounds = costs;
        } else {
            let pairs = sums.rounds.iter().zip(costs);
            sums.rounds = pairs.map(|(sum, cost)| sum + cost).collect();
        }
    }
    Some(sums)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::report::compare;
    use crate::{file, net};

    /// By names that they have where they are measured.
    #[test]
    fn who_is_judged_takes_part() {
        let all: Vec<Contender> = [file::contenders(), net::contenders()].concat();
        let known = |name: &str| all.iter().any(|one| one.name == name);
        for (contender, baseline) in TRANSPARENT.iter().chain(&FAR_DISKS) {
            assert!(known(contender) && known(baseline), "{contender}");
        }
        let crypts = all.iter().filter(|one| one.name.starts_with("dm-crypt"));
        assert_eq!(crypts.count(), DM_CRYPT.len());
        let links = ["NBD over", "iSCSI over"];
        let encrypted = |one: &&Contender| links.iter().any(|link| one.name.starts_with(link));
        assert_eq!(all.iter().filter(encrypted).count(), FAR_DISKS.len());
        assert!(ONE_CONNECTION.iter().all(|name| known(name)));
    }

    /// By the ids that the committed example has.
    #[test]
    fn the_evidence_of_every_job_is_measured() {
        let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab/example.json");
        let example = compare::read(&example).unwrap();
        let measured = |id: &str| example.experiments.iter().any(|one| one.id == id);
        for evidence in JOBS.iter().flat_map(|job| job.evidence) {
            let strays = evidence.ids.iter().filter(|id| !measured(id));
            assert_eq!(strays.collect::<Vec<_>>(), Vec::<&&str>::new());
        }
    }
}
