//! Promotion: the original is fenced off by a head of its own, and the folder becomes a data
//! folder, by the way of a restore.
//!
//! A promotion that was interrupted is asked for again: it takes yet another epoch, and finds what
//! the last head holds as it was.

use std::fs;
use std::path::{Path, PathBuf};

use coffer_audit::{Event, Outcome};
use coffer_durable::rfc3339;
use coffer_replica::{CopyId, CopyReader, CopyWriter, Head, ReplicaError};
use coffer_seal::KeystoreId;
use tokio::sync::oneshot;

use super::keystore::{self, check_head};
use super::room::is_full;
use super::states::{self, StateRecord};
use super::{Standby, standby_folder};
use crate::access::{Act, Actor, Role};
use crate::audit::{Facts, event};
use crate::backup::{BackupRecord, PROMOTED_FROM, seal_promotion};
use crate::blocking::blocking;
use crate::data_folder::{failed, write_private};
use crate::error::{CopyError, Result, VaultError};
use crate::fence::{PromotedStandby, StandbyState, StandbyStatus};
use crate::vault::Vault;

impl Standby {
    /// Promotes it, and answers. None, if that failed: then it goes on following.
    pub(super) async fn try_promote(
        &mut self,
        (without_copy, event): (bool, Event),
        answer: oneshot::Sender<Result<PromotedStandby>>,
    ) -> Option<PromotedStandby> {
        self.link
            .change(|told| told.state = StandbyState::Promoting);
        tracing::warn!(without_copy, "the standby is being promoted");
        let promoted = if without_copy {
            self.promote_alone(event).await
        } else {
            self.promote(event).await
        };
        match promoted {
            Ok(promoted) => {
                let _ = answer.send(Ok(promoted.clone()));
                Some(promoted)
            }
            Err(error) => {
                let error = self.told_of_promotion(error);
                tracing::error!(%error, "the standby was not promoted");
                self.link.change(|told| {
                    told.state = StandbyState::Failing;
                    told.problem = Some(format!("it was not promoted: {error}"));
                });
                self.reached = None;
                let _ = answer.send(Err(error));
                None
            }
        }
    }

    fn told_of_promotion(&self, error: VaultError) -> VaultError {
        if !is_full(&error) {
            return error;
        }
        CopyError::NoRoomToPromote {
            path: self.data().display().to_string(),
            is_original_ended: self.has_ended_original,
        }
        .into()
    }

    async fn promote(&mut self, event: Event) -> Result<PromotedStandby> {
        // As near as it can be before the original is fenced off.
        let near = self.reach_newest().await?;
        self.fetch(&near).await?;
        let copy = near.copy().clone();
        let data = self.data().to_owned();
        let name = blocking(move || promoter(&data)).await?;
        self.put_record_again(&near).await?;
        // This is the moment: the original writes no head after it, and no keystore.
        let writer = CopyWriter::promote(copy, near.known(), name).await;
        let writer = writer.map_err(|error| match error {
            ReplicaError::Promoted { number } => CopyError::OtherPromoted { number },
            ReplicaError::Fenced { .. } => CopyError::OriginalWrites,
            error => error.into(),
        })?;
        self.has_ended_original = true;
        let last = CopyReader::of(&writer)?;
        self.known = Some(last.known().clone());
        self.reach().await?;
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        check_head(&last, &reached.reference)?;
        self.fetch(&last).await?;
        let reached = self.reached.as_ref().ok_or(VaultError::ShuttingDown)?;
        let (keystore, generation) = (reached.keystore.id(), reached.keystore.generation());
        let of = StateRecord {
            head: last.known().clone(),
            as_of_ms: last.head().as_of_ms,
        };
        self.complete(of, (keystore, generation), event).await
    }

    /// Takes what the folder has, where the copy is gone: that is as of the head that is served,
    /// and where the next was being fetched, partly later. Nothing fences the original off.
    async fn promote_alone(&mut self, event: Event) -> Result<PromotedStandby> {
        // What was not reached, is damaged, or ended is no way to a promotion.
        if matches!(self.copy_is_ended().await, Ok(false)) {
            return Err(VaultError::Invalid {
                what: "the copy is there, and the promotion goes by way of it: leave out \
                       --without-copy",
            });
        }
        let (state, of) = states::newest(self.data()).ok_or(CopyError::NeverComplete)?;
        let keystore = self.take_back_keys(state).await?;
        self.complete(of, keystore, event).await
    }

    /// Whether another standby was promoted by the copy, which was reached.
    async fn copy_is_ended(&mut self) -> Result<bool> {
        let newest = self.reach_newest().await?;
        Ok(self.is_of_another(newest.head()))
    }

    /// Whether another standby was promoted by a head; its own promotion, which was interrupted, is
    /// to be asked for again.
    pub(super) fn is_of_another(&self, head: &Head) -> bool {
        head.promotions > 0
            && noted_promoter(self.data()).is_none_or(|own| head.writer != own.to_string())
    }

    /// Makes the folder a data folder, with the keystore of this id and generation.
    async fn complete(
        &self,
        of: StateRecord,
        (keystore, generation): (KeystoreId, u64),
        event: Event,
    ) -> Result<PromotedStandby> {
        let (as_of_ms, data) = (of.as_of_ms, self.data().to_owned());
        let (source, secrets) = (self.vault.source.clone(), self.vault.secrets.clone());
        let event = event
            .with("head", of.head.number)
            .with("as_of", rfc3339(as_of_ms))
            .with(PROMOTED_FROM, self.from.public_url());
        blocking(move || {
            let own = keystore::open(&data, source.as_ref(), &secrets)?;
            let promotion = seal_promotion(event, &data, &own)?;
            // First, so that nothing fails any more once the folder is a data folder.
            remove_progress(&data)?;
            let mark = BackupRecord::begun(keystore, rfc3339(as_of_ms));
            mark.promoted(promotion).complete(&data, generation)?;
            Ok(())
        })
        .await?;
        Ok(PromotedStandby {
            as_of_ms,
            head: of.head,
            missing_count: self.held.missing.values().sum(),
        })
    }
}

/// The name under which this folder is promoted: by that it knows its own promotion again, which
/// was interrupted, and takes another's for what it is.
fn promoter(data: &Path) -> Result<CopyId> {
    if let Some(name) = noted_promoter(data) {
        return Ok(name);
    }
    let name = CopyId::random();
    write_private(&promoter_path(data), &format!("{name}\n"))?;
    Ok(name)
}

fn noted_promoter(data: &Path) -> Option<CopyId> {
    let noted = fs::read_to_string(promoter_path(data)).ok()?;
    CopyId::try_from(noted.trim().to_owned()).ok()
}

fn promoter_path(data: &Path) -> PathBuf {
    standby_folder(data).join("promoter")
}

/// What is served until the stop has its files open; what else lies beside it is of no use.
pub(super) fn remove_progress(data: &Path) -> Result<()> {
    let standby = standby_folder(data);
    for name in ["segments", "building"] {
        let path = standby.join(name);
        if path.exists() {
            fs::remove_dir_all(&path).map_err(failed("remove", &path))?;
        }
    }
    Ok(())
}

impl Vault {
    /// How the standby stands whose state this is. A system administrator's.
    ///
    /// # Errors
    /// [`CopyError::NoStandby`].
    pub fn standby(&self, actor: &Actor) -> Result<StandbyStatus> {
        let (role, act) = (Role::SystemAdministrator, Act::ListCopies);
        self.refuse_without(actor, role, act, &Facts::new())?;
        Ok(self.standby_now().ok_or(CopyError::NoStandby)?)
    }

    /// The same, for who watches the server; none of one that is no standby.
    pub fn standby_now(&self) -> Option<StandbyStatus> {
        let link = self.inner.standby.as_ref()?;
        Some(link.status())
    }

    /// Promotes the standby whose state this is; `without_copy`, as it is, where the copy is gone
    /// with the original. A system administrator's act: the server that starts on the folder
    /// records it, and that it went on from a copy.
    ///
    /// # Errors
    /// [`CopyError::NoStandby`]; those of following it once more.
    pub async fn promote_standby(
        &self,
        actor: &Actor,
        without_copy: bool,
    ) -> Result<PromotedStandby> {
        let (role, act) = (Role::SystemAdministrator, Act::PromoteStandby);
        let facts = Facts::from([("without_copy", without_copy.to_string())]);
        self.refuse_without(actor, role, act, &facts)?;
        let link = self.inner.standby.clone().ok_or(CopyError::NoStandby);
        let link = link.map_err(|error| self.failed(act, actor, &facts, error.into()))?;
        tracing::warn!(%actor, without_copy, "the promotion of the standby was asked for");
        let event = event(act, actor, Outcome::Done, &facts);
        link.promote(without_copy, event).await
    }
}
