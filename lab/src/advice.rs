//! The advice: for each job, which placement to choose on this machine, and by how much.

use crate::contender::{Availability, Placement};
use crate::record::{Experiment, Record, Series};
use crate::stats::{Estimate, ratio};
use crate::table::{figure, place};

/// A job that an operator has, and the experiments that tell about it, the nearest first.
struct Job {
    name: &'static str,
    about: &'static str,
    evidence: &'static [(&'static str, u64)],
    /// Only these are for the job; all, when it is empty.
    only: &'static [&'static str],
}

/// Below any program: what the others write needs a program of its own to be read.
const TRANSPARENT: [&str; 4] = ["fscrypt", "dm-crypt", "gocryptfs", "encfs"];

const JOBS: [Job; 5] = [
    Job {
        name: "Many small objects",
        about: "authenticated, 1 KiB each",
        evidence: &[("raw/aes-256-gcm/encrypt", 1024)],
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
        only: &[],
    },
    Job {
        name: "Block device",
        about: "sectors of a volume, read and written by a program",
        evidence: &[
            ("raw/aes-256-xts/encrypt", 4096),
            ("raw/aes-256-xts/encrypt", 1024),
        ],
        only: &[],
    },
    Job {
        name: "Whole disk",
        about: "files below any program",
        evidence: &[("file/write", 0)],
        only: &TRANSPARENT,
    },
    Job {
        name: "Link between two sites",
        about: "all that goes over a wire",
        evidence: &[("net/stream", 0)],
        only: &[],
    },
];

impl Job {
    fn takes(&self, contender: &str) -> bool {
        self.only.is_empty() || self.only.contains(&contender)
    }
}

/// The best that a placement has to offer.
#[derive(Debug, Clone)]
pub struct Best {
    /// Which placement.
    pub placement: Placement,
    /// Its fastest contender.
    pub contender: String,
    /// How fast.
    pub estimate: Estimate,
}

/// What to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// This placement is the faster one.
    Choose(Placement),
    /// Intervals overlap: other reasons may decide.
    NoDifference,
    /// Only one placement could run: it is no choice.
    OnlyOneRan(Placement),
    /// Nothing was measured.
    NotMeasured,
}

/// The advice for one job.
#[derive(Debug, Clone)]
pub struct Advice {
    /// The job.
    pub job: &'static str,
    /// What was taken for it.
    pub about: &'static str,
    /// What to do.
    pub verdict: Verdict,
    /// Why, in a sentence or two.
    pub reasons: Vec<String>,
    /// The best of each placement that ran, the fastest first.
    pub best: Vec<Best>,
    /// The experiment that says so.
    pub experiment: Option<String>,
}

/// The advice for each job.
pub fn advice(record: &Record) -> Vec<Advice> {
    JOBS.iter().map(|job| for_job(job, record)).collect()
}

fn for_job(job: &Job, record: &Record) -> Advice {
    let found = job.evidence.iter().find_map(|&(id, x)| {
        let experiment = record.experiments.iter().find(|one| one.id == id)?;
        experiment.places().contains(&x).then_some((experiment, x))
    });
    match found {
        Some((experiment, x)) => judge(job, experiment, x),
        None => Advice {
            job: job.name,
            about: job.about,
            verdict: Verdict::NotMeasured,
            reasons: vec![format!(
                "Not measured here: this run holds no experiment for it ({}).",
                job.evidence[0].0
            )],
            best: Vec::new(),
            experiment: None,
        },
    }
}

fn judge(job: &Job, experiment: &Experiment, x: u64) -> Advice {
    let mut best: Vec<Best> = Vec::new();
    for series in &experiment.series {
        let estimate = series
            .at(x)
            .and_then(|point| point.estimate(experiment.unit));
        let placement = series.contender.placement;
        let wanted = placement != Placement::None && job.takes(&series.contender.name);
        let Some(estimate) = estimate.filter(|_| wanted) else {
            continue;
        };
        let own = Best {
            placement,
            contender: series.contender.name.clone(),
            estimate,
        };
        match best.iter_mut().find(|one| one.placement == placement) {
            Some(one) if one.estimate.median < estimate.median => *one = own,
            Some(_) => {}
            None => best.push(own),
        }
    }
    best.sort_by(|a, b| b.estimate.median.total_cmp(&a.estimate.median));
    let mut reasons = reasons(experiment, x, &best);
    reasons.extend(experiment_absences(experiment, &best));
    Advice {
        job: job.name,
        about: job.about,
        verdict: verdict(&best),
        reasons,
        best,
        experiment: Some(experiment.id.clone()),
    }
}

fn verdict(best: &[Best]) -> Verdict {
    match best {
        [] => Verdict::NotMeasured,
        [only] => Verdict::OnlyOneRan(only.placement),
        [first, second, ..] if first.estimate.overlaps(&second.estimate) => Verdict::NoDifference,
        [first, ..] => Verdict::Choose(first.placement),
    }
}

fn reasons(experiment: &Experiment, x: u64, best: &[Best]) -> Vec<String> {
    let unit = experiment.unit.name();
    let at = place(experiment.axis, x);
    let at = if at.is_empty() {
        String::new()
    } else {
        format!(" at {at}")
    };
    let speed = |one: &Best| {
        let (low, high) = (figure(one.estimate.low), figure(one.estimate.high));
        format!(
            "{} {} {unit} ({low}–{high})",
            one.contender,
            figure(one.estimate.median)
        )
    };
    match best {
        [] => vec![format!(
            "Not measured here: nobody could run “{}”.",
            experiment.title
        )],
        [only] => vec![format!("{}: {}{at}.", experiment.title, speed(only))],
        [first, second, ..] => {
            let times = ratio(&first.estimate, &second.estimate);
            let compared = if first.estimate.overlaps(&second.estimate) {
                "the intervals overlap: no difference that this run can tell".to_owned()
            } else {
                let (low, high) = (figure(times.low), figure(times.high));
                format!("{} times as fast ({low}–{high})", figure(times.median))
            };
            vec![format!(
                "{}{at}: {} against {}: {compared}.",
                experiment.title,
                speed(first),
                speed(second)
            )]
        }
    }
}

/// Placements that took part, but of which nobody could run: no figure is no zero.
fn experiment_absences(experiment: &Experiment, best: &[Best]) -> Option<String> {
    let absent = |series: &&Series| {
        let placement = series.contender.placement;
        placement != Placement::None && !best.iter().any(|one| one.placement == placement)
    };
    let first = experiment.series.iter().find(absent)?;
    let Availability::CannotRun {
        why,
        what_would_make_it_run,
    } = &first.contender.availability
    else {
        return None;
    };
    Some(format!(
        "Not measured here: {} ({why}). It would need: {what_would_make_it_run}.",
        first.contender.placement.word()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Contender;
    use crate::record::{Axis, Noise, Point, Sample, Unit};

    fn series(name: &str, placement: Placement, speeds: &[f64]) -> Series {
        let sample = |speed: &f64| Sample {
            bytes: 1_000_000,
            wall_seconds: 1.0 / speed,
            cpu_seconds: 1.0,
            counts: None,
        };
        Series {
            contender: Contender::new(name, placement, ""),
            points: vec![Point {
                x: 1024,
                samples: speeds.iter().map(sample).collect(),
                observed: None,
            }],
        }
    }

    fn judged(all: Vec<Series>) -> Advice {
        let experiment = Experiment {
            id: "raw/aes-256-gcm/encrypt".into(),
            title: "GCM".into(),
            axis: Axis::BlockBytes,
            unit: Unit::MegabytesPerSecond,
            how: String::new(),
            series: all,
            noise: Noise::default(),
        };
        judge(&JOBS[0], &experiment, 1024)
    }

    #[test]
    fn the_faster_placement_is_chosen_by_how_much() {
        let advice = judged(vec![
            series("slow", Placement::User, &[90.0, 100.0, 110.0]),
            series("u", Placement::User, &[190.0, 200.0, 210.0]),
            series("k", Placement::Kernel, &[40.0, 50.0, 60.0]),
        ]);
        assert_eq!(advice.verdict, Verdict::Choose(Placement::User));
        assert!(
            advice.reasons[0].contains("4.00 times"),
            "{:?}",
            advice.reasons
        );
    }

    #[test]
    fn overlapping_intervals_are_no_difference() {
        let advice = judged(vec![
            series("u", Placement::User, &[90.0, 100.0, 110.0]),
            series("k", Placement::Kernel, &[80.0, 95.0, 105.0]),
        ]);
        assert_eq!(advice.verdict, Verdict::NoDifference);
    }

    #[test]
    fn what_did_not_run_is_no_loser() {
        let mut absent = series("k", Placement::Kernel, &[]);
        absent.points.clear();
        absent.contender.availability = Availability::cannot("no socket", "a socket");
        let advice = judged(vec![series("u", Placement::User, &[1.0, 2.0]), absent]);
        assert_eq!(advice.verdict, Verdict::OnlyOneRan(Placement::User));
        let text = advice.reasons.join(" ");
        assert!(
            text.contains("no socket") && text.contains("a socket"),
            "{text}"
        );
        assert_eq!(judged(Vec::new()).verdict, Verdict::NotMeasured);
    }
}
