//! Canned lists: what `x-amz-acl` stands for.

use super::grants::{Acl, Grant, Grantee, Group, Permission};
use crate::names::SubjectId;

/// A canned list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "they are called so in requests")]
pub enum CannedAcl {
    Private,
    PublicRead,
    PublicReadWrite,
    /// As private: there are no machine images here that a cloud reads.
    AwsExecRead,
    AuthenticatedRead,
    /// For objects; on a bucket as private.
    BucketOwnerRead,
    /// For objects; on a bucket as private.
    BucketOwnerFullControl,
    LogDeliveryWrite,
}

impl CannedAcl {
    /// All of them, by their names.
    pub const NAMES: [(Self, &str); 8] = [
        (Self::Private, "private"),
        (Self::PublicRead, "public-read"),
        (Self::PublicReadWrite, "public-read-write"),
        (Self::AwsExecRead, "aws-exec-read"),
        (Self::AuthenticatedRead, "authenticated-read"),
        (Self::BucketOwnerRead, "bucket-owner-read"),
        (Self::BucketOwnerFullControl, "bucket-owner-full-control"),
        (Self::LogDeliveryWrite, "log-delivery-write"),
    ];

    /// The canned list of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        let found = Self::NAMES.iter().find(|(_, known)| *known == name);
        found.map(|(canned, _)| *canned)
    }

    /// The list for what belongs to `owner` (none: to who was anonymous), in or of a bucket that
    /// belongs to `bucket_owner`.
    pub fn grants(self, owner: Option<&SubjectId>, bucket_owner: Option<&SubjectId>) -> Acl {
        let to = |grantee: Grantee, permission| Grant {
            grantee,
            permission,
        };
        let subject = |id: Option<&SubjectId>, permission| {
            id.map(|id| to(Grantee::Subject(id.clone()), permission))
        };
        let group = |group, permission| to(Grantee::Group(group), permission);
        let mut grants: Vec<Grant> = subject(owner, Permission::FullControl)
            .into_iter()
            .collect();
        let is_of_another = owner != bucket_owner;
        match self {
            Self::Private | Self::AwsExecRead => {}
            Self::PublicRead => grants.push(group(Group::AllUsers, Permission::Read)),
            Self::PublicReadWrite => grants.extend([
                group(Group::AllUsers, Permission::Read),
                group(Group::AllUsers, Permission::Write),
            ]),
            Self::AuthenticatedRead => {
                grants.push(group(Group::AuthenticatedUsers, Permission::Read));
            }
            Self::BucketOwnerRead if is_of_another => {
                grants.extend(subject(bucket_owner, Permission::Read));
            }
            Self::BucketOwnerFullControl if is_of_another => {
                grants.extend(subject(bucket_owner, Permission::FullControl));
            }
            Self::BucketOwnerRead | Self::BucketOwnerFullControl => {}
            Self::LogDeliveryWrite => grants.extend([
                group(Group::LogDelivery, Permission::Write),
                group(Group::LogDelivery, Permission::ReadAcp),
            ]),
        }
        // No canned list has more than three.
        Acl::canned(owner.cloned(), grants)
    }
}
