//! What policies name: accounts, subjects, actions. No wildcards yet, and no policy.

mod account;

mod subject;

mod action;

mod action_set;

pub use account::{AccountId, NotAnId};
pub use action::{Action, ResourceKind};
pub(crate) use action_set::ActionSet;
pub use subject::SubjectId;
