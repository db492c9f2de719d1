//! Gaps that an accepted rollback explains.
//!
//! A server that goes on from an older copy of its log, on purpose, leaves a gap: its keystore
//! knows of records that the copy lacks. It begins a segment behind the last of these, says there
//! that the log was an older copy, and then that this was accepted, with both numbers. Only a gap
//! between exactly these numbers is explained; records open with the server's key alone, so no
//! other writes such a record.

use crate::event::{Event, LOG_FILE, ROLLBACK_ACCEPTED, older_copy};
use crate::limits::FINDINGS_MAX;
use crate::verify::finding::{Report, RolledBack, Wrong};

/// Rollbacks that were accepted, by the records that were read.
#[derive(Default)]
pub(super) struct Rollbacks(Vec<RolledBack>);

impl Rollbacks {
    /// A record of the log.
    pub(super) fn look_at(&mut self, sequence: u64, time_ms: i64, event: &Event) {
        let is_of_log = event.act == ROLLBACK_ACCEPTED
            && event
                .details
                .get("file")
                .is_some_and(|file| file == LOG_FILE);
        let number = |name: &str| event.details.get(name)?.parse::<u64>().ok();
        let (Some(found), Some(held)) = (number("found"), number("held")) else {
            return;
        };
        if is_of_log && found < held && held < sequence && self.0.len() < FINDINGS_MAX {
            self.0.push(RolledBack {
                first: found + 1,
                through: held,
                accepted: sequence,
                accepted_ms: time_ms,
            });
        }
    }

    /// Takes from the findings what an accepted rollback explains.
    pub(super) fn explain(self, report: &mut Report) {
        for rolled_back in self.0 {
            let RolledBack { first, through, .. } = rolled_back;
            let is_gap = Wrong::Missing { through };
            let findings = &mut report.findings;
            let gap = findings
                .iter()
                .position(|one| one.sequence == Some(first) && one.wrong == is_gap);
            let Some(gap) = gap else {
                continue;
            };
            findings.remove(gap);
            let told = Wrong::DamageRecorded {
                found: older_copy(through),
            };
            findings.retain(|one| one.sequence != Some(through + 1) || one.wrong != told);
            report.rolled_back.push(rolled_back);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Outcome;

    fn accepted(file: &str, found: u64, held: u64) -> Event {
        Event::new(ROLLBACK_ACCEPTED, "server", Outcome::Done)
            .with("file", file)
            .with("found", found)
            .with("held", held)
    }

    /// What is left of the findings of a gap from 5 to 7, and how many gaps are explained.
    fn explained(event: &Event, sequence: u64) -> (usize, usize) {
        let mut report = Report::EMPTY;
        report.add(1, Some(5), Wrong::Missing { through: 7 });
        let found = older_copy(7);
        report.add(2, Some(8), Wrong::DamageRecorded { found });
        let mut rollbacks = Rollbacks::default();
        rollbacks.look_at(sequence, 0, event);
        rollbacks.explain(&mut report);
        (report.findings.len(), report.rolled_back.len())
    }

    #[test]
    fn a_gap_is_explained_by_a_rollback_of_exactly_its_records() {
        assert_eq!(explained(&accepted(LOG_FILE, 4, 7), 10), (0, 1));
        for (file, found, held) in [
            ("system.db", 4, 7),
            (LOG_FILE, 3, 7),
            (LOG_FILE, 5, 7),
            (LOG_FILE, 4, 6),
            (LOG_FILE, 4, 8),
            (LOG_FILE, 7, 7),
        ] {
            let event = accepted(file, found, held);
            assert_eq!(explained(&event, 10), (2, 0), "{file} {found} {held}");
        }
        // One that stands before the gap is of another.
        assert_eq!(explained(&accepted(LOG_FILE, 4, 7), 4), (2, 0));
        let other = Event::new("level.create", "server", Outcome::Done);
        assert_eq!(explained(&other, 10), (2, 0));
    }

    #[test]
    fn other_damage_that_was_found_stays() {
        let mut report = Report::EMPTY;
        report.add(1, Some(5), Wrong::Missing { through: 7 });
        let found = "record 4 does not open".to_owned();
        report.add(2, Some(8), Wrong::DamageRecorded { found });
        let mut rollbacks = Rollbacks::default();
        rollbacks.look_at(10, 0, &accepted(LOG_FILE, 4, 7));
        rollbacks.explain(&mut report);
        assert_eq!(report.findings.len(), 1);
        assert!(!report.is_sound());
    }
}
