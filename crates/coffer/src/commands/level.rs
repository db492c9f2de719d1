//! `coffer level`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{Level, LevelRequest};
use coffer_client::{AdminClient, segment};
use http::Method;

use crate::commands::approval_outcome::{EraseArgs, erase};
use crate::commands::rotation::{RotateArgs, rotate};
use crate::error::Error;
use crate::output::table::{
    AnswerArgs, Flush, moment, or_dash, sheet, show, show_done, table, yes_no,
};

/// `coffer level`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct LevelArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: LevelCommand,
}

/// What can be done with levels.
#[derive(Debug, Subcommand)]
pub enum LevelCommand {
    /// Make a level, with a key of its own; none of what is said here can be changed later
    #[command(after_help = CREATE_EXAMPLES)]
    Create(CreateArgs),
    /// List levels
    #[command(after_help = EXAMPLES)]
    List,
    /// Erase a level: destroy its key and those of its buckets, at once and for good
    #[command(after_help = ERASE_EXAMPLES)]
    Erase(EraseArgs),
    /// Give a level and its buckets new keys, while they are in use
    #[command(after_help = ERASE_EXAMPLES)]
    Rotate(RotateArgs),
    /// Show a level
    #[command(after_help = EXAMPLES)]
    Show {
        /// Level
        name: String,
    },
}

/// `coffer level create`.
#[derive(Debug, Args)]
pub struct CreateArgs {
    /// Name: 1 to 63 of a to z, 0 to 9 and `-`, but none of an AWS region
    pub name: String,
    /// How sensitive its data is, from 0 to 15
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(..=15))]
    pub rank: u8,
    /// What its data is about: any of c0 to c1023 [default: none]
    #[arg(
        long,
        value_name = "c1.c3,c7",
        default_value = "",
        hide_default_value = true
    )]
    pub categories: String,
    /// Never let its key be exported
    #[arg(long)]
    pub no_export: bool,
    /// How many custodians an erase or an export takes
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub approvals: u8,
    /// Record reads and writes of its objects in the audit log
    #[arg(long)]
    pub audit_data: bool,
    /// Let its buckets be shared with those who sign nothing: rank 0, no categories
    #[arg(long)]
    pub public: bool,
    /// Have an erase win over object locks, legal holds too: said in each receipt
    #[arg(long)]
    pub erase_breaks_locks: bool,
    /// Let clients have data keys, for sealed transfer: who keeps one can open that object for ever
    #[arg(long)]
    pub sealed_transfer: bool,
    /// Let it have the label of another level: who reads one reads both
    #[arg(long)]
    pub same_label: bool,
}

/// Asks, and shows the answer.
pub async fn level(server: &AdminClient, args: &LevelArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        LevelCommand::Erase(args) => return erase(server, "level", args, json).await,
        LevelCommand::Create(args) => {
            let request = LevelRequest {
                name: args.name.clone(),
                rank: args.rank,
                categories: args.categories.clone(),
                no_export: args.no_export,
                approvals: args.approvals,
                audit_data: args.audit_data,
                public: args.public,
                erase_breaks_locks: args.erase_breaks_locks,
                sealed_transfer: args.sealed_transfer,
                same_label: args.same_label,
            };
            let made: Level = server
                .call(Method::POST, "/v1/levels", Some(&request))
                .await?;
            show_done(json, &made, one)?;
        }
        LevelCommand::List => {
            let levels: Vec<Level> = server.get("/v1/levels").await?;
            show(json, &levels, |levels| many(levels))?;
        }
        LevelCommand::Rotate(args) => return rotate(server, "level", args, json).await,
        LevelCommand::Show { name } => {
            let path = format!("/v1/levels/{}", segment(name));
            show(json, &server.get::<Level>(&path).await?, one)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn many(levels: &[Level]) -> String {
    let columns = [
        ("LEVEL", Flush::Left),
        ("LABEL", Flush::Left),
        ("BUCKETS", Flush::Right),
        ("GENERATION", Flush::Right),
        ("EXPORTS", Flush::Right),
        ("PUBLIC", Flush::Left),
        ("BREAKS LOCKS", Flush::Left),
        ("SEALED TRANSFER", Flush::Left),
        ("CREATED (UTC)", Flush::Left),
    ];
    let row = |level: &Level| {
        vec![
            level.name.clone(),
            level.label.clone(),
            level.bucket_count.to_string(),
            level.generation.to_string(),
            level.export_count.to_string(),
            yes_no(level.public),
            yes_no(level.erase_breaks_locks),
            yes_no(level.sealed_transfer),
            moment(&level.created_at),
        ]
    };
    table(&columns, levels.iter().map(row))
}

fn one(level: &Level) -> String {
    sheet([
        ("level", level.name.clone()),
        ("id, in metrics", level.id.clone()),
        ("label", level.label.clone()),
        ("rank", level.rank.to_string()),
        ("categories", or_dash(&level.categories)),
        ("buckets", level.bucket_count.to_string()),
        ("key generation", level.generation.to_string()),
        ("key exports", level.export_count.to_string()),
        ("may be exported", yes_no(!level.no_export)),
        ("key came from another server", yes_no(level.imported)),
        (
            "custodians for erase and export",
            level.approvals.to_string(),
        ),
        ("reads and writes are audited", yes_no(level.audit_data)),
        ("may be shared with everyone", yes_no(level.public)),
        (
            "an erase breaks object locks",
            yes_no(level.erase_breaks_locks),
        ),
        ("clients may have data keys", yes_no(level.sealed_transfer)),
        ("created (UTC)", moment(&level.created_at)),
    ])
}

const EXAMPLES: &str = "\
A level is a name, a rank from 0 to 15 and a set of categories. Each has a key of its own; every
bucket belongs to one. The level `default` has rank 0 and is there from the start.

Examples:
  coffer level create secret --rank 2
  coffer level list
  coffer level show secret --json
  coffer level list --endpoint https://coffer.example.org:9001 --credentials custodian.ini";

const ERASE_EXAMPLES: &str = "\
Erasing takes as long for a terabyte as for a byte, and prints a signed receipt. Rotating rewraps
keys and leaves data as it is; a server that is stopped meanwhile goes on with it. It waits for
copies that the keystore goes along with. What backups and copies have of moments before it loses
objects of more than 16 KiB: the keys that wrapped theirs are destroyed. At a terminal it is asked
whether that is meant, unless --yes says so.

Exit status 3: other custodians have to approve the erase first, and nothing is erased yet.

Examples:
  coffer level erase secret
  coffer level erase secret --yes --json > receipt.json
  coffer level rotate secret";

const CREATE_EXAMPLES: &str = "\
Examples:
  coffer level create secret --rank 2
  coffer level create tenant-a --rank 1 --categories c1
  coffer level create ward --rank 3 --categories c1.c3,c7 --no-export --approvals 2 --audit-data
  coffer level create site --rank 0 --public --same-label
  coffer level create video --rank 1 --categories c5 --sealed-transfer";
