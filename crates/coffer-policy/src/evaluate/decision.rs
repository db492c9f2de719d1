//! The decision.

use super::known_values::KnownValues;
use super::request::{Request, Requester};
use crate::grammar::{Effect, Policy, Principal, Statement};
use crate::names::Action;
use crate::truth::Truth;

/// What a policy says of a request. Statements are counted from 1, as errors count them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// A statement denies it, or can't be known not to.
    Deny {
        /// The first that does.
        statement: usize,
    },
    /// A statement allows it for this requester, by name or as one of everyone.
    Allow {
        /// The first that does.
        statement: usize,
    },
    /// A statement allows it for the account as a whole, and none for this requester: as on AWS,
    /// that leaves to the account which of its subjects may.
    Delegate {
        /// The first that does.
        statement: usize,
    },
    /// The policy says nothing of it.
    NoMatch,
}

/// What the policy says of the request. The same for statements in any other order, but for their
/// numbers.
///
/// Who owns the bucket may always read, replace and delete its policy, as the root user of an
/// account may on AWS: of that a policy never says anything to them.
pub fn evaluate(policy: &Policy, request: &Request<'_>) -> Decision {
    if is_owner_at_the_policy(request) {
        return Decision::NoMatch;
    }
    let mut allowed = None;
    let mut delegated = None;
    for (number, statement) in (1..).zip(policy.statements()) {
        if statement.effect == Effect::Allow && allowed.is_some() {
            continue;
        }
        // First what costs least: most statements are about other actions.
        if !statement.actions.set.contains(request.action) {
            continue;
        }
        let whom = principal(statement, request.requester);
        if whom == Whom::None {
            continue;
        }
        let matched = matches_request(statement, policy, request);
        match (statement.effect, matched) {
            (Effect::Deny, Truth::Yes | Truth::Unknown) => {
                return Decision::Deny { statement: number };
            }
            (Effect::Allow, Truth::Yes) if whom == Whom::Account => {
                delegated = delegated.or(Some(number));
            }
            (Effect::Allow, Truth::Yes) => allowed = Some(number),
            _ => {}
        }
    }
    match (allowed, delegated) {
        (Some(statement), _) => Decision::Allow { statement },
        (None, Some(statement)) => Decision::Delegate { statement },
        (None, None) => Decision::NoMatch,
    }
}

/// Whether a statement of the policy allows anything at all to this requester, by name or as one of
/// everyone: then it is no secret from it that there is such a bucket.
pub fn is_shared_with(policy: &Policy, requester: Requester<'_>) -> bool {
    let mut statements = policy.statements().iter();
    statements.any(|statement| {
        statement.effect == Effect::Allow && principal(statement, requester) == Whom::Requester
    })
}

/// *Amazon S3 API Reference*, `PutBucketPolicy`: a policy can't lock out who owns the bucket.
fn is_owner_at_the_policy(request: &Request<'_>) -> bool {
    let is_owner =
        matches!(request.requester, Requester::Subject(identity) if identity.owns_bucket);
    let is_at_the_policy = matches!(
        request.action,
        Action::GetBucketPolicy | Action::PutBucketPolicy | Action::DeleteBucketPolicy
    );
    is_owner && is_at_the_policy
}

/// How a statement means the requester.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Whom {
    None,
    /// As one of the account.
    Account,
    /// As itself, or as one of everyone.
    Requester,
}

fn principal(statement: &Statement, requester: Requester<'_>) -> Whom {
    // What most statements say, and everyone is one of.
    if !statement.is_not_principal && statement.principals == [Principal::Everyone] {
        return Whom::Requester;
    }
    let is_named = |principal: &Principal| match (principal, requester) {
        (Principal::Everyone, _) => true,
        (Principal::Subject(id), Requester::Subject(identity)) => id.as_str() == identity.id,
        _ => false,
    };
    let is_account = |principal: &Principal| *principal == Principal::Account;
    let Requester::Subject(identity) = requester else {
        let is_meant = statement.principals.iter().any(is_named) != statement.is_not_principal;
        return if is_meant {
            Whom::Requester
        } else {
            Whom::None
        };
    };
    if statement.is_not_principal {
        // Naming the account spares its owner alone: its other subjects are to be named.
        let is_spared = |principal: &Principal| {
            is_named(principal) || (is_account(principal) && identity.owns_bucket)
        };
        let is_meant = !statement.principals.iter().any(is_spared);
        return if is_meant {
            Whom::Requester
        } else {
            Whom::None
        };
    }
    if statement.principals.iter().any(is_named) {
        Whom::Requester
    } else if statement.principals.iter().any(is_account) {
        Whom::Account
    } else {
        Whom::None
    }
}

fn matches_request(statement: &Statement, policy: &Policy, request: &Request<'_>) -> Truth {
    let values = KnownValues {
        request,
        account: policy.account(),
    };
    let name = request.resource.name();
    let resources = statement.resources.iter();
    let resource = Truth::any(resources.map(|resource| resource.matches(name, &values)));
    let resource = resource.not_if(statement.is_not_resource);
    if resource == Truth::No {
        return Truth::No;
    }
    let conditions = statement.conditions.iter();
    let conditions = Truth::all(conditions.map(|condition| condition.holds(&values)));
    resource.min(conditions)
}
