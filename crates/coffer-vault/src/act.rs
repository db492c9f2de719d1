//! Administrative acts: decided, recorded, and only then done.
//!
//! Every act goes through [`Vault::act`], which asks whether the actor has the role, records that
//! the act begins, does it in a task of its own (so that a caller who leaves can't undo half of
//! it), and records how it ended before the outcome is given out.

use std::collections::BTreeMap;

use crate::actor::Actor;
use crate::counters::add;
use crate::error::{Result, VaultError};
use crate::roles::Role;
use crate::vault::Vault;

/// What a record says of an act beside its name: a level's name, a bucket's, an access key id.
/// Never a secret, never an object's name.
pub type Facts = BTreeMap<&'static str, String>;

/// How far an act has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Begun,
    Done,
    Denied,
    Failed,
}

impl Vault {
    /// Performs the act `name` (such as `level.create`) if `actor` has `role`.
    ///
    /// # Errors
    /// [`VaultError::AccessDenied`]; those of the act itself.
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
            self.note(Stage::Denied, actor, name, &facts);
            return Err(VaultError::AccessDenied);
        }
        self.note(Stage::Begun, actor, name, &facts);
        let (this, actor) = (self.clone(), actor.clone());
        let acting = tokio::spawn(async move {
            let outcome = work.await;
            let stage = match &outcome {
                Ok(_) => Stage::Done,
                Err(VaultError::AccessDenied) => Stage::Denied,
                Err(_) => Stage::Failed,
            };
            this.note(stage, &actor, name, &facts);
            outcome
        });
        acting.await.map_err(|_| VaultError::ShuttingDown)?
    }

    fn note(&self, stage: Stage, actor: &Actor, act: &'static str, facts: &Facts) {
        tracing::info!(%actor, act, ?stage, ?facts, "administration");
    }
}
