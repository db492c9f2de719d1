//! The decision over all of it.

use super::public_access::PublicAccessBlock;
use crate::acl::{Acl, ObjectOwnership, is_granted};
use crate::evaluate::{Decision, Request, evaluate};
use crate::grammar::Policy;

/// What a bucket's owner has said of sharing it.
#[derive(Debug, Clone, Copy)]
pub struct Sharing<'a> {
    /// The policy, if there is one.
    pub policy: Option<&'a Policy>,
    /// The bucket's list.
    pub bucket_acl: &'a Acl,
    /// The object's or version's list, where there is such an object.
    pub object_acl: Option<&'a Acl>,
    /// Who owns objects, and whether lists count.
    pub ownership: ObjectOwnership,
    /// What blocks the public: the bucket's and the server's together.
    pub block: PublicAccessBlock,
}

/// What follows for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shared {
    /// The policy denies it, whatever else allows it.
    Denied {
        /// The statement, from 1.
        statement: usize,
    },
    /// The policy allows it.
    ByPolicy {
        /// The statement, from 1.
        statement: usize,
    },
    /// A list grants it.
    ByAcl,
    /// The policy leaves it to the account: see [`Decision::Delegate`].
    Delegated {
        /// The statement, from 1.
        statement: usize,
    },
    /// Nothing is said of it.
    Unshared,
}

/// What policy, lists, ownership and blocks say of a request together.
pub fn decide(sharing: &Sharing<'_>, request: &Request<'_>) -> Shared {
    let block = sharing.block;
    let by_policy = sharing.policy.map(|policy| {
        let decision = evaluate(policy, request);
        let is_allowed = matches!(decision, Decision::Allow { .. });
        // Whether a policy is public is asked only where that decides.
        if is_allowed && block.restricts(policy, request.requester) {
            Decision::NoMatch
        } else {
            decision
        }
    });
    let by_policy = by_policy.unwrap_or(Decision::NoMatch);
    match by_policy {
        Decision::Deny { statement } => Shared::Denied { statement },
        Decision::Allow { statement } => Shared::ByPolicy { statement },
        _ if is_granted_by_lists(sharing, request) => Shared::ByAcl,
        Decision::Delegate { statement } => Shared::Delegated { statement },
        Decision::NoMatch => Shared::Unshared,
    }
}

fn is_granted_by_lists(sharing: &Sharing<'_>, request: &Request<'_>) -> bool {
    let restricts = |policy| sharing.block.restricts(policy, request.requester);
    if !sharing.ownership.has_acls() || sharing.policy.is_some_and(restricts) {
        return false;
    }
    let bucket = sharing.block.effective_acl(sharing.bucket_acl);
    let object = sharing.object_acl;
    let object = object.map(|acl| sharing.block.effective_acl(acl));
    is_granted(
        request.action,
        request.requester,
        &bucket,
        object.as_deref(),
    )
}
