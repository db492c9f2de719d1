//! What a request asks for, in the words of policies: said to the vault where a bucket has one.
//!
//! Nothing here decides. A request to a bucket without a policy costs one look at its name. What
//! only reads is judged by the policy that there is, and says what that asks for; what changes
//! something says all that a policy could ask which comes before it is committed.

mod actions;

mod besides;

mod given;

mod values;

pub(crate) mod describe;
