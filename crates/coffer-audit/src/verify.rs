//! Verifying a log: all of it is read, and what is wrong with it becomes findings in a report.
//! Damage that opening a log meets is handled in `write`.

pub(crate) mod finding;

pub(crate) mod diagnosis;

mod rollbacks;

pub(crate) mod verifier;
