//! What is recorded, and how: the audit log, what a record says, accesses to objects, and what is
//! only counted because it repeats.
//!
//! When an act is recorded is decided by `acts`; what auditors are shown of it is in `admin`.

mod facts;

mod rate_limit;

mod log;

mod object_access;

mod filter;

pub use self::facts::Facts;
pub(crate) use self::facts::{event, whole};
pub(crate) use self::filter::Ready;
pub use self::filter::{AuditFilter, check_act};
pub(crate) use self::log::{Audit, SERVER, audit_key};
pub(crate) use self::object_access::{ObjectAudit, On, show_name};
