//! `coffer keystore`.

pub mod lock_time;

use std::process::ExitCode;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use coffer_admin::{
    ExportRequest, Keystore, KeystoreBackup, MoveRequest, RootRotation, Rotation, Secret,
};
use coffer_client::AdminClient;
use coffer_keys::SourceSpec;
use http::Method;

use crate::commands::approval_outcome::{MayWait, ask, rerooted, waits};
use crate::commands::export::Export;
use crate::commands::rotation::{confirm, rotations_table};
use crate::error::Error;
use crate::output::table::{AnswerArgs, Flush, moment, sheet, show, show_done, table, yes_no};
use crate::secrets::passphrase::PassphraseArgs;
use crate::secrets::root_source::secrets_for;

/// `coffer keystore`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct KeystoreArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: KeystoreCommand,
}

/// What can be done with the keystore.
#[derive(Debug, Subcommand)]
pub enum KeystoreCommand {
    /// Show where the root key is, what destroying it there proves, and what is being rotated
    #[command(after_help = EXAMPLES)]
    Status,
    /// Seal the root key for recipients of age, which can open every level with it
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup {
        /// Who can open it: a recipient of age; may be repeated
        #[arg(long, value_name = "AGE-RECIPIENT", required = true, num_args = 1.., alias = "to")]
        recipient: Vec<String>,
        /// Where to write it: a file that is not there yet [default: standard output]
        #[arg(long, value_name = "FILE", alias = "out")]
        output: Option<PathBuf>,
    },
    /// Put everything under a new root key, and destroy the old one
    #[command(after_help = EXAMPLES)]
    Rotate {
        /// Don't ask; without a terminal it is not asked for
        #[arg(long)]
        yes: bool,
    },
    /// Move the root key into another source, without a stop, and destroy the old one
    #[command(after_help = EXAMPLES)]
    Move {
        /// file, file:/PATH, passphrase, keyring, keyring:NAME, or a PKCS#11 URI
        #[arg(long, value_name = "SOURCE")]
        to: SourceSpec,
        /// Where the new passphrase comes from.
        #[command(flatten)]
        passphrase: PassphraseArgs,
    },
}

/// Asks, and shows the answer.
pub async fn keystore(server: &AdminClient, args: &KeystoreArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        KeystoreCommand::Status => {
            let keystore: Keystore = server.get("/v1/keystore").await?;
            show(json, &keystore, |keystore| {
                format!("{}\n{}", one(keystore), level_keys(keystore))
            })?;
            let rotations: Vec<Rotation> = server.get("/v1/rotations").await?;
            if !json && !rotations.is_empty() {
                show(false, &rotations, |rotations| {
                    format!("\n{}", rotations_table(rotations))
                })?;
            }
        }
        KeystoreCommand::Backup { recipient, output } => {
            let export = Export::new(None, recipient, output.as_deref(), json)?;
            let request = ExportRequest {
                recipients: recipient.clone(),
            };
            let path = "/v1/keystore/backup";
            return ask(server, path, Some(&request), Some(export), json).await;
        }
        KeystoreCommand::Rotate { yes } => {
            confirm(DESTROYED, *yes)?;
            let path = "/v1/keystore/rotate";
            match server.call(Method::POST, path, None::<&()>).await? {
                MayWait::Waits(waiting) => return waits(&waiting.request, json),
                MayWait::Done::<RootRotation>(rotated) => show_done(json, &rotated, rerooted)?,
            }
        }
        KeystoreCommand::Move { to, passphrase } => {
            let secrets = secrets_for(to, passphrase)?;
            let text = |bytes: &[u8]| match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Secret(text.to_owned())),
                Err(_) => Err(Error::Option {
                    option: "passphrase",
                    problem: "it is not text in UTF-8".to_owned(),
                }),
            };
            let request = MoveRequest {
                to: to.to_string(),
                passphrase: secrets
                    .passphrase
                    .as_deref()
                    .map(|it| text(it))
                    .transpose()?,
                pin: secrets.pin.as_ref().map(|pin| Secret(pin.to_string())),
            };
            let path = "/v1/keystore/move";
            match server.call(Method::POST, path, Some(&request)).await? {
                MayWait::Waits(waiting) => return waits(&waiting.request, json),
                MayWait::Done::<Keystore>(moved) => show_done(json, &moved, |moved| {
                    let stale = "copies of the root key from before do not open the data any more";
                    format!("{}\n{stale}; {}\n", one(moved), moved.keep_apart)
                })?,
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn one(keystore: &Keystore) -> String {
    sheet([
        ("keystore", keystore.id.clone()),
        ("keystore generation", keystore.generation.to_string()),
        ("root key in", keystore.source.clone()),
        ("held by", keystore.holder.clone()),
        ("destroyed by", keystore.destruction.clone()),
        (
            "which is",
            format!("{}, as NIST SP 800-88 calls it", keystore.category),
        ),
        ("may remain", keystore.remaining.clone()),
        ("move to be completed", yes_no(keystore.is_moving)),
        ("to be kept apart", keystore.keep_apart.clone()),
        (
            "last backup (UTC)",
            keystore.backup.as_ref().map_or("none".to_owned(), backup),
        ),
        ("memory of keys", key_memory(keystore)),
        ("levels", keystore.level_count.to_string()),
        ("buckets", keystore.bucket_count.to_string()),
        (
            "buckets being rotated",
            keystore.rotating_bucket_count.to_string(),
        ),
    ])
}

fn backup(backup: &KeystoreBackup) -> String {
    let (made, recipients) = (moment(&backup.made_at), backup.recipients.join(" "));
    if backup.opens {
        format!("{made}, opens the keystore as it is, for {recipients}")
    } else {
        format!(
            "{made}, STALE: the root key has changed since; make a new one, as for {recipients}"
        )
    }
}

fn level_keys(keystore: &Keystore) -> String {
    let columns = [("LEVEL", Flush::Left), ("KEY GENERATION", Flush::Right)];
    let keys = keystore.level_keys.iter();
    table(
        &columns,
        keys.map(|key| vec![key.level.clone(), key.generation.to_string()]),
    )
}

fn key_memory(keystore: &Keystore) -> String {
    match keystore.unlocked_key_bytes {
        0 => "locked: it can not be swapped out".to_owned(),
        _ => "NOT LOCKED: raise LimitMEMLOCK (systemd) or `ulimit -l`, or turn swap off".to_owned(),
    }
}

const DESTROYED: &str = "\
The root key of now will be destroyed: copies of it, of its passphrase or of what opens it, and
backups by `coffer keystore backup` open nothing then; a backup of the folder opens with the root
key of its time alone.";

const BACKUP_EXAMPLES: &str = "\
The backup opens to the file root.key, wherever the root key is now. It opens all data of the
folder, as long as no erase, rotation or move has changed the root key: they say so, and `coffer
keystore status` tells whether the last backup still opens. It counts as an export of every level,
on receipts as well, takes as many custodians as any level wants, and is refused where a level
forbids exports.

With a backup, a stopped server whose root key is lost starts again:
  age --decrypt --identity key.txt root-key.age > DATA/root.key && chmod 600 DATA/root.key
(and, if the root key was not in a file, without DATA/keystore.source).

Exit status 3: other custodians have to approve it first. Who approves last gets it.

Examples:
  coffer keystore backup --output root-key.age \\
    --recipient age1qyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqszqgpqyqs3290gq
  coffer keystore backup --recipient age1… > root-key.age";

const EXAMPLES: &str = "\
The root key opens the keystore, which holds all other keys. Where it lies decides what an old
copy of the disk is worth after an erase: nothing, when it was in a token.

Where any level takes two custodians, rotating and moving the root key do as well, and end with
status 3: they wait for approval. A passphrase or PIN is kept nowhere meanwhile: once the move is
approved, who asked for it gives the same command again.

Generations: each change of the keystore makes a new one, which opens with the present root key
alone. Keys of levels and buckets have their own, from 1; of buckets, `coffer bucket show` tells.

Moved into the kernel's keyring, the root key is gone with the next reboot, and all data with it,
unless there is a backup: make one at once, and after each act that says that the root key changed.

Examples:
  coffer keystore status
  coffer keystore backup --recipient age1… --output root-key.age
  coffer keystore rotate
  coffer keystore move --to passphrase
  coffer keystore move --to keyring
  coffer keystore move \\
    --to 'pkcs11:token=coffer?module-path=/usr/lib/softhsm.so&pin-source=file:/run/pin'";
