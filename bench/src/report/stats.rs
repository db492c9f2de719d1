//! Medians, spreads and percentiles.

use serde::Serialize;

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
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (&min, &max) = (sorted.first()?, sorted.last()?);
        let middle = sorted.len() / 2;
        let median = if sorted.len().is_multiple_of(2) {
            (sorted[middle - 1] + sorted[middle]) / 2.0
        } else {
            sorted[middle]
        };
        Some(Self { median, min, max })
    }
}

/// The ratio of each round. Rounds are interleaved, so what disturbs the machine for a while
/// disturbs both sides of a ratio, and the median of ratios is steadier than the ratio of medians.
pub fn ratios(ours: &[f64], peer: &[f64]) -> Vec<f64> {
    ours.iter()
        .zip(peer)
        .map(|(ours, peer)| ours / peer)
        .collect()
}

/// The smallest value that at least `percent` of the values don't exceed (the nearest-rank
/// method); 0 when there are none. Sorts `values`.
pub fn percentile(values: &mut [u64], percent: f64) -> u64 {
    values.sort_unstable();
    let rank = (percent / 100.0 * values.len() as f64).ceil() as usize;
    values.get(rank.saturating_sub(1)).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_of_odd_and_even_counts() {
        assert_eq!(
            Spread::of(&[3.0, 1.0, 2.0]),
            Some(Spread {
                median: 2.0,
                min: 1.0,
                max: 3.0
            })
        );
        assert_eq!(Spread::of(&[4.0, 1.0, 2.0, 3.0]).unwrap().median, 2.5);
        assert_eq!(Spread::of(&[]), None);
    }

    #[test]
    fn ratios_pair_the_rounds() {
        assert_eq!(ratios(&[1.0, 6.0], &[2.0, 3.0]), [0.5, 2.0]);
    }

    #[test]
    fn percentiles_by_nearest_rank() {
        let mut hundred: Vec<u64> = (1..=100).rev().collect();
        assert_eq!(percentile(&mut hundred, 50.0), 50);
        assert_eq!(percentile(&mut hundred, 99.0), 99);
        assert_eq!(percentile(&mut hundred, 100.0), 100);
        assert_eq!(percentile(&mut [7], 50.0), 7);
        assert_eq!(percentile(&mut [], 50.0), 0);
    }
}
