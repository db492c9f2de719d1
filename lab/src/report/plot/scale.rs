//! Logarithmic scales and their ticks.

/// From values to places on the drawing.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    /// From `low` at `from` to `high` at `to`. All values are above zero.
    pub(super) fn logarithmic(low: f64, high: f64, from: f64, to: f64) -> Self {
        // One value alone gets room on both sides.
        let (low, high) = if high > low {
            (low, high)
        } else {
            (low / 2.0, high * 2.0)
        };
        Self {
            low: low.ln(),
            high: high.ln(),
            from,
            to,
        }
    }

    /// Where `value` lies.
    pub(super) fn at(&self, value: f64) -> f64 {
        let share = (value.ln() - self.low) / (self.high - self.low);
        self.from + share * (self.to - self.from)
    }
}

/// The powers of ten around all values, and the range that they span.
pub(super) fn decades(low: f64, high: f64) -> Vec<f64> {
    let first = low.log10().floor() as i32;
    let last = (high.log10().ceil() as i32).max(first + 1);
    (first..=last).map(|power| 10_f64.powi(power)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decades_hold_all_values() {
        assert_eq!(decades(3.0, 420.0), [1.0, 10.0, 100.0, 1000.0]);
        assert_eq!(decades(10.0, 10.0), [10.0, 100.0]);
    }

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = Scale::logarithmic(1.0, 100.0, 0.0, 200.0);
        assert!((scale.at(10.0) - 100.0).abs() < 1e-9);
        assert!(Scale::logarithmic(5.0, 5.0, 0.0, 200.0).at(5.0).is_finite());
    }
}
