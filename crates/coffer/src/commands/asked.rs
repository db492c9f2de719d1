//! What becomes of an erase or an export, as commands show it.

use std::io::{self, Write};

use coffer_admin::{Outcome, PendingRequest};
use serde_json::Value;

use crate::commands::table::{moment, sheet, show};
use crate::error::Error;
use crate::printable::size;

/// Has the name typed of what is about to be erased, unless that was waived.
///
/// # Errors
/// When something else is typed, or there is nobody to ask.
pub fn confirm(what: &str, name: &str, is_waived: bool) -> Result<(), Error> {
    if is_waived {
        return Ok(());
    }
    eprint!(
        "All that {what} {name} holds will be gone for good, with its names and its keys.\n\
         Type the {what}'s name to erase it: "
    );
    let mut typed = String::new();
    let read = io::stderr()
        .flush()
        .and_then(|()| io::stdin().read_line(&mut typed));
    if read.is_ok() && typed.trim() == name {
        return Ok(());
    }
    Err(Error::Option {
        option: "NAME",
        problem: format!("that is not {name}; nothing was erased (scripts say --yes)"),
    })
}

/// Shows a receipt, or the request that was made instead.
pub fn show_outcome(json: bool, outcome: &Outcome) -> Result<(), Error> {
    match (&outcome.receipt, &outcome.request) {
        (Some(receipt), _) => show(json, receipt, receipt_sheet),
        (None, Some(request)) => {
            eprintln!(
                "it waits for approval: coffer request approve {}",
                request.id
            );
            show(json, request, request_sheet)
        }
        (None, None) => Ok(()),
    }
}

/// A request, for people.
pub fn request_sheet(request: &PendingRequest) -> String {
    sheet([
        ("request", request.id.clone()),
        ("wants", request.wants.clone()),
        ("level", request.level.clone()),
        ("bucket", request.bucket.clone().unwrap_or("-".to_owned())),
        ("requested by", request.requested_by.clone()),
        ("requested (UTC)", moment(&request.requested_at)),
        ("expires (UTC)", moment(&request.expires_at)),
        ("custodians", request.approvals.to_string()),
        ("approved by", request.approved_by.join(", ")),
    ])
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
        ("by", listed("/performed_by", "name").join(", ")),
        ("category", text("/method/category")),
        ("held by", text("/medium/holder")),
        ("destroyed by", text("/medium/destruction")),
        ("public key", text("/public_key")),
    ]);
    for (heading, path) in [("verified", "/verification"), ("remains", "/remaining")] {
        for sentence in listed(path, "") {
            lines.push_str(&format!("{heading}: {sentence}\n"));
        }
    }
    lines
}
