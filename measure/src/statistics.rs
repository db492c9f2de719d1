//! Medians and how sure they are, percentiles.
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
        let count = samples.len();
        let is_sure = |rank: &usize| coverage(count, *rank) >= CONFIDENCE;
        let rank = (1..=count.div_ceil(2)).rev().find(is_sure);
        Self::between(samples, rank.unwrap_or(1))
    }

    /// From the smallest to the largest.
    pub fn range(samples: &[f64]) -> Option<Self> {
        Self::between(samples, 1)
    }

    fn between(samples: &[f64], rank: usize) -> Option<Self> {
        let median = median(samples)?;
        let (low, high) = ends(samples, rank);
        Some(Self {
            median,
            low,
            high,
            confidence: coverage(samples.len(), rank),
        })
    }

    /// Half of the interval's width as a share of the median: 0.05 is ±5 %.
    pub fn uncertainty(&self) -> f64 {
        (self.high - self.low) / 2.0 / self.median
    }
}

/// The probability that the median lies between the `rank`-th smallest and largest of `count`.
pub(crate) fn coverage(count: usize, rank: usize) -> f64 {
    let mut term = 0.5_f64.powi(i32::try_from(count).unwrap_or(i32::MAX));
    let mut below = 0.0;
    for k in 0..rank {
        below += term;
        term *= (count - k) as f64 / (k + 1) as f64;
    }
    (1.0 - 2.0 * below).max(0.0)
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

/// The one in the middle, or the mean of the two there; None when there are none.
pub fn median(samples: &[f64]) -> Option<f64> {
    (!samples.is_empty()).then(|| middle(&mut samples.to_vec()))
}

/// The same of at least one, whose order it changes. To sort all of them would take longer.
pub(crate) fn middle(values: &mut [f64]) -> f64 {
    let around = [(values.len() - 1) / 2, values.len() / 2];
    let [lower, upper] = around.map(|at| *values.select_nth_unstable_by(at, f64::total_cmp).1);
    (lower + upper) / 2.0
}

/// The `rank`-th smallest and largest of values, of which there are as many.
pub(crate) fn ends(values: &[f64], rank: usize) -> (f64, f64) {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    (sorted[rank - 1], sorted[sorted.len() - rank])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians_of_odd_and_even_counts_need_no_order() {
        for count in 1..40 {
            // 7 and 41 have no common factor: each number once, in no order.
            let all: Vec<f64> = (0..count).map(|at| f64::from(at * 7 % 41)).collect();
            let rank = all.len().div_ceil(2);
            let (upper, lower) = ends(&all, rank);
            assert_eq!(median(&all), Some((lower + upper) / 2.0), "{count}");
        }
        assert_eq!((median(&[]), Estimate::of(&[])), (None, None));
    }

    /// Conover, table A3 (binomial, p = 1/2). Of fewer than six the interval is all of them, and
    /// says how sure that is.
    #[test]
    fn intervals_are_those_of_published_tables() {
        let published = [(6, 1, 0.9688), (9, 2, 0.9609), (15, 4, 0.9648)];
        for (count, rank, sure) in [(1, 1, 0.0), (5, 1, 0.9375)].into_iter().chain(published) {
            let samples: Vec<f64> = (1..=count).rev().map(f64::from).collect();
            let found = Estimate::of(&samples).unwrap();
            let ends = (f64::from(rank), f64::from(count + 1 - rank));
            assert_eq!((found.low, found.high), ends, "{count}");
            assert!((found.confidence - sure).abs() < 5e-5, "{count}");
            let range = Estimate::range(&samples).unwrap();
            assert_eq!((range.low, range.high), (1.0, f64::from(count)));
        }
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
