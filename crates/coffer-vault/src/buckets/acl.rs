//! Access control lists of buckets, and who owns their objects.

use std::sync::Arc;

use coffer_policy::{Acl, AclRefusal, ObjectOwnership};

use super::create::NewBucket;
use crate::access::{
    Act, AskedAcl, BucketName, Right, Subject, acl_of, counted, kept_grants, ownership_document,
    ownership_of,
};
use crate::audit::{Facts, On, whole};
use crate::error::{Result, SharingError};
use crate::objects::entries;
use crate::open_buckets::UsedBucket;
use crate::system::BucketConfiguration;
use crate::vault::Vault;

impl Vault {
    /// The bucket's list. Where lists don't count, it gives all to the bucket's owner.
    ///
    /// # Errors
    /// [`NoSuchBucket`](crate::VaultError::NoSuchBucket),
    /// [`AccessDenied`](crate::VaultError::AccessDenied).
    pub async fn bucket_acl(&self, subject: &Subject, name: &BucketName) -> Result<Acl> {
        let row = self.told_row(subject, name).await?;
        let Some(sharing) = self.sharing(&row)?.filter(|sharing| sharing.has_acls()) else {
            self.settle_acts().await?;
            return acl_of(self.owner_id(&row), None);
        };
        let grant = self.readable(subject, name, Right::Read).await?;
        let look = |_: UsedBucket| async { self.bucket_list(&row, &sharing) };
        let (acl, _reading) = grant.read(Act::ReadAcl, On::Bucket, look).await?;
        Ok(sharing.block.effective_acl(&acl).into_owned())
    }

    /// Replaces the bucket's list. Durable, and in force, when this returns.
    ///
    /// # Errors
    /// [`SharingError::Acl`], [`SharingError::TooManyGrants`], [`SharingError::UnknownGrantee`];
    /// [`AccessDenied`](crate::VaultError::AccessDenied) to all but the owner and those whom a list
    /// or the policy lets do so.
    pub async fn set_bucket_acl(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        asked: AskedAcl,
    ) -> Result<()> {
        let row = self.row_to_share(subject, name).await?;
        let owner = self.owner_id(&row);
        let Some(acl) = self.list_to_put(&row, &asked, &owner)? else {
            return Ok(());
        };
        let kind = BucketConfiguration::Acl;
        let about = Facts::from([
            ("bucket", row.name.to_string()),
            ("configuration", kind.name().to_owned()),
        ]);
        let facts = whole(&about, vec![("grants", entries(&acl))]);
        let (this, of_row) = (self.clone(), row.clone());
        let check = move || match this.list_allowed(&of_row, &asked, &owner)? {
            Some(_) => Ok(()),
            None => Err(SharingError::Changed.into()),
        };
        let document = kept_grants(&acl);
        self.keep_sharing_telling(subject, row, (kind, document), (facts, check))
            .await
    }

    /// Who owns the bucket's objects; none where that was removed, and lists count as of old.
    ///
    /// # Errors
    /// As [`bucket_acl`](Self::bucket_acl).
    pub async fn object_ownership(
        &self,
        subject: &Subject,
        name: &BucketName,
    ) -> Result<Option<ObjectOwnership>> {
        let kind = BucketConfiguration::ObjectOwnership;
        let document = self.bucket_configuration(subject, name, kind).await?;
        ownership_of(document.as_deref())
    }

    /// Sets who owns the bucket's objects, or removes what was said of that, so that their writers
    /// do. Durable, and in force, when this returns.
    ///
    /// # Errors
    /// [`SharingError::Acl`] where lists would no longer count, and the bucket's grants anything to
    /// others; [`AccessDenied`](crate::VaultError::AccessDenied) to all but the owner and those
    /// whom the policy lets do so.
    pub async fn set_object_ownership(
        &self,
        subject: &Arc<Subject>,
        name: &BucketName,
        ownership: Option<ObjectOwnership>,
    ) -> Result<()> {
        let row = self.row_to_share(subject, name).await?;
        let (this, of_row) = (self.clone(), row.clone());
        let check = move || match this.sharing(&of_row)? {
            Some(sharing) => {
                let acl = this.bucket_list(&of_row, &sharing)?;
                let checked = counted(ownership).check_bucket_acl(&acl);
                checked.map_err(|error| SharingError::from(error).into())
            }
            None => Ok(()),
        };
        check()?;
        let kind = BucketConfiguration::ObjectOwnership;
        let told = ownership.map_or("removed", ObjectOwnership::name);
        let facts = Facts::from([
            ("bucket", row.name.to_string()),
            ("configuration", kind.name().to_owned()),
            ("object_ownership", told.to_owned()),
        ]);
        let document = ownership_document(ownership);
        self.keep_sharing_telling(subject, row, (kind, document), (vec![facts], check))
            .await
    }

    /// Puts among the documents of a bucket that is to be made who owns its objects, and its list.
    ///
    /// # Errors
    /// [`SharingError::Acl`], [`SharingError::PublicFromTheStart`],
    /// [`SharingError::UnknownGrantee`], [`SharingError::TooManyGrants`].
    pub(super) fn add_ownership(
        &self,
        maker: Option<&Subject>,
        new: &NewBucket<'_>,
    ) -> Result<Vec<(BucketConfiguration, String)>> {
        let ownership = new.object_ownership.unwrap_or(self.inner.object_ownership);
        let mut documents = new.documents.clone();
        let document = ownership_document(Some(ownership));
        documents.extend(document.map(|text| (BucketConfiguration::ObjectOwnership, text)));
        if new.acl == AskedAcl::None {
            return Ok(documents);
        }
        let owner = match maker {
            Some(maker) => maker.id().to_string(),
            None => format!("account{}", self.inner.account),
        };
        let owner = owner.parse().expect("letters and digits are an id");
        let acl = self.list_asked(&new.acl, &owner, &owner);
        if !ownership.has_acls() {
            let refusal = SharingError::from(AclRefusal::WithOwnership);
            let acl = acl.map_err(|_| refusal)?;
            let checked = ownership.check_bucket_acl(&acl);
            checked.map_err(SharingError::from)?;
            return Ok(documents);
        }
        let acl = acl?;
        // Each new bucket has all of the blocks.
        if acl.is_public() {
            return Err(SharingError::PublicFromTheStart.into());
        }
        documents.extend(kept_grants(&acl).map(|text| (BucketConfiguration::Acl, text)));
        Ok(documents)
    }
}
