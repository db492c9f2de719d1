//! What the vault records, and when.
//!
//! | | recorded |
//! |---|---|
//! | administrative acts | that they begin, before they do; how they ended, before that is told |
//! | denials and sign-ins | within a second: the first at once, then their count, by the minute |
//! | damage that was found | likewise |
//!
//! What repeats is counted on its own in the first few buckets and levels, and from the first few
//! addresses.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError};

use coffer_audit::{Event, Outcome, Recorded};

use crate::error::Result;
use crate::limits::{AUDIT_TICK, FACT_MAX_BYTES};
use crate::vault::Vault;

/// What a record says of an act beside its name: a level's name, a bucket's, an access key id.
/// Never a secret, never an object's name.
pub type Facts = BTreeMap<&'static str, String>;

/// An event of the audit log.
pub(crate) fn event(
    act: &'static str,
    actor: &dyn ToString,
    outcome: Outcome,
    facts: &Facts,
) -> Event {
    let event = Event::new(act, actor.to_string(), outcome);
    facts.iter().fold(event, |event, (name, value)| {
        event.with(name, clipped(value))
    })
}

/// What was asked for may be longer than anything that is allowed.
fn clipped(value: &str) -> &str {
    &value[..value.floor_char_boundary(FACT_MAX_BYTES)]
}

impl Vault {
    /// Records what `actor` did; it is durable when this returns. Who needs the record refuses to
    /// act when this fails.
    ///
    /// # Errors
    /// [`VaultError::AuditUnavailable`](crate::VaultError::AuditUnavailable).
    pub(crate) async fn record(
        &self,
        act: &'static str,
        actor: &(dyn ToString + Sync),
        outcome: Outcome,
        facts: &Facts,
    ) -> Result<Recorded> {
        let event = event(act, actor, outcome, facts);
        self.inner.audit.record(event).await
    }

    /// Records within a second that `actor` was refused something, and counts what repeats.
    pub(crate) fn denied(&self, act: &'static str, actor: &dyn ToString, facts: &Facts) {
        self.noted(act, actor, Outcome::Denied, facts);
    }

    /// Records within a second what need not be waited for, and counts what repeats.
    pub(crate) fn noted(
        &self,
        act: &'static str,
        actor: &dyn ToString,
        outcome: Outcome,
        facts: &Facts,
    ) {
        let event = event(act, actor, outcome, facts);
        self.inner.audit.note_repeated(event);
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
