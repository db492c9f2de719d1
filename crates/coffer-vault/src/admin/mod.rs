//! What administrators, custodians and auditors do: levels, subjects, the keystore, imports,
//! sign-ins, and queries of the audit log.
//!
//! What takes the approval of others is in `approvals`.

mod sign_in_failures;

mod sign_in;

mod levels;

mod subjects;

mod access_keys;

mod settle_subject;

mod keystore;

mod import;

mod audit_query;

mod quotas;

pub use self::access_keys::AccessKeyChange;
pub use self::audit_query::{AuditItem, AuditQuery};
pub use self::import::{Adoption, Imported, LEFT_BEHIND};
pub use self::keystore::KeystoreStatus;
pub use self::levels::{LevelInfo, NewLevel};
pub use self::quotas::QuotaInfo;
pub use self::sign_in::SignInFailure;
pub use self::sign_in_failures::{SignInFailures, neighbourhood};
pub use self::subjects::{NewSubject, SubjectChange, SubjectInfo};
