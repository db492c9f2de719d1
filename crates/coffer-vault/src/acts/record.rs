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

use std::sync::Arc;

use coffer_audit::{Outcome, Recorded};
use futures::future::try_join_all;

use crate::access::{Act, AuditIdentity};
use crate::audit::{Facts, event};
use crate::error::{Result, VaultError};
use crate::limits::AUDIT_TICK;
use crate::vault::Vault;

impl Vault {
    /// Records what `actor` did, in as many records as there are facts, and gives the first; they
    /// are durable when this returns. Who needs the record refuses to act when this fails.
    ///
    /// # Errors
    /// [`VaultError::AuditUnavailable`](crate::VaultError::AuditUnavailable).
    pub(crate) async fn record(
        &self,
        act: Act,
        actor: &(dyn AuditIdentity + Sync),
        outcome: Outcome,
        facts: &[Facts],
    ) -> Result<Option<Recorded>> {
        let events = facts.iter().map(|facts| event(act, actor, outcome, facts));
        // Polled in their order, they are written in it.
        let recording: Vec<_> = events.map(|event| self.inner.audit.record(event)).collect();
        Ok(try_join_all(recording).await?.first().copied())
    }

    /// Records within a second that `actor` was refused something, and counts what repeats.
    pub(crate) fn denied(&self, act: Act, actor: &dyn AuditIdentity, facts: &Facts) {
        self.noted(act, actor, Outcome::Denied, facts);
    }

    /// Records within a second what need not be waited for, and counts what repeats.
    pub(crate) fn noted(
        &self,
        act: Act,
        actor: &dyn AuditIdentity,
        outcome: Outcome,
        facts: &Facts,
    ) {
        let event = event(act, actor, outcome, facts);
        self.inner.audit.note_repeated(event);
    }

    /// Notes, and counts, that an act failed before it began: nothing of it was done.
    pub(crate) fn failed(
        &self,
        act: Act,
        actor: &dyn AuditIdentity,
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
        *audit.clock.lock() = Some(clock);
    }

    /// Records the stop and closes the log.
    pub(crate) async fn close_audit(&self) {
        let audit = &self.inner.audit;
        let clock = audit.clock.lock().take();
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
