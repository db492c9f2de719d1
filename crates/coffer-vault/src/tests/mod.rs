//! Tests of the vault that concern several rooms.

use std::path::Path;
use std::sync::Arc;

use crate::access::Subject;
use crate::vault::Vault;

mod copies_in_doubt;

mod erase_doubts;

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

/// The subject that a first start has made, by the access key that it has left in `credentials`.
pub(crate) fn first_subject(vault: &Vault, data: &Path) -> Arc<Subject> {
    let text = std::fs::read_to_string(data.join("credentials")).unwrap();
    let id = text.split("aws_access_key_id = ").nth(1).unwrap();
    vault.subject(id.lines().next().unwrap()).unwrap()
}
