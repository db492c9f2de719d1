//! What the vault records, and when.
//!
//! | | recorded |
//! |---|---|
//! | administrative acts | that they begin, before they do; how they ended, before that is told |
//! | those that can't be done | as denials, for nothing was begun |
//! | denials and sign-ins | within a second: the first at once, then their count, by the minute |
//! | damage that was found | likewise |
//!
//! What repeats is counted on its own in the first few buckets and levels, and from the first few
//! addresses.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use coffer_audit::{Event, Outcome, Recorded};
use futures::future::try_join_all;

use crate::actor::Recorded as Who;
use crate::error::{Result, VaultError};
use crate::limits::{AUDIT_TICK, FACT_MAX_BYTES};
use crate::vault::Vault;

/// What a record says of an act beside its name: a level's name, a bucket's, an access key id.
/// Never a secret, never an object's name.
pub type Facts = BTreeMap<&'static str, String>;

/// An event of the audit log.
pub(crate) fn event(act: &'static str, actor: &dyn Who, outcome: Outcome, facts: &Facts) -> Event {
    let event = Event::new(act, actor.id(), outcome).by(actor.name());
    facts.iter().fold(event, |event, (name, value)| {
        event.with(name, clipped(value))
    })
}

/// What was asked for may be longer than anything that is allowed.
fn clipped(value: &str) -> &str {
    &value[..value.floor_char_boundary(FACT_MAX_BYTES)]
}

/// Facts of any length, over as many records as they take: each has `about`, and a piece of every
/// one of `told` that is that long. Lists are divided between their entries.
pub(crate) fn whole(about: &Facts, told: Vec<(&'static str, Vec<String>)>) -> Vec<Facts> {
    let mut records = vec![about.clone()];
    for (name, entries) in told {
        for (place, piece) in pieces(entries).into_iter().enumerate() {
            if place == records.len() {
                records.push(about.clone());
            }
            records[place].insert(name, piece);
        }
    }
    let count = records.len();
    if count > 1 {
        for (place, facts) in records.iter_mut().enumerate() {
            facts.insert("part", format!("{} of {count}", place + 1));
        }
    }
    records
}

/// Entries with a space between them, in pieces that fit into a fact.
fn pieces(entries: Vec<String>) -> Vec<String> {
    let mut pieces = vec![String::new()];
    for entry in entries {
        let mut rest = &*entry;
        loop {
            let last = pieces.last_mut().expect("there is always one");
            let space = usize::from(!last.is_empty());
            if last.len() + space + rest.len() <= FACT_MAX_BYTES {
                last.push_str(&" "[..space]);
                last.push_str(rest);
                break;
            }
            if last.is_empty() {
                let (piece, more) = rest.split_at(rest.floor_char_boundary(FACT_MAX_BYTES));
                last.push_str(piece);
                rest = more;
            }
            pieces.push(String::new());
        }
    }
    pieces
}

impl Vault {
    /// Records what `actor` did, in as many records as there are facts, and gives the first; they
    /// are durable when this returns. Who needs the record refuses to act when this fails.
    ///
    /// # Errors
    /// [`VaultError::AuditUnavailable`](crate::VaultError::AuditUnavailable).
    pub(crate) async fn record(
        &self,
        act: &'static str,
        actor: &(dyn Who + Sync),
        outcome: Outcome,
        facts: &[Facts],
    ) -> Result<Option<Recorded>> {
        let events = facts.iter().map(|facts| event(act, actor, outcome, facts));
        // Polled in their order, they are written in it.
        let recording: Vec<_> = events.map(|event| self.inner.audit.record(event)).collect();
        Ok(try_join_all(recording).await?.first().copied())
    }

    /// Records within a second that `actor` was refused something, and counts what repeats.
    pub(crate) fn denied(&self, act: &'static str, actor: &dyn Who, facts: &Facts) {
        self.noted(act, actor, Outcome::Denied, facts);
    }

    /// Records within a second what need not be waited for, and counts what repeats.
    pub(crate) fn noted(
        &self,
        act: &'static str,
        actor: &dyn Who,
        outcome: Outcome,
        facts: &Facts,
    ) {
        let event = event(act, actor, outcome, facts);
        self.inner.audit.note_repeated(event);
    }

    /// Notes, and counts, that an act failed before it began: nothing of it was done.
    pub(crate) fn failed(
        &self,
        act: &'static str,
        actor: &dyn Who,
        facts: &Facts,
        error: VaultError,
    ) -> VaultError {
        let mut facts = facts.clone();
        facts.insert("reason", error.reason().to_owned());
        self.noted(act, actor, Outcome::Failed, &facts);
        error
    }

    /// The last durable record of the audit log, such as a receipt names; `None` when the log can't
    /// be opened.
    pub fn last_audit_record(&self) -> Option<Recorded> {
        self.inner.audit.log().map(|log| log.last())
    }

    /// Whether acts that must be recorded can be; otherwise why not.
    pub fn audit_failure(&self) -> Option<String> {
        match self.inner.audit.log() {
            None => Some("the audit log could not be opened".to_owned()),
            Some(log) => log.failure().map(|error| error.to_string()),
        }
    }

    /// Tells of repeats as long as the vault is there.
    pub(crate) fn start_audit_clock(&self) {
        let inner = Arc::downgrade(&self.inner);
        let clock = tokio::spawn(async move {
            loop {
                tokio::time::sleep(AUDIT_TICK).await;
                let Some(inner) = inner.upgrade() else { return };
                let tick = move || {
                    inner.audit.note_damage(inner.tally.damage_count());
                    inner.audit.tick(&inner.system, false);
                };
                if tokio::task::spawn_blocking(tick).await.is_err() {
                    return;
                }
            }
        });
        let audit = &self.inner.audit;
        *audit.clock.lock().unwrap_or_else(PoisonError::into_inner) = Some(clock);
    }

    /// Records the stop and closes the log.
    pub(crate) async fn close_audit(&self) {
        let audit = &self.inner.audit;
        let clock = audit
            .clock
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(clock) = clock {
            clock.abort();
        }
        let inner = self.inner.clone();
        let closing = tokio::task::spawn_blocking(move || {
            inner.audit.note_damage(inner.tally.damage_count());
            inner.audit.close(&inner.system);
        });
        let _ = closing.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_of_any_length_are_told_whole() {
        let about = Facts::from([("subject", "alice".to_owned())]);
        let grants: Vec<String> = (0..1_000)
            .map(|number| format!("{}-{number}=read,write", "b".repeat(60)))
            .collect();
        let long = "c".repeat(3 * FACT_MAX_BYTES);
        let records = whole(
            &about,
            vec![
                ("clearance", vec![long.clone()]),
                ("roles", vec!["auditor".to_owned()]),
                ("grants", grants.clone()),
            ],
        );
        assert!(records.len() > 30, "{}", records.len());
        let told = |name: &str, between: &str| {
            let pieces: Vec<&str> = records
                .iter()
                .filter_map(|facts| facts.get(name))
                .inspect(|piece| assert!(piece.len() <= FACT_MAX_BYTES))
                .map(String::as_str)
                .collect();
            pieces.join(between)
        };
        assert_eq!(told("grants", " "), grants.join(" "));
        assert_eq!(told("clearance", ""), long);
        assert_eq!(told("roles", " "), "auditor");
        for (place, facts) in records.iter().enumerate() {
            assert_eq!(facts["subject"], "alice");
            assert_eq!(facts["part"], format!("{} of {}", place + 1, records.len()));
            let event = event("subject.create", &"server", Outcome::Begun, facts);
            for (name, value) in facts {
                assert_eq!(event.details[*name], *value, "nothing is clipped");
            }
        }
        let few = whole(&about, vec![("grants", vec!["a=read".to_owned()])]);
        assert_eq!(few.len(), 1);
        assert!(!few[0].contains_key("part"));
    }
}
