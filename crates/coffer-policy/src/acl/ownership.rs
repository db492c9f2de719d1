//! Who owns objects, and whether lists count.
//!
//! *Amazon S3 User Guide*, Controlling ownership of objects and disabling ACLs for your bucket
//! (`AmazonS3/latest/userguide/about-object-ownership.html`), and its page of error responses.

use thiserror::Error;

use super::canned::CannedAcl;
use super::grants::{Acl, Grant, Grantee, Permission};
use crate::names::SubjectId;

/// Who owns the objects of a bucket: its ownership controls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ObjectOwnership {
    /// The bucket's owner; no list counts. So it is on AWS where nothing else was asked.
    #[default]
    BucketOwnerEnforced,
    /// Who wrote them, but for those written with `bucket-owner-full-control`.
    BucketOwnerPreferred,
    /// Who wrote them.
    ObjectWriter,
}

/// Why a list is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum AclRefusal {
    /// `AccessControlListNotSupported`, 400.
    #[error("The bucket does not allow ACLs")]
    NotSupported,
    /// `InvalidBucketAclWithObjectOwnership`, 400.
    #[error("Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting")]
    WithOwnership,
    /// `AccessDenied`, 403: the list is public, and the bucket blocks such lists.
    #[error(
        "the access control list is public, and the BlockPublicAcls setting of the bucket is on"
    )]
    Public,
}

impl ObjectOwnership {
    const NAMES: [(Self, &str); 3] = [
        (Self::BucketOwnerEnforced, "BucketOwnerEnforced"),
        (Self::BucketOwnerPreferred, "BucketOwnerPreferred"),
        (Self::ObjectWriter, "ObjectWriter"),
    ];

    /// The setting of this name, as requests write it.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(ownership, _)| *ownership)
    }

    /// Its name, as requests write it.
    pub fn name(self) -> &'static str {
        let found = Self::NAMES.iter().find(|(ownership, _)| *ownership == self);
        found.map_or("", |(_, name)| name)
    }

    /// Whether lists count.
    pub fn has_acls(self) -> bool {
        self != Self::BucketOwnerEnforced
    }

    /// Sees whether a list may be given with an upload or put on a bucket or object whose owner,
    /// where lists don't count, is the bucket's. Such buckets take the list that gives full control
    /// to their owner and nothing else.
    ///
    /// # Errors
    ///
    /// [`AclRefusal::NotSupported`] where lists don't count.
    pub fn check_acl(self, acl: &Acl, bucket_owner: Option<&SubjectId>) -> Result<(), AclRefusal> {
        if self.has_acls() || is_full_control(acl, bucket_owner) {
            return Ok(());
        }
        Err(AclRefusal::NotSupported)
    }

    /// Sees whether a bucket with this list can be made with the setting, or take it on.
    ///
    /// # Errors
    ///
    /// [`AclRefusal::WithOwnership`] where lists would no longer count, and this one grants
    /// to others than the owner.
    pub fn check_bucket_acl(self, acl: &Acl) -> Result<(), AclRefusal> {
        if self.has_acls() || grants_to_owner_alone(acl, acl.owner()) {
            return Ok(());
        }
        Err(AclRefusal::WithOwnership)
    }

    /// Who owns an object that `writer` makes with this canned list, if any; none: who is
    /// anonymous.
    pub fn owner_of_new<'a>(
        self,
        writer: Option<&'a SubjectId>,
        bucket_owner: Option<&'a SubjectId>,
        canned: Option<CannedAcl>,
    ) -> Option<&'a SubjectId> {
        let is_handed_over = canned == Some(CannedAcl::BucketOwnerFullControl);
        match self {
            Self::BucketOwnerEnforced => bucket_owner,
            Self::BucketOwnerPreferred if is_handed_over => bucket_owner,
            Self::BucketOwnerPreferred | Self::ObjectWriter => writer,
        }
    }
}

/// Whether the list grants nothing to others than this owner.
fn grants_to_owner_alone(acl: &Acl, owner: Option<&SubjectId>) -> bool {
    let is_owner =
        |grant: &Grant| matches!(&grant.grantee, Grantee::Subject(id) if Some(id) == owner);
    acl.grants().iter().all(is_owner)
}

/// Whether the list gives full control to this owner, and nothing to others.
fn is_full_control(acl: &Acl, owner: Option<&SubjectId>) -> bool {
    let is_full = |grant: &Grant| grant.permission == Permission::FullControl;
    acl.grants().iter().any(is_full) && grants_to_owner_alone(acl, owner)
}
