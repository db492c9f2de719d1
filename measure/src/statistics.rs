//! Medians and how sure they are, spreads, percentiles.
//!
//! The interval of a median is taken from the samples' order: between the k-th smallest and the
//! k-th largest of n independent samples lies the true median with probability
//! `1 - 2 · P(Binomial(n, ½) < k)`, whatever the distribution (Conover, Practical Nonparametric
//! Statistics, 3.2). No noise of a normal shape is assumed, and an outlier moves nothing.

use serde::{Deserialize, Serialize};

/// The confidence that is aimed at.
pub const CONFIDENCE: f64 = 0.95;

/// A median and the interval that it lies in.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// The middle sample, or the mean of the two in the middle.
    pub median: f64,
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
    /// The probability that the interval holds the true median. Less than [`CONFIDENCE`] when
    /// there are fewer than six samples: then the interval is all of them.
    pub confidence: f64,
}

impl Estimate {
    /// None when there are no samples.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = sorted(samples);
        let count = sorted.len();
        let rank = interval_rank(count)?;
        Some(Self {
            low: sorted[rank - 1],
            high: sorted[count - rank],
            confidence: coverage(count, rank),
            median: middle(&mut sorted),
        })
    }

    /// Half of the interval's width as a share of the median: 0.05 is ±5 %.
    pub fn uncertainty(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median
    }
}

/// The largest rank whose interval still has the confidence; at least 1. None without samples.
fn interval_rank(count: usize) -> Option<usize> {
    if count == 0 {
        return None;
    }
    let confident = |rank: &usize| coverage(count, *rank) >= CONFIDENCE;
    Some((1..=count.div_ceil(2)).rev().find(confident).unwrap_or(1))
}

/// The probability that the median lies between the `rank`-th smallest and largest of `count`.
fn coverage(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for k in 0..rank {
        below += term;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
}

/// What several rounds of one figure come to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle one, or the mean of the two in the middle.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// None: there is nothing to look at.
    pub fn of(samples: &[f64]) -> Option<Self> {
        let mut sorted = sorted(samples);
        Some(Self {
            min: *sorted.first()?,
            max: *sorted.last()?,
            median: middle(&mut sorted),
        })
    }
}

/// The ratio of each round. Rounds are interleaved, so what disturbs the machine for a while
/// disturbs both sides of a ratio, and the median of ratios is steadier than the ratio of medians.
pub fn ratios(ours: &[f64], peer: &[f64]) -> Vec<f64> {
    let pairs = ours.iter().zip(peer);
    pairs.map(|(ours, peer)| ours / peer).collect()
}

/// The smallest value that at least `percent` of the values don't exceed (the nearest-rank
/// method); zero when there are none. Sorts `values`.
pub fn percentile<T: Copy + Default + Ord>(values: &mut [T], percent: usize) -> T {
    values.sort_unstable();
    let rank = (values.len() * percent).div_ceil(100);
    let found = values.get(rank.saturating_sub(1));
    found.copied().unwrap_or_default()
}

pub(crate) fn sorted(samples: &[f64]) -> Vec<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Of at least one in any order, which it changes: the one in the middle, or the mean of the two
/// there. To sort all of them would take longer.
pub(crate) fn middle(values: &mut [f64]) -> f64 {
    let is_even = values.len().is_multiple_of(2);
    let half = values.len() / 2;
    let (below, &mut upper, _) = values.select_nth_unstable_by(half, f64::total_cmp);
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => (lower + upper) / 2.0,
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts_need_no_order() {
        for count in 1..40_u32 {
            let shaken = (0..count).map(|at| f64::from(at * 7919 % 31) - 9.0);
            let mut shaken: Vec<f64> = shaken.collect();
            let in_order = sorted(&shaken);
            let [below, above] = [(count - 1) / 2, count / 2].map(|at| in_order[at as usize]);
            let expected = (below + above) / 2.0;
            assert_eq!(Estimate::of(&shaken).unwrap().median, expected, "{count}");
            assert_eq!(middle(&mut shaken), expected, "{count}");
        }
        assert_eq!(Estimate::of(&[]), None);
    }

    #[test]
    fn intervals_are_those_of_published_tables() {
        // Conover, table A3 (binomial, p = 1/2): for n = 6 the ends are the extremes (0.9688), for
        // n = 9 ranks 2 and 8 (0.9609), for n = 15 ranks 4 and 12 (0.9648).
        for (count, rank, expected) in [(6, 1, 0.9688), (9, 2, 0.9609), (15, 4, 0.9648)] {
            assert_eq!(interval_rank(count), Some(rank), "{count}");
            assert!((coverage(count, rank) - expected).abs() < 5e-5, "{count}");
        }
    }

    #[test]
    fn few_samples_admit_it() {
        let one = Estimate::of(&[7.0]).unwrap();
        assert_eq!((one.low, one.high, one.confidence), (7.0, 7.0, 0.0));
        let five = Estimate::of(&[1.0, 2.0, 3.0, 4.0, 100.0]).unwrap();
        assert_eq!((five.low, five.high), (1.0, 100.0));
        assert!((five.confidence - 0.9375).abs() < 1e-12);
    }

    #[test]
    fn an_outlier_moves_nothing() {
        let calm: Vec<f64> = (0..9).map(|i| 100.0 + f64::from(i)).collect();
        let mut disturbed = calm.clone();
        disturbed[8] = 1e9;
        assert_eq!(Estimate::of(&calm), Estimate::of(&disturbed));
    }

    /// A thousand medians of nine from a known distribution: about 96 % of the intervals must hold
    /// its true median, which a wrong formula would miss.
    #[test]
    fn intervals_hold_the_true_median_as_often_as_they_say() {
        let mut random = fastrand::Rng::with_seed(42);
        let held = (0..1000).filter(|_| {
            // Exponential: skewed, with its median at ln 2.
            let samples: Vec<f64> = (0..9).map(|_| -(1.0 - random.f64()).ln()).collect();
            let estimate = Estimate::of(&samples).unwrap();
            (estimate.low..=estimate.high).contains(&2.0_f64.ln())
        });
        let held = held.count();
        assert!((940..=980).contains(&held), "{held}");
    }

    #[test]
    fn spreads() {
        let all = Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap();
        assert_eq!((all.median, all.min, all.max), (2.5, 1.0, 4.0));
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        assert_eq!(ratios(&[1.0, 6.0], &[2.0, 3.0]), [0.5, 2.0]);
    }

    #[test]
    fn percentiles_by_nearest_rank() {
        let mut all: Vec<u64> = (1..=200).rev().collect();
        let found = [0, 50, 95, 99, 100].map(|percent| percentile(&mut all, percent));
        assert_eq!(found, [1, 100, 190, 198, 200]);
        assert_eq!(percentile(&mut [7], 50), 7);
        assert_eq!(percentile::<u64>(&mut [], 50), 0);
    }
}
