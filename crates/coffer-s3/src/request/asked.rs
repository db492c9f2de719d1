//! What a request asks for, in the words of policies: said to the vault where a bucket has one.
//!
//! Nothing here decides. A request to a bucket without a policy costs one look at its name.

mod actions;

mod given;

mod values;

pub(crate) mod describe;
