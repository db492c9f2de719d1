//! Copies as they are shown.

use std::time::Duration;

use coffer_admin::{Replica, ReplicaGap, ReplicaKeystore, ReplicaSync};

use crate::output::printable::{age, size};
use crate::output::table::{Flush, moment, sheet, table};

fn lag(replica: &Replica) -> String {
    let bound = if is_unknown(replica) { "up to " } else { "" };
    format!("{bound}{:.1} s", replica.lag_seconds)
}

/// Whether what was complete before the server started is not known.
fn is_unknown(replica: &Replica) -> bool {
    replica.as_of.is_none() && replica.was_complete.is_none()
}

/// A moment up to which the copy is complete, or from which.
fn since(replica: &Replica, told: Option<&String>) -> String {
    match told {
        Some(at) => moment(at),
        None if is_unknown(replica) => {
            "not known: the copy was not read since the server started".to_owned()
        }
        None => "never".to_owned(),
    }
}

/// How much there is to put is not known before all was put once.
fn behind(replica: &Replica) -> String {
    match replica.as_of {
        Some(_) => format!(
            "{} of catalogs, as far as is known",
            size(replica.lag_bytes)
        ),
        None if is_unknown(replica) => "not known".to_owned(),
        None => "everything: it was never complete".to_owned(),
    }
}

/// Copies as a table.
pub(super) fn many(replicas: &[Replica]) -> String {
    let columns = [
        ("NAME", Flush::Left),
        ("STATE", Flush::Left),
        ("LAG", Flush::Right),
        ("URL", Flush::Left),
    ];
    let row = |replica: &Replica| {
        let state = replica.state.clone();
        vec![
            replica.name.clone(),
            state,
            lag(replica),
            replica.url.clone(),
        ]
    };
    table(&columns, replicas.iter().map(row))
}

/// Copies, one below the other.
pub(super) fn sheets(replicas: &[Replica]) -> String {
    let sheets: Vec<_> = replicas.iter().map(one).collect();
    sheets.join("\n")
}

/// A copy.
pub(super) fn one(replica: &Replica) -> String {
    let mut pairs = vec![
        ("name", replica.name.clone()),
        ("url", replica.url.clone()),
        ("made", moment(&replica.made_at)),
        ("state", replica.state.clone()),
        ("lag", lag(replica)),
        ("behind", behind(replica)),
        ("complete as of", since(replica, replica.as_of.as_ref())),
        ("put since start", size(replica.put_bytes)),
        ("keeps", age(Duration::from_secs(replica.keep_seconds))),
        ("restorable from", since(replica, replica.from.as_ref())),
    ];
    let gap = |gap: &ReplicaGap| format!("{} to {}", moment(&gap.from), moment(&gap.to));
    pairs.extend(replica.gaps.iter().map(|found| ("no state of", gap(found))));
    pairs.extend(
        replica
            .ahead_seconds
            .map(|seconds| ("CLOCK", ahead(seconds))),
    );
    pairs.extend(replica.keystore.iter().flat_map(keystore));
    pairs.extend(replica.sync.iter().flat_map(synchronous));
    pairs.extend(replica.problem.clone().map(|problem| ("problem", problem)));
    pairs.extend(replica.head.clone().map(|head| ("head", head)));
    sheet(pairs)
}

/// What it means that the newest head is as of a time that is yet to come.
fn ahead(seconds: u64) -> String {
    format!(
        "the newest head is as of a time that is yet to come, in {}: the server's clock was ahead, \
         or is behind. Until then `coffer restore --at` can't tell which head is of a moment \
         since, and says so",
        age(Duration::from_secs(seconds))
    )
}

/// What acknowledgements wait for.
fn synchronous(sync: &ReplicaSync) -> Vec<(&'static str, String)> {
    let wait = age(Duration::from_secs_f64(sync.wait_seconds));
    let told = match &sync.since {
        Some(since) => format!(
            "since {}, each write waits for {wait} at most",
            moment(since)
        ),
        None => "catching up: no write waits yet".to_owned(),
    };
    let mut pairs = vec![("synchronous", told)];
    if sync.waiting_count > 0 {
        pairs.push(("writes waiting", sync.waiting_count.to_string()));
    }
    if sync.in_doubt_count > 0 {
        let told = format!("{} writes, since the start", sync.in_doubt_count);
        pairs.push(("in doubt", told));
    }
    pairs
}

/// The keystore that goes along.
fn keystore(keystore: &ReplicaKeystore) -> Vec<(&'static str, String)> {
    let taken = match (keystore.generation, &keystore.taken_at) {
        (Some(generation), Some(at)) => {
            let current = keystore.current_generation;
            let at = moment(at);
            format!("generation {generation} of {current}, taken {at}")
        }
        _ => "none yet".to_owned(),
    };
    let opener = match &keystore.recipients[..] {
        [] => "the root key".to_owned(),
        recipients => recipients.join(" "),
    };
    let mut pairs = vec![("keystore", taken), ("opened by", opener)];
    if !keystore.left_out.is_empty() {
        pairs.push(("levels left out", keystore.left_out.join(" ")));
    }
    if keystore.pending_erase_count > 0 {
        let count = keystore.pending_erase_count;
        let told = format!("{count} erases wait for it to take the keystore without the keys");
        pairs.push(("PENDING", told));
    }
    pairs
}
