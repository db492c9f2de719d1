//! Figures as they stand in tables and plots.

use crate::record::{Axis, COARSE_SECONDS, Experiment, Point, Sample, Unit};
use crate::server::request_bytes;
use coffer_measure::statistics::{Estimate, median};

/// A place of an axis, for people: `16 KiB`, `2 threads`.
pub fn place(axis: Axis, x: u64) -> String {
    match axis {
        Axis::BlockBytes | Axis::FileBytes => bytes(x),
        Axis::Threads => format!("{x} thr."),
        Axis::Clients => format!("{x} cl."),
        Axis::Single => String::new(),
    }
}

/// Bytes in powers of 1,024, and of 1,000 where they are such.
fn bytes(count: u64) -> String {
    const BINARY: [(u64, &str); 3] = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    const DECIMAL: [(u64, &str); 3] = [(1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "KB")];
    let fits = |&&(unit, _): &&(u64, &str)| count >= unit && count.is_multiple_of(unit);
    let found = DECIMAL
        .iter()
        .find(fits)
        .or_else(|| BINARY.iter().find(fits));
    match found {
        Some((unit, name)) => format!("{} {name}", count / unit),
        None => format!("{count} B"),
    }
}

/// A figure with as many digits as mean something.
pub fn figure(value: f64) -> String {
    match value {
        f64::INFINITY => "∞".to_owned(),
        v if v.is_nan() => "–".to_owned(),
        v if v >= 99.5 => thousands(v.round() as u64),
        v if v >= 9.95 => format!("{v:.1}"),
        // Nothing that was measured looks like nothing.
        v if v > 0.0 && v < 0.000_095 => format!("{v:.0e}"),
        v if v > 0.0 && v < 0.0095 => {
            let digits = 1 - v.log10().floor() as i32;
            format!("{v:.0$}", usize::try_from(digits).unwrap_or(2))
        }
        // A sum of nothing is -0.
        v => format!("{:.2}", v + 0.0),
    }
}

/// The interval of a figure, as it stands behind it; nothing where it is no wider than is told.
pub fn interval(of: &Estimate) -> String {
    let (low, high) = (figure(of.low), figure(of.high));
    if low == high {
        String::new()
    } else {
        format!(" ({low}–{high})")
    }
}

fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// What stands in place of a figure where nothing ended in a round; None where something did in
/// each.
pub fn none_ended(point: &Point, unit: Unit) -> Option<String> {
    match (point.unended(unit), point.samples.len()) {
        (0, _) => None,
        (some, all) if some == all => Some("none ended".to_owned()),
        (some, all) => Some(format!("none ended, {some} of {all}")),
    }
}

/// Of how many requests of each round half, 95 % and 99 % are told: one in twenty, or in a hundred,
/// must have taken longer. Of fewer it is what the slowest took.
const TOLD_FROM: [u64; 3] = [1, 20, 100];

/// What stands for a share that can't be told.
pub const NOT_TOLD: &str = "–";

/// Why that is.
pub const FEW_REQUESTS: &str = "of fewer than 20 requests in a round 95 % can’t be told, of fewer \
                                than 100 not 99 %";

/// What half of a point's requests, 95 % and 99 % stayed within, in microseconds; None where they
/// were not timed. Of requests whose number is not known only half is told.
pub fn within(experiment: &Experiment, point: &Point) -> Option<[String; 3]> {
    let took = point.latency()?;
    let took = [took.half, took.most, took.nearly_all];
    let fewest = fewest_requests(experiment, point);
    let told = |at: usize| match fewest {
        count if count < TOLD_FROM[at] => NOT_TOLD.to_owned(),
        _ => figure(took[at] * 1e6),
    };
    Some([0, 1, 2].map(told))
}

/// In any round. Servers that many clients ask are told by bytes, of requests of one size.
fn fewest_requests(experiment: &Experiment, point: &Point) -> u64 {
    let each = request_bytes(&experiment.id);
    let of = |sample: &Sample| match (sample.counts, each) {
        (Some(counts), _) => counts.transfers,
        (None, Some(each)) => sample.bytes / each,
        (None, None) => 1,
    };
    point.samples.iter().map(of).min().unwrap_or(0)
}

/// The same in words, and which of them can't be told.
pub fn waits(experiment: &Experiment, point: &Point) -> Option<String> {
    let [half, most, nearly_all] = within(experiment, point)?;
    let mut text = format!("50 % of requests within {half} µs");
    text += &match (most.as_str(), nearly_all.as_str()) {
        (NOT_TOLD, _) => ", too few for 95 % and 99 %".to_owned(),
        (most, NOT_TOLD) => format!(", 95 % {most} µs, too few for 99 %"),
        (most, nearly_all) => format!(", 95 % {most} µs, 99 % {nearly_all} µs"),
    };
    Some(text)
}

/// What each byte, or each request, cost the processor. Where that was counted in ticks, and in too
/// few of them to tell: only that it is less than so many. None without samples.
pub fn cost(point: &Point, unit: Unit) -> Option<String> {
    let of = |value: fn(&Sample, f64) -> f64| {
        let all = point.samples.iter();
        median(&Vec::from_iter(all.map(|one| value(one, unit.amount(one)))))
    };
    if point.cpu_is_coarse() {
        let most = COARSE_SECONDS / of(|_, amount| amount)?;
        return Some(format!("< {}", figure(most)));
    }
    Some(figure(of(|one, amount| one.cpu_seconds / amount)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Counts, Latency};

    #[test]
    fn figures_and_sizes_read_well() {
        for (value, told) in [
            (12_345.6, "12,346"),
            (99.96, "100"),
            (9.96, "10.0"),
            (0.123, "0.12"),
            (0.0, "0.00"),
            (-0.0, "0.00"),
            (0.0022, "0.0022"),
            (0.000_95, "0.00095"),
            (1.2e-8, "1e-8"),
            // As often as nothing fits into something, and into nothing.
            (1.0 / 0.0, "∞"),
            (f64::NAN, "–"),
        ] {
            assert_eq!(figure(value), told);
        }
        let sizes = [16_384, 1_000_000, 1 << 20, 15].map(bytes);
        assert_eq!(sizes, ["16 KiB", "1 MB", "1 MiB", "15 B"]);
    }

    fn point(cpu_seconds: &[f64]) -> Point {
        let sample = |&cpu_seconds: &f64| Sample::new(100_000_000, 1.0, cpu_seconds);
        Point {
            x: 0,
            samples: cpu_seconds.iter().map(sample).collect(),
            observed: None,
        }
    }

    /// Requests that took 1 to 3 µs, as many bytes of them in each round.
    fn timed(bytes: &[u64]) -> Point {
        let mut timed = point(&vec![0.1; bytes.len()]);
        for (sample, bytes) in timed.samples.iter_mut().zip(bytes) {
            sample.bytes = *bytes;
            sample.latency = Some(Latency {
                half: 1e-6,
                most: 2e-6,
                nearly_all: 3e-6,
            });
        }
        timed
    }

    fn requests(transfers: u64) -> Option<Counts> {
        Some(Counts {
            transfers,
            context_switches: None,
        })
    }

    #[test]
    fn the_slowest_of_fifty_is_not_called_99_percent() {
        let id = "sendfile/connection";
        let asked = Experiment::new(id, Axis::FileBytes, Unit::MicrosecondsPerRequest);
        for (transfers, told) in [
            (19, "1.00 µs, too few for 95 % and 99 %"),
            (50, "1.00 µs, 95 % 2.00 µs, too few for 99 %"),
            (100, "1.00 µs, 95 % 2.00 µs, 99 % 3.00 µs"),
        ] {
            let mut timed = timed(&[100_000_000]);
            timed.samples[0].counts = requests(transfers);
            let told = format!("50 % of requests within {told}");
            assert_eq!(waits(&asked, &timed).unwrap(), told);
        }
        assert_eq!(within(&asked, &point(&[0.1])), None);
    }

    /// Its samples hold bytes, and no numbers of requests.
    #[test]
    fn five_requests_to_a_server_tell_no_95_percent() {
        let megabytes = "server/upload/1-mb";
        for (id, bytes, told) in [
            (megabytes, &[5_000_000][..], "1.00 – –"),
            (megabytes, &[20_000_000], "1.00 2.00 –"),
            (megabytes, &[100_000_000, 99_000_000], "1.00 2.00 –"),
            ("server/1-kb", &[100_000], "1.00 2.00 3.00"),
            ("server/else", &[100_000], "1.00 – –"),
        ] {
            let asked = Experiment::new(id, Axis::Clients, Unit::MegabytesPerSecond);
            assert_eq!(
                within(&asked, &timed(bytes)).unwrap().join(" "),
                told,
                "{id}"
            );
        }
    }

    #[test]
    fn where_nothing_ended_stands_no_zero() {
        let unit = Unit::MegabytesPerSecond;
        let mut asked = point(&[0.1, 0.1, 0.1]);
        assert_eq!(none_ended(&asked, unit), None);
        assert_eq!(none_ended(&point(&[]), unit), None);
        asked.samples[1].bytes = 0;
        assert_eq!(none_ended(&asked, unit).unwrap(), "none ended, 1 of 3");
        assert_eq!(
            (asked.estimate(unit), asked.values(unit)),
            (None, Vec::new())
        );
        for sample in &mut asked.samples {
            sample.bytes = 0;
        }
        assert_eq!(none_ended(&asked, unit).unwrap(), "none ended");
        // Handshakes move no bytes.
        assert_eq!(none_ended(&asked, Unit::HandshakesPerCpuSecond), None);
    }

    #[test]
    fn a_few_ticks_are_no_figure() {
        let unit = Unit::MegabytesPerSecond;
        let told = |cpu_seconds: &[f64]| cost(&point(cpu_seconds), unit).unwrap();
        // What a difference of two readings gives, not exactly whole ticks.
        let busy = |ticks: f64| (1_234_567.0 + ticks) / 100.0 - 1_234_567.0 / 100.0;
        assert_eq!(told(&[busy(2.0), busy(4.0), busy(4.0)]), "< 0.50");
        assert_eq!(told(&[0.0, 0.0, 0.0]), "< 0.50");
        assert_eq!(told(&[busy(4.0), busy(5.0), busy(6.0)]), "0.50");
        assert_eq!(told(&[busy(20.0), busy(21.0), busy(30.0)]), "2.10");
        // By a clock of nanoseconds.
        assert_eq!(told(&[0.012_345_678, 0.02, 0.023_456_789]), "0.20");
        assert_eq!(cost(&point(&[]), unit), None);
        // A gigabyte of requests for 15 bytes is nothing that happens.
        let mut small = point(&[0.012_345_678]);
        small.samples[0].counts = requests(1000);
        for (unit, told, heading) in [
            (Unit::MicrosecondsPerRequest, "12.3", "CPU µs/request"),
            (Unit::InstructionsPerRequest, "12,346", "instr./request"),
            (Unit::HandshakesPerCpuSecond, "12.3", "CPU µs/handshake"),
        ] {
            assert_eq!(
                (&*cost(&small, unit).unwrap(), unit.cost()),
                (told, heading)
            );
        }
    }
}
