//! What a bucket's owner says of sharing it: its policy, and what blocks the public.
//!
//! A policy names subjects by their names when it is put and shown, and by their ids where it is
//! kept. To put one takes the bucket's owner, or whom the policy that is there lets do so. Nothing
//! of it is told to those who may not read the bucket, and nothing in it reaches past a label: so,
//! other than rules for browsers, it may be set at any label by those who may write there.

use std::sync::Arc;

use coffer_label::Label;
use coffer_policy::{Policy, PublicAccessBlock, Subjects, is_public};

use crate::access::{
    Act, Actor, BucketName, Right, Role, Subject, block_document, block_of, may_know_subject,
};
use crate::acts::Changed;
use crate::audit::{Facts, On};
use crate::blocking::blocking;
use crate::error::{Result, SharingError, VaultError};
use crate::open_buckets::UsedBucket;
use crate::system::{BucketConfiguration, BucketRow, System};
use crate::vault::Vault;

const ACT: Act = Act::WriteConfiguration;

/// Who is called how, as far as the one may know it who puts or reads a bucket's policy.
struct Names<'a> {
    system: &'a System,
    asker: &'a Subject,
    /// The bucket's.
    label: &'a Label,
}

impl Subjects for Names<'_> {
    fn id_of_name(&self, name: &str) -> Option<coffer_policy::SubjectId> {
        let subject = self.system.find_subject(name)?.subject;
        // Ids are found as well, and are no names.
        let is_meant = subject.name() == name && may_know_subject(self.asker, &subject, self.label);
        is_meant
            .then(|| subject.id.to_string().parse().ok())
            .flatten()
    }

    fn name_of_id(&self, id: &coffer_policy::SubjectId) -> Option<String> {
        let id = coffer_seal::SubjectId::from_hex(id.as_str())?;
        let subject = self.system.subject_of_id(id)?;
        let is_known = may_know_subject(self.asker, &subject, self.label);
        is_known.then(|| subject.name().to_owned())
    }

    fn is_id(&self, id: &coffer_policy::SubjectId) -> bool {
        Subject::is_id(id.as_str())
    }

    fn id_of_canonical_user(&self, canonical_id: &str) -> Option<coffer_policy::SubjectId> {
        let id = canonical_id.parse().ok()?;
        self.is_id(&id).then_some(id)
    }
}

impl Vault {
    /// The bucket's policy as JSON, with subjects as they are called now, or by their ids where
    /// they are gone or `subject` may not know of them; none where there is none.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`].
    pub async fn bucket_policy(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Option<String>> {
        let Some(policy) = self.kept_policy(subject, name).await? else {
            return Ok(None);
        };
        let row = self.known(subject, name)?;
        Ok(Some(policy.shown(&self.names(subject, &row)?)))
    }

    /// Whether the bucket's policy is public; none where there is none.
    ///
    /// # Errors
    /// As [`bucket_policy`](Self::bucket_policy).
    pub async fn is_policy_public(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Option<bool>> {
        let policy = self.kept_policy(subject, name).await?;
        Ok(policy.as_ref().map(is_public))
    }

    async fn kept_policy(&self, subject: &Subject, name: &BucketName) -> Result<Option<Policy>> {
        let kind = BucketConfiguration::Policy;
        let document = self.bucket_configuration(subject, name, kind).await?;
        let read = |document: Arc<str>| {
            Policy::from_stored(document.as_bytes(), name.as_str(), &self.inner.account)
        };
        let policy = document.map(read).transpose();
        policy.map_err(|_| VaultError::Damaged)
    }

    /// Sets the bucket's policy, or removes it. Durable, and in force, when this returns.
    ///
    /// # Errors
    /// [`SharingError::Malformed`], [`SharingError::PublicPolicy`]; [`VaultError::AccessDenied`]
    /// to all but the owner and those whom the policy that is there lets do so;
    /// [`ConfigurationsFull`](crate::AdministrationError::ConfigurationsFull).
    pub async fn set_bucket_policy(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        json: Option<&[u8]>,
    ) -> Result<()> {
        let row = self.row_to_share(subject, name).await?;
        let policy = match json {
            None => None,
            Some(json) => {
                let names = self.names(subject, &row)?;
                let policy = Policy::parse(json, name.as_str(), &self.inner.account, &names);
                let policy = policy.map_err(SharingError::from)?;
                let blocked = self.block(&row)?.check_policy(&policy);
                blocked.map_err(|_| SharingError::PublicPolicy)?;
                Some(policy)
            }
        };
        let (this, of_row) = (self.clone(), row.clone());
        let document = policy.as_ref().map(Policy::to_stored);
        let check = move || match policy {
            None => Ok(()),
            Some(policy) => {
                let blocked = this.block(&of_row)?.check_policy(&policy);
                blocked.map_err(|_| SharingError::PublicPolicy.into())
            }
        };
        let kind = BucketConfiguration::Policy;
        self.keep_sharing(subject, row, (kind, document), check)
            .await
    }

    /// What blocks the public in the bucket; none where that was removed.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`].
    pub async fn public_access_block(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Option<PublicAccessBlock>> {
        let document = self
            .bucket_configuration(subject, name, BucketConfiguration::PublicAccessBlock)
            .await?;
        block_of(document.as_deref())
    }

    /// Sets or removes what blocks the public in the bucket. Durable, and in force, when this
    /// returns.
    ///
    /// # Errors
    /// As [`set_bucket_policy`](Self::set_bucket_policy).
    pub async fn set_public_access_block(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        block: Option<PublicAccessBlock>,
    ) -> Result<()> {
        let row = self.row_to_share(subject, name).await?;
        let document = Some(block_document(block));
        let kind = BucketConfiguration::PublicAccessBlock;
        self.keep_sharing(subject, row, (kind, document), || Ok(()))
            .await
    }

    /// The canonical user id of who owns the bucket: the id of a subject, or one made of the
    /// account's, where it belongs to all who may do everything in it.
    ///
    /// # Errors
    /// [`VaultError::NoSuchBucket`], [`VaultError::AccessDenied`].
    pub async fn bucket_owner(&self, subject: &Subject, name: &BucketName) -> Result<String> {
        let row = self.told_row(subject, name).await?;
        Ok(self.owner_id(&row).to_string())
    }

    fn names<'a>(&'a self, asker: &'a Subject, row: &'a BucketRow) -> Result<Names<'a>> {
        Ok(Names {
            system: &self.inner.system,
            asker,
            label: self.inner.label(row)?,
        })
    }

    /// The bucket's blocks as they are kept.
    fn block(&self, row: &BucketRow) -> Result<PublicAccessBlock> {
        let kind = BucketConfiguration::PublicAccessBlock;
        let block = block_of(row.documents.get(kind).as_deref())?;
        Ok(block.unwrap_or_default())
    }

    /// The bucket, if the subject may say who else may use it. It has read there, then.
    pub(super) async fn row_to_share(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Arc<BucketRow>> {
        let row = self.usable(subject, name, Right::Write).await?;
        // Where there is a policy, that was asked who may.
        let is_told = row.documents.is_shared() && !subject.is_anonymous();
        if !is_told && !self.owns(subject, &row) {
            self.refused(subject, ACT, name);
            return Err(VaultError::AccessDenied);
        }
        // What is taken and what is refused tells of what others have set there, be it that they
        // have set nothing.
        self.note_read(subject, &row).await?;
        Ok(row)
    }

    async fn keep_sharing(
        &self,
        subject: &Arc<Subject>,
        row: Arc<BucketRow>,
        (kind, document): (BucketConfiguration, Option<String>),
        check: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let facts = Facts::from([
            ("bucket", row.name.to_string()),
            ("configuration", kind.name().to_owned()),
        ]);
        self.keep_sharing_telling(subject, row, (kind, document), (vec![facts], check))
            .await
    }

    /// As `keep_sharing`, with what is to be recorded. While it is set nothing else is committed in
    /// the bucket, and what was checked before is checked again then.
    pub(super) async fn keep_sharing_telling(
        &self,
        subject: &Arc<Subject>,
        row: Arc<BucketRow>,
        (kind, document): (BucketConfiguration, Option<String>),
        (facts, check): (Vec<Facts>, impl FnOnce() -> Result<()> + Send + 'static),
    ) -> Result<()> {
        let grant = self.changeable(subject, &row.name, Right::Write).await?;
        let grant = grant.says_who_may();
        let inner = self.inner.clone();
        let set = move |_: UsedBucket| async move {
            check()?;
            blocking(move || inner.system.configure(&row, kind, document)).await?;
            Ok(Changed::freeing((), Vec::new()))
        };
        let told = facts.clone();
        let work = async move { Ok((grant.change(ACT, [On::Bucket], set).await?, told)) };
        let actor = Actor::Subject(subject.clone());
        self.act_telling(&actor, Role::DataUser, ACT, facts, work)
            .await
    }
}
