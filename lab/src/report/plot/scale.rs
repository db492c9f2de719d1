//! Logarithmic scales, their ticks, and room for labels.

use std::f64::consts::LN_10;

/// Over more decades than this only their beginnings are ticks.
const FINE_DECADES: f64 = 3.0;

/// From values to shares of a plot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scale {
    low: f64,
    high: f64,
}

impl Scale {
    /// Over all of these, with some room beyond. None where they have no logarithms, or there are
    /// none.
    pub(super) fn over(values: impl Iterator<Item = f64>) -> Option<Self> {
        let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), one| {
            (low.min(one), high.max(one))
        });
        // One value alone gets room on both sides.
        let room = ((high / low).ln() * 0.06).max(0.08);
        (low > 0.0 && low <= high && high.is_finite()).then(|| Self {
            low: low.ln() - room,
            high: high.ln() + room,
        })
    }

    /// Where `value` lies: 0 is the beginning, 1 the end.
    pub(super) fn at(&self, value: f64) -> f64 {
        (value.ln() - self.low) / (self.high - self.low)
    }

    /// Round values within: 1, 2 and 5 of each decade, or its beginning alone.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let is_fine = self.high - self.low < FINE_DECADES * LN_10;
        let steps: &[f64] = if is_fine { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let [first, last] = [self.low, self.high].map(|end| (end / LN_10).floor() as i32);
        let decades = (first..=last).map(|power| 10_f64.powi(power));
        let all = decades.flat_map(|ten| steps.iter().map(move |step| step * ten));
        all.filter(|one| (0.0..=1.0).contains(&self.at(*one)))
            .collect()
    }
}

/// The tops of labels, of which each has a middle that it wants and a height: moved until all have
/// room within `whole` pixels.
pub(super) fn spread(labels: impl Iterator<Item = (f64, f64)>, whole: f64) -> Vec<f64> {
    let labels: Vec<(f64, f64)> = labels.collect();
    let wanted = labels.iter().map(|(middle, high)| middle - high / 2.0);
    let mut tops: Vec<f64> = wanted.collect();
    let mut order: Vec<usize> = (0..tops.len()).collect();
    order.sort_by(|a, b| tops[*a].total_cmp(&tops[*b]));
    let (mut free, mut end) = (0.0, whole);
    for &one in &order {
        tops[one] = tops[one].max(free);
        free = tops[one] + labels[one].1;
    }
    for &one in order.iter().rev() {
        tops[one] = tops[one].min(end - labels[one].1);
        end = tops[one];
    }
    tops
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scale_holds_its_values_and_no_decade_of_nothing() {
        let over = |values: &[f64]| Scale::over(values.iter().copied());
        let scale = over(&[4200.0, 300.0, 700.0]).unwrap();
        assert!(scale.at(300.0) > 0.0 && scale.at(4200.0) < 1.0);
        assert_eq!(scale.ticks(), [500.0, 1000.0, 2000.0]);
        let decades = over(&[2.0, 5e5]).unwrap().ticks();
        assert_eq!(decades, [1.0, 10.0, 100.0, 1e3, 1e4, 1e5, 1e6]);
        assert!((over(&[5.0]).unwrap().at(5.0) - 0.5).abs() < 1e-9);
        for nothing in [&[][..], &[0.0, 1.0], &[1.0, f64::INFINITY]] {
            assert!(over(nothing).is_none(), "{nothing:?}");
        }
    }

    #[test]
    fn labels_make_room_for_each_other() {
        let tops = |labels: &[(f64, f64)]| spread(labels.iter().copied(), 200.0);
        let among = [(58.0, 16.0), (60.0, 16.0), (18.0, 16.0)];
        assert_eq!(tops(&among), [50.0, 66.0, 10.0]);
        assert_eq!(tops(&[(198.0, 16.0), (210.0, 30.0)]), [154.0, 170.0]);
    }
}
