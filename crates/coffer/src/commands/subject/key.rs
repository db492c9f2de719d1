//! `coffer subject key`.

use std::time::Duration;

use clap::{Args, Subcommand};
use coffer_admin::{AccessKey, AccessKeyChanges, AccessKeyRequest, MadeAccessKey, RotationRequest};
use coffer_client::{AdminClient, segment};
use http::Method;
use serde_json::json;

use super::expiry::{expiry, expiry_or_never};
use super::meant::meant;
use crate::error::Error;
use crate::output::printable::span;
use crate::output::table::{
    Flush, check_output, done, moment, or_dash, sheet, show, show_done, table,
};

/// `coffer subject key`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct KeyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: KeyCommand,
}

/// What can be done with access keys.
#[derive(Debug, Subcommand)]
pub enum KeyCommand {
    /// Make one more access key for a subject; its secret is shown this once
    #[command(after_help = EXAMPLES)]
    Create(CreateArgs),
    /// List a subject's access keys
    #[command(after_help = EXAMPLES)]
    List(OwnerArgs),
    /// Make a new access key, and end the others after an overlap
    #[command(after_help = ROTATE_EXAMPLES)]
    Rotate(RotateArgs),
    /// Change when an access key expires
    #[command(after_help = EXAMPLES)]
    Set(SetArgs),
    /// Stop an access key within a second, also in requests under way
    #[command(after_help = EXAMPLES)]
    Disable(EndArgs),
    /// Let a disabled access key count again
    #[command(after_help = EXAMPLES)]
    Enable(KeyIdArgs),
    /// Delete an access key
    #[command(after_help = EXAMPLES)]
    Delete(EndArgs),
}

/// Whose access keys.
#[derive(Debug, Args)]
pub struct OwnerArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
}

/// An access key's id.
#[derive(Debug, Args)]
pub struct KeyIdArgs {
    /// Access key id
    #[arg(value_name = "KEY-ID")]
    pub id: String,
}

/// An access key that is to end.
#[derive(Debug, Args)]
pub struct EndArgs {
    /// Access key id
    #[arg(value_name = "KEY-ID")]
    pub id: String,
    /// Also where no system administrator is left
    #[arg(long)]
    pub yes: bool,
}

/// `coffer subject key create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// When the access key expires: after 12h, 30d or 8w, or at 2026-12-31 (UTC)
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    pub expires: Option<String>,
}

/// `coffer subject key rotate`.
#[derive(Debug, Args)]
pub struct RotateArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// For how long the access keys that count now go on to do so: 30m, 12h, 7d; 0s for none
    #[arg(long, value_name = "TIME", value_parser = overlap)]
    pub overlap: Duration,
    /// When the new access key expires, written as for `create`
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    pub expires: Option<String>,
    /// Also where no system administrator is left
    #[arg(long)]
    pub yes: bool,
}

/// `coffer subject key set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Access key id
    #[arg(value_name = "KEY-ID")]
    pub id: String,
    /// When it expires, written as for `create`, or never
    #[arg(long, value_name = "WHEN", value_parser = expiry_or_never)]
    pub expires: String,
    /// Also where no system administrator is left
    #[arg(long)]
    pub yes: bool,
}

fn overlap(text: &str) -> Result<Duration, String> {
    let advice = "write a time such as 30m, 12h, 7d or 2w; 0s for none";
    span(text).ok_or_else(|| advice.to_owned())
}

/// The access keys of a subject.
fn keys(subject: &str) -> String {
    format!("/v1/subjects/{}/keys", segment(subject))
}

/// One access key, by which its subject is found as well.
fn one_key(id: &str) -> String {
    format!("{}/{}", keys(id), segment(id))
}

/// Asks, and shows the answer.
pub async fn key(server: &AdminClient, args: &KeyArgs, json: bool) -> Result<(), Error> {
    match &args.command {
        KeyCommand::Create(CreateArgs { name, expires }) => {
            let request = AccessKeyRequest {
                expires_at: expires.clone(),
            };
            make(server, &keys(name), &request, name, json).await
        }
        KeyCommand::List(OwnerArgs { name }) => {
            let found: Vec<AccessKey> = server.get(&keys(name)).await?;
            show(json, &found, |found| many(found))
        }
        KeyCommand::Rotate(args) => {
            let request = RotationRequest {
                overlap_seconds: args.overlap.as_secs(),
                expires_at: args.expires.clone(),
            };
            let path = meant(&format!("{}/rotate", keys(&args.name)), args.yes);
            make(server, &path, &request, &args.name, json).await
        }
        KeyCommand::Set(args) => {
            let changes = AccessKeyChanges {
                expires_at: Some(args.expires.clone()),
                ..AccessKeyChanges::default()
            };
            change(server, (&args.id, args.yes), &changes, json).await
        }
        KeyCommand::Disable(EndArgs { id, yes }) => switch(server, (id, *yes), true, json).await,
        KeyCommand::Enable(KeyIdArgs { id }) => switch(server, (id, false), false, json).await,
        KeyCommand::Delete(EndArgs { id, yes }) => {
            server.delete(&meant(&one_key(id), *yes)).await?;
            let told = json!({ "access_key_id": id, "deleted": true });
            done(json, &told, &format!("access key {id} was deleted"))
        }
    }
}

async fn make<T: serde::Serialize + Sync>(
    server: &AdminClient,
    path: &str,
    request: &T,
    name: &str,
    json: bool,
) -> Result<(), Error> {
    // The secret is answered once.
    check_output()?;
    let made: MadeAccessKey = server.call(Method::POST, path, Some(request)).await?;
    let shown = show_done(json, &made, |made| {
        let secret = &made.secret_access_key.0;
        let head = sheet([
            ("subject", made.subject.clone()),
            ("access key id", made.access_key_id.clone()),
            ("secret access key", secret.clone()),
        ]);
        let note = "\nKeep the secret access key: it is not shown again.\n\n";
        head + note + &many(&made.access_keys)
    });
    shown.map_err(|error| match error {
        Error::Unwritten { source, .. } => Error::Unwritten {
            remedy: format!(
                "; a new access key of {name} is there, and its secret is lost: `coffer subject \
                 key list {name}` shows it, `coffer subject key delete KEY-ID` removes it"
            ),
            source,
        },
        error => error,
    })
}

async fn switch(
    server: &AdminClient,
    place: (&str, bool),
    disabled: bool,
    json: bool,
) -> Result<(), Error> {
    let changes = AccessKeyChanges {
        disabled: Some(disabled),
        ..AccessKeyChanges::default()
    };
    change(server, place, &changes, json).await
}

async fn change(
    server: &AdminClient,
    (id, is_meant): (&str, bool),
    changes: &AccessKeyChanges,
    json: bool,
) -> Result<(), Error> {
    let changed: AccessKey = server
        .call(Method::PATCH, &meant(&one_key(id), is_meant), Some(changes))
        .await?;
    show_done(json, &changed, |changed| {
        many(std::slice::from_ref(changed))
    })
}

fn many(found: &[AccessKey]) -> String {
    let columns = [
        ("ACCESS KEY ID", Flush::Left),
        ("STATE", Flush::Left),
        ("EXPIRES (UTC)", Flush::Left),
        ("CREATED (UTC)", Flush::Left),
    ];
    let row = |key: &AccessKey| {
        let expires = key.expires_at.as_deref().map(moment).unwrap_or_default();
        vec![
            key.id.clone(),
            key.state.clone(),
            or_dash(&expires),
            moment(&key.created_at),
        ]
    };
    table(&columns, found.iter().map(row))
}

const EXAMPLES: &str = "\
A subject has up to 8 access keys, so that one can take over from another. What it may do belongs to
the subject: all of its access keys can do the same. Where there are 8, a new one takes the place of
the one that expired first.

Examples:
  coffer subject key create ann --expires 90d --json
  coffer subject key list ann
  coffer subject key set CFBGFNATKCGUJCJDAPRS --expires never
  coffer subject key disable CFBGFNATKCGUJCJDAPRS
  coffer subject key delete CFBGFNATKCGUJCJDAPRS";

const ROTATE_EXAMPLES: &str = "\
The access keys that count now go on for the overlap, in which programs are given the new one; those
that expire before do so. Disabled ones stay disabled.

Examples:
  coffer subject key rotate ann --overlap 7d --json
  coffer subject key rotate ann --overlap 0s     # a key was stolen: the others end at once";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps() {
        assert_eq!(overlap("0s").unwrap(), Duration::ZERO);
        assert_eq!(overlap("7d").unwrap(), Duration::from_secs(604_800));
        for wrong in ["", "7", "d", "-1d", "never", "2026-12-31T00:00:00Z"] {
            assert!(overlap(wrong).is_err(), "{wrong}");
        }
    }
}
