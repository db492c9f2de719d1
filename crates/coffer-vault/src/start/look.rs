//! What a start looks for before anything is served or changed: older copies, and newer formats.

use std::time::{Duration, Instant};

use coffer_keys::Keystore;
use coffer_store::{CATALOG, CATALOG_FILE, StoreError, commit_count_of};

use crate::data_folder::Folder;
use crate::error::{Result, Rollback, VaultError};
use crate::freshness::{Commits, Freshness};
use crate::limits::START_LOOK;
use crate::system::System;

/// Looks for older copies that were put back, and refuses them unless they are to be accepted; and
/// refuses a catalog of a newer format, before anything is served or changed.
pub(super) fn look(
    folder: &Folder,
    keystore: &Keystore,
    system: &System,
    freshness: &Freshness,
    accepts_rollback: bool,
) -> Result<Vec<Rollback>> {
    let mut found = freshness.look(folder, system)?;
    let commits = &freshness.commits;
    // To accept older copies is to accept all that there are.
    let time = (!accepts_rollback).then_some(START_LOOK);
    found.extend(look_at_catalogs(folder, keystore, system, commits, time)?);
    if found.is_empty() || accepts_rollback {
        Ok(found)
    } else {
        Err(VaultError::RolledBack { found })
    }
}

/// Only as many catalogs are looked at as a start has time for: a request that opens one of the
/// others meets it then.
fn look_at_catalogs(
    folder: &Folder,
    keystore: &Keystore,
    system: &System,
    commits: &Commits,
    time: Option<Duration>,
) -> Result<Vec<Rollback>> {
    let (begun, mut found) = (Instant::now(), Vec::new());
    for row in system.buckets() {
        if time.is_some_and(|time| begun.elapsed() > time) {
            break;
        }
        let Ok(key) = keystore.bucket_key(row.id) else {
            continue;
        };
        let path = folder.bucket(row.id).join(CATALOG_FILE);
        let key = key.catalog_key();
        match CATALOG.open_read_only(&path, &key) {
            Ok(connection) => {
                let count = commit_count_of(&connection).ok();
                drop(connection);
                let rollback = count.and_then(|count| commits.rollback(row.id, count));
                // One whose log is damaged ends early. That is told when it is used.
                let is_damaged =
                    || matches!(CATALOG.open(&path, &key), Err(StoreError::Damaged { .. }));
                found.extend(rollback.filter(|_| !is_damaged()));
            }
            Err(error @ StoreError::NewerFormat { .. }) => {
                return Err(VaultError::from(error).of_bucket(row.name.as_str(), row.id));
            }
            // What else may be wrong with it is told when it is used: other buckets are served.
            Err(_) => {}
        }
    }
    Ok(found)
}
