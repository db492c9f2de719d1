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
//! so few rounds that all of them together hold the true ratio with less than 95 %: the range of
//! five does with 94 %, that of six with 97 %.

use fastrand::Rng;

use crate::statistics::{CONFIDENCE, Estimate, coverage, ends, median, middle, ratios};

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
    measured(&[&all], &all)
}

/// Of two that were measured apart: medians of both are drawn, each from its own samples. None
/// without samples.
pub fn apart(ours: &[f64], theirs: &[f64]) -> Option<Comparison> {
    // Every ratio that one sample of each allows: their range is the interval of few samples.
    let each = |&ours: &f64| theirs.iter().map(move |theirs| ours / theirs);
    let all: Vec<f64> = ours.iter().flat_map(each).collect();
    measured(&[ours, theirs], &all)
}

/// Of two figures that are the same each time they are taken. None without figures.
pub fn exact(ours: &[f64], theirs: &[f64]) -> Option<Comparison> {
    let ratio = median(ours)? / median(theirs)?;
    Some(judged(ratio, (ratio, ratio), (ratio, ratio), 1.0))
}

/// The median of the first side, divided by that of the second where there are two. `all` are the
/// ratios that single samples gave.
fn measured(sides: &[&[f64]], all: &[f64]) -> Option<Comparison> {
    let divide = |ours: f64, theirs: f64| ours / theirs;
    let medians: Option<Vec<f64>> = sides.iter().map(|side| median(side)).collect();
    let ratio = medians?.into_iter().reduce(divide)?;
    let count = sides.iter().map(|side| side.len()).min()?;
    if count < BOOTSTRAP_MIN {
        let range = ends(all, 1);
        return Some(judged(ratio, range, range, coverage(count, 1)));
    }
    let (mut random, mut drawn) = (Rng::with_seed(SEED), Vec::new());
    // The median of as many samples as there are, drawn with replacement.
    let mut draw = |side: &&[f64]| {
        drawn.clear();
        drawn.extend(side.iter().map(|_| side[random.usize(..side.len())]));
        middle(&mut drawn)
    };
    let resampled = (0..RESAMPLES).filter_map(|_| sides.iter().map(&mut draw).reduce(divide));
    let resampled: Vec<f64> = resampled.collect();
    let without = |share: f64| ends(&resampled, 1 + (RESAMPLES as f64 * share) as usize);
    Some(judged(ratio, without(0.025), without(0.05), CONFIDENCE))
}

/// A ratio, its interval, and the one of two one-sided tests.
fn judged(median: f64, (low, high): (f64, f64), inner: (f64, f64), confidence: f64) -> Comparison {
    let most = 1.0 + EQUIVALENT_WITHIN;
    let finding = if confidence < CONFIDENCE {
        Finding::CannotTell
    } else if inner.0 >= 1.0 / most && inner.1 <= most {
        Finding::Same
    } else if low >= 1.0 + ROUNDED_BY {
        Finding::More
    } else if high < 1.0 - ROUNDED_BY {
        Finding::Less
    } else {
        Finding::CannotTell
    };
    let ratio = Estimate {
        median,
        low,
        high,
        confidence,
    };
    Comparison { ratio, finding }
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

    /// Few samples say how sure they are: of six by their range, of nine by what is drawn.
    #[test]
    fn few_samples_tell_nothing() {
        for compare in [paired, apart] {
            let of = |count: usize| compare(&times(2.0)[..count], &CALM[..count]).unwrap();
            for (count, sure) in [(1, 0.0), (3, 0.75), (5, 0.9375)] {
                let (found, told) = (of(count), (Finding::CannotTell, sure));
                assert_eq!((found.finding, found.ratio.confidence), told);
            }
            assert_eq!([of(6).finding, of(9).finding], [Finding::More; 2]);
            let five = compare(&CALM[..5], &[1.0; 5]).unwrap().ratio;
            assert_eq!((five.low, five.high), (99.0, 101.0));
            assert_eq!((compare(&[], &[]), compare(&[1.0], &[])), (None, None));
        }
    }

    /// What is told as 1.00 is no difference, and that there is none needs a proof.
    #[test]
    fn findings() {
        let of = |least: f64| [least, 1.2, 1.3, 1.2, 1.3, 1.25];
        let below = |most: f64| of(1.0 / most).map(|one| 1.0 / one);
        let near = [1.0; 6];
        let wide = [50.0, 150.0, 80.0, 120.0, 100.0, 60.0, 140.0, 90.0, 110.0];
        let all = [
            (apart(&CALM, &times(1.01)), Finding::Same),
            (paired(&CALM, &times(1.01)), Finding::Same),
            (apart(&CALM, &wide), Finding::CannotTell),
            (paired(&of(1.004), &near), Finding::CannotTell),
            (paired(&of(1.006), &near), Finding::More),
            (paired(&below(0.996), &near), Finding::CannotTell),
            (paired(&below(0.994), &near), Finding::Less),
            (exact(&[2.0], &[1.0]), Finding::More),
            (exact(&[1.0], &[2.0]), Finding::Less),
            (exact(&[1.04], &[1.0]), Finding::Same),
        ];
        for (at, (found, finding)) in all.into_iter().enumerate() {
            assert_eq!(found.unwrap().finding, finding, "{at}");
        }
    }

    /// Samples of a known distribution, skewed, with its median at 1: intervals must hold it about
    /// as often as they say, which those of a wrong formula don't.
    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        let mut random = Rng::with_seed(42);
        let mut held = |tries: usize, rounds: usize, of: fn(&[f64]) -> Estimate| {
            let held = (0..tries).filter(|_| {
                let draw = |_| -(1.0 - random.f64()).log2();
                let found = of(&(0..rounds).map(draw).collect::<Vec<f64>>());
                (found.low..=found.high).contains(&1.0)
            });
            held.count() as f64 / tries as f64
        };
        let share = held(1000, 9, |all| Estimate::of(all).unwrap());
        assert!((0.94..=0.98).contains(&share), "{share}");
        for (rounds, least) in [(6, 0.92), (7, 0.92), (8, 0.92), (9, 0.9)] {
            let share = held(100, rounds, |all| paired(all, &[1.0; 9]).unwrap().ratio);
            assert!(share >= least, "{rounds}: {share}");
        }
    }
}
