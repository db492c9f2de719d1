//! `coffer request`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::PendingRequest;
use coffer_vault::VaultError;
use serde_json::json;

use crate::commands::asked::{ask, confirm};
use crate::commands::export::Export;
use crate::commands::table::{Flush, done, moment, show, table};
use crate::error::Error;
use crate::remote::{Remote, segment};

/// `coffer request`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct RequestArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: RequestCommand,
}

/// What can be done with requests.
#[derive(Debug, Subcommand)]
pub enum RequestCommand {
    /// List erases and exports that wait for an approval
    #[command(after_help = EXAMPLES)]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve what another custodian has asked for; with the last approval it is done
    #[command(after_help = APPROVE_EXAMPLES)]
    Approve(ApproveArgs),
    /// Withdraw a request
    #[command(after_help = EXAMPLES)]
    Withdraw {
        /// The request's id
        id: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// `coffer request approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The request's id
    pub id: String,
    /// Don't ask for the name of what is erased to be typed
    #[arg(long)]
    pub yes: bool,
    /// Where to write an export: a file that is not there yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Asks, and shows the answer.
pub async fn request(remote: &Remote, command: &RequestCommand) -> Result<ExitCode, Error> {
    match command {
        RequestCommand::List { json } => {
            show(*json, &waiting(remote).await?, |requests| many(requests))?;
        }
        RequestCommand::Approve(args) => return approve(remote, args).await,
        RequestCommand::Withdraw { id, json } => {
            remote
                .delete(&format!("/v1/requests/{}", segment(id)))
                .await?;
            done(*json, &json!({ "id": id, "withdrawn": true }))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn waiting(remote: &Remote) -> Result<Vec<PendingRequest>, Error> {
    remote.get("/v1/requests").await
}

/// First looks up what is approved: an erase wants a name typed, an export a file.
async fn approve(remote: &Remote, args: &ApproveArgs) -> Result<ExitCode, Error> {
    let requests = waiting(remote).await?;
    let named = |request: &&PendingRequest| request.id == args.id;
    let request = requests.iter().find(named);
    let request = request.ok_or(VaultError::NoSuchRequest)?;
    let is_export = request.wants == "key.export";
    match &request.bucket {
        _ if is_export => {}
        Some(bucket) => confirm("bucket", bucket, args.yes)?,
        None => confirm("level", &request.level, args.yes)?,
    }
    let export = is_export.then(|| export(request, args)).transpose()?;
    let path = format!("/v1/requests/{}/approve", segment(&args.id));
    ask(remote, &path, None::<&()>, export, args.json).await
}

fn export<'a>(request: &'a PendingRequest, args: &ApproveArgs) -> Result<Export<'a>, Error> {
    let out = args.out.as_deref();
    if args.json && out.is_none() {
        return Err(Error::Option {
            option: "--json",
            problem: "this is an export: give the file that it goes to as well, with --out"
                .to_owned(),
        });
    }
    Export::new(&request.level, &request.recipients, out)
}

fn many(requests: &[PendingRequest]) -> String {
    let columns = [
        ("REQUEST", Flush::Left),
        ("WANTS", Flush::Left),
        ("LEVEL", Flush::Left),
        ("BUCKET", Flush::Left),
        ("BY", Flush::Left),
        ("EXPIRES (UTC)", Flush::Left),
    ];
    let row = |request: &PendingRequest| {
        vec![
            request.id.clone(),
            request.wants.clone(),
            request.level.clone(),
            request.bucket.clone().unwrap_or("-".to_owned()),
            request.requested_by.clone(),
            moment(&request.expires_at),
        ]
    };
    table(&columns, requests.iter().map(row))
}

const APPROVE_EXAMPLES: &str = "\
Whoever approves an erase types the name of what is erased, as whoever asked for it did. Whoever
approves an export last gets it.

Exit status 3: it takes the approval of yet others, and is not done.

Examples:
  coffer request approve 3f2a9c… --endpoint https://coffer.example.org:9001
  coffer request approve 3f2a9c… --yes --json > receipt.json
  coffer request approve 3f2a9c… --out secret.age";

const EXAMPLES: &str = "\
A level of two custodians (`coffer level create NAME --rank N --approvals 2`) is erased, and its
key exported, only when another custodian than who asked approves it, within a day.

Examples:
  coffer request list
  coffer request approve 3f2a9c… --endpoint https://coffer.example.org:9001
  coffer request withdraw 3f2a9c…";
