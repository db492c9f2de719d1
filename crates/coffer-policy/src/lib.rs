//! Bucket policies, in the language that AWS documents for them, and access control lists: what
//! they say of a request.
//!
//! A [`Policy`] is read from JSON ([`Policy::parse`]), kept with its principals bound to the ids of
//! subjects ([`Policy::to_stored`]), and shown with their names ([`Policy::shown`]). [`evaluate`]
//! is a pure function of a policy and a [`Request`]: no I/O, no clock, no state. An explicit deny
//! wins. [`is_public`] says what `GetBucketPolicyStatus` and `BlockPublicPolicy` ask. [`decide`]
//! puts the policy together with access control lists ([`Acl`]), [`ObjectOwnership`] and
//! [`PublicAccessBlock`].
//!
//! Where it can't be known whether a condition or a pattern holds (a variable without a value, a
//! value of another kind than the key's), a statement that allows doesn't match and one that
//! denies does: the third value is carried through and decided at the end.
//!
//! The sources, all on `docs.aws.amazon.com`, are named in the modules: *IAM User Guide*, JSON
//! policy elements; *Amazon S3 User Guide*; *Service Authorization Reference*, Amazon S3. Where
//! AWS's pages leave a choice, decision 37 says what was chosen.
//!
//! ```
//! use coffer_policy::{
//!     AccountId, Action, Decision, NoValues, Policy, Request, Requester, Resource, Subjects,
//!     SubjectId, Timestamp, evaluate, is_public,
//! };
//!
//! struct NoSubjects;
//! impl Subjects for NoSubjects {
//!     fn id_of_name(&self, _name: &str) -> Option<SubjectId> {
//!         None
//!     }
//!     fn name_of_id(&self, _id: &SubjectId) -> Option<String> {
//!         None
//!     }
//! }
//!
//! let text = br#"{"Version": "2012-10-17", "Statement": {
//!     "Effect": "Allow", "Principal": "*",
//!     "Action": "s3:GetObject", "Resource": "arn:aws:s3:::site/public/*"}}"#;
//! let account: AccountId = "111122223333".parse()?;
//! let policy = Policy::parse(text, "site", &account, &NoSubjects)?;
//! let request = Request {
//!     requester: Requester::Anonymous,
//!     action: Action::GetObject,
//!     resource: Resource::Object("public/index.html"),
//!     time: Timestamp::from_seconds(1_790_000_000),
//!     values: &NoValues,
//! };
//! assert_eq!(evaluate(&policy, &request), Decision::Allow { statement: 1 });
//! assert!(is_public(&policy));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

pub mod limits;

mod error;

mod truth;

mod names;

mod conditions;

mod grammar;

mod evaluate;

mod public;

mod acl;

mod sharing;

#[doc(hidden)]
pub mod fuzzing;

pub use acl::{
    Acl, AclRefusal, CannedAcl, Grant, Grantee, Group, NO_GRANTS, ObjectOwnership, Permission,
    TooManyGrants, grants_in_header,
};
pub use conditions::{Decimal, Key, Timestamp, Value};
pub use error::{Element, Fault, Place, PolicyError};
pub use evaluate::{
    Decision, Identity, ListedValues, NoValues, Request, Requester, Resource, Values, evaluate,
    is_shared_with,
};
pub use grammar::{Effect, Policy, Subjects};
pub use names::{AccountId, Action, NotAnId, ResourceKind, SubjectId};
pub use public::is_public;
pub use sharing::{PublicAccessBlock, PublicPolicy, Shared, Sharing, decide};
