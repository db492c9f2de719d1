//! The advice: for each job, which placement to choose on this machine, and by how much.

mod jobs;

use crate::contender::{Availability, Placement};
use crate::record::{Experiment, Record, Series, Unit};
use crate::report::advice::jobs::{JOBS, Job};
use crate::report::table::{figure, place};
use coffer_measure::statistics::{CONFIDENCE, Estimate, ratio};

/// The best that a placement has to offer.
#[derive(Debug, Clone)]
pub struct Best {
    /// Which placement.
    pub placement: Placement,
    /// Its fastest contender.
    pub contender: String,
    /// How fast, or how much of the same without encryption.
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
    let found = |evidence: &[(&str, u64)]| {
        evidence.iter().find_map(|&(id, x)| {
            let experiment = record.experiments.iter().find(|one| one.id == id)?;
            experiment.places().contains(&x).then_some((experiment, x))
        })
    };
    match found(job.evidence) {
        Some(evidence) => judge(job, evidence, found(job.also)),
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

/// An experiment, and where on its axis to look.
type Evidence<'a> = (&'a Experiment, u64);

fn judge(job: &Job, evidence: Evidence<'_>, also: Option<Evidence<'_>>) -> Advice {
    let (experiment, _) = evidence;
    let best = best(job, evidence);
    let mut reasons = reasons(job, evidence, &best);
    let mut verdict = verdict(&best);
    if let Some(also) = also {
        let other = self::best(job, also);
        reasons.extend(self::reasons(job, also, &other));
        let chosen = [&verdict, &self::verdict(&other)].map(|verdict| match verdict {
            Verdict::Choose(placement) => Some(*placement),
            _ => None,
        });
        if let [Some(first), Some(second)] = chosen
            && first != second
        {
            verdict = Verdict::NoDifference;
            reasons.push("One direction asks for the one, the other for the other.".to_owned());
        }
    }
    reasons.extend(experiment_absences(experiment, &best));
    Advice {
        job: job.name,
        about: job.about,
        verdict,
        reasons,
        best,
        experiment: Some(experiment.id.clone()),
    }
}

/// The best of each placement, the fastest first.
fn best(job: &Job, (experiment, x): Evidence<'_>) -> Vec<Best> {
    let mut best: Vec<Best> = Vec::new();
    for series in &experiment.series {
        let placement = series.contender.placement;
        let estimate = job.figure(experiment, series, x);
        let Some(estimate) = estimate.filter(|_| placement != Placement::None) else {
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
    best
}

fn verdict(best: &[Best]) -> Verdict {
    match best {
        [] => Verdict::NotMeasured,
        [only] => Verdict::OnlyOneRan(only.placement),
        [first, second, ..] if first.estimate.overlaps(&second.estimate) => Verdict::NoDifference,
        [first, ..] => Verdict::Choose(first.placement),
    }
}

fn reasons(job: &Job, (experiment, x): Evidence<'_>, best: &[Best]) -> Vec<String> {
    let unit = job.unit(experiment);
    let at = place(experiment.axis, x);
    let at = if at.is_empty() {
        String::new()
    } else {
        format!(" at {at}")
    };
    let title = &experiment.title;
    let speed = |one: &Best| {
        let estimate = &one.estimate;
        format!(
            "{} {} {unit}{}",
            one.contender,
            figure(estimate.median),
            range(estimate)
        )
    };
    match best {
        [] => vec![format!(
            "Not measured here: no contender could run “{title}”."
        )],
        [only] => vec![format!("{title}: {}{at}.", speed(only))],
        [first, second, ..] => {
            let compared = compared(experiment.unit, &first.estimate, &second.estimate);
            let both = format!("{} against {}", speed(first), speed(second));
            let mut reasons = vec![format!("{title}{at}: {both}: {compared}.")];
            reasons.extend(doubt(experiment.unit, [first, second]));
            reasons
        }
    }
}

/// The interval, where there is one: what is counted does not vary.
fn range(estimate: &Estimate) -> String {
    let (low, high) = (figure(estimate.low), figure(estimate.high));
    if low == high {
        String::new()
    } else {
        format!(" ({low}–{high})")
    }
}

/// Instructions are no time: a processor may do some of them faster than others.
fn compared(unit: Unit, first: &Estimate, second: &Estimate) -> String {
    if first.overlaps(second) {
        return "the intervals overlap: no difference that this run can tell".to_owned();
    }
    let times = ratio(first, second);
    let (median, range) = (figure(times.median), range(&times));
    match unit {
        Unit::MegabytesPerSecond => format!("{median} times as fast{range}"),
        Unit::BytesPerThousandInstructions => {
            format!("{median} times as many bytes with the same number of instructions")
        }
    }
}

/// Where too few rounds were made for the intervals to hold what they should.
fn doubt(unit: Unit, compared: [&Best; 2]) -> Option<String> {
    let least = compared.iter().map(|one| one.estimate.confidence);
    let least = least.fold(1.0, f64::min);
    let varies = unit == Unit::MegabytesPerSecond;
    // That of a ratio is the product of two.
    (varies && least < CONFIDENCE * CONFIDENCE).then(|| {
        format!(
            "With so few rounds these intervals hold with {:.0} % only: try more (--rounds).",
            least * 100.0
        )
    })
}

/// Placements that took part, but of which none could run: no figure is no zero.
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
        judge(&JOBS[0], (&experiment, 1024), None)
    }

    fn experiment(id: &str, title: &str, x: u64, mut all: Vec<Series>) -> Experiment {
        for series in &mut all {
            series.points[0].x = x;
        }
        Experiment {
            id: id.into(),
            title: title.into(),
            axis: Axis::Single,
            unit: Unit::MegabytesPerSecond,
            how: String::new(),
            series: all,
            noise: Noise::default(),
        }
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
    fn few_rounds_are_told() {
        let both = |speeds: &[f64]| {
            let slow: Vec<f64> = speeds.iter().map(|speed| speed / 2.0).collect();
            let advice = judged(vec![
                series("u", Placement::User, speeds),
                series("k", Placement::Kernel, &slow),
            ]);
            advice.reasons.join(" ")
        };
        assert!(both(&[100.0, 100.0, 100.0]).contains("75 % only"));
        assert!(!both(&[100.0; 6]).contains("only"));
    }

    #[test]
    fn instructions_are_not_called_speed() {
        let estimate = |speed: f64| Estimate::of(&[speed]).unwrap();
        let (fast, slow) = (estimate(200.0), estimate(100.0));
        let time = compared(Unit::MegabytesPerSecond, &fast, &slow);
        assert_eq!(time, "2.00 times as fast");
        let counted = compared(Unit::BytesPerThousandInstructions, &fast, &slow);
        assert!(
            counted.starts_with("2.00") && !counted.contains("fast"),
            "{counted}"
        );
    }

    /// On an image in a file everything is slower; that is not the cipher's fault.
    #[test]
    fn who_works_on_an_image_is_compared_with_an_image() {
        let all = || {
            vec![
                series("none", Placement::None, &[1000.0; 6]),
                series("none, ext4 in an image", Placement::None, &[500.0; 6]),
                series("dm-crypt", Placement::Kernel, &[400.0; 6]),
                series("gocryptfs", Placement::User, &[600.0; 6]),
                series("coffer blob", Placement::User, &[900.0; 6]),
            ]
        };
        let write = experiment("file/write", "Writing", 0, all());
        let advice = judge(&JOBS[3], (&write, 0), None);
        assert_eq!(advice.verdict, Verdict::Choose(Placement::Kernel));
        let text = advice.reasons.join(" ");
        assert!(
            text.contains("dm-crypt 0.80") && text.contains("gocryptfs 0.60"),
            "{text}"
        );

        let mut reading = all();
        reading[2] = series("dm-crypt", Placement::Kernel, &[100.0; 6]);
        let read = experiment("file/read", "Reading", 0, reading);
        let advice = judge(&JOBS[3], (&write, 0), Some((&read, 0)));
        assert_eq!(advice.verdict, Verdict::NoDifference);
        assert!(advice.reasons.join(" ").contains("One direction"));
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
