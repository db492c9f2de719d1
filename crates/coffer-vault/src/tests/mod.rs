//! Tests of the vault that concern several rooms.

mod copies_in_doubt;

pub(crate) mod erase_doubts;

mod erase_races;

mod settings_in_doubt;

mod key_releases;

mod late_rollback;

mod ordered_erases;

mod quotas_after_a_start;

mod rotation_order;

mod simulation;

mod taken_back;

mod unsaved_read_mark;
