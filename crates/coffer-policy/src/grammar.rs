//! The grammar: from JSON to a policy and back.
//!
//! *IAM User Guide*, Grammar of the IAM JSON policy language
//! (`IAM/latest/UserGuide/reference_policies_grammar.html`), with what *Amazon S3 User Guide* says
//! of buckets in Policies and permissions in Amazon S3
//! (`AmazonS3/latest/userguide/access-policy-language-overview.html`). Stricter than JSON: no field
//! twice, none that is unknown, sizes and depth bounded.

mod json;

mod principals;

mod actions;

mod resources;

mod statement;

mod policy;

pub use policy::Policy;
pub use principals::Subjects;
pub(crate) use principals::{Principal, user_arn};
pub use statement::Effect;
pub(crate) use statement::Statement;
