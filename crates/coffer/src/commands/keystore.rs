//! `coffer keystore`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{Keystore, MoveRequest, RootRotation, Rotation, Secret};
use coffer_client::AdminClient;
use coffer_keys::SourceSpec;
use http::Method;

use crate::commands::approval_outcome::{MayWait, rerooted, waits};
use crate::commands::rotation::rotations_table;
use crate::error::Error;
use crate::output::table::{AnswerArgs, Flush, sheet, show, show_done, table, yes_no};
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
    /// Put everything under a new root key, and destroy the old one
    #[command(after_help = EXAMPLES)]
    Rotate,
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
        KeystoreCommand::Rotate => {
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
                MayWait::Done::<Keystore>(moved) => show_done(json, &moved, one)?,
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
        ("which is", keystore.category.clone()),
        ("may remain", keystore.remaining.clone()),
        ("move to be completed", yes_no(keystore.is_moving)),
        ("memory of keys", key_memory(keystore)),
        ("levels", keystore.level_count.to_string()),
        ("buckets", keystore.bucket_count.to_string()),
        (
            "buckets being rotated",
            keystore.rotating_bucket_count.to_string(),
        ),
    ])
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

const EXAMPLES: &str = "\
The root key opens the keystore, which holds all other keys. Where it lies decides what an old
copy of the disk is worth after an erase: nothing, when it was in a token.

Where any level takes two custodians, rotating and moving the root key do as well, and end with
status 3: they wait for approval. A passphrase or PIN is kept nowhere meanwhile: once the move is
approved, who asked for it gives the same command again.

Generations: each change of the keystore makes a new one, which opens with the present root key
alone. Keys of levels and buckets have their own, from 1; of buckets, `coffer bucket show` tells.

Examples:
  coffer keystore status
  coffer keystore rotate
  coffer keystore move --to passphrase
  coffer keystore move --to keyring
  coffer keystore move \\
    --to 'pkcs11:token=coffer?module-path=/usr/lib/softhsm.so&pin-source=file:/run/pin'";
