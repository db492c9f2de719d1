//! A ladder of kernels: how much each step has of the difference between the first and the last.

use crate::record::{Experiment, Unit};
use crate::stats::Estimate;

/// The beginning of the names of such experiments.
pub const FAMILY: &str = "kernel/configs/";

/// Less than this is no difference.
const GAIN_MIN: f64 = 0.001;

/// One step of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it changes.
    pub name: String,
    /// What each byte took after it, in [`unit`].
    pub cost: f64,
    /// How much less that is than before it; negative, when it is more.
    pub saved: f64,
    /// Its share of the whole difference; None where the whole is no difference.
    pub share: Option<f64>,
}

/// A ladder, from its first kernel to its last.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// What each byte took under the first kernel.
    pub first: f64,
    /// How much faster the last one is: 0.15 is 15 %. None where the intervals overlap.
    pub gain: Option<f64>,
    /// The steps.
    pub steps: Vec<Step>,
}

/// What costs are told in: unlike speeds, they can be added.
pub fn unit(unit: Unit) -> &'static str {
    match unit {
        Unit::MegabytesPerSecond => "ns for each byte",
        Unit::BytesPerThousandInstructions => "instructions for each byte",
    }
}

/// The ladder of an experiment; None when it is another kind of experiment, or has no figures.
pub fn ladder(experiment: &Experiment) -> Option<Ladder> {
    if !experiment.id.starts_with(FAMILY) {
        return None;
    }
    let figures: Option<Vec<(String, Estimate)>> = experiment
        .series
        .iter()
        .map(|series| {
            let estimate = series.at(0)?.estimate(experiment.unit)?;
            Some((series.contender.name.clone(), estimate))
        })
        .collect();
    let figures = figures?;
    let ((_, first), (_, last)) = (figures.first()?, figures.last()?);
    // Both units are 1,000,000 bytes over 1,000,000,000 nanoseconds or instructions.
    let cost = |estimate: &Estimate| 1000.0 / estimate.median;
    let gain = last.median / first.median - 1.0;
    // Counted instructions have no interval: there a tick of the clock more or less would differ.
    let differs = !first.overlaps(last) && gain.abs() >= GAIN_MIN;
    let whole = cost(first) - cost(last);
    let steps = figures.windows(2).map(|pair| {
        let saved = cost(&pair[0].1) - cost(&pair[1].1);
        Step {
            name: pair[1].0.clone(),
            cost: cost(&pair[1].1),
            saved,
            share: differs.then(|| saved / whole),
        }
    });
    Some(Ladder {
        first: cost(first),
        gain: differs.then_some(gain),
        steps: steps.collect(),
    })
}

/// What the whole ladder gains, in words.
pub fn gain(ladder: &Ladder) -> String {
    match ladder.gain {
        None => "no difference between the first and the last".to_owned(),
        Some(gain) => format!("from the first to the last: {:+.1} %", gain * 100.0),
    }
}

/// What a step saved, for people.
pub fn saved(step: &Step) -> String {
    format!("{:.3}", without_sign(step.saved, 0.0005))
}

/// A share, for people.
pub fn percent(share: Option<f64>) -> String {
    let percent = |share: f64| format!("{:.1} %", without_sign(share * 100.0, 0.05));
    share.map_or("–".to_owned(), percent)
}

/// What is rounded to zero has no sign.
fn without_sign(value: f64, least: f64) -> f64 {
    if value.abs() < least { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::{Contender, Placement};
    use crate::record::{Axis, Noise, Point, Sample, Series};

    fn experiment(id: &str, costs: &[f64]) -> Experiment {
        let series = costs.iter().enumerate().map(|(index, cost)| Series {
            contender: Contender::new(index.to_string(), Placement::Kernel, ""),
            points: vec![Point {
                x: 0,
                samples: vec![Sample {
                    bytes: 1_000_000_000,
                    wall_seconds: *cost,
                    cpu_seconds: 0.0,
                    counts: None,
                }],
                observed: None,
            }],
        });
        Experiment {
            id: id.into(),
            title: String::new(),
            axis: Axis::Single,
            unit: Unit::BytesPerThousandInstructions,
            how: String::new(),
            series: series.collect(),
            noise: Noise::default(),
        }
    }

    #[test]
    fn shares_of_costs_add_up_to_the_whole() {
        let found = ladder(&experiment("kernel/configs/module", &[10.0, 6.0, 7.0, 5.0])).unwrap();
        let told: Vec<String> = found.steps.iter().map(|step| percent(step.share)).collect();
        assert_eq!(told, ["80.0 %", "-20.0 %", "40.0 %"]);
        assert!((found.first - 10.0).abs() < 1e-9);
        assert!((found.gain.unwrap() - 1.0).abs() < 1e-9, "twice as fast");
        let whole: f64 = found.steps.iter().filter_map(|step| step.share).sum();
        assert!((whole - 1.0).abs() < 1e-9);
    }

    #[test]
    fn where_there_is_no_difference_nobody_has_a_share() {
        let found = ladder(&experiment("kernel/configs/user", &[5.0, 6.0, 5.0])).unwrap();
        assert_eq!(found.gain, None);
        assert!(found.steps.iter().all(|step| step.share.is_none()));
        let hardly = ladder(&experiment("kernel/configs/user", &[5.0, 5.001])).unwrap();
        assert_eq!(hardly.gain, None, "a tick of the clock");
        assert_eq!(ladder(&experiment("raw/table-a-loop", &[5.0, 6.0])), None);
    }
}
