//! `coffer subject`, as it is typed.

use clap::{Args, Subcommand};
use coffer_admin::Grant;

use super::expiry::{expiry, expiry_or_never};
use super::key::KeyArgs;
use crate::output::table::AnswerArgs;

/// `coffer subject`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct SubjectArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: SubjectCommand,
}

/// What can be done with subjects.
#[derive(Debug, Subcommand)]
pub enum SubjectCommand {
    /// Make a subject with an access key; its secret is shown this once
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List subjects
    #[command(after_help = EXAMPLES)]
    List,
    /// Show a subject
    #[command(after_help = EXAMPLES)]
    Show(NamedArgs),
    /// Change a subject; requests under way are cut off if its access changes
    #[command(after_help = SET_EXAMPLES)]
    Set(SetArgs),
    /// Give a subject another name; all that it has and may do stays
    #[command(after_help = RENAME_EXAMPLES)]
    Rename(RenameArgs),
    /// Make, list, rotate and end a subject's access keys
    Key(KeyArgs),
    /// Stop all access keys of a subject within a second, also in requests under way
    #[command(after_help = EXAMPLES)]
    Disable(DisableArgs),
    /// Let a disabled subject's access keys count again
    #[command(after_help = EXAMPLES)]
    Enable(NamedArgs),
    /// Let a subject write low again that has read high; its requests under way are cut off
    #[command(after_help = SETTLE_EXAMPLES)]
    Settle(NamedArgs),
    /// Delete a subject and its access keys
    #[command(after_help = EXAMPLES)]
    Delete(DeleteArgs),
}

/// A subject's name.
#[derive(Debug, Args)]
pub struct NamedArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
}

/// `coffer subject disable`.
#[derive(Debug, Args)]
pub struct DisableArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// Don't ask for the name of the last system administrator to be typed
    #[arg(long)]
    pub yes: bool,
}

/// `coffer subject delete`.
#[derive(Debug, Args)]
pub struct DeleteArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// Don't ask for the name of the last system administrator to be typed
    #[arg(long)]
    pub yes: bool,
}

/// `coffer subject rename`.
#[derive(Debug, Args)]
pub struct RenameArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// Its new name: letters, digits, and . _ @ - between them
    pub new_name: String,
}

/// `coffer subject create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name: letters, digits, and . _ @ - between them
    pub name: String,
    /// What it may read and write: a level, LOW..HIGH, or a label or range such as s0-s2:c1
    #[arg(long, value_name = "LOW..HIGH", default_value = "default")]
    pub clearance: String,
    /// Trust it with its range: what it reads has no bearing on where it writes
    #[arg(long)]
    pub trusted: bool,
    /// Roles: data-user, system-administrator, key-custodian, auditor
    #[arg(
        long,
        value_name = "ROLE,…",
        value_delimiter = ',',
        default_value = "data-user"
    )]
    pub roles: Vec<String>,
    /// When it expires with all access keys: after 12h, 30d or 8w, or at 2026-12-31 (UTC)
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    pub expires: Option<String>,
    /// Let it use only this bucket, and only so: read, write, list, delete; may be repeated
    #[arg(long, value_name = "BUCKET=RIGHT,…", value_parser = grant)]
    pub grant: Vec<Grant>,
}

/// `coffer subject set`.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Subject: its name, its id or an access key id
    pub name: String,
    /// What it may read and write, written as for `create`
    #[arg(long, value_name = "LOW..HIGH")]
    pub clearance: Option<String>,
    /// Trust it with its range; a new clearance is not trusted otherwise
    #[arg(long)]
    pub trusted: bool,
    /// Trust it with its range no more
    #[arg(long, conflicts_with = "trusted")]
    pub floating: bool,
    /// Roles, instead of those it has; '' for none
    #[arg(long, value_name = "ROLE,…", value_delimiter = ',')]
    pub roles: Option<Vec<String>>,
    /// When it expires with all access keys, written as for `create`, or never
    #[arg(long, value_name = "WHEN", value_parser = expiry_or_never)]
    pub expires: Option<String>,
    /// Let it use this bucket so, instead of as before; may be repeated
    #[arg(long, value_name = "BUCKET=RIGHT,…", value_parser = grant)]
    pub grant: Vec<Grant>,
    /// Let it use this bucket no more; may be repeated
    #[arg(long, value_name = "BUCKET")]
    pub revoke: Vec<String>,
    /// Let it use every bucket that its clearance allows
    #[arg(long, conflicts_with_all = ["revoke", "grant"])]
    pub all_buckets: bool,
    /// Don't ask for the name of the last system administrator to be typed
    #[arg(long)]
    pub yes: bool,
}

/// `photos=read,list`.
fn grant(text: &str) -> Result<Grant, String> {
    let advice = || "write BUCKET=RIGHT,… with read, write, list and delete".to_owned();
    let (bucket, rights) = text.split_once('=').ok_or_else(advice)?;
    let rights: Vec<String> = rights.split(',').map(str::to_owned).collect();
    let known = |right: &String| ["read", "write", "list", "delete"].contains(&right.as_str());
    if bucket.is_empty() || !rights.iter().all(known) {
        Err(advice())
    } else {
        Ok(Grant {
            bucket: bucket.to_owned(),
            rights,
        })
    }
}

const EXAMPLES: &str = "\
A subject has a name and access keys. Its clearance says what it may read and write: it reads
what its higher label dominates, and writes what lies between the lower and the higher. Where these
differ it floats: once it has read high it does not write low, until it is settled.

Examples:
  coffer subject create ann --clearance default..secret
  coffer subject list
  coffer subject show ann --json
  coffer subject set ann --expires 30d
  coffer subject settle ann
  coffer subject rename ann ann.lee
  coffer subject key rotate ann --overlap 7d
  coffer subject disable ann
  coffer subject delete ann";

const CREATE_EXAMPLES: &str = "\
Without --grant, a subject uses and makes any buckets that its clearance allows; with it, it uses
those buckets and no others, and makes none.

Examples:
  coffer subject create ann --clearance default..secret --json
  coffer subject create backup --clearance secret --grant backups=read,write,list --expires 8w
  coffer subject create carl --roles key-custodian,auditor
  coffer subject create lab --clearance s1-s3:c1.c3";

const RENAME_EXAMPLES: &str = "\
Grants, access keys, what it has read and what it has asked for belong to the subject's id, which
stays. The audit log tells each act under the name of its time.

Examples:
  coffer subject rename ann ann.lee
  coffer subject show ann.lee";

const SETTLE_EXAMPLES: &str = "\
A key custodian's act, for when what the subject has read high can't reach what it writes low: its
program has been started anew, say. No subject settles itself.

Examples:
  coffer subject list
  coffer subject settle ann";

const SET_EXAMPLES: &str = "\
The first grant narrows a subject that could use every bucket to those it is granted.

Examples:
  coffer subject set ann --clearance secret --expires never
  coffer subject set backup --grant backups=read --revoke photos
  coffer subject set backup --all-buckets
  coffer subject set carl --roles auditor";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants() {
        let read = grant("b=read,list").unwrap();
        assert_eq!((read.bucket.as_str(), read.rights.len()), ("b", 2));
        for wrong in ["b", "b=", "=read", "b=own", "b=read,"] {
            assert!(grant(wrong).is_err(), "{wrong}");
        }
    }
}
