//! Erases and exports: how they are asked for, and what becomes of them.

use std::process::ExitCode;

use clap::Args;
use coffer_admin::{ApprovalOutcome, AuditPruned, LockTime, PendingRequest, RootRotation, Waiting};
use coffer_client::{AdminClient, segment};
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::export::Export;
use crate::error::Error;
use crate::output::asking::ask_for;
use crate::output::printable::size;
use crate::output::table::{done, moment, sheet, show, show_done};

/// The exit code when others have to approve what was asked for: it has not been done.
const WAITS: u8 = 3;

/// What the server says of an act that may take approvals.
#[derive(Deserialize)]
#[serde(untagged)]
pub enum MayWait<T> {
    /// Others have to approve it.
    Waits(Box<Waiting>),
    /// It is done.
    Done(T),
}

/// What is typed to erase something.
#[derive(Debug, Args)]
pub struct EraseArgs {
    /// Its name
    pub name: String,
    /// Don't ask for its name to be typed; for the level `default`, twice
    #[arg(long, action = clap::ArgAction::Count)]
    pub yes: u8,
}

/// Erases a `level` or a `bucket`.
pub async fn erase(
    server: &AdminClient,
    what: &'static str,
    args: &EraseArgs,
    json: bool,
) -> Result<ExitCode, Error> {
    let EraseArgs { name, yes } = args;
    confirm(what, name, *yes)?;
    let path = format!("/v1/{what}s/{}/erase", segment(name));
    let code = ask(server, &path, None::<&()>, None, json).await?;
    if is_default(what, name) && code == ExitCode::SUCCESS {
        eprintln!(
            "clients that name no level can make no buckets now: `coffer level create default \
             --rank 0` makes it anew, empty"
        );
    }
    Ok(code)
}

/// Asks for an erase or an export, and shows what became of it.
pub async fn ask(
    server: &AdminClient,
    path: &str,
    input: Option<&(impl Serialize + Sync)>,
    export: Option<Export<'_>>,
    json: bool,
) -> Result<ExitCode, Error> {
    let outcome: ApprovalOutcome = server.call(Method::POST, path, input).await?;
    tell(server, outcome, export, json)
}

/// Shows what became of what was asked for, or approved.
pub fn tell(
    server: &AdminClient,
    outcome: ApprovalOutcome,
    export: Option<Export<'_>>,
    json: bool,
) -> Result<ExitCode, Error> {
    if let Some(rotated) = &outcome.root_rotation {
        show_done(json, rotated, rerooted)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(gone) = &outcome.pruned {
        show_done(json, gone, pruned)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(clock) = &outcome.lock_time {
        show_done(json, clock, lock_time_sheet)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(name) = &outcome.replica {
        let told =
            format!("copy {name} was begun: `coffer replica status {name}` tells how far it is");
        done(json, &serde_json::json!({ "name": name }), &told)?;
        return Ok(ExitCode::SUCCESS);
    }
    match (outcome.receipt, outcome.export, export, outcome.request) {
        (Some(receipt), ..) => {
            show_done(json, &receipt, receipt_sheet)?;
            // Not on standard output, which scripts keep as the receipt.
            let id = receipt.pointer("/id").and_then(Value::as_str);
            for (copy, _) in pending(&receipt) {
                eprintln!(
                    "PENDING: copy {copy} has not taken the keystore without the keys yet; \
                     `coffer receipt show {}` says when it has",
                    id.unwrap_or("ID")
                );
            }
            if let Some(keep_apart) = outcome.keep_apart {
                eprintln!("{keep_apart}");
            }
        }
        (None, Some(text), Some(export), _) => export.save(&text, json)?,
        (None, None, _, Some(request)) => return waits(&request, json),
        _ => return Err(server.misunderstood("gave an unknown answer").into()),
    }
    Ok(ExitCode::SUCCESS)
}

/// Tells people on standard error: scripts keep standard output as a receipt or an export.
pub fn waits(request: &PendingRequest, json: bool) -> Result<ExitCode, Error> {
    let sheet = request_sheet(request);
    if request.approved {
        eprintln!(
            "{sheet}it is approved, and not done: it takes what no request keeps, so who asked \
             for it asks again"
        )
    } else {
        let because = request.because.iter();
        let because: String = because.map(|because| format!("{because}\n")).collect();
        eprintln!(
            "{sheet}{because}it waits for approval, and is not done: coffer request approve {}",
            request.id
        )
    }
    if json {
        show(true, request, request_sheet)?;
    }
    Ok(ExitCode::from(WAITS))
}

/// Has the name typed of what is about to be erased, unless that was waived: for the level
/// `default` twice.
///
/// # Errors
/// When something else is typed, or there is no terminal to ask at.
pub fn confirm(what: &str, name: &str, waived: u8) -> Result<(), Error> {
    let is_default = is_default(what, name);
    if waived > u8::from(is_default) {
        return Ok(());
    }
    let more = if is_default {
        "Buckets of clients that name no level are in it, and such clients can make none \
             until it is made anew.\n"
    } else {
        ""
    };
    let wanted = if is_default {
        "erase default".to_owned()
    } else {
        name.to_owned()
    };
    let asks_for = if is_default {
        "`erase default`".to_owned()
    } else {
        format!("the {what}'s name")
    };
    let scripts = if is_default { "--yes --yes" } else { "--yes" };
    let question = format!(
        "All that {what} {name} holds will be gone for good, with its names and its keys.\n\
         {more}Type {asks_for} to erase it: "
    );
    ask_for(&wanted, &question, "erased", scripts)
}

/// Whether it is the level that clients get who name none.
fn is_default(what: &str, name: &str) -> bool {
    what == "level" && name == "default"
}

/// A request, for people: what it is about, and nothing of what it is not.
fn request_sheet(request: &PendingRequest) -> String {
    let approved = match request.approved_by_names.as_slice() {
        [] => "who asked for it, and none else yet".to_owned(),
        names => format!("{}, and who asked for it", names.join(", ")),
    };
    let rows = [
        ("request", Some(request.id.clone())),
        ("wants", Some(request.wants.clone())),
        (
            "level",
            Some(request.level.clone().unwrap_or("all".to_owned())),
        ),
        ("to", request.to.clone()),
        ("records before", request.before.clone()),
        ("lock time", request.lock_time.clone()),
        ("replica", request.replica.clone()),
        ("bucket", request.bucket.clone()),
        ("requested by", Some(requester(request))),
        ("requested (UTC)", Some(moment(&request.requested_at))),
        ("expires (UTC)", Some(moment(&request.expires_at))),
        ("custodians", Some(request.approvals.to_string())),
        ("approved by", Some(approved)),
    ];
    let told = rows
        .into_iter()
        .filter_map(|(name, value)| Some((name, value?)));
    sheet(told)
}

/// Who asked, by name and access key.
pub fn requester(request: &PendingRequest) -> String {
    match &request.requested_by_name {
        Some(name) => format!("{name} ({})", request.requested_by),
        None => request.requested_by.clone(),
    }
}

/// That the root key was rotated, for people.
pub fn rerooted(rotated: &RootRotation) -> String {
    format!(
        "the old root key is destroyed ({}); generation {} of the keystore opens with the new one \
         alone\n{}\n",
        rotated.destruction, rotated.generation, rotated.keep_apart
    )
}

/// The time by which locks end, for people.
pub fn lock_time_sheet(clock: &LockTime) -> String {
    let off = clock.behind_seconds;
    let (days, hours) = (off.abs() / 86_400, off.abs() % 86_400 / 3_600);
    let how = if off < 0 { "ahead of" } else { "behind" };
    let off = match off.abs() {
        0..60 => "none".to_owned(),
        seconds @ 60..3_600 => format!("{} minutes {how} the clock", seconds / 60),
        _ => format!("{days} days and {hours} hours {how} the clock"),
    };
    sheet([
        ("locks end by (UTC)", moment(&clock.lock_time)),
        ("server's clock (UTC)", moment(&clock.clock)),
        ("difference", off),
    ])
}

/// What was pruned, for people.
fn pruned(pruned: &AuditPruned) -> String {
    let (Some(first), Some(last)) = (pruned.first_sequence, pruned.last_sequence) else {
        return "nothing was pruned: no whole segment is that old\n".to_owned();
    };
    format!(
        "pruned {} records, {first} to {last}; the last one's hash is {}\n",
        pruned.count,
        pruned.last_hash.as_deref().unwrap_or("-")
    )
}

/// Who had something erased: names, where a receipt has them, and access key ids.
fn people(receipt: &Value) -> String {
    let people = receipt.pointer("/performed_by").and_then(Value::as_array);
    let told = people.into_iter().flatten().map(|person| {
        let text = |member: &str| person.get(member).and_then(Value::as_str);
        let id = text("name").unwrap_or("-");
        text("subject").map_or(id.to_owned(), |name| format!("{name} ({id})"))
    });
    told.collect::<Vec<_>>().join(", ")
}

/// The copies that are yet to take the keystore without the keys: their names, and whether the
/// receipt, of this version, has their ids.
fn pending(receipt: &Value) -> Vec<(String, bool)> {
    let copies = receipt.pointer("/copies").and_then(Value::as_array);
    let is_pending = |copy: &&Value| {
        let state = copy.pointer("/keystore/state");
        state.and_then(Value::as_str) == Some("pending")
    };
    let named = |copy: &Value| {
        let name = copy.get("name")?.as_str()?.to_owned();
        Some((name, copy.get("id").is_some()))
    };
    let pending = copies.into_iter().flatten().filter(is_pending);
    pending.filter_map(named).collect()
}

/// What a receipt says of sealed copies.
fn copies(receipt: &Value) -> Vec<String> {
    let copies = receipt.pointer("/copies").and_then(Value::as_array);
    let told = |copy: &Value| {
        let text = |name: &str| copy.get(name).and_then(Value::as_str).unwrap_or("-");
        let (name, url, holds) = (text("name"), text("url"), text("holds"));
        format!("{name} ({url}) could hold {holds}")
    };
    copies.into_iter().flatten().map(told).collect()
}

/// A receipt, for people: what matters of it.
pub fn receipt_sheet(receipt: &Value) -> String {
    let text = |path: &str| match receipt.pointer(path) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => "-".to_owned(),
        Some(other) => other.to_string(),
    };
    let listed = |path: &str, of: &str| {
        let entries = receipt.pointer(path).and_then(Value::as_array);
        let entries = entries.into_iter().flatten();
        let named = entries.filter_map(|entry| match of {
            "" => entry.as_str(),
            of => entry.get(of).and_then(Value::as_str),
        });
        named.map(str::to_owned).collect::<Vec<_>>()
    };
    let bytes = receipt.pointer("/erased/bytes").and_then(Value::as_u64);
    let mut lines = sheet([
        ("receipt", text("/id")),
        ("erased", text("/erased/what")),
        ("level", text("/erased/level/name")),
        ("buckets", listed("/erased/buckets", "name").join(", ")),
        ("objects", text("/erased/objects")),
        ("size", bytes.map_or("-".to_owned(), size)),
        ("exports of its key", text("/erased/level/exports")),
        ("erased at", text("/erased_at")),
        ("by", people(receipt)),
        ("category", text("/method/category")),
        ("held by", text("/medium/holder")),
        ("destroyed by", text("/medium/destruction")),
        ("public key", text("/public_key")),
    ]);
    if receipt.pointer("/signed_again_at").is_some() {
        let at = text("/signed_again_at");
        lines.push_str(&format!(
            "signed again: {at}, when a pending copy was done\n"
        ));
    }
    for (heading, path) in [("verified", "/verification"), ("remains", "/remaining")] {
        for sentence in listed(path, "") {
            lines.push_str(&format!("{heading}: {sentence}\n"));
        }
    }
    for copy in copies(receipt) {
        lines.push_str(&format!("copy: {copy}\n"));
    }
    for (copy, _) in pending(receipt).iter().filter(|(_, has_id)| !has_id) {
        let generation = text("/erased/keystore_generation");
        lines.push_str(&format!(
            "PENDING: this receipt is of an earlier version, which has no id of copy {copy}: it is \
             signed again only where that copy was made at the very moment that it says. Where it \
             is the copy of this name that there is now, and `coffer replica status {copy}` says \
             that it took generation {generation} of the keystore or a later one, it has none with \
             the keys any more: keep that with this receipt. Where it is another one, remove what \
             that one left in its store\n"
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receipt_that_names_no_id_of_a_pending_copy_says_what_to_do() {
        let keystore = serde_json::json!({ "state": "pending" });
        let mut receipt = serde_json::json!({
            "erased": { "keystore_generation": 7 },
            "copies": [{ "name": "engine", "keystore": keystore }],
        });
        let told = receipt_sheet(&receipt);
        assert!(
            told.contains("coffer replica status engine") && told.contains("generation 7"),
            "{told}"
        );
        receipt["copies"][0]["id"] = "3f".into();
        assert!(!receipt_sheet(&receipt).contains("coffer replica status"));
    }

    #[test]
    fn a_request_tells_what_it_is_about() {
        let mut request: PendingRequest = serde_json::from_value(serde_json::json!({
            "id": "3f", "wants": "level.erase", "level": "secret", "recipients": [],
            "requested_by": "CFA", "requested_by_name": "ann",
            "requested_at": "2026-01-01T00:00:00.000Z",
            "expires_at": "2026-01-02T00:00:00.000Z", "approvals": 2, "approved_by": [],
            "approved_by_names": [], "approved": false,
        }))
        .unwrap();
        let told = request_sheet(&request);
        assert!(
            told.contains("secret") && told.contains("who asked for it, and none else yet"),
            "{told}"
        );
        assert!(
            !told.contains("records before") && !told.contains("lock time"),
            "{told}"
        );
        assert!(told.lines().all(|line| !line.ends_with(" -")), "{told}");
        request.approved_by_names = vec!["ben".to_owned()];
        assert!(request_sheet(&request).contains("ben, and who asked for it"));
    }
}
