//! How long requests took, from the question to the last byte of the answer.

use serde::{Deserialize, Serialize};

/// What most requests of a measurement stayed within, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Half of them.
    pub half: f64,
    /// 95 % of them.
    pub most: f64,
    /// 99 % of them.
    pub nearly_all: f64,
}

impl Latency {
    /// Of the seconds that each request took; None without requests.
    pub fn of(mut seconds: Vec<f64>) -> Option<Self> {
        seconds.sort_by(f64::total_cmp);
        // The nearest rank: so many of them took no longer.
        let within = |percent: usize| {
            let rank = (seconds.len() * percent).div_ceil(100);
            seconds.get(rank.checked_sub(1)?).copied()
        };
        Some(Self {
            half: within(50)?,
            most: within(95)?,
            nearly_all: within(99)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_took_no_longer() {
        let all = (1..=200).rev().map(f64::from).collect();
        let found = Latency::of(all).unwrap();
        assert_eq!(
            (found.half, found.most, found.nearly_all),
            (100.0, 190.0, 198.0)
        );
        let one = Latency::of(vec![3.0]).unwrap();
        assert_eq!((one.half, one.nearly_all), (3.0, 3.0));
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
