//! Tests of keystores, root keys and anchors on disks and in sources that fail.

pub(crate) mod failing_medium;

mod failing_source;

mod anchor_cuts;
mod move_cuts;
mod power_cuts;
