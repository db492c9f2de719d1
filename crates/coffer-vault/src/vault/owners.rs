//! Whose buckets and objects are, and the lists that they have.
//!
//! An object belongs to the subject that wrote it, where its bucket says so and that one is still
//! there; else to the bucket's owner. What who signed nothing has written belongs to the bucket's
//! owner.

use std::sync::Arc;

use coffer_policy::limits::GRANTS;
use coffer_policy::{
    Acl, AclRefusal, CannedAcl, Grant, Grantee, ObjectOwnership, PublicAccessBlock,
    SubjectId as CanonicalId, TooManyGrants,
};
use coffer_seal::SubjectId;
use coffer_store::record::Access;

use crate::access::{AskedAcl, AskedGrant, AskedGrantee, Sharing, Subject, acl_of, kept_grants};
use crate::error::{Result, SharingError, VaultError};
use crate::system::BucketRow;
use crate::vault::Vault;

/// Whose a new object is and who else may use it, as it was decided when its request began.
pub(crate) struct NewAccess {
    access: Access,
    vault: Vault,
    row: Arc<BucketRow>,
    decided_by: (ObjectOwnership, PublicAccessBlock),
}

impl NewAccess {
    /// As it was decided, if what it was decided by is the same when the object is committed.
    ///
    /// # Errors
    /// [`SharingError::Changed`].
    pub(crate) fn to_commit(&self) -> Result<Access> {
        let is_as_of_old = self.access == Access::default();
        if is_as_of_old || self.vault.decides_lists(&self.row)? == self.decided_by {
            Ok(self.access.clone())
        } else {
            Err(SharingError::Changed.into())
        }
    }

    /// What was decided.
    pub(crate) fn access(&self) -> &Access {
        &self.access
    }
}

impl Vault {
    /// The canonical user id of who owns a bucket: the id of a subject, or one made of the
    /// account's, where it belongs to all who may do everything in it.
    pub(crate) fn owner_id(&self, row: &BucketRow) -> CanonicalId {
        let id = match self.owner_of(row) {
            Some(owner) => owner.to_string(),
            None => format!("account{}", self.inner.account),
        };
        id.parse().expect("letters and digits are an id")
    }

    /// The canonical user id of who owns an object that is kept as this one's, where lists count.
    pub(crate) fn object_owner_id(&self, row: &BucketRow, kept: Option<&str>) -> CanonicalId {
        let known = kept.filter(|kept| self.is_known_owner(kept));
        let known = known.and_then(|kept| kept.parse().ok());
        known.unwrap_or_else(|| self.owner_id(row))
    }

    /// Whether this is a subject that is still there.
    pub(crate) fn is_known_owner(&self, kept: &str) -> bool {
        let id = SubjectId::from_hex(kept);
        id.is_some_and(|id| self.inner.system.subject_of_id(id).is_some())
    }

    /// Leaves only those owners of objects that are to be told: none is the bucket's.
    pub(crate) fn tell_owners<'a>(
        &self,
        row: &BucketRow,
        owners: impl Iterator<Item = &'a mut Option<String>>,
    ) -> Result<()> {
        let (ownership, _) = self.decides_lists(row)?;
        // Most rows of a page have one owner.
        let mut last: Option<(String, bool)> = None;
        for owner in owners {
            let Some(kept) = owner.as_ref().filter(|_| ownership.has_acls()) else {
                *owner = None;
                continue;
            };
            let is_known = match &last {
                Some((known, is_known)) if known == kept => *is_known,
                _ => self.is_known_owner(kept),
            };
            last = Some((kept.clone(), is_known));
            if !is_known {
                *owner = None;
            }
        }
        Ok(())
    }

    /// What decides on lists in a bucket.
    fn decides_lists(&self, row: &BucketRow) -> Result<(ObjectOwnership, PublicAccessBlock)> {
        let sharing = self.sharing(row)?;
        let decides = |sharing: Arc<Sharing>| (sharing.ownership, sharing.block);
        Ok(sharing.map(decides).unwrap_or_default())
    }

    /// The list of a bucket.
    pub(crate) fn bucket_list(&self, row: &BucketRow, sharing: &Sharing) -> Result<Acl> {
        acl_of(self.owner_id(row), sharing.bucket_acl.as_deref())
    }

    /// The list of an object.
    pub(crate) fn object_list(&self, row: &BucketRow, access: &Access) -> Result<Acl> {
        let owner = self.object_owner_id(row, access.owner.as_deref());
        acl_of(owner, access.acl.as_deref())
    }

    /// The list that a request asks for, for what belongs to `owner` in or of a bucket that belongs
    /// to `bucket_owner`.
    ///
    /// # Errors
    /// [`SharingError::UnknownGrantee`], [`SharingError::TooManyGrants`];
    /// [`VaultError::AccessDenied`] where it would give it to another owner.
    pub(crate) fn list_asked(
        &self,
        asked: &AskedAcl,
        owner: &CanonicalId,
        bucket_owner: &CanonicalId,
    ) -> Result<Acl> {
        let grants = match asked {
            AskedAcl::None => return acl_of(owner.clone(), None),
            AskedAcl::Canned(canned) => {
                return Ok(canned.grants(Some(owner), Some(bucket_owner)));
            }
            AskedAcl::Document { owner: named, .. } if named != owner.as_str() => {
                return Err(VaultError::AccessDenied);
            }
            AskedAcl::Grants(grants) | AskedAcl::Document { grants, .. } => grants,
        };
        // Before each of them is looked up.
        let count = grants.len();
        if count > GRANTS {
            return Err(SharingError::from(TooManyGrants { count }).into());
        }
        // An answer that differed for those who are there would tell others of them.
        let known =
            |id: &CanonicalId| Subject::is_id(id.as_str()) || id == owner || id == bucket_owner;
        let given = |grant: &AskedGrant| {
            let grantee = match &grant.to {
                AskedGrantee::Group(group) => Grantee::Group(*group),
                AskedGrantee::Id(id) => {
                    let id = id.parse().ok().filter(known);
                    Grantee::Subject(id.ok_or(SharingError::UnknownGrantee)?)
                }
            };
            let permission = grant.permission;
            Ok(Grant {
                grantee,
                permission,
            })
        };
        let grants: Result<Vec<Grant>> = grants.iter().map(given).collect();
        let acl = Acl::new(Some(owner.clone()), grants?);
        acl.map_err(|error| SharingError::from(error).into())
    }

    /// The list that a request asks for where lists may be off, which then is the one that there
    /// is; none where it changes nothing.
    ///
    /// # Errors
    /// Those of [`list_asked`](Self::list_asked); those of the ownership and of the blocks.
    pub(crate) fn list_allowed(
        &self,
        row: &BucketRow,
        asked: &AskedAcl,
        owner: &CanonicalId,
    ) -> Result<Option<Acl>> {
        let (ownership, block) = self.decides_lists(row)?;
        let bucket_owner = self.owner_id(row);
        if ownership.has_acls() {
            let acl = self.list_asked(asked, owner, &bucket_owner)?;
            block.check_acl(&acl).map_err(SharingError::from)?;
            return Ok(Some(acl));
        }
        if *asked != AskedAcl::None {
            // Of whom else it speaks does not matter.
            let acl = self.list_asked(asked, &bucket_owner, &bucket_owner);
            let acl = acl.map_err(|_| SharingError::from(AclRefusal::NotSupported))?;
            let checked = ownership.check_acl(&acl, Some(&bucket_owner));
            checked.map_err(SharingError::from)?;
        }
        Ok(None)
    }

    /// The same of a list that is put on what is there already. Of the canned ones AWS then takes
    /// `bucket-owner-full-control` alone where lists are off, and not `private`.
    ///
    /// # Errors
    /// Those of [`list_allowed`](Self::list_allowed).
    pub(crate) fn list_to_put(
        &self,
        row: &BucketRow,
        asked: &AskedAcl,
        owner: &CanonicalId,
    ) -> Result<Option<Acl>> {
        let (ownership, _) = self.decides_lists(row)?;
        let full = CannedAcl::BucketOwnerFullControl;
        if !ownership.has_acls() && asked.canned().is_some_and(|canned| canned != full) {
            return Err(SharingError::from(AclRefusal::NotSupported).into());
        }
        self.list_allowed(row, asked, owner)
    }

    /// Whether the list that an upload was begun with may still be given.
    ///
    /// # Errors
    /// Those of the blocks.
    pub(crate) fn check_list_of_upload(&self, row: &BucketRow, access: &Access) -> Result<()> {
        let (ownership, block) = self.decides_lists(row)?;
        if access.acl.is_none() || !ownership.has_acls() {
            return Ok(());
        }
        let acl = self.object_list(row, access)?;
        block
            .check_acl(&acl)
            .map_err(|error| SharingError::from(error).into())
    }

    /// Whose an object is to be that a subject writes, and who else may use it.
    ///
    /// # Errors
    /// Those of [`list_allowed`](Self::list_allowed).
    pub(crate) fn access_of_new(
        &self,
        row: &Arc<BucketRow>,
        writer: SubjectId,
        asked: &AskedAcl,
    ) -> Result<NewAccess> {
        let decided_by = self.decides_lists(row)?;
        let new = |access| NewAccess {
            access,
            vault: self.clone(),
            row: row.clone(),
            decided_by,
        };
        if *asked == AskedAcl::None && !decided_by.0.has_acls() {
            return Ok(new(Access::default()));
        }
        let bucket_owner = self.owner_id(row);
        let writer = writer.to_string();
        let writer = if self.is_known_owner(&writer) {
            writer.parse().expect("32 hexadecimal digits are an id")
        } else {
            bucket_owner.clone()
        };
        let (ownership, _) = decided_by;
        let owner = ownership.owner_of_new(Some(&writer), Some(&bucket_owner), asked.canned());
        let owner = owner.unwrap_or(&bucket_owner);
        let Some(acl) = self.list_allowed(row, asked, owner)? else {
            return Ok(new(Access::default()));
        };
        Ok(new(Access {
            owner: (*owner != bucket_owner).then(|| owner.to_string()),
            acl: kept_grants(&acl),
        }))
    }
}

/// The subject that a first start has made, by the access key that it has left in `credentials`.
#[cfg(test)]
pub(crate) fn first_subject(vault: &Vault, data: &std::path::Path) -> Arc<Subject> {
    let text = std::fs::read_to_string(data.join("credentials")).unwrap();
    let id = text.split("aws_access_key_id = ").nth(1).unwrap();
    vault.subject(id.lines().next().unwrap()).unwrap()
}
