//! How long requests took, from the question to the last byte of the answer.

use std::time::Duration;

use coffer_measure::statistics::percentile;
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
    /// Of what each request took; None without requests.
    pub fn of(mut took: Vec<Duration>) -> Option<Self> {
        let mut within = |percent| percentile(&mut took, percent).as_secs_f64();
        let (half, most, nearly_all) = (within(50), within(95), within(99));
        (!took.is_empty()).then_some(Self {
            half,
            most,
            nearly_all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_took_no_longer() {
        let all = (1..=200).rev().map(Duration::from_secs).collect();
        let found = Latency::of(all).unwrap();
        assert_eq!((found.half, found.most), (100.0, 190.0));
        assert_eq!(found.nearly_all, 198.0);
        assert_eq!(Latency::of(Vec::new()), None);
    }
}
