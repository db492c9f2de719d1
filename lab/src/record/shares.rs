//! A ladder of kernels: how much each step has of the difference between the first and the last.

use crate::record::published::Published;
use crate::record::{Experiment, Point, Unit};
use coffer_measure::comparison::Finding;

/// The beginning of the names of such experiments.
pub const FAMILY: &str = "kernel/configs/";

/// Less than this is no difference.
const GAIN_MIN: f64 = 0.001;

/// What a step has of the whole difference.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Share {
    /// So much: 0.5 is half of it. Negative where the step made it slower.
    Of(f64),
    /// It makes no difference that matters.
    NoDifference,
    /// The samples before and after the step do not tell.
    CannotTell,
    /// The whole is no difference, so there is nothing to share.
    OfNothing,
}

/// One step of a ladder.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// What it changes.
    pub name: String,
    /// What each byte took after it, in [`unit`].
    pub cost: f64,
    /// How much less that is than before it; negative, when it is more.
    pub saved: f64,
    /// Its share of the whole difference.
    pub share: Share,
}

/// A ladder, from its first kernel to its last.
#[derive(Debug, Clone, PartialEq)]
pub struct Ladder {
    /// What each byte took under the first kernel.
    pub first: f64,
    /// How much faster the last one is: 0.15 is 15 %. None where it is not said to be another.
    pub gain: Option<f64>,
    /// What may be said of that.
    pub finding: Finding,
    /// The steps.
    pub steps: Vec<Step>,
}

/// What costs are told in: unlike speeds, they can be added.
pub fn unit(unit: Unit) -> &'static str {
    if unit.counts_instructions() {
        "instructions for each byte"
    } else {
        "ns for each byte"
    }
}

/// The ladder of an experiment; None when it is another kind of experiment, or has no figures.
pub fn ladder(experiment: &Experiment) -> Option<Ladder> {
    if !experiment.id.starts_with(FAMILY) {
        return None;
    }
    let unit = experiment.unit;
    let rungs: Option<Vec<(&str, &Point, f64)>> = experiment
        .series
        .iter()
        .map(|series| {
            let point = series.at(0)?;
            // All units are 1,000,000 bytes over 1,000,000,000 nanoseconds or instructions.
            let cost = 1000.0 / point.estimate(unit)?.median;
            Some((series.contender.name.as_str(), point, cost))
        })
        .collect();
    let rungs = rungs?;
    let ((_, first, first_cost), (_, last, last_cost)) = (*rungs.first()?, *rungs.last()?);
    let whole = first_cost - last_cost;
    let finding = between(first, last, unit)?;
    let differs = matches!(finding, Finding::More | Finding::Less);
    let steps = rungs.windows(2).map(|pair| {
        let ((_, before, cost_before), (name, after, cost)) = (pair[0], pair[1]);
        let saved = cost_before - cost;
        let share = match between(before, after, unit)? {
            // Counted instructions do not scatter: two equal figures are a share of zero.
            Finding::Same if !unit.counts_instructions() => Share::NoDifference,
            Finding::CannotTell => Share::CannotTell,
            _ if differs => Share::Of(saved / whole),
            _ => Share::OfNothing,
        };
        let name = name.to_owned();
        Some(Step {
            name,
            cost,
            saved,
            share,
        })
    });
    Some(Ladder {
        first: first_cost,
        gain: differs.then_some(first_cost / last_cost - 1.0),
        finding,
        steps: steps.collect::<Option<_>>()?,
    })
}

/// How the speed changes from one rung to another. Of counted instructions a tick of the clock more
/// or less is no difference.
fn between(before: &Point, after: &Point, unit: Unit) -> Option<Finding> {
    let compared = after.compared_apart(before, unit)?;
    let gain = compared.ratio.median - 1.0;
    Some(match unit.counts_instructions() {
        false => compared.finding,
        true if gain.abs() < GAIN_MIN => Finding::Same,
        true if gain > 0.0 => Finding::More,
        true => Finding::Less,
    })
}

/// What the whole ladder gains, in words, beside what others gained.
pub fn gain(experiment: &Experiment, ladder: &Ladder, published: &[&Published]) -> String {
    let mut text = match ladder.gain {
        None if ladder.finding == Finding::CannotTell => {
            "whether the first and the last differ, the samples don’t tell".to_owned()
        }
        None => "no difference between the first and the last".to_owned(),
        Some(gain) => {
            let unit = experiment.unit.name();
            format!(
                "from the first to the last: {:+.1} % in {unit}",
                gain * 100.0
            )
        }
    };
    let said = published.iter().filter_map(|figure| {
        let (says, source) = (figure.says.as_ref()?, &figure.source);
        Some(format!("{says} in MB/s ({source}: {})", figure.machine))
    });
    let said: Vec<String> = said.collect();
    if !said.is_empty() {
        text += &format!("; published: {}", said.join(", "));
    }
    text
}

/// What a step saved, for people.
pub fn saved(step: &Step) -> String {
    match step.share {
        Share::NoDifference | Share::CannotTell => "–".to_owned(),
        _ => format!("{:.3}", without_sign(step.saved, 0.0005)),
    }
}

/// A share, for people.
pub fn percent(share: Share) -> String {
    match share {
        Share::Of(share) => format!("{:.1} %", without_sign(share * 100.0, 0.05)),
        Share::NoDifference => "no difference".to_owned(),
        Share::CannotTell => "can’t tell".to_owned(),
        Share::OfNothing => "none, the whole is no difference".to_owned(),
    }
}

/// What is rounded to zero has no sign.
fn without_sign(value: f64, least: f64) -> f64 {
    if value.abs() < least { 0.0 } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::planted::{self, point};
    use crate::record::published::{of_experiment, published};

    /// A ladder whose rungs took so many nanoseconds or instructions for a byte, in each round.
    fn rungs(id: &str, unit: Unit, costs: &[&[f64]]) -> Experiment {
        let series = costs.iter().enumerate().map(|(index, costs)| {
            let speeds = costs.iter().map(|cost| 1000.0 / cost);
            let point = point(0, &speeds.collect::<Vec<f64>>());
            planted::series(&index.to_string(), Placement::Kernel, vec![point])
        });
        planted::experiment(id, unit, series.collect())
    }

    fn experiment(id: &str, costs: &[f64]) -> Experiment {
        let costs: Vec<&[f64]> = costs.iter().map(std::slice::from_ref).collect();
        rungs(id, Unit::BytesPerThousandInstructions, &costs)
    }

    #[test]
    fn shares_of_costs_add_up_to_the_whole() {
        let found = ladder(&experiment("kernel/configs/module", &[10.0, 6.0, 7.0, 5.0])).unwrap();
        let told: Vec<String> = found.steps.iter().map(|step| percent(step.share)).collect();
        assert_eq!(told, ["80.0 %", "-20.0 %", "40.0 %"]);
        assert!((found.first - 10.0).abs() < 1e-9);
        assert!((found.gain.unwrap() - 1.0).abs() < 1e-9, "twice as fast");
        let shares = found.steps.iter().map(|step| match step.share {
            Share::Of(share) => share,
            _ => 0.0,
        });
        assert!((shares.sum::<f64>() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn where_there_is_no_difference_nobody_has_a_share() {
        let found = ladder(&experiment("kernel/configs/user", &[5.0, 6.0, 5.0])).unwrap();
        assert_eq!(found.gain, None);
        let nothing = |step: &Step| step.share == Share::OfNothing;
        assert!(found.steps.iter().all(nothing));
        assert!(percent(found.steps[0].share).starts_with("none, "));
        let hardly = ladder(&experiment("kernel/configs/user", &[5.0, 5.001])).unwrap();
        assert_eq!(hardly.gain, None, "a tick of the clock");
        assert_eq!(ladder(&experiment("raw/table-a-loop", &[5.0, 6.0])), None);
    }

    #[test]
    fn a_step_that_makes_no_difference_has_no_share_of_time() {
        let costs: [&[f64]; 4] = [
            &[9.9, 10.0, 10.1, 9.9, 10.0, 10.1],
            &[9.8, 9.9, 10.0, 9.8, 9.9, 10.0],
            &[5.0; 6],
            &[4.0, 5.1, 6.0, 4.0, 5.1, 6.0],
        ];
        let found = ladder(&rungs(
            "kernel/configs/module",
            Unit::MegabytesPerSecond,
            &costs,
        ));
        let steps = found.unwrap().steps;
        let told: Vec<String> = steps.iter().map(|step| percent(step.share)).collect();
        assert_eq!(told[0], "no difference");
        assert!(told[1].ends_with(" %"), "{told:?}");
        assert_eq!(told[2], "can’t tell");
        assert_eq!(saved(&steps[0]), "–");
        // The same figures, counted: nothing varies, and nothing overlaps by chance.
        let counted = experiment("kernel/configs/module", &[10.0, 10.0, 5.0]);
        let counted = ladder(&counted).unwrap();
        assert_eq!(percent(counted.steps[0].share), "0.0 %");
    }

    #[test]
    fn the_gain_stands_beside_the_published_ones() {
        let all = published().unwrap();
        let experiment = experiment("kernel/configs/module", &[10.0, 5.0]);
        let beside = of_experiment(&all, &experiment.id);
        let text = gain(&experiment, &ladder(&experiment).unwrap(), &beside);
        assert!(text.contains("+100.0 % in bytes per 1,000 instr"), "{text}");
        assert!(text.contains("+15 % in MB/s (A: Celeron"), "{text}");
        assert!(text.contains("+32 % in MB/s (A: Xeon"), "{text}");
    }
}
