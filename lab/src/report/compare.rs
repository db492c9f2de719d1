//! Two records side by side: two machines, two kernels, or before and after.

use std::fs;
use std::io::Read;
use std::path::Path;

use crate::contender::Placement;
use crate::error::{Doing, LabError, Result};
use crate::record::check::{BYTES_MAX, fault, fault_of_texts};
use crate::record::{Experiment, FORMAT, Point, Record, Series};
use crate::report::advice::baseline;
use crate::report::table::{figure, interval, none_ended, place, warnings};
use coffer_measure::comparison::{self, Comparison, Finding};
use coffer_measure::statistics::ratios;
use serde_json::Value;

/// Of two lengths that differ by less, what begins and ends once weighs the same.
pub const SAME_LENGTH: f64 = 1.2;

/// What no interval of a run holds.
const DRIFT: &str = "\
    A machine is not as fast at one time as at another, by clock, heat and what others do. Of two\n\
    runs that drift is in each figure, and in no interval. What a figure is beside another\n\
    contender of its own run (\"beside …\") is free of what slowed both.\n";

/// Reads a record that `--json` wrote.
pub fn read(path: &Path) -> Result<Record> {
    let doing = || format!("reading {}", path.display());
    let mut bytes = Vec::new();
    let file = fs::File::open(path).doing(doing)?;
    let read = file.take(BYTES_MAX + 1).read_to_end(&mut bytes);
    let broken = |what: String| LabError::Data {
        file: path.display().to_string(),
        what,
    };
    if read.doing(doing)? as u64 > BYTES_MAX {
        let most = format!("is larger than {} MiB", BYTES_MAX >> 20);
        return Err(broken(most));
    }
    let no_record = |error| broken(format!("is no record of the lab: {error}"));
    let value: Value = serde_json::from_slice(&bytes).map_err(no_record)?;
    if let Some(what) = fault_of_texts(&value) {
        return Err(broken(what));
    }
    let record: Record = serde_json::from_value(value).map_err(no_record)?;
    if record.format != FORMAT {
        let other = record.format;
        return Err(broken(format!(
            "has format {other}; this lab reads {FORMAT}"
        )));
    }
    match fault(&record) {
        Some(what) => Err(broken(what)),
        None => Ok(record),
    }
}

/// Says for each figure that both have how many times the first is the second.
pub fn compare(first: &Record, second: &Record) -> String {
    let head = |side, of: &Record| format!("{side}  {} · {}\n", of.date, of.machine.line());
    let mut text = head("A", first) + &head("B", second);
    let timed = |one: &Experiment| !one.unit.counts_instructions();
    if first.experiments.iter().any(timed) {
        text += DRIFT;
    }
    for ours in &first.experiments {
        match second.experiment(&ours.id) {
            Some(theirs) if theirs.unit != ours.unit => {
                let (a, b) = (ours.unit.name(), theirs.unit.name());
                text += &format!("\n{}: A counts {a}, B {b}: no comparison\n", ours.title);
            }
            Some(theirs) if theirs.version != ours.version => {
                let (a, b) = (ours.version, theirs.version);
                text += &format!("\n{}: A did version {a} of it, ", ours.title);
                text += &format!("B version {b}, which is something else: no comparison\n");
            }
            Some(theirs) => text += &one(ours, theirs),
            None => text += &format!("\n{}: only in A\n", ours.title),
        }
    }
    for theirs in &second.experiments {
        if first.experiment(&theirs.id).is_none() {
            text += &format!("\n{}: only in B\n", theirs.title);
        }
    }
    text
}

fn one(ours: &Experiment, theirs: &Experiment) -> String {
    let mut text = format!("\n{} · {}", ours.title, ours.unit.name());
    text += if ours.unit.less_is_better() {
        "; less is better\n"
    } else {
        "\n"
    };
    for series in &ours.series {
        let name = &series.contender.name;
        let Some(other) = theirs.of(name) else {
            text += &format!("  {name}: only in A\n");
            continue;
        };
        let runs = |one: &Series| one.contender.availability.runs();
        match (runs(series), runs(other)) {
            (true, true) => {}
            (false, false) => text += &format!("  {name}: can't run on either\n"),
            (true, false) => text += &format!("  {name}: can't run on B\n"),
            (false, true) => text += &format!("  {name}: can't run on A\n"),
        }
        for point in &series.points {
            let Some(there) = other.at(point.x) else {
                continue;
            };
            let (unit, at) = (ours.unit, place(ours.axis, point.x));
            let told_of = |side, one| Some(format!("{side}: {}", none_ended(one, unit)?));
            let unended = [told_of("A", point), told_of("B", there)];
            let unended: Vec<String> = unended.into_iter().flatten().collect();
            if !unended.is_empty() {
                text += &format!("  {name:<34} {at:>8}  {}\n", unended.join("; "));
            }
            let (Some(a), Some(b)) = (point.estimate(unit), there.estimate(unit)) else {
                continue;
            };
            let amounts = (ours.amount(point), theirs.amount(there));
            if let (Some(a), Some(b)) = amounts
                && a != b
                && !unit.counts_instructions()
            {
                let (a, b) = (figure(a as f64 / 1e6), figure(b as f64 / 1e6));
                text += &format!("  {name:<34} {at:>8}  A moved {a} MB, B {b} MB: no comparison\n");
                continue;
            }
            let Some(mut compared) = point.compared_apart(there, unit) else {
                continue;
            };
            if unit.counts_instructions() && !are_as_long(point, there) {
                compared = compared.of_other_lengths();
            }
            let mut verdict = told(&compared);
            if !unit.counts_instructions() {
                verdict += ", with drift";
                verdict += &beside(ours, theirs, (name, point.x)).unwrap_or_default();
            }
            let (a, b) = (figure(a.median), figure(b.median));
            text += &format!("  {name:<34} {at:>8}  {a:>8} {b:>8}  {verdict}\n");
        }
    }
    for other in &theirs.series {
        let name = &other.contender.name;
        if ours.of(name).is_none() {
            text += &format!("  {name}: only in B\n");
        }
    }
    text + &noise(ours, theirs)
}

/// How many times its plain contender each is in its own run, round by round, and how these two
/// differ. None for the plain one, and where none has figures of both.
fn beside(ours: &Experiment, theirs: &Experiment, (name, x): (&str, u64)) -> Option<String> {
    let sides = |name: &str| {
        let values = |one: &Experiment| Some(one.of(name)?.at(x)?.values(one.unit));
        let both = [values(ours)?, values(theirs)?];
        both.iter().all(|one| !one.is_empty()).then_some(both)
    };
    let all = ours.series.iter().map(|one| &one.contender);
    let own = baseline(name);
    let mut plain = all.filter(|one| match own {
        Some(own) => one.name == own,
        None => one.placement == Placement::None,
    });
    let (plain, [plain_a, plain_b]) =
        plain.find_map(|one| Some((one.name.as_str(), sides(&one.name)?)))?;
    if plain == name {
        return None;
    }
    let [a, b] = sides(name)?;
    let compared = comparison::apart(&ratios(&a, &plain_a), &ratios(&b, &plain_b))?;
    Some(format!("; beside {plain}: {}", told(&compared)))
}

/// Why the figures of one side, or of both, are to be taken with care.
fn noise(ours: &Experiment, theirs: &Experiment) -> String {
    let sides = [("A", ours), ("B", theirs)].into_iter();
    let told = sides.flat_map(|(side, one)| {
        let all = warnings(one).into_iter();
        all.map(move |warning| format!("  ! {side}: {warning}\n"))
    });
    told.collect()
}

/// Whether as much was measured of both, in each round.
fn are_as_long(a: &Point, b: &Point) -> bool {
    let (Some(a), Some(b)) = (a.length(), b.length()) else {
        return false;
    };
    a.max(b) < SAME_LENGTH * a.min(b)
}

fn told(compared: &Comparison) -> String {
    let times = compared.ratio;
    match compared.finding {
        Finding::Same => "no difference".to_owned(),
        Finding::CannotTell => "can't tell".to_owned(),
        Finding::More | Finding::Less => {
            format!("A is {} times B{}", figure(times.median), interval(&times))
        }
    }
}

#[cfg(test)]
mod like_tests;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Availability;
    use crate::record::planted::{self, experiment, point};
    use crate::record::{Axis, Unit};

    /// A contender of these speeds; one that can't run, without any.
    pub(super) fn series(name: &str, speeds: &[f64]) -> Series {
        if !speeds.is_empty() {
            return planted::series(name, Placement::User, vec![point(0, speeds)]);
        }
        let mut absent = planted::series(name, Placement::User, Vec::new());
        absent.contender.availability = Availability::cannot("nothing to run it", "something");
        absent
    }

    pub(super) fn record(id: &str, unit: Unit, series: Vec<Series>) -> Record {
        planted::record(vec![experiment(id, unit, series)])
    }

    pub(super) const FAST: [f64; 6] = [198.0, 200.0, 202.0, 198.0, 200.0, 202.0];
    pub(super) const SLOW: [f64; 6] = [99.0, 100.0, 101.0, 99.0, 100.0, 101.0];

    #[test]
    fn swapped_sides_turn_every_finding_round() {
        let time = Unit::MegabytesPerSecond;
        let all = |both: &[f64], other: &[f64], own: &str| {
            let all = [("both", both), ("one", other), (own, &SLOW)];
            let all = all.map(|(name, speeds)| series(name, speeds));
            record("raw/x", time, all.into())
        };
        let (a, b) = (all(&FAST, &SLOW, "mine"), all(&SLOW, &[], "yours"));
        let (there, back) = (compare(&a, &b), compare(&b, &a));
        assert!(there.contains("A is 2.00 times B (1.96–2.04)"), "{there}");
        assert!(back.contains("A is 0.50 times B (0.49–0.51)"), "{back}");
        assert!(there.contains("one: can't run on B"), "{there}");
        assert!(back.contains("one: can't run on A"), "{back}");
        for (text, own, other) in [(&there, "mine", "yours"), (&back, "yours", "mine")] {
            assert!(text.contains(&format!("{own}: only in A")), "{text}");
            assert!(text.contains(&format!("{other}: only in B")), "{text}");
        }
    }

    /// The machine was a fifth slower when B ran: each figure is, and no contender is by itself.
    #[test]
    fn drift_of_the_machine_is_no_difference_of_a_contender() {
        let of = |unit, drift: f64| {
            let slower = |speeds: [f64; 6]| speeds.map(|one| one * drift);
            let plain = vec![point(0, &slower(FAST))];
            let plain = planted::series("plain", Placement::None, plain);
            record("raw/x", unit, vec![plain, series("sealed", &slower(SLOW))])
        };
        let time = Unit::MegabytesPerSecond;
        let text = compare(&of(time, 1.0), &of(time, 0.8));
        for told in [
            "A is 1.25 times B (1.23–1.28), with drift\n",
            ", with drift; beside plain: no difference\n",
            "drift is in each figure",
        ] {
            assert!(text.contains(told), "{told}: {text}");
        }
        // Counts have none.
        let counted = of(Unit::BytesPerThousandInstructions, 1.0);
        assert!(!compare(&counted, &counted).contains("drift"));
    }

    #[test]
    fn what_is_something_else_is_never_divided() {
        let of = |id, unit, version| {
            let mut record = record(id, unit, vec![series("both", &FAST)]);
            record.experiments[0].version = version;
            record
        };
        let (time, counts) = (Unit::MegabytesPerSecond, Unit::BytesPerThousandInstructions);
        let a = of("raw/x", time, 2);
        let units = "A counts MB/s, B bytes per 1,000 instructions: no comparison";
        for (b, told) in [
            (of("raw/x", time, 1), "A did version 2 of it, B version 1"),
            (of("raw/x", counts, 2), units),
            (of("raw/y", time, 2), "x: only in A\n\nraw/y: only in B"),
        ] {
            let (there, back) = (compare(&a, &b), compare(&b, &a));
            assert!(there.contains(told), "{there}");
            for divided in ["times", "no difference"] {
                assert!(!there.contains(divided), "{there}");
                assert!(!back.contains(divided), "{back}");
            }
        }
        let counted = of("raw/x", counts, 2);
        assert!(compare(&counted, &counted).contains("no difference"));
    }

    #[test]
    fn noise_is_told_with_its_side() {
        let time = Unit::MegabytesPerSecond;
        let calm = record("raw/x", time, vec![series("both", &FAST)]);
        let mut noisy = calm.clone();
        noisy.experiments[0].noise.others_share = 0.4;
        noisy.experiments[0].noise.stolen_share = 0.1;
        let text = compare(&calm, &noisy);
        for told in ["other programs used 40 %", "the host took 10 %"] {
            assert!(text.contains(&format!("  ! B: {told}")), "{text}");
        }
        assert!(!text.contains("! A"), "{text}");
        assert!(compare(&noisy, &calm).contains("  ! A: other programs used 40 %"));
        assert!(!compare(&calm, &calm).contains("  ! "));
    }

    #[test]
    fn what_ended_on_one_side_only_is_not_divided_by_nothing() {
        let time = Unit::MegabytesPerSecond;
        let of = |speeds: &[f64]| {
            let mut record = record("server/x", time, vec![series("both", speeds)]);
            record.experiments[0].axis = Axis::Clients;
            record.experiments[0].series[0].points[0].x = 4;
            record
        };
        let text = compare(&of(&FAST), &of(&[100.0, 0.0, 101.0]));
        assert!(text.contains("B: none ended, 1 of 3"), "{text}");
        assert!(
            !text.contains("times B") && !text.contains("can't"),
            "{text}"
        );
    }

    /// Of one kernel, a quick run and a longer one: most of it was counted 5 to 16 % otherwise.
    #[test]
    fn counts_of_another_length_tell_no_small_difference() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/lab");
        let of = |name: &str| read(&folder.join(name)).unwrap();
        let (quick, longer) = (of("kernel-debian-6.1.json"), of("sendfile-debian-6.1.json"));
        let text = compare(&quick, &longer);
        assert!(
            text.contains("can't tell") && !text.contains("times B"),
            "{text}"
        );
        assert!(compare(&quick, &quick).contains("no difference"));
    }
}
