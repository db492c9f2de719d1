//! What a policy says of a request.
//!
//! *IAM User Guide*, Policy evaluation logic
//! (`IAM/latest/UserGuide/reference_policies_evaluation-logic.html`): an explicit deny wins over
//! every allow, whatever the order of the statements.

mod request;

mod known_values;

mod decision;

pub use crate::conditions::{ListedValues, NoValues, Values};
pub use decision::{Decision, evaluate, is_shared_with};
pub(crate) use known_values::ANONYMOUS_ID;
pub use request::{Identity, Request, Requester, Resource};
