//! Marks: what a subject whose clearance is a range has read, as the join of the labels it read
//! at. While it has one, it writes only where the label dominates it.
//!
//! What every label that may be written dominates anyway, that at the lower end of the clearance
//! and below, raises no mark. `system.db` has each mark before it is seen here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer_label::Label;
use parking_lot::Mutex;

/// A subject's mark. It only rises: what settles a subject gives it another one, so that requests
/// from before it keep the one they began with.
#[derive(Debug, Default)]
pub(crate) struct Mark {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    label: Option<Label>,
    /// When something above the lower end was read last; never, since this start.
    last_read: Option<Instant>,
    /// How many such reads are under way.
    reading: usize,
}

impl Mark {
    /// One that was raised to a label before.
    pub(crate) fn at(label: Option<Label>) -> Arc<Self> {
        let state = State {
            label,
            ..State::default()
        };
        Arc::new(Self {
            state: Mutex::new(state),
        })
    }

    /// The join of what was read; none: nothing that counts.
    pub(crate) fn label(&self) -> Option<Label> {
        self.state.lock().label
    }

    /// Whether a read at this label raises it no more.
    pub(crate) fn covers(&self, label: &Label) -> bool {
        self.label().is_some_and(|mark| mark.dominates(label))
    }

    /// Whether it lets something be written at this label.
    pub(crate) fn lets_write(&self, label: &Label) -> bool {
        self.label().is_none_or(|mark| label.dominates(&mark))
    }

    /// What it is once `label` was read, too.
    pub(crate) fn joined(&self, label: &Label) -> Label {
        self.label().map_or(*label, |mark| mark.join(label))
    }

    /// Raises it. Only `system.db` does, when it has it.
    pub(crate) fn raise(&self, label: Label) {
        self.state.lock().label = Some(label);
    }

    /// Whether it is raised, and nothing that counts was read for so long. A start counts as a
    /// read: what came before it is not known. The clock of the day has no part in it.
    pub(crate) fn is_idle_for(&self, pause: Duration, start: Instant) -> bool {
        let state = self.state.lock();
        let last = state.last_read.unwrap_or(start);
        state.label.is_some() && state.reading == 0 && last.elapsed() >= pause
    }
}

/// A read that counts, for as long as it is under way.
#[derive(Debug)]
pub(crate) struct Reading(Arc<Mark>);

impl Reading {
    pub(crate) fn begin(mark: &Arc<Mark>) -> Self {
        mark.state.lock().reading += 1;
        Self(mark.clone())
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.reading -= 1;
        state.last_read = Some(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_counts_from_the_end_of_the_last_read() {
        let start = Instant::now();
        let mark = Mark::at(None);
        let never = Duration::from_secs(3_600);
        assert!(!mark.is_idle_for(Duration::ZERO, start), "nothing was read");
        mark.raise(Label::HIGHEST);
        assert!(mark.is_idle_for(Duration::ZERO, start));
        let reading = Reading::begin(&mark);
        assert!(!mark.is_idle_for(Duration::ZERO, start), "it reads");
        drop(reading);
        assert!(mark.is_idle_for(Duration::ZERO, start));
        assert!(!mark.is_idle_for(never, start));
    }

    #[test]
    fn a_mark_is_the_join_of_what_was_read() {
        let [one, other] = ["s1:c1", "s2:c2"].map(|text| text.parse::<Label>().unwrap());
        let mark = Mark::at(Some(one));
        assert!(mark.covers(&one) && mark.lets_write(&one));
        assert!(!mark.covers(&other) && !mark.lets_write(&other));
        mark.raise(mark.joined(&other));
        assert_eq!(mark.label().unwrap().to_string(), "s2:c1,c2");
        assert!(mark.covers(&one) && mark.covers(&other));
        assert!(!mark.lets_write(&one) && !mark.lets_write(&other));
        assert!(mark.lets_write(&"s3:c1.c3".parse().unwrap()));
    }
}
