//! Tests of keystores, root keys and anchors on disks and in sources that fail.

mod failing_source;
mod fixture;

mod anchor_cuts;
mod move_cuts;
mod power_cuts;
