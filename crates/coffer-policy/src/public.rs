//! Whether a policy is public.
//!
//! *Amazon S3 User Guide*, Blocking public access to your Amazon S3 storage, The meaning of
//! "public" (`AmazonS3/latest/userguide/access-control-block-public-access.html`): a policy is
//! public unless all that it allows is for fixed principals, or under a condition with fixed
//! values, without wildcards and variables, of one of the keys listed there. A fixed range of
//! addresses that is wider than /8 (IPv6: /32) is none.
//!
//! Stricter than that page in two points: the fixed user id `anonymous` is the public, and so is a
//! fixed key of encryption, which who is anonymous can name here as well.

use ipnet::IpNet;

use crate::conditions::{Condition, Key, NoValues, Operands, Qualifier, Value};
use crate::evaluate::ANONYMOUS_ID;
use crate::grammar::{Effect, Policy, Principal, Statement};
use crate::limits::{PUBLIC_IPV4_PREFIX_BITS, PUBLIC_IPV6_PREFIX_BITS};
use crate::truth::Truth;

/// Whether the policy allows anything to the public: what `GetBucketPolicyStatus` tells and
/// `BlockPublicPolicy` refuses. What a policy denies doesn't count.
pub fn is_public(policy: &Policy) -> bool {
    policy.statements().iter().any(is_public_statement)
}

fn is_public_statement(statement: &Statement) -> bool {
    let is_for_all = statement.principals.contains(&Principal::Everyone);
    let is_limited = statement.conditions.iter().any(limits_to_fixed);
    statement.effect == Effect::Allow && is_for_all && !is_limited
}

/// Whether the condition holds for fixed values alone. One that is negated, or that holds without a
/// value, doesn't.
fn limits_to_fixed(condition: &Condition) -> bool {
    let operator = condition.operator;
    if operator.negated || operator.if_exists || operator.qualifier == Qualifier::All {
        return false;
    }
    match (&condition.key, &condition.operands) {
        (Key::SourceIp, Operands::Networks(networks)) => networks.iter().all(is_narrow),
        (
            Key::PrincipalArn | Key::PrincipalAccount | Key::UserId,
            Operands::Texts(_) | Operands::TextsIgnoringCase(_) | Operands::Arns(_),
        ) => {
            let anonymous = Value::from(ANONYMOUS_ID);
            let is_anonymous = condition.operands.match_value(&anonymous, &NoValues);
            condition.operands.are_fixed() && is_anonymous == Truth::No
        }
        _ => false,
    }
}

fn is_narrow(network: &IpNet) -> bool {
    match network {
        IpNet::V4(network) => network.prefix_len() >= PUBLIC_IPV4_PREFIX_BITS,
        IpNet::V6(network) => network.prefix_len() >= PUBLIC_IPV6_PREFIX_BITS,
    }
}
