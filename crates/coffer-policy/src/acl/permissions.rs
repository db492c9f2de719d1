//! Which permission an action needs, and on which list.
//!
//! *Amazon S3 User Guide*, ACL overview, Mapping of ACL permissions and access policy permissions.
//! What isn't in that table, no list permits.

use super::grants::{Acl, Permission};
use crate::evaluate::Requester;
use crate::names::Action;

/// Whether lists permit an action: that of the bucket, and that of the object if there is one.
pub(crate) fn is_granted(
    action: Action,
    requester: Requester<'_>,
    bucket: &Acl,
    object: Option<&Acl>,
) -> bool {
    let on_bucket = |permission| bucket.permits(requester, permission);
    let on_object = |permission| object.is_some_and(|acl| acl.permits(requester, permission));
    match action {
        Action::ListBucket | Action::ListBucketVersions | Action::ListBucketMultipartUploads => {
            on_bucket(Permission::Read)
        }
        Action::GetBucketAcl => on_bucket(Permission::ReadAcp),
        Action::PutBucketAcl => on_bucket(Permission::WriteAcp),
        // New objects; those that are there are for the two owners to replace and delete.
        Action::PutObject => {
            let may_replace = object.is_none_or(|acl| is_owner(acl, requester));
            on_bucket(Permission::Write) && (may_replace || is_owner(bucket, requester))
        }
        Action::DeleteObject => {
            let owns = object.is_some_and(|acl| is_owner(acl, requester));
            on_bucket(Permission::Write) && (owns || is_owner(bucket, requester))
        }
        Action::DeleteObjectVersion => on_bucket(Permission::Write) && is_owner(bucket, requester),
        Action::GetObject | Action::GetObjectVersion => on_object(Permission::Read),
        Action::GetObjectAcl | Action::GetObjectVersionAcl => on_object(Permission::ReadAcp),
        Action::PutObjectAcl | Action::PutObjectVersionAcl => on_object(Permission::WriteAcp),
        _ => false,
    }
}

fn is_owner(acl: &Acl, requester: Requester<'_>) -> bool {
    match requester {
        Requester::Anonymous => false,
        Requester::Subject(identity) => acl.is_owned_by(identity.id),
    }
}
