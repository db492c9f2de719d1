//! One request, judged by what is said of sharing its bucket.

use coffer_policy::{Acl, Action, Identity, NO_GRANTS, Request, Requester, Resource, Shared};
use coffer_seal::IdText;
use coffer_store::record::Tags;
use coffer_store::version::Which;

use crate::access::{
    Asked, AskedOf, Lists, OwnValues, Right, Sharing, Subject, WithObject, is_of_object_owner,
    is_of_owner, rights_for,
};
use crate::system::BucketRow;

/// Who asks, as policies see it.
pub(super) struct Requesting<'a> {
    /// Its id, as policies and lists have it.
    pub(super) id: IdText,
    pub(super) subject: &'a Subject,
    pub(super) owns_bucket: bool,
}

impl Requesting<'_> {
    pub(super) fn requester(&self) -> Requester<'_> {
        if self.subject.is_anonymous() {
            return Requester::Anonymous;
        }
        Requester::Subject(Identity {
            id: self.id.as_str(),
            name: &self.subject.name,
            owns_bucket: self.owns_bucket,
        })
    }
}

/// What is known of the object that a request is about.
#[derive(Clone, Copy, Default)]
pub(super) struct Known<'a> {
    /// Its tags, where they are asked for.
    pub(super) tags: Option<&'a Tags>,
    /// Its list, where lists count and there is such an object.
    pub(super) list: Option<&'a Acl>,
    /// The version that is named.
    pub(super) which: Which,
    /// What the action has of its own for conditions.
    pub(super) own: Option<&'a OwnValues>,
}

/// What comes of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Verdict {
    /// It is refused.
    No,
    /// It is allowed only on an upload that who asks has begun.
    AsInitiator,
    /// A list allows it, and nothing else does.
    ByList,
    /// It is allowed.
    Yes,
}

/// Whether an action takes the place of the null version, where a bucket keeps no more versions:
/// who may not replace or delete that one, be it behind a newer one, may not do it.
pub(super) fn takes_place_of_null(action: Action, which: Which) -> bool {
    matches!(action, Action::PutObject | Action::DeleteObject) && which == Which::Current
}

/// Whether an action is asked about with the tags of the object that is there
/// (`s3:ExistingObjectTag`): what is put has not those of what it replaces, and deletions have
/// none, as on AWS.
pub(super) fn sees_tags(action: Action) -> bool {
    !matches!(
        action,
        Action::PutObject | Action::DeleteObject | Action::DeleteObjectVersion
    )
}

/// Whether an action is about an object that is there, and its list may give it.
pub(super) fn needs_object(action: Action, asked: &Asked) -> bool {
    let makes = || {
        let mut actions = asked.actions.iter();
        actions.any(|ask| ask.action == Action::PutObject)
    };
    match action {
        Action::GetObject
        | Action::GetObjectVersion
        | Action::GetObjectAcl
        | Action::GetObjectVersionAcl => true,
        // Not of one that is made with a list.
        action => is_of_object_owner(action) && !makes(),
    }
}

/// Whether an action is one that who began an upload may do to it (Amazon S3 User Guide,
/// "Multipart upload API and permissions").
fn is_of_initiator(action: Action) -> bool {
    matches!(
        action,
        Action::AbortMultipartUpload | Action::ListMultipartUploadParts
    )
}

/// All that judging takes, but what is asked for.
pub(super) struct Bench<'a> {
    pub(super) requesting: Requesting<'a>,
    pub(super) row: &'a BucketRow,
    pub(super) sharing: &'a Sharing,
    /// The bucket's list, where lists count.
    pub(super) list: Option<Acl>,
}

impl Bench<'_> {
    /// Whether an action is allowed: given by the policy or a list, or by the subject's grants and
    /// not denied.
    pub(super) fn judge(
        &self,
        action: Action,
        resource: Resource<'_>,
        asked: &Asked,
        known: Known<'_>,
    ) -> Verdict {
        let granted = || {
            if is_of_object_owner(action) && self.sharing.has_acls() {
                return self.may_give_list(resource, asked, known);
            }
            let may_say = self.requesting.owns_bucket || !is_of_owner(action);
            let rights = rights_for(action);
            may_say && rights.iter().all(|right| self.is_granted(*right))
        };
        match self.decide(action, resource, asked, known) {
            Shared::Denied { .. } => Verdict::No,
            Shared::ByPolicy { .. } => Verdict::Yes,
            Shared::ByAcl if !granted() => Verdict::ByList,
            Shared::ByAcl => Verdict::Yes,
            Shared::Delegated { .. } | Shared::Unshared if granted() => Verdict::Yes,
            Shared::Delegated { .. } | Shared::Unshared
                if is_of_initiator(action) && self.is_guest(resource, asked) =>
            {
                Verdict::AsInitiator
            }
            Shared::Delegated { .. } | Shared::Unshared => Verdict::No,
        }
    }

    /// What is said of it. A list of what is the subject's own does not give it what its grants
    /// leave out: they narrow an owner as well.
    fn decide(
        &self,
        action: Action,
        resource: Resource<'_>,
        asked: &Asked,
        known: Known<'_>,
    ) -> Shared {
        let tags = known.tags.filter(|_| sees_tags(action));
        let values = &*asked.values;
        let request = Request {
            requester: self.requesting.requester(),
            action,
            resource,
            time: asked.time,
            values: &WithObject {
                values,
                tags,
                which: known.which,
                own: known.own,
            },
        };
        let bucket = self.list.as_ref();
        let bucket = bucket.map(|list| if self.narrows(list) { &NO_GRANTS } else { list });
        let counts = |list: &Acl| !self.narrows(list) || self.is_guest(resource, asked);
        let object = known.list;
        let object = object.map(|list| if counts(list) { list } else { &NO_GRANTS });
        self.sharing.decide(&request, Lists { bucket, object })
    }

    /// Whether a list is of what belongs to a subject whose grants name what it may use.
    fn narrows(&self, list: &Acl) -> bool {
        let Requesting { id, subject, .. } = &self.requesting;
        subject.grants.is_some() && list.is_owned_by(id.as_str())
    }

    /// Whether the subject may write there by leave of the bucket's owner, by a policy or a list,
    /// and not by its grants: then what it writes is its own to use.
    fn is_guest(&self, resource: Resource<'_>, asked: &Asked) -> bool {
        let writes = self.decide(Action::PutObject, resource, asked, Known::default());
        let by_leave = matches!(writes, Shared::ByPolicy { .. } | Shared::ByAcl);
        by_leave && !self.requesting.subject.is_anonymous() && !self.is_granted(Right::Write)
    }

    fn is_granted(&self, right: Right) -> bool {
        let grants = self.requesting.subject.grants.as_deref();
        grants.is_none_or(|grants| {
            let rights = grants.get(&self.row.id);
            rights.is_some_and(|rights| rights.has(right))
        })
    }

    /// Whether the subject may give an object a list: the object's owner may, and who makes the
    /// object with it, but by leave of a policy that speaks of making it alone.
    fn may_give_list(&self, resource: Resource<'_>, asked: &Asked, known: Known<'_>) -> bool {
        let subject = self.requesting.subject;
        if subject.is_anonymous() {
            return false;
        }
        let is_made = asked.within(&self.row.name).any(|ask| {
            let is_it = ask.on.resource() == Some(resource);
            ask.action == Action::PutObject && matches!(ask.on, AskedOf::Object(..)) && is_it
        });
        if is_made {
            let made = self.decide(Action::PutObject, resource, asked, known);
            return made == Shared::ByAcl || self.is_granted(Right::Write);
        }
        let owner = known.list.and_then(Acl::owner);
        let is_bucket_owners = owner == self.list.as_ref().and_then(Acl::owner);
        let id = self.requesting.id.as_str();
        let is_own = known.list.is_some_and(|list| list.is_owned_by(id));
        let owns = is_own || (self.requesting.owns_bucket && is_bucket_owners);
        owns && self.is_granted(Right::Write)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neither_what_is_put_nor_what_is_deleted_has_tags() {
        for action in [
            Action::PutObject,
            Action::DeleteObject,
            Action::DeleteObjectVersion,
        ] {
            assert!(!sees_tags(action), "{}", action.name());
        }
        for action in [
            Action::GetObject,
            Action::GetObjectVersion,
            Action::PutObjectTagging,
            Action::DeleteObjectTagging,
        ] {
            assert!(sees_tags(action), "{}", action.name());
        }
    }
}
