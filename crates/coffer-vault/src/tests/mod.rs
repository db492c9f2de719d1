//! Tests of the vault that concern several rooms.

mod erase_races;

mod late_rollback;

mod unsaved_read_mark;
