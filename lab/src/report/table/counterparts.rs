//! What others found between two of their own, and the same between two of ours.

use crate::contender::Availability;
use crate::record::{Experiment, Point, Series};
use crate::report::table::figures::place;
use crate::sendfile::way::{DEVICE, SPLICE};
use coffer_measure::comparison::Finding;

/// A comparison that was published, and its two contenders here.
struct Counterpart {
    experiment: &'static str,
    ours: &'static str,
    theirs: &'static str,
    /// What was found, by whom.
    published: &'static str,
}

const COUNTERPARTS: [Counterpart; 2] = [
    Counterpart {
        experiment: "sendfile/transfer",
        ours: SPLICE,
        theirs: DEVICE,
        published: "B: about 27 % faster, with 3DES, for files of 1 to 100 MB",
    },
    Counterpart {
        experiment: "raw/table-a-loop",
        ours: "AES in plain C, kernel module",
        theirs: "AES in plain C, loop in C",
        published: "A: the kernel module is 21 % slower (Xeon), 12 % (Opteron), 6 % (Celeron)",
    },
];

/// What an experiment says to that, in sentences.
pub fn told(experiment: &Experiment) -> Vec<String> {
    let of_it = COUNTERPARTS
        .iter()
        .filter(|one| one.experiment == experiment.id);
    let told = of_it.flat_map(|one| one.told(experiment));
    told.chain(direct_in_memory(experiment)).collect()
}

/// Older records have figures of O_DIRECT where there is nothing to pass.
fn direct_in_memory(experiment: &Experiment) -> Option<String> {
    let how = experiment.how.to_lowercase();
    let measured = |one: &Series| one.contender.is_direct() && !one.points.is_empty();
    let is_idle =
        how.contains("the folder lies in memory") && experiment.series.iter().any(measured);
    is_idle.then(|| {
        "O_DIRECT: these files lie in memory, where a kernel may take the flag and passes \
         nothing. Its figures are those of an ordinary file, and say nothing to A’s."
            .to_owned()
    })
}

impl Counterpart {
    fn told(&self, experiment: &Experiment) -> Vec<String> {
        let both = (experiment.of(self.ours), experiment.of(self.theirs));
        let (Some(ours), Some(theirs)) = both else {
            return Vec::new();
        };
        let head = format!("{} against {}", self.ours, self.theirs);
        if let Some(why) = [ours, theirs].into_iter().find_map(absence) {
            return vec![format!(
                "{head}: not measured here ({why}). {}.",
                self.published
            )];
        }
        // A count of instructions is no speed.
        let (more, less) = if experiment.unit.counts_instructions() {
            ("more bytes an instruction", "fewer bytes an instruction")
        } else {
            ("faster", "slower")
        };
        let sentence = |point: &Point| {
            let other = theirs.at(point.x)?;
            let mut compared = point.compared(other, experiment.unit)?;
            if experiment.unit.counts_instructions() {
                // A run of another length may tell the opposite.
                compared = compared.of_other_lengths();
            }
            let ratio = compared.ratio;
            let percent = |ratio: f64| format!("{:.0} %", (ratio - 1.0).abs() * 100.0);
            let at = place(experiment.axis, point.x);
            let at = if at.is_empty() { at } else { format!(", {at}") };
            let found = match compared.finding {
                Finding::Same => "no difference".to_owned(),
                Finding::CannotTell => "can’t tell".to_owned(),
                Finding::More => format!("{} {more}", percent(ratio.median)),
                Finding::Less => format!("{} {less}", percent(ratio.median)),
            };
            let interval = if ratio.low < ratio.high {
                format!(" (ratio {:.2}–{:.2})", ratio.low, ratio.high)
            } else {
                format!(" (ratio {:.2})", ratio.median)
            };
            Some(format!(
                "{head}{at}: {found}{interval}. {}.",
                self.published
            ))
        };
        ours.points.iter().filter_map(sentence).collect()
    }
}

fn absence(series: &Series) -> Option<&str> {
    match &series.contender.availability {
        Availability::Runs => None,
        Availability::CannotRun { why, .. } => Some(why),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contender::Placement;
    use crate::record::planted::{self, point};
    use crate::record::{Axis, Unit};

    fn series(name: &str, speeds: &[f64]) -> Series {
        planted::series(name, Placement::Kernel, vec![point(1_000_000, speeds)])
    }

    fn experiment(ours: Series) -> Experiment {
        let both = vec![ours, series(COUNTERPARTS[0].theirs, &[100.0; 6])];
        Experiment {
            axis: Axis::FileBytes,
            ..planted::experiment("sendfile/transfer", Unit::MegabytesPerSecond, both)
        }
    }

    #[test]
    fn o_direct_in_memory_is_told_to_be_idle() {
        let mut file = Experiment::new("file/write", Axis::Single, Unit::MegabytesPerSecond);
        file.series = vec![series("none, O_DIRECT", &[1.0])];
        file.how = "To disk.".into();
        assert_eq!(told(&file), Vec::<String>::new());
        file.how = "To memory. The folder lies in memory.".into();
        assert!(told(&file)[0].contains("passes nothing"));
        file.series[0].points.clear();
        assert_eq!(told(&file), Vec::<String>::new());
    }

    #[test]
    fn what_was_published_stands_beside_our_own_ratio() {
        let (time, counts) = (Unit::MegabytesPerSecond, Unit::BytesPerThousandInstructions);
        for (speed, unit, found) in [
            (130.0, time, ", 1 MB: 30 % faster (ratio 1.30)"),
            (80.0, time, "20 % slower"),
            (70.0, counts, "30 % fewer bytes an instruction"),
            // Two lengths of a run count the same work further apart than that.
            (93.0, counts, ", 1 MB: can’t tell (ratio 0.93)"),
        ] {
            let mut measured = experiment(series(COUNTERPARTS[0].ours, &[speed; 6]));
            measured.unit = unit;
            let told = told(&measured);
            let beside = "B: about 27 % faster";
            assert!(
                told[0].contains(found) && told[0].contains(beside),
                "{told:?}"
            );
        }
        let mut absent = series(COUNTERPARTS[0].ours, &[1.0]);
        absent.contender.availability = Availability::cannot("no AF_ALG", "a kernel");
        let told = told(&experiment(absent));
        assert!(
            told[0].contains("not measured here (no AF_ALG)"),
            "{told:?}"
        );
    }
}
