//! Administrative acts: decided, recorded, and only then done.
//!
//! Every act goes through [`Vault::act`], which asks whether the actor has the role, records that
//! the act begins, does it in a task of its own (so that a caller who leaves can't undo half of
//! it), and records how it ended before the outcome is given out.

use coffer_audit::Outcome;

use crate::actor::Actor;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::recording::Facts;
use crate::roles::Role;
use crate::vault::Vault;

impl Vault {
    /// Performs the act `name` (such as `level.create`) if `actor` has `role`.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`]; [`VaultError::AuditUnavailable`], and nothing was done;
    /// [`VaultError::EndNotRecorded`]; those of the act itself.
    pub(crate) async fn act<T: Send + 'static>(
        &self,
        actor: &Actor,
        role: Role,
        name: &'static str,
        facts: Facts,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        if !actor.has(role) {
            add(&self.inner.tally.denied_count, 1);
            self.denied(name, actor, &facts);
            return Err(VaultError::AccessDenied);
        }
        self.record(name, actor, Outcome::Begun, &facts).await?;
        tracing::info!(%actor, act = name, ?facts, "administration");
        let (this, actor) = (self.clone(), actor.clone());
        let acting = tokio::spawn(async move {
            let outcome = work.await;
            let ended = match &outcome {
                Ok(_) => Outcome::Done,
                Err(VaultError::AccessDenied) => Outcome::Denied,
                Err(_) => Outcome::Failed,
            };
            let recorded = this.record(name, &actor, ended, &facts).await;
            tracing::info!(%actor, act = name, outcome = ended.as_str(), "administration");
            match (outcome, recorded) {
                (Ok(_), Err(VaultError::AuditUnavailable(error))) => {
                    Err(VaultError::EndNotRecorded(error))
                }
                (Ok(_), Err(error)) => Err(error),
                (outcome, _) => outcome,
            }
        });
        acting.await.map_err(|_| VaultError::ShuttingDown)?
    }

    /// Refuses a key custodian's act before anything about it is looked up.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`].
    pub(crate) fn refuse_without(&self, actor: &Actor, name: &'static str) -> Result<()> {
        if actor.has(Role::KeyCustodian) {
            return Ok(());
        }
        add(&self.inner.tally.denied_count, 1);
        self.denied(name, actor, &Facts::new());
        Err(VaultError::AccessDenied)
    }
}
