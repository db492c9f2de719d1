//! Acts that may take the approval of other custodians: erases, exports, rotations, moves of the
//! root key, and pruning the audit log.
//!
//! How they are carried out is in `erase`, `rotation` and `admin`.

mod request;

mod carry_out;

mod approve;

mod guarded_acts;

pub use self::request::{ApprovalRequest, GuardedAct, GuardedOutcome};
