//! Administrative acts: decided, recorded, and only then done.
//!
//! Every act goes through [`Vault::act`], which asks whether the actor has the role, records that
//! the act begins, does it in a task of its own (so that a caller who leaves can't undo half of
//! it), records how it ended, has it held (`freshness`), and waits for synchronous copies, before
//! the outcome is given out, and for gateways that answer reads by what it took away
//! (`gateways`). So an act is called while no lock is held that rounds of copies take.
//!
//! What can't be done is best found out before: then it is counted as denials are, and repeating it
//! fills no disk. What fails after it began is recorded each time, and refused once that was often.

use std::time::Instant;

use coffer_audit::Outcome;

use crate::access::{Act, Actor, Role};
use crate::audit::Facts;
use crate::counters::add;
use crate::error::{AdministrationError, Result, VaultError};
use crate::freshness::not_held;
use crate::vault::Vault;

impl Vault {
    /// Performs the act `name` (such as `level.create`) if `actor` has `role`.
    ///
    /// # Errors
    /// [`AdministrationError::RoleMissing`]; [`VaultError::TooManyFailures`];
    /// [`VaultError::AuditUnavailable`], and nothing was done; [`VaultError::EndNotRecorded`];
    /// those of the act itself.
    pub(crate) async fn act<T: Send + 'static>(
        &self,
        actor: &Actor,
        role: Role,
        name: Act,
        facts: Facts,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        let done = vec![facts.clone()];
        let work = async move { Ok((work.await?, done)) };
        self.act_telling(actor, role, name, vec![facts], work).await
    }

    /// As [`Vault::act`], with as many records as there are facts. `work` gives what is told when
    /// it is done.
    pub(crate) async fn act_telling<T: Send + 'static>(
        &self,
        actor: &Actor,
        role: Role,
        name: Act,
        mut facts: Vec<Facts>,
        work: impl Future<Output = Result<(T, Vec<Facts>)>> + Send + 'static,
    ) -> Result<T> {
        let about = facts.first().cloned().unwrap_or_default();
        self.refuse_without(actor, role, name, &about)?;
        self.check_changes()?;
        let id = actor.to_string();
        if self
            .inner
            .audit
            .failures
            .are_too_many(&id, name, Instant::now())
        {
            add(&self.inner.tally.denied_count, 1);
            return Err(self.failed(name, actor, &about, VaultError::TooManyFailures));
        }
        let begun = self.record(name, actor, Outcome::Begun, &facts).await?;
        let number = begun.map_or(0, |begun| begun.sequence);
        tracing::info!(%actor, act = name.name(), record = number, "administration");
        let (this, actor) = (self.clone(), actor.clone());
        let acting = tokio::spawn(async move {
            let under_way = this.inner.copies.waited_for.begin_change(None);
            let acting = this.inner.followers.begin_act();
            let (outcome, ended) = match work.await {
                Ok((value, told)) => {
                    facts = told;
                    (Ok(value), Outcome::Done)
                }
                Err(error) => {
                    facts.truncate(1);
                    acting.failed(&error);
                    this.inner.audit.failures.add(id, name, Instant::now());
                    let ended = if error.is_denial() {
                        Outcome::Denied
                    } else {
                        Outcome::Failed
                    };
                    (Err(error), ended)
                }
            };
            let recorded = this.record(name, &actor, ended, &facts).await;
            let held = match ended {
                Outcome::Done => this.hold_act(role).await,
                _ => Ok(()),
            };
            tracing::info!(%actor, act = name.name(), outcome = ended.as_str(), "administration");
            let done = told(outcome, recorded, held);
            let waited_for = &this.inner.copies.waited_for;
            if done.is_ok() {
                waited_for.acknowledge_change(under_way.as_ref()).await?;
            } else {
                // Some of what failed may show from here on: readers wait for a head that has it.
                if let Some(under_way) = &under_way {
                    under_way.is_in_doubt();
                }
                waited_for.outlast(None).await;
            }
            if done.as_ref().err().is_none_or(VaultError::says_done) {
                acting.recall().await;
            }
            done
        });
        acting.await.map_err(|_| VaultError::ShuttingDown)?
    }

    /// Refuses who has not the role for an act, before anything about it is looked up.
    ///
    /// # Errors
    /// [`AdministrationError::RoleMissing`].
    pub(crate) fn refuse_without(
        &self,
        actor: &Actor,
        role: Role,
        name: Act,
        facts: &Facts,
    ) -> Result<()> {
        if actor.has(role) {
            return Ok(());
        }
        add(&self.inner.tally.denied_count, 1);
        self.denied(name, actor, facts);
        let role = role.as_str();
        Err(AdministrationError::RoleMissing { role }.into())
    }

    /// As [`Vault::refuse_without`], of what key custodians do.
    pub(crate) fn refuse_but_custodians(
        &self,
        actor: &Actor,
        name: Act,
        facts: &Facts,
    ) -> Result<()> {
        self.refuse_without(actor, Role::KeyCustodian, name, facts)
    }
}

/// What is told of an act. That it was done is told also where that could not be recorded, or held.
fn told<T, R>(outcome: Result<T>, recorded: Result<R>, held: Result<()>) -> Result<T> {
    match (outcome, recorded) {
        (Ok(_), Err(VaultError::AuditUnavailable(error))) => Err(VaultError::EndNotRecorded(error)),
        (Ok(_), Err(error)) => Err(error),
        (Ok(value), Ok(_)) => held.map(|()| value).map_err(not_held),
        (outcome, _) => outcome,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use coffer_audit::AuditError;

    use super::*;
    use crate::fence::ServingRight;
    use crate::limits::ANSWERS_STAND;
    use crate::vault::VaultOptions;

    /// Gateways that answer by what was taken away are waited for then, as where all went well.
    #[test]
    fn that_an_act_was_done_is_said_though_its_end_could_not_be_recorded_or_held() {
        let unrecorded = || Err::<(), _>(VaultError::AuditUnavailable(AuditError::Closed));
        let says_done = |told: Result<()>| told.err().map(|error| error.says_done());
        assert_eq!(says_done(told(Ok(()), Ok(()), Ok(()))), None);
        assert_eq!(says_done(told(Ok(()), unrecorded(), Ok(()))), Some(true));
        let not_held = Err(VaultError::ShuttingDown);
        assert_eq!(says_done(told(Ok(()), Ok(()), not_held)), Some(true));
        let failed = || Err(VaultError::NoSuchLevel);
        assert_eq!(says_done(told(failed(), Ok(()), Ok(()))), Some(false));
        assert_eq!(says_done(told(failed(), unrecorded(), Ok(()))), Some(false));
    }

    /// As one that was done: some of it may show, and gateways that follow don't have it.
    #[tokio::test(flavor = "multi_thread")]
    async fn an_act_that_failed_is_told_when_what_was_told_before_is_over() {
        let data = tempfile::tempdir().unwrap();
        let vault = Vault::open(VaultOptions::new(data.path())).await.unwrap();
        let waited_for = &vault.inner.copies.waited_for;
        // As a gateway that serves.
        waited_for.hold_readers();
        let told_at = ServingRight::now();
        let stands = waited_for.stand([].into_iter(), told_at);
        assert!(
            stands.is_some(),
            "nothing was changed since it began to serve"
        );
        let (actor, role) = (Actor::Local { uid: 0 }, Role::KeyCustodian);
        let fails = async { Err::<(), _>(VaultError::NoSuchLevel) };
        let act = vault.act(&actor, role, Act::CreateLevel, Facts::default(), fails);
        assert!(matches!(act.await, Err(VaultError::NoSuchLevel)));
        assert!(ServingRight::now() >= told_at + ANSWERS_STAND);
        assert!(
            waited_for.is_to_be_settled(),
            "readers wait for a head that has it"
        );
        waited_for.settle_read(None).await.unwrap();
        assert!(!waited_for.is_to_be_settled());
        vault.close().await;
    }
}
