//! Erases and exports, and the approvals that a level may ask for.
//!
//! Where a level takes two custodians or more, what one asks for waits, for a limited time, until
//! enough others have approved it. People are told apart by their access keys; whoever comes by the
//! local socket is one person, whatever user it is.

use std::sync::Arc;

use coffer_keys::receipt::Person;
use coffer_keys::{BucketEntry, ExportRecipient, LevelEntry};
use coffer_store::record::Id;

use crate::actor::Actor;
use crate::draft::Draft;
use crate::erase::{Doomed, Warrant};
use crate::error::{Result, VaultError};
use crate::ledger::Kind;
use crate::limits::{EXPORT_RECIPIENTS_MAX, REQUEST_LIFE_MS, REQUESTS_MAX};
use crate::manage::blocking;
use crate::name::BucketName;
use crate::roles::Role;
use crate::subject::Subject;
use crate::vault::{Vault, now_ms};
use crate::wanted::{ApprovalRequest, Asked, Wanted, request_key};

impl Vault {
    /// Erases a level with all of its buckets: when this returns a receipt, nothing of it can be
    /// opened any more by this server. Or asks for it, where that takes an approval.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`]; [`VaultError::EraseUnsettled`] when keys can't be destroyed
    /// everywhere yet.
    pub async fn erase_level(&self, actor: &Actor, name: &str) -> Result<Asked> {
        self.refuse_without(actor, "level.erase")?;
        let level = self.level_or_draft(name)?;
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        let wanted = Wanted::LevelErase {
            level: level.name,
            level_id: level.id,
        };
        self.ask(actor, wanted).await
    }

    /// Erases a bucket with all that it holds, as [`Vault::erase_level`] does a level.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`]; as [`Vault::erase_level`].
    pub async fn erase_bucket(&self, actor: &Actor, name: &BucketName) -> Result<Asked> {
        self.refuse_without(actor, "bucket.erase")?;
        let row = self.inner.system.bucket(name);
        let row = row.ok_or(VaultError::NoSuchBucket)?;
        let level = self.inner.keystore.level(&row.level_id);
        let wanted = Wanted::BucketErase {
            bucket: name.as_str().to_owned(),
            bucket_id: row.id.0,
            level: level.ok_or(VaultError::NoSuchLevel)?.name,
        };
        self.ask(actor, wanted).await
    }

    /// Exports a level's key, and those of its buckets, for these recipients. The export is counted
    /// before it is given out. Or asks for it, where that takes an approval.
    ///
    /// # Errors
    /// [`VaultError::NoSuchLevel`]; those of
    /// [`Keystore::export_level`](coffer_keys::Keystore::export_level).
    pub async fn export_level(
        &self,
        actor: &Actor,
        name: &str,
        recipients: &[ExportRecipient],
    ) -> Result<Asked> {
        self.refuse_without(actor, "key.export")?;
        if recipients.is_empty() || recipients.len() > EXPORT_RECIPIENTS_MAX {
            return Err(VaultError::Invalid {
                what: "an export is for 1 to 20 recipients",
            });
        }
        let level = self.inner.keystore.level_named(name);
        let level = level.ok_or(VaultError::NoSuchLevel)?;
        if !level.options.exportable {
            // Nobody needs to approve what can't be done.
            let name = level.name;
            return Err(coffer_keys::KeysError::NotExportable { name }.into());
        }
        let wanted = Wanted::KeyExport {
            level: level.name,
            level_id: level.id,
            recipients: recipients.iter().map(ToString::to_string).collect(),
        };
        self.ask(actor, wanted).await
    }

    /// The requests that wait for approvals, the oldest first.
    pub async fn requests(&self, actor: &Actor) -> Result<Vec<ApprovalRequest>> {
        if !actor.has(Role::Auditor) {
            self.refuse_without(actor, "request.list")?;
        }
        let inner = self.inner.clone();
        blocking(move || {
            let mut requests = inner.system.documents::<ApprovalRequest>(Kind::Request)?;
            let is_there = |wanted: &Wanted| match wanted {
                Wanted::LevelErase { level_id, .. } | Wanted::KeyExport { level_id, .. } => {
                    inner.keystore.level(level_id).is_some()
                }
                Wanted::BucketErase { bucket_id, .. } => {
                    inner.keystore.bucket_key(bucket_id).is_ok()
                }
            };
            requests.retain(|request| request.is_alive() && is_there(&request.wanted));
            requests.sort_by_key(|request| request.requested_ms);
            Ok(requests)
        })
        .await
    }

    /// Approves a request. With the last approval that it takes, it is done. Approvals of those who
    /// are no key custodians any more don't count.
    ///
    /// # Errors
    /// [`VaultError::NoSuchRequest`], [`VaultError::AnotherPersonNeeded`],
    /// [`VaultError::RequesterGone`]; those of what is asked for.
    pub async fn approve(&self, actor: &Actor, id: &str) -> Result<Asked> {
        self.refuse_without(actor, "request.approve")?;
        let person = actor.to_string();
        // Before anything is recorded, and again when nobody else can change it.
        let request = self.approved(self.waiting(id)?, &person)?;
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        let (this, asker, key) = (self.clone(), actor.clone(), request.key()?);
        let work = async move {
            let judge = this.clone();
            let approve = move || {
                let requests = judge.inner.system.ledger(Kind::Request);
                let found = requests.get(&key)?.ok_or(VaultError::NoSuchRequest)?;
                let request = judge.approved(found, &person)?;
                match request.is_approved() {
                    // First it is gone, so that it can't be done twice.
                    true => requests.remove(&key).map(drop)?,
                    false => requests.keep(&key, &request)?,
                }
                Ok(request)
            };
            let request = blocking(approve).await?;
            match request.is_approved() {
                true => this.perform(&asker, request).await,
                false => Ok(Asked::Waits(request)),
            }
        };
        self.act(actor, Role::KeyCustodian, "request.approve", facts, work)
            .await
    }

    /// A request with the approval of one more person.
    fn approved(&self, mut request: ApprovalRequest, person: &str) -> Result<ApprovalRequest> {
        if !request.is_alive() {
            return Err(VaultError::NoSuchRequest);
        }
        let has_spoken = |name: &String| is_same_person(name, person);
        if has_spoken(&request.requested_by) || request.approved_by.iter().any(has_spoken) {
            return Err(VaultError::AnotherPersonNeeded);
        }
        if !self.is_custodian(&request.requested_by) {
            return Err(VaultError::RequesterGone);
        }
        request.approved_by.retain(|name| self.is_custodian(name));
        request.approved_by.push(person.to_owned());
        Ok(request)
    }

    /// Withdraws a request. Any custodian may.
    ///
    /// # Errors
    /// [`VaultError::NoSuchRequest`].
    pub async fn withdraw(&self, actor: &Actor, id: &str) -> Result<()> {
        self.refuse_without(actor, "request.withdraw")?;
        let request = self.waiting(id)?;
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        let inner = self.inner.clone();
        let work = blocking(move || {
            let is_there = inner.system.drop_document(Kind::Request, &request.key()?)?;
            is_there.then_some(()).ok_or(VaultError::NoSuchRequest)
        });
        self.act(actor, Role::KeyCustodian, "request.withdraw", facts, work)
            .await
    }

    /// Does what is wanted, or keeps the request for it.
    async fn ask(&self, actor: &Actor, wanted: Wanted) -> Result<Asked> {
        let approvals = self.approvals_of(&wanted);
        let requested_ms = now_ms();
        let request = ApprovalRequest {
            id: hex::encode(coffer_seal::random_bytes::<16>()),
            wanted,
            requested_by: actor.to_string(),
            requested_ms,
            expires_ms: requested_ms + REQUEST_LIFE_MS,
            approvals,
            approved_by: Vec::new(),
        };
        if approvals <= 1 {
            return self.perform(actor, request).await;
        }
        let mut facts = request.wanted.facts();
        facts.insert("request", request.id.clone());
        facts.insert("wants", request.wanted.act().to_owned());
        let inner = self.inner.clone();
        let work = blocking(move || {
            let requests = inner.system.ledger(Kind::Request);
            let others = requests.all::<ApprovalRequest>()?;
            let is_alive = |other: &ApprovalRequest| other.is_alive();
            let (others, expired): (Vec<_>, Vec<_>) = others.into_iter().partition(is_alive);
            for request in expired {
                requests.remove(&request.key()?)?;
            }
            if let Some(same) = others.iter().find(|other| other.wanted == request.wanted) {
                return Ok(Asked::Waits(same.clone()));
            }
            if others.len() >= REQUESTS_MAX {
                return Err(VaultError::TooManyRequests {
                    limit: REQUESTS_MAX,
                });
            }
            requests.keep(&request.key()?, &request)?;
            Ok(Asked::Waits(request))
        });
        self.act(actor, Role::KeyCustodian, "request.create", facts, work)
            .await
    }

    /// Does what was asked for, on the word of all who approved.
    async fn perform(&self, actor: &Actor, request: ApprovalRequest) -> Result<Asked> {
        let (act, mut facts) = (request.wanted.act(), request.wanted.facts());
        let warrant = warrant(&request);
        if request.approvals > 1 {
            facts.insert("requested_by", request.requested_by.clone());
            facts.insert("approved_by", request.approved_by.join(" "));
        }
        let this = self.clone();
        let work = async move { this.do_wanted(request.wanted, warrant).await };
        self.act(actor, Role::KeyCustodian, act, facts, work).await
    }

    async fn do_wanted(&self, wanted: Wanted, warrant: Warrant) -> Result<Asked> {
        let keystore = &self.inner.keystore;
        match wanted {
            Wanted::LevelErase { level_id, .. } => {
                let level = match keystore.level(&level_id) {
                    Some(level) => level,
                    None => self
                        .drafted_level(&level_id)?
                        .ok_or(VaultError::NoSuchLevel)?,
                };
                let receipt = self.erase(Doomed::Level(level), warrant).await?;
                Ok(Asked::Erased(Box::new(receipt)))
            }
            Wanted::BucketErase { bucket_id, .. } => {
                let (level, bucket) = self.level_of(Id(bucket_id))?;
                let receipt = self.erase(Doomed::Bucket(level, bucket), warrant).await?;
                Ok(Asked::Erased(Box::new(receipt)))
            }
            Wanted::KeyExport {
                level_id,
                recipients,
                ..
            } => {
                let recipients: Vec<ExportRecipient> = recipients
                    .iter()
                    .map(|recipient| recipient.parse())
                    .collect::<Result<_, _>>()?;
                let inner = self.inner.clone();
                blocking(move || {
                    let export = inner.keystore.export_level(level_id, &recipients)?;
                    Ok(Asked::Exported(export))
                })
                .await
            }
        }
    }

    fn level_of(&self, bucket: Id) -> Result<(LevelEntry, BucketEntry)> {
        let keystore = &self.inner.keystore;
        let mut buckets = keystore.buckets().into_iter();
        let entry = buckets.find(|entry| entry.id == bucket.0);
        let entry = entry.ok_or(VaultError::NoSuchBucket)?;
        let level = keystore.level(&entry.level_id);
        Ok((level.ok_or(VaultError::NoSuchLevel)?, entry))
    }

    /// The level of this name, also one whose erase has begun and is not complete.
    fn level_or_draft(&self, name: &str) -> Result<Option<LevelEntry>> {
        if let Some(level) = self.inner.keystore.level_named(name) {
            return Ok(Some(level));
        }
        let drafts = self.inner.system.documents::<Draft>(Kind::Erase)?;
        let levels = drafts.into_iter().map(|draft| draft.level);
        Ok({ levels }.find(|level| level.name == name))
    }

    fn drafted_level(&self, id: &[u8; 16]) -> Result<Option<LevelEntry>> {
        let draft: Option<Draft> = self.inner.system.document(Kind::Erase, id)?;
        Ok(draft.map(|draft| draft.level))
    }

    fn approvals_of(&self, wanted: &Wanted) -> u8 {
        let level = match wanted {
            Wanted::LevelErase { level, .. }
            | Wanted::BucketErase { level, .. }
            | Wanted::KeyExport { level, .. } => level,
        };
        let level = self.inner.keystore.level_named(level);
        // Of a level that is gone already, only the receipt is left to be signed.
        level.map_or(1, |level| level.options.approvals)
    }

    /// Whether somebody, as an actor is named, is a key custodian now.
    fn is_custodian(&self, name: &str) -> bool {
        let has_role = |subject: Arc<Subject>| subject.roles.has(Role::KeyCustodian);
        is_local(name) || self.subject(name).is_some_and(has_role)
    }

    fn waiting(&self, id: &str) -> Result<ApprovalRequest> {
        let key = request_key(id).ok_or(VaultError::NoSuchRequest)?;
        let found: Option<ApprovalRequest> = self.inner.system.document(Kind::Request, &key)?;
        let is_alive = |request: &ApprovalRequest| request.is_alive();
        found.filter(is_alive).ok_or(VaultError::NoSuchRequest)
    }
}

/// Whether two actors, as they are named, count as one person. All users at the local socket do,
/// for whoever is root there can be any of them.
fn is_same_person(one: &str, other: &str) -> bool {
    one == other || (is_local(one) && is_local(other))
}

fn is_local(name: &str) -> bool {
    name.starts_with("local:")
}

fn warrant(request: &ApprovalRequest) -> Warrant {
    let said = |role: &'static str| {
        move |name: &String| Person {
            name: name.clone(),
            role: role.to_owned(),
        }
    };
    let approved = request.approved_by.iter().map(said("approved"));
    let requested = [said("requested")(&request.requested_by)];
    Warrant {
        performed_by: requested.into_iter().chain(approved).collect(),
        requested_ms: request.requested_ms,
    }
}

#[cfg(test)]
mod tests;
