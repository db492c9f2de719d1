//! Doing what was asked for, once all who must have approved it.

use coffer_durable::rfc3339;
use coffer_keys::receipt::Person;
use coffer_keys::{BucketEntry, ExportRecipient, LevelEntry, SourceSecrets};
use coffer_seal::{BucketId, LevelId};

use super::request::{ApprovalRequest, GuardedAct, GuardedOutcome};
use crate::access::{Actor, Role};
use crate::blocking::blocking;
use crate::copies::WithKeystore;
use crate::erase::{Doomed, EraseDraft, Warrant};
use crate::error::{Result, VaultError};
use crate::replica::NewCopy;
use crate::system::{DocumentId, Kind};
use crate::vault::Vault;

impl Vault {
    /// Does what was asked for, on the word of all who approved.
    pub(crate) async fn perform(
        &self,
        actor: &Actor,
        role: Role,
        request: ApprovalRequest,
        secrets: SourceSecrets,
    ) -> Result<GuardedOutcome> {
        let (act, mut facts) = (request.wanted.recorded_as(), request.wanted.facts());
        if request.approvals > 1 {
            facts.insert("request", request.id.clone());
            facts.extend(request.people());
        }
        if matches!(request.wanted, GuardedAct::KeystoreMove { .. }) {
            let from = self.inner.keys.source().map(|spec| spec.to_string());
            facts.insert("from", from.unwrap_or_else(|| "unknown".to_owned()));
        }
        if matches!(request.wanted, GuardedAct::LockTimeConfirm { .. }) {
            facts.insert("from", rfc3339(self.lock_now_ms()));
        }
        let this = self.clone();
        // On the heap: what it may have to do takes long futures.
        let work = Box::pin(async move { this.do_wanted(request, secrets).await });
        self.act(actor, role, act, facts, work).await
    }

    async fn do_wanted(
        &self,
        request: ApprovalRequest,
        secrets: SourceSecrets,
    ) -> Result<GuardedOutcome> {
        let warrant = warrant(&request);
        match request.wanted.clone() {
            GuardedAct::LevelErase { level_id, .. } => {
                let level = match self.inner.keystore.level(level_id) {
                    Some(level) => level,
                    None => {
                        let draft = self.draft(level_id.into())?;
                        draft.ok_or(VaultError::NoSuchLevel)?.level
                    }
                };
                Box::pin(self.check_locks_of_level(&level)).await?;
                let receipt = Box::pin(self.erase(Doomed::Level(level), warrant)).await?;
                Ok(GuardedOutcome::Erased(Box::new(receipt)))
            }
            GuardedAct::BucketErase { bucket_id, .. } => {
                let (level, bucket) = self.level_of(bucket_id)?;
                let mut rows = self.rows_of_level(&level);
                rows.retain(|row| row.id == bucket_id);
                Box::pin(self.check_locks(&level, &rows)).await?;
                let receipt = Box::pin(self.erase(Doomed::Bucket(level, bucket), warrant)).await?;
                Ok(GuardedOutcome::Erased(Box::new(receipt)))
            }
            GuardedAct::KeyExport {
                level_id,
                recipients,
                ..
            } => self.export(level_id, &recipients).await,
            GuardedAct::KeystoreBackup { recipients } => self
                .back_up_root(recipients)
                .await
                .map(GuardedOutcome::Exported),
            GuardedAct::CopyWithKeystore { .. } => self.begin_with_keystore(&request).await,
            GuardedAct::LevelRotate { level_id, .. } => {
                // An erase that is under way may fail, and show its bucket again by its old key.
                let _changing = self.inner.changing_buckets.lock().await;
                self.refuse_going(level_id)?;
                let plan = self.plan_for_level(level_id)?;
                self.begin_rotation(plan)
                    .await
                    .map(GuardedOutcome::Rotating)
            }
            GuardedAct::BucketRotate { bucket_id, .. } => {
                let plan = self.plan_for_bucket(bucket_id)?;
                self.begin_rotation(plan)
                    .await
                    .map(GuardedOutcome::Rotating)
            }
            GuardedAct::KeystoreRotate => {
                self.replace_root().await.map(|()| GuardedOutcome::Rerooted)
            }
            GuardedAct::KeystoreMove { to } => self
                .move_root(&to, secrets)
                .await
                .map(|()| GuardedOutcome::Rerooted),
            GuardedAct::AuditPrune { before_ms } => self.prune(&request, before_ms).await,
            GuardedAct::LockTimeConfirm { to_ms } => self
                .advance_lock_time(to_ms)
                .await
                .map(GuardedOutcome::LockTimeSet),
        }
    }

    async fn export(&self, level: LevelId, recipients: &[String]) -> Result<GuardedOutcome> {
        let recipients: Vec<ExportRecipient> = recipients
            .iter()
            .map(|recipient| recipient.parse())
            .collect::<Result<_, _>>()?;
        // No erase begins meanwhile.
        let _changing = self.inner.changing_buckets.lock().await;
        self.refuse_going(level)?;
        if self.inner.system.has_going_of(level) {
            return Err(VaultError::Invalid {
                what: "a bucket of this level is being erased, and that is not complete yet, or in \
                       doubt: ask for its erase again, or restart the server, and then export",
            });
        }
        let inner = self.inner.clone();
        blocking(move || {
            let export = inner.keystore.export_level(level, &recipients)?;
            Ok(GuardedOutcome::Exported(export))
        })
        .await
    }

    async fn begin_with_keystore(&self, request: &ApprovalRequest) -> Result<GuardedOutcome> {
        let GuardedAct::CopyWithKeystore {
            name,
            url,
            keep_ms,
            sync,
            recipients,
        } = request.wanted.clone()
        else {
            return Err(VaultError::Damaged);
        };
        let new = NewCopy {
            name: name.clone(),
            url,
            keep_ms: Some(keep_ms),
            sync,
        };
        let keystore = Some(WithKeystore {
            people: request.approvals,
            recipients,
            ..WithKeystore::default()
        });
        let begun = self.begin_copy(new, keystore).await;
        begun.map(|()| GuardedOutcome::CopyAdded(name))
    }

    async fn prune(&self, request: &ApprovalRequest, before_ms: i64) -> Result<GuardedOutcome> {
        let mut details = request.wanted.facts();
        details.extend(request.people());
        details.retain(|_, value| !value.is_empty());
        let details = details.into_iter().collect();
        let audit = self.inner.audit.clone();
        blocking(move || {
            let log = audit.log().ok_or(VaultError::ShuttingDown)?;
            let pruned = log.prune(before_ms, details);
            pruned
                .map(GuardedOutcome::Pruned)
                .map_err(VaultError::AuditUnavailable)
        })
        .await
    }

    fn level_of(&self, bucket: BucketId) -> Result<(LevelEntry, BucketEntry)> {
        let keystore = &self.inner.keystore;
        let Some(entry) = keystore.bucket(bucket) else {
            let Some(draft) = self.draft(bucket.into())? else {
                // One whose key was destroyed before.
                let row = self.inner.system.bucket_of_id(bucket);
                let row = row.ok_or(VaultError::NoSuchBucket)?;
                let level = self.inner.level_to_erase(&row);
                let level = level.ok_or(VaultError::NoSuchLevel)?;
                return Ok((level, BucketEntry::without_key(bucket, row.level_id)));
            };
            let of = draft.buckets.into_iter().next();
            return Ok((draft.level, of.ok_or(VaultError::NoSuchBucket)?.entry));
        };
        let level = keystore.level(entry.level_id);
        Ok((level.ok_or(VaultError::NoSuchLevel)?, entry))
    }

    /// The draft of an erase that has begun.
    fn draft(&self, id: DocumentId) -> Result<Option<EraseDraft>> {
        self.inner.system.document(Kind::Erase, id)
    }

    /// Of the keys of a level that is being erased nothing is made any more.
    fn refuse_going(&self, level: LevelId) -> Result<()> {
        if self.inner.system.is_level_going(level) {
            return Err(VaultError::NoSuchLevel);
        }
        Ok(())
    }
}

fn warrant(request: &ApprovalRequest) -> Warrant {
    let said = |role: &'static str| {
        move |name: &String| Person {
            name: name.clone(),
            subject: request.name_of(name).map(str::to_owned),
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
