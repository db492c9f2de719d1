//! Access control lists of objects, and of versions.

use std::sync::Arc;

use coffer_policy::{Acl, Grant, Grantee};
use coffer_store::record::{Access, ObjectName};
use coffer_store::version::{VersionId, Which};

use super::read::told_version;
use crate::access::{Act, Actor, AskedAcl, BucketName, Right, Role, Subject, acl_of, kept_grants};
use crate::acts::Changed;
use crate::audit::{Facts, On, whole};
use crate::error::{Result, SharingError, VaultError};
use crate::locks::of_version;
use crate::open_buckets::UsedBucket;
use crate::vault::{JudgedObject, Vault};

/// An object's list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectAcl {
    /// The list, as it counts; its owner is the object's.
    pub acl: Acl,
    /// What this version is called, where the bucket keeps versions or did.
    pub version: Option<VersionId>,
}

/// What is recorded of a list: whom it grants what.
pub(crate) fn of_list(kept: &Option<String>) -> Facts {
    let Some(kept) = kept else {
        return Facts::new();
    };
    // Of whom it is does not matter to its grants.
    let owner = "0".repeat(32).parse().expect("digits are an id");
    let grants = acl_of(owner, Some(kept)).map(|acl| entries(&acl).join(" "));
    grants.map_or_else(|_| Facts::new(), |grants| Facts::from([("grants", grants)]))
}

/// The grants of a list, as they are recorded.
pub(crate) fn entries(acl: &Acl) -> Vec<String> {
    let entry = |grant: &Grant| {
        let to = match &grant.grantee {
            Grantee::Subject(id) => id.as_str(),
            Grantee::Group(group) => group.uri(),
        };
        format!("{to}={}", grant.permission.name())
    };
    acl.grants().iter().map(entry).collect()
}

impl Vault {
    /// An object's list. Where lists don't count, it gives all to the bucket's owner.
    ///
    /// # Errors
    /// [`VaultError::NoSuchObject`]; [`VaultError::BucketInDoubt`] while it is in doubt whether the
    /// list was changed.
    pub async fn object_acl(
        &self,
        subject: &Subject,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
    ) -> Result<ObjectAcl> {
        let grant = self.readable(subject, bucket, Right::Read).await?;
        let (row, judged) = (grant.row().clone(), grant.judged_objects());
        let look = |bucket: UsedBucket| async move {
            bucket.settle().await?;
            // In one look: whose it is, and what it was judged by.
            let head = bucket.catalog.head(name, which).await??;
            JudgedObject::check(&judged, (name, which), (&head).into())?;
            let (access, version) = (head.access, head.version);
            Ok((access, told_version(&bucket, version)))
        };
        let read = grant.read(Act::ReadAcl, On::Object(name), look).await?;
        let ((access, version), _reading) = read;
        let acl = match self.sharing(&row)? {
            Some(sharing) if sharing.has_acls() => {
                let acl = self.object_list(&row, &access)?;
                sharing.block.effective_acl(&acl).into_owned()
            }
            _ => self.object_list(&row, &Access::default())?,
        };
        Ok(ObjectAcl { acl, version })
    }

    /// Replaces an object's list. Durable, and in force, when this returns. Tells what the version
    /// is called, where the bucket keeps versions or did.
    ///
    /// # Errors
    /// [`SharingError::Acl`], [`SharingError::TooManyGrants`], [`SharingError::UnknownGrantee`];
    /// [`VaultError::NoSuchObject`]; [`SharingError::Changed`] where the object was replaced by one
    /// of another owner meanwhile.
    pub async fn set_object_acl(
        &self,
        subject: &Arc<Subject>,
        bucket: &BucketName,
        (name, which): (&ObjectName, Which),
        asked: AskedAcl,
    ) -> Result<Option<VersionId>> {
        let grant = self.changeable(subject, bucket, Right::Write).await?;
        // The answer tells whether lists count in the bucket, and whether there is such an object.
        grant.note_read().await?;
        if subject.is_anonymous() {
            self.refused(subject, Act::WriteAcl, bucket);
            return Err(VaultError::AccessDenied);
        }
        let row = grant.row().clone();
        if self
            .sharing(&row)?
            .is_none_or(|sharing| !sharing.has_acls())
        {
            self.list_to_put(&row, &asked, &self.owner_id(&row))?;
        }
        let find = |bucket: UsedBucket| async move {
            let (access, version) = bucket.catalog.object_access(name, which).await??;
            Ok((access, told_version(&bucket, version)))
        };
        let (access, version) = grant.find(Act::WriteAcl, On::Object(name), find).await?;
        let owner = self.object_owner_id(&row, access.owner.as_deref());
        let Some(acl) = self.list_to_put(&row, &asked, &owner)? else {
            return Ok(version);
        };
        let (object, kept, this) = (name.clone(), kept_grants(&acl), self.clone());
        let set = move |bucket: UsedBucket| async move {
            // Ownership and blocks may have changed.
            let allowed = this.list_allowed(&row, &asked, &owner)?;
            allowed.ok_or(SharingError::Changed)?;
            let owner = access.owner;
            let set = bucket.catalog.set_object_acl(&object, which, owner, kept);
            let version = set.await??.ok_or(SharingError::Changed)?;
            let mut changed = Changed::freeing(told_version(&bucket, version), Vec::new());
            changed.told.push((0, of_version(Which::Version(version))));
            Ok(changed)
        };
        let mut facts = of_version(which);
        let grants = entries(&acl);
        if grant.is_watched() {
            facts.insert("grants", grants.join(" "));
            let on = [On::Told(name, &facts)];
            return grant.change(Act::WriteAcl, on, set).await;
        }
        facts.insert("bucket", bucket.to_string());
        let facts = whole(&facts, vec![("grants", grants)]);
        let told = facts.clone();
        let work = async move { Ok((grant.change(Act::WriteAcl, [On::Bucket], set).await?, told)) };
        let actor = Actor::Subject(subject.clone());
        self.act_telling(&actor, Role::DataUser, Act::WriteAcl, facts, work)
            .await
    }
}
