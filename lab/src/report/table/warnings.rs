//! When a machine was too noisy to say.

use crate::record::Experiment;

/// Half of an interval's width, as a share of the median, from which a figure is called uncertain.
const UNCERTAIN: f64 = 0.10;

/// Shares of the machine that others may use before a warning is given.
const OTHERS_SHARE_MAX: f64 = 0.10;

/// The same of what the host takes away.
const STOLEN_SHARE_MAX: f64 = 0.02;

/// Whether others had more of the machine meanwhile than is left unsaid.
pub fn is_disturbed(experiment: &Experiment) -> bool {
    let noise = experiment.noise;
    noise.others_share > OTHERS_SHARE_MAX || noise.stolen_share > STOLEN_SHARE_MAX
}

/// Why the figures of an experiment are to be taken with care; empty when the machine was calm.
pub fn warnings(experiment: &Experiment) -> Vec<String> {
    let mut warnings = Vec::new();
    // Ticks of two clocks may come to more than there is.
    let percent = |share: f64| format!("{:.0} %", share.min(1.0) * 100.0);
    let noise = experiment.noise;
    if noise.others_share > OTHERS_SHARE_MAX {
        let share = percent(noise.others_share);
        warnings.push(format!(
            "other programs used {share} of the machine meanwhile"
        ));
    }
    if noise.stolen_share > STOLEN_SHARE_MAX {
        let share = percent(noise.stolen_share);
        warnings.push(format!("the host took {share} of the machine away"));
    }
    let (uncertain, of) = uncertain(experiment);
    if uncertain > 0 {
        let limit = percent(UNCERTAIN);
        warnings.push(format!(
            "{uncertain} of {of} figures are less sure than ±{limit}"
        ));
    }
    let unended = unended(experiment);
    if unended > 0 {
        warnings.push(format!(
            "samples in which nothing ended within the time: {unended}"
        ));
    }
    warnings
}

/// How many figures are uncertain, and of how many.
fn uncertain(experiment: &Experiment) -> (usize, usize) {
    let points = experiment.series.iter().flat_map(|series| &series.points);
    let estimates: Vec<_> = points.filter_map(|p| p.estimate(experiment.unit)).collect();
    let wide = estimates.iter().filter(|e| e.uncertainty() > UNCERTAIN);
    (wide.count(), estimates.len())
}

/// Whether figures of an experiment scatter.
pub fn scatters(experiment: &Experiment) -> bool {
    uncertain(experiment).0 > 0
}

/// In how many samples nothing ended within the time.
pub fn unended(experiment: &Experiment) -> usize {
    let points = experiment.series.iter().flat_map(|series| &series.points);
    points.map(|point| point.unended(experiment.unit)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::planted::{self, point, series};
    use crate::record::{Noise, Unit};
    use crate::report::page;

    /// An experiment with one figure of these speeds.
    fn experiment(noise: Noise, speeds: &[f64]) -> Experiment {
        let all = vec![series("planted", Placement::User, vec![point(0, speeds)])];
        Experiment {
            noise,
            ..planted::experiment("raw/planted", Unit::MegabytesPerSecond, all)
        }
    }

    fn told(others_share: f64, stolen_share: f64, speeds: &[f64]) -> Vec<String> {
        let noise = Noise {
            others_share,
            stolen_share,
        };
        warnings(&experiment(noise, speeds))
    }

    const CALM: [f64; 3] = [91.0, 100.0, 109.0];
    const WIDE: [f64; 3] = [89.0, 100.0, 111.0];

    #[test]
    fn below_each_threshold_nothing_is_said() {
        assert_eq!(told(0.0, 0.0, &CALM), Vec::<String>::new());
        assert_eq!(told(0.099, 0.0199, &CALM), Vec::<String>::new());
        assert_eq!(told(0.0, 0.0, &[]), Vec::<String>::new());
    }

    #[test]
    fn above_each_threshold_its_own_warning_is_given() {
        let others = told(0.12, 0.0, &CALM);
        assert_eq!(
            others,
            ["other programs used 12 % of the machine meanwhile"]
        );
        let whole = told(1.02, 0.0, &CALM);
        assert_eq!(
            whole,
            ["other programs used 100 % of the machine meanwhile"]
        );
        let stolen = told(0.0, 0.03, &CALM);
        assert_eq!(stolen, ["the host took 3 % of the machine away"]);
        let wide = told(0.0, 0.0, &WIDE);
        assert_eq!(wide, ["1 of 1 figures are less sure than ±10 %"]);
        assert_eq!(told(0.12, 0.03, &WIDE).len(), 3);
        let unended = told(0.0, 0.0, &[100.0, 0.0, 0.0]);
        assert_eq!(
            unended,
            ["samples in which nothing ended within the time: 2"]
        );
        let disturbed = |others_share, stolen_share| {
            let noise = Noise {
                others_share,
                stolen_share,
            };
            is_disturbed(&experiment(noise, &WIDE))
        };
        assert!(disturbed(0.12, 0.0) && disturbed(0.0, 0.03) && !disturbed(0.0, 0.0));
    }

    /// The banner of a page says what is the matter, and nothing else.
    #[test]
    fn what_never_ended_is_not_said_to_scatter() {
        let told = |speeds: &[f64]| {
            let calm = experiment(Noise::default(), speeds);
            page(&planted::record(vec![calm]), &[])
        };
        let [scatter, ended] = ["less sure than ±10 %.", "1 of 1 experiments nothing ended"];
        let unended = told(&[100.0, 0.0, 0.0]);
        assert!(unended.contains(ended) && !unended.contains(scatter));
        let wide = told(&WIDE);
        assert!(wide.contains(scatter) && !wide.contains(ended));
    }
}
