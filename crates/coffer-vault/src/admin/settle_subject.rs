//! Settling subjects: what they have read bears no more on where they write. A key custodian does
//! it; or time does, where the operator has set one, when nothing above the lower end was read for
//! so long.
//!
//! The time is that of the machine's run, not of the clock, and begins anew with every start: what
//! comes of a clock that is set, in either direction, is never too early.

use std::sync::Arc;
use std::time::Duration;

use coffer_audit::Outcome;
use coffer_seal::SubjectId;

use super::subjects::{SubjectInfo, about_subject};
use crate::access::{Act, Actor, Role, Subject};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::cutoff::ConnectionCutoff;
use crate::error::{Result, VaultError};
use crate::limits::{SETTLING_LOOK_LONGEST, SETTLING_LOOK_SHORTEST};
use crate::system::SubjectEntry;
use crate::vault::{Inner, Vault};

/// The act.
const SETTLE: Act = Act::SettleSubject;

/// Who settles by time, in records.
const BY_TIME: &str = "server";

impl Vault {
    /// Settles a subject: what it has read bears no more on where it writes. Its requests from
    /// before are cut off, or they could bring down what they were told. A key custodian's act, and
    /// never on itself.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`], [`VaultError::NoSuchSubject`], [`VaultError::SettlesItself`].
    pub async fn settle_subject(&self, actor: &Actor, name: &str) -> Result<SubjectInfo> {
        let role = Role::KeyCustodian;
        let mut facts = Facts::from([("subject", name.to_owned())]);
        self.refuse_without(actor, role, SETTLE, &facts)?;
        let Some(SubjectEntry { subject, .. }) = self.inner.system.find_subject(name) else {
            return Err(self.failed(SETTLE, actor, &facts, VaultError::NoSuchSubject));
        };
        facts.extend(about_subject(&subject));
        if matches!(actor, Actor::Subject(own) if own.id == subject.id) {
            self.denied(SETTLE, actor, &facts);
            return Err(VaultError::SettlesItself);
        }
        if let Some(read) = subject.mark.label() {
            facts.insert("read", read.to_string());
        }
        let (this, id, asked_by) = (self.clone(), subject.id, ConnectionCutoff::current());
        let work = blocking(move || this.inner.settle(id, asked_by.as_ref()));
        self.act(actor, role, SETTLE, facts, work).await
    }

    /// Watches until the vault is gone.
    pub(crate) fn watch_marks(&self) {
        let Some(settle_after) = self.inner.settle_after else {
            return;
        };
        let longest = SETTLING_LOOK_LONGEST;
        let pause = (settle_after / 8).clamp(SETTLING_LOOK_SHORTEST, longest);
        let vault = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(pause).await;
                // Not held while it sleeps: a vault that is not used any more must be able to go.
                let Some(inner) = vault.upgrade() else { return };
                Self { inner }.settle_idle(settle_after).await;
            }
        });
    }

    /// Settles those whose time has come. Recorded first; what fails is tried again.
    async fn settle_idle(&self, settle_after: Duration) {
        let started = self.inner.started;
        let mut idle = self.inner.system.all_subjects();
        idle.retain(|entry| entry.subject.mark.is_idle_for(settle_after, started));
        for SubjectEntry { subject, .. } in idle {
            let read = subject.mark.label().map(|label| label.to_string());
            let mut facts = about_subject(&subject);
            facts.insert("read", read.unwrap_or_default());
            let facts = [facts];
            let recorded = self.record(SETTLE, &BY_TIME, Outcome::Done, &facts);
            if recorded.await.is_err() {
                continue;
            }
            let (inner, id) = (self.inner.clone(), subject.id);
            let settled = blocking(move || inner.settle(id, None).map(drop)).await;
            if let Err(error) = settled {
                tracing::warn!(subject = %id, %error, "a subject could not be settled");
            }
        }
    }
}

impl Inner {
    /// Gives a subject a mark that is not raised.
    fn settle(&self, id: SubjectId, asked_by: Option<&ConnectionCutoff>) -> Result<SubjectInfo> {
        let settled = |before: &Subject| {
            Ok(Subject {
                mark: Arc::default(),
                cutoff: Arc::default(),
                ..before.clone()
            })
        };
        let (before, after) = self.system.change_subject(id, settled)?;
        before.cut_but(Some(&after), asked_by);
        self.followers.take_away();
        self.expiries_changed.notify_one();
        Ok(self.subject_info(&after))
    }
}
