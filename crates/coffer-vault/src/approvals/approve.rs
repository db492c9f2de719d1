//! Requests, and the approvals that a level may ask for.
//!
//! Where a level takes two custodians or more, what one asks for waits, for a limited time, until
//! enough others have approved it; and so does what concerns the keys of all levels, for as many as
//! any level asks for. People are told apart by their subject ids, whatever access keys they use;
//! who comes by the local socket is one person, whatever user it is.

use std::sync::Arc;

use coffer_durable::now_ms;
use coffer_keys::SourceSecrets;
use coffer_seal::{RequestId, SubjectId};

use super::request::{ApprovalRequest, GuardedAct, GuardedOutcome};
use crate::access::{Act, Actor, AuditIdentity, Role, Subject};
use crate::audit::Facts;
use crate::blocking::blocking;
use crate::error::{AdministrationError, Result, VaultError};
use crate::limits::{REQUEST_LIFE_MS, REQUESTS_MAX};
use crate::system::Kind;
use crate::vault::Vault;

impl Vault {
    /// The requests that wait for approvals, or to be done, the oldest first.
    pub async fn requests(&self, actor: &Actor) -> Result<Vec<ApprovalRequest>> {
        if !actor.has(Role::Auditor) {
            self.refuse_but_custodians(actor, Act::ListRequests, &Facts::new())?;
        }
        let (inner, lock_now_ms) = (self.inner.clone(), self.lock_now_ms());
        blocking(move || {
            let mut requests = inner.system.documents::<ApprovalRequest>(Kind::Request)?;
            let keystore = &inner.keystore;
            let is_there = |wanted: &GuardedAct| match wanted {
                GuardedAct::LevelErase { level_id, .. }
                | GuardedAct::LevelRotate { level_id, .. }
                | GuardedAct::KeyExport { level_id, .. } => keystore.level(*level_id).is_some(),
                GuardedAct::BucketErase { bucket_id, .. }
                | GuardedAct::BucketRotate { bucket_id, .. } => {
                    keystore.bucket_key(*bucket_id).is_ok()
                }
                GuardedAct::KeystoreBackup { .. }
                | GuardedAct::CopyWithKeystore { .. }
                | GuardedAct::KeystoreRotate
                | GuardedAct::KeystoreMove { .. }
                | GuardedAct::AuditPrune { .. } => true,
                GuardedAct::LockTimeConfirm { to_ms } => *to_ms > lock_now_ms,
            };
            requests.retain(|request| request.is_alive() && is_there(&request.wanted));
            requests.sort_by_key(|request| request.requested_ms);
            Ok(requests)
        })
        .await
    }

    /// Approves a request. With the last approval that it takes, it is done, or can be by who
    /// asked. Approvals of those who are no key custodians any more don't count. Where it is
    /// refused and nothing was done, as by locks that stand by now, the request stays as it was.
    ///
    /// # Errors
    /// [`VaultError::NoSuchRequest`], [`VaultError::AnotherPersonNeeded`],
    /// [`VaultError::RequesterGone`]; those of what is asked for.
    pub async fn approve(&self, actor: &Actor, id: &str) -> Result<GuardedOutcome> {
        let facts = Facts::from([("request", id.to_owned())]);
        self.refuse_but_custodians(actor, Act::ApproveRequest, &facts)?;
        // Before anything is recorded, and again when no other request can change it.
        let request = self.approved(self.waiting(id)?, actor)?;
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        facts.insert("wants", request.wanted.act().to_owned());
        facts.extend(request.people());
        let (this, asker, key) = (self.clone(), actor.clone(), request.key()?);
        let work = async move {
            let (judge, person) = (this.clone(), asker.clone());
            let approve = move || {
                let mut requests = judge.inner.system.ledger(Kind::Request);
                let found: Option<ApprovalRequest> = requests.get(key)?;
                let found = found.ok_or(VaultError::NoSuchRequest)?;
                let request = judge.approved(found.clone(), &person)?;
                if request.is_approved() && !request.wanted.is_done_by_asking_again() {
                    // First it is gone, so that it can't be done twice.
                    requests.remove(key)?;
                } else {
                    requests.keep(key, &request)?;
                }
                Ok((found, request))
            };
            let (before, request) = blocking(approve).await?;
            match (
                request.is_approved(),
                request.wanted.is_done_by_asking_again(),
            ) {
                (false, _) => Ok(GuardedOutcome::Waits(request)),
                (true, true) => Ok(GuardedOutcome::Approved(request)),
                (true, false) => {
                    let (role, secrets) = (Role::KeyCustodian, SourceSecrets::default());
                    let done = this.perform(&asker, role, request, secrets).await;
                    if done.as_ref().is_err_and(VaultError::leaves_request) {
                        this.put_back(before).await;
                    }
                    done
                }
            }
        };
        self.act(actor, Role::KeyCustodian, Act::ApproveRequest, facts, work)
            .await
    }

    /// Keeps a request as it was before an approval with which it could not be done.
    async fn put_back(&self, request: ApprovalRequest) {
        let inner = self.inner.clone();
        let id = request.id.clone();
        let keep = move || {
            let mut requests = inner.system.ledger(Kind::Request);
            let others = requests.all::<ApprovalRequest>()?;
            if others.iter().any(|other| other.wanted == request.wanted) {
                return Ok(());
            }
            requests.keep(request.key()?, &request)
        };
        if let Err(error) = blocking(keep).await {
            tracing::warn!(request = id, %error, "it is gone, though it was not done: ask anew");
        }
    }

    /// A request with the approval of one more person.
    fn approved(&self, mut request: ApprovalRequest, actor: &Actor) -> Result<ApprovalRequest> {
        let person = actor.to_string();
        if !request.is_alive() {
            return Err(VaultError::NoSuchRequest);
        }
        let has_spoken = |name: &String| is_same_person(name, &person);
        if has_spoken(&request.requested_by) || request.approved_by.iter().any(has_spoken) {
            return Err(VaultError::AnotherPersonNeeded);
        }
        self.check_people(&mut request)?;
        let name = actor.name().map(str::to_owned);
        request
            .names
            .extend(name.map(|name| (person.clone(), name)));
        request.approved_by.push(person);
        Ok(request)
    }

    /// Counts those who spoke for a request anew, and how many it takes: both may have changed.
    fn check_people(&self, request: &mut ApprovalRequest) -> Result<()> {
        if !self.has_role(&request.requested_by, request.wanted.role()) {
            return Err(VaultError::RequesterGone);
        }
        let is_custodian = |name: &String| self.has_role(name, Role::KeyCustodian);
        request.approved_by.retain(is_custodian);
        let (approvals, because) = self.approvals_of(&request.wanted);
        if approvals > request.approvals {
            (request.approvals, request.because) = (approvals, because);
        }
        Ok(())
    }

    /// Withdraws a request. Any custodian may.
    ///
    /// # Errors
    /// [`VaultError::NoSuchRequest`].
    pub async fn withdraw(&self, actor: &Actor, id: &str) -> Result<()> {
        let facts = Facts::from([("request", id.to_owned())]);
        self.refuse_but_custodians(actor, Act::WithdrawRequest, &facts)?;
        let request = self.waiting(id)?;
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        facts.insert("wants", request.wanted.act().to_owned());
        facts.extend(request.people());
        let inner = self.inner.clone();
        let work = blocking(move || {
            let is_there = inner.system.drop_document(Kind::Request, request.key()?)?;
            is_there.then_some(()).ok_or(VaultError::NoSuchRequest)
        });
        self.act(actor, Role::KeyCustodian, Act::WithdrawRequest, facts, work)
            .await
    }

    /// Does what is wanted, or keeps the request for it. `secrets` are kept nowhere.
    pub(crate) async fn ask(
        &self,
        actor: &Actor,
        wanted: GuardedAct,
        secrets: SourceSecrets,
    ) -> Result<GuardedOutcome> {
        let (approvals, because) = self.approvals_of(&wanted);
        let requested_ms = now_ms();
        let requested_by = actor.to_string();
        let name = actor.name().map(str::to_owned);
        let request = ApprovalRequest {
            id: RequestId::random().to_string(),
            names: name
                .map(|name| (requested_by.clone(), name))
                .into_iter()
                .collect(),
            wanted,
            requested_by,
            requested_ms,
            expires_ms: requested_ms + REQUEST_LIFE_MS,
            approvals,
            because,
            approved_by: Vec::new(),
        };
        let role = request.wanted.role();
        if approvals <= 1 {
            return self.perform(actor, role, request, secrets).await;
        }
        let (this, same) = (self.clone(), request.clone());
        match blocking(move || this.taken_up(&same)).await? {
            Some(found) if found.is_approved() && found.wanted.is_done_by_asking_again() => {
                return if is_same_person(&found.requested_by, &request.requested_by) {
                    self.perform_approved(actor, role, found, secrets).await
                } else {
                    Ok(GuardedOutcome::Approved(found))
                };
            }
            Some(found) => return Ok(GuardedOutcome::Waits(found)),
            None => {}
        }
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        facts.insert("wants", request.wanted.act().to_owned());
        let inner = self.inner.clone();
        let work = blocking(move || {
            let mut requests = inner.system.ledger(Kind::Request);
            let others = requests.all::<ApprovalRequest>()?;
            if let Some(same) = others.iter().find(|other| other.wanted == request.wanted) {
                return Ok(GuardedOutcome::Waits(same.clone()));
            }
            if others.len() >= REQUESTS_MAX {
                let limit = REQUESTS_MAX;
                return Err(AdministrationError::TooManyRequests { limit }.into());
            }
            requests.keep(request.key()?, &request)?;
            Ok(GuardedOutcome::Waits(request))
        });
        self.act(actor, role, Act::CreateRequest, facts, work).await
    }

    /// The request that asks for the same already. Those whose time is over go.
    fn taken_up(&self, request: &ApprovalRequest) -> Result<Option<ApprovalRequest>> {
        let mut requests = self.inner.system.ledger(Kind::Request);
        let mut same = None;
        for other in requests.all::<ApprovalRequest>()? {
            if !other.is_alive() {
                requests.remove(other.key()?)?;
            } else if other.wanted == request.wanted {
                same = Some(other);
            }
        }
        Ok(same)
    }

    /// Does what all have approved, when who asked for it asks again.
    async fn perform_approved(
        &self,
        actor: &Actor,
        role: Role,
        mut request: ApprovalRequest,
        secrets: SourceSecrets,
    ) -> Result<GuardedOutcome> {
        self.check_people(&mut request)?;
        if !request.is_approved() {
            return Ok(GuardedOutcome::Waits(request));
        }
        let (inner, key) = (self.inner.clone(), request.key()?);
        let is_taken = blocking(move || inner.system.drop_document(Kind::Request, key)).await?;
        if is_taken {
            self.perform(actor, role, request, secrets).await
        } else {
            Err(VaultError::NoSuchRequest)
        }
    }

    /// How many people something takes: as many as its level asks for, or the most that any does;
    /// and why, where that is more than the level asks for.
    fn approvals_of(&self, wanted: &GuardedAct) -> (u8, Option<String>) {
        let keystore = &self.inner.keystore;
        match wanted.level() {
            // Of a level that is gone already, only the receipt is left to be signed.
            Some(name) => keystore.level_named(name).map_or((1, None), |level| {
                let for_locks = match wanted {
                    GuardedAct::LevelErase { .. } => self.people_for_locks(&level, None),
                    GuardedAct::BucketErase { bucket_id, .. } => {
                        self.people_for_locks(&level, Some(*bucket_id))
                    }
                    _ => 1,
                };
                let by_level = level.options.approvals;
                let because = format!(
                    "objects there are locked for governance, so an erase takes {for_locks} \
                     people, though the level asks for {by_level}"
                );
                let is_more = for_locks > by_level;
                (by_level.max(for_locks), is_more.then_some(because))
            }),
            None => {
                let levels = keystore.levels().into_iter();
                let most = levels.map(|level| level.options.approvals).max();
                (most.unwrap_or(1), None)
            }
        }
    }

    /// Whether a person, as an actor is named, has a role now.
    fn has_role(&self, name: &str, role: Role) -> bool {
        let has = |subject: Arc<Subject>| subject.counts_at(now_ms) && subject.roles.has(role);
        let subject = SubjectId::from_hex(name);
        let subject = subject.and_then(|id| self.inner.system.subject_of_id(id));
        is_local(name) || subject.is_some_and(has)
    }

    fn waiting(&self, id: &str) -> Result<ApprovalRequest> {
        let key = RequestId::from_hex(id).ok_or(VaultError::NoSuchRequest)?;
        let found: Option<ApprovalRequest> =
            self.inner.system.document(Kind::Request, key.into())?;
        let is_alive = |request: &ApprovalRequest| request.is_alive();
        found.filter(is_alive).ok_or(VaultError::NoSuchRequest)
    }
}

/// Whether two actors, as they are named, count as one person. All users at the local socket do,
/// for root there can be any of them.
fn is_same_person(one: &str, other: &str) -> bool {
    one == other || (is_local(one) && is_local(other))
}

fn is_local(name: &str) -> bool {
    name.starts_with("local:")
}

#[cfg(test)]
mod tests;
