//! Two contenders against each other: how many times the one is the other, and what may be said.
//!
//! Of two that took turns, the ratio of each round is taken: what disturbs the machine for a while
//! disturbs both sides. The figure is the median of these ratios. Its interval is a bootstrap by
//! percentiles (Efron and Tibshirani, An Introduction to the Bootstrap, chapter 13): the median of
//! as many ratios, drawn with replacement, [`RESAMPLES`] times; the middle 95 % of them. The draws
//! begin with the same number each time, so the same samples give the same interval. With fewer
//! than nine rounds it is all ratios.
//!
//! An interval without 1 is a difference, where it is further from 1 than figures are rounded by:
//! what is told as 1.00 is no end beyond 1. That an interval holds 1 proves nothing: "no
//! difference" is said only after two one-sided tests (Schuirmann 1987), which is when the middle
//! 90 % lie within [`EQUIVALENT_WITHIN`] of 1. In all other cases it can't be told; nor can it with
//! so few rounds that all of them together hold the true ratio with less than 95 %.

use fastrand::Rng;

use crate::statistics::{CONFIDENCE, Estimate, middle, ratios, sorted};

/// Ratios from `1 / (1 + this)` to `1 + this` are no difference that matters.
pub const EQUIVALENT_WITHIN: f64 = 0.05;

/// Counts of instructions are the same in every run of one length; two lengths of a run counted the
/// same work up to 16 % apart. Ratios up to `1 + this` are no difference that counts tell.
pub const COUNTED_WITHIN: f64 = 0.25;

/// How often medians are drawn.
pub const RESAMPLES: usize = 4000;

/// Where random numbers begin.
const SEED: u64 = 0x5eed;

/// Of fewer ratios the middle 95 % of what is drawn hold the true median less often than that (85 %
/// of the time with seven): the interval is all of them, which from six on hold it more often.
const BOOTSTRAP_MIN: usize = 9;

/// With fewer samples nothing is told: the range of five holds the true ratio with 94 %, that of
/// six with 97 %.
const SAMPLES_MIN: usize = 6;

/// Ratios are told with two digits behind the point. An end of an interval that is nearer to 1 than
/// that is told as 1.00.
pub const ROUNDED_BY: f64 = 0.005;

/// What may be said of a ratio.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// It is more than 1.
    More,
    /// It is less than 1.
    Less,
    /// It is 1, but for [`EQUIVALENT_WITHIN`].
    Same,
    /// The samples do not tell.
    CannotTell,
}

/// How many times the one is the other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Comparison {
    /// The ratio with its interval; its confidence is less than 95 % where samples are few.
    pub ratio: Estimate,
    /// What may be said of it.
    pub finding: Finding,
}

impl Comparison {
    /// The same of two counts, where it is to hold for runs of other lengths, too: what begins and
    /// ends once weighs more in the shorter.
    pub fn of_other_lengths(mut self) -> Self {
        let most = 1.0 + COUNTED_WITHIN;
        if (1.0 / most..=most).contains(&self.ratio.median) {
            self.finding = Finding::CannotTell;
        }
        self
    }
}

/// Of two that took turns, a sample each in each round. None without samples.
pub fn paired(ours: &[f64], theirs: &[f64]) -> Option<Comparison> {
    let all = ratios(ours, theirs);
    let median = middle_of(&all)?;
    let (mut random, mut drawn) = (Rng::with_seed(SEED), Vec::new());
    let draw = || drawn_median(&mut random, &mut drawn, &all);
    Some(judge(&all, all.len(), median, draw))
}

/// Of two that were measured apart: medians of both are drawn, each from its own samples. None
/// without samples.
pub fn apart(ours: &[f64], theirs: &[f64]) -> Option<Comparison> {
    let median = middle_of(ours)? / middle_of(theirs)?;
    // Every ratio that one sample of each allows: their range is the interval of few samples.
    let each = |&ours: &f64| theirs.iter().map(move |theirs| ours / theirs);
    let all: Vec<f64> = ours.iter().flat_map(each).collect();
    let (mut random, mut drawn) = (Rng::with_seed(SEED), Vec::new());
    let mut draw = |side: &[f64]| drawn_median(&mut random, &mut drawn, side);
    let draw = || draw(ours) / draw(theirs);
    Some(judge(&all, ours.len().min(theirs.len()), median, draw))
}

/// Of two figures that are the same each time they are taken. None without figures.
pub fn exact(ours: &[f64], theirs: &[f64]) -> Option<Comparison> {
    let median = middle_of(ours)? / middle_of(theirs)?;
    let ratio = Estimate {
        median,
        low: median,
        high: median,
        confidence: 1.0,
    };
    let finding = found(ratio, (median, median));
    Some(Comparison { ratio, finding })
}

fn middle_of(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| middle(&mut samples.to_vec()))
}

/// `all` are the ratios that single samples gave, of `count` samples on a side.
fn judge(all: &[f64], count: usize, median: f64, mut draw: impl FnMut() -> f64) -> Comparison {
    let ((low, high), inner, confidence) = if count < BOOTSTRAP_MIN {
        // All samples lie on one side of the true median with this probability.
        let confidence = 1.0 - 2.0 * 0.5_f64.powi(i32::try_from(count).unwrap_or(0));
        let whole = part(&sorted(all), 0.0);
        (whole, whole, confidence.max(0.0))
    } else {
        let drawn = sorted(&(0..RESAMPLES).map(|_| draw()).collect::<Vec<f64>>());
        (part(&drawn, 0.025), part(&drawn, 0.05), CONFIDENCE)
    };
    let ratio = Estimate {
        median,
        low,
        high,
        confidence,
    };
    let finding = match count {
        0..SAMPLES_MIN => Finding::CannotTell,
        _ => found(ratio, inner),
    };
    Comparison { ratio, finding }
}

/// The middle part of sorted values, of which there are some, without this share at each end.
fn part(sorted: &[f64], share: f64) -> (f64, f64) {
    let skipped = (sorted.len() as f64 * share) as usize;
    (sorted[skipped], sorted[sorted.len() - 1 - skipped])
}

fn found(ratio: Estimate, inner: (f64, f64)) -> Finding {
    let most = 1.0 + EQUIVALENT_WITHIN;
    if inner.0 >= 1.0 / most && inner.1 <= most {
        Finding::Same
    } else if ratio.low >= 1.0 + ROUNDED_BY {
        Finding::More
    } else if ratio.high < 1.0 - ROUNDED_BY {
        Finding::Less
    } else {
        Finding::CannotTell
    }
}

/// The median of as many samples as there are, drawn with replacement.
fn drawn_median(random: &mut Rng, drawn: &mut Vec<f64>, samples: &[f64]) -> f64 {
    drawn.clear();
    let draw = |_: &f64| samples[random.usize(..samples.len())];
    drawn.extend(samples.iter().map(draw));
    middle(drawn)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: [f64; 9] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9];

    fn times(factor: f64) -> Vec<f64> {
        CALM.iter().map(|sample| sample * factor).collect()
    }

    #[test]
    fn what_disturbs_both_sides_of_a_round_disturbs_no_ratio() {
        let storm = [1.0, 9.0, 2.0, 1.0, 7.0, 3.0, 1.0, 5.0, 1.5];
        let ours: Vec<f64> = times(1.2).iter().zip(storm).map(|(a, b)| a * b).collect();
        let theirs: Vec<f64> = CALM.iter().zip(storm).map(|(a, b)| a * b).collect();
        let found = paired(&ours, &theirs).unwrap();
        assert_eq!(found.finding, Finding::More);
        assert!((found.ratio.median - 1.2).abs() < 1e-9 && found.ratio.low > 1.19);
        assert_eq!(paired(&theirs, &ours).unwrap().finding, Finding::Less);
        // Without the pairs the same samples tell nothing.
        let found = apart(&ours, &theirs).unwrap();
        assert_eq!(found.finding, Finding::CannotTell);
    }

    #[test]
    fn no_difference_needs_a_proof() {
        assert_eq!(apart(&CALM, &times(1.01)).unwrap().finding, Finding::Same);
        assert_eq!(paired(&CALM, &times(1.01)).unwrap().finding, Finding::Same);
        let wide = [50.0, 150.0, 80.0, 120.0, 100.0, 60.0, 140.0, 90.0, 110.0];
        let found = apart(&CALM, &wide).unwrap();
        assert_eq!(found.finding, Finding::CannotTell);
        assert!(found.ratio.low < 1.0 && found.ratio.high > 1.0);
    }

    #[test]
    fn few_samples_say_how_sure_they_are() {
        let three = paired(&[2.0, 2.1, 2.2], &[1.0, 1.0, 1.0]).unwrap();
        assert_eq!(
            (three.finding, three.ratio.confidence),
            (Finding::CannotTell, 0.75)
        );
        assert_eq!((three.ratio.low, three.ratio.high), (2.0, 2.2));
        let five = paired(&CALM[..5], &[1.0; 5]).unwrap().ratio;
        assert_eq!(
            (five.low, five.high, five.confidence),
            (99.0, 101.0, 0.9375)
        );
        let one = paired(&[2.0], &[1.0]).unwrap();
        assert_eq!(one.finding, Finding::CannotTell);
        assert_eq!(paired(&[], &[]), None);
        assert_eq!(apart(&[1.0], &[]), None);
        for compare in [paired, apart] {
            let of = |count: usize| compare(&times(2.0)[..count], &CALM[..count]).unwrap();
            assert_eq!(of(5).finding, Finding::CannotTell);
            assert_eq!(of(6).finding, Finding::More);
        }
    }

    #[test]
    fn an_end_that_is_told_as_one_is_no_difference() {
        let of = |least: f64| [least, 1.2, 1.3, 1.2, 1.3, 1.25];
        let finding = |ours: &[f64]| paired(ours, &[1.0; 6]).unwrap().finding;
        assert_eq!(finding(&of(1.004)), Finding::CannotTell);
        assert_eq!(finding(&of(1.006)), Finding::More);
        let below = |most: f64| of(1.0 / most).map(|one| 1.0 / one);
        assert_eq!(finding(&below(0.996)), Finding::CannotTell);
        assert_eq!(finding(&below(0.994)), Finding::Less);
    }

    #[test]
    fn counted_figures_are_exact() {
        assert_eq!(exact(&[2.0], &[1.0]).unwrap().finding, Finding::More);
        assert_eq!(exact(&[1.0], &[2.0]).unwrap().finding, Finding::Less);
        assert_eq!(exact(&[1.04], &[1.0]).unwrap().finding, Finding::Same);
    }

    /// Ratios of a known distribution, skewed, with its median at 1: the intervals must hold it
    /// about as often as they say, from six rounds on.
    #[test]
    fn intervals_hold_the_true_ratio_as_often_as_they_say() {
        let mut random = Rng::with_seed(42);
        for (rounds, least) in [(6, 0.92), (7, 0.92), (8, 0.92), (9, 0.9)] {
            let held = (0..100).filter(|_| {
                let side: Vec<f64> = (0..rounds)
                    .map(|_| -(1.0 - random.f64()).ln() / 2.0_f64.ln())
                    .collect();
                let found = paired(&side, &vec![1.0; rounds]).unwrap();
                (found.ratio.low..=found.ratio.high).contains(&1.0)
            });
            let share = held.count() as f64 / 100.0;
            assert!(share >= least, "{rounds}: {share}");
        }
    }
}
