//! Tests of whole logs on disks that fail.

pub(crate) mod fixture;

mod power_cuts;
mod pruned_logs;
