//! Tests of whole logs on disks that fail.

mod failing_disk;
pub(crate) mod fixture;

mod power_cuts;
mod pruned_logs;
