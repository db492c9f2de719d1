//! `coffer request`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{ApprovalOutcome, PendingRequest};
use coffer_vault::VaultError;
use http::Method;
use serde_json::json;

use crate::commands::approval_outcome::{confirm, requester, tell};
use crate::commands::export::Export;
use crate::commands::rotation::follow;
use crate::error::Error;
use crate::output::table::{Flush, done, moment, show, table};
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
    /// List what waits for an approval
    #[command(after_help = EXAMPLES)]
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Approve what somebody else has asked for; with the last approval it is done
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
    match (&request.bucket, &request.level, &*request.wants) {
        (Some(bucket), _, "bucket.erase") => confirm("bucket", bucket, args.yes)?,
        (_, Some(level), "level.erase") => confirm("level", level, args.yes)?,
        _ => {}
    }
    let export = is_export.then(|| export(request, args)).transpose()?;
    let path = format!("/v1/requests/{}/approve", segment(&args.id));
    let mut outcome: ApprovalOutcome = remote.call(Method::POST, &path, None::<&()>).await?;
    match (outcome.rotation.take(), &outcome.request) {
        (Some(rotation), _) => follow(remote, rotation, args.json).await,
        // Nothing is left to be approved.
        (None, Some(request)) if request.approved => {
            eprintln!("approved: {} has to ask for it again", requester(request));
            done(args.json, request)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => tell(remote, outcome, export, args.json),
    }
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
    let level = request.level.as_deref().unwrap_or_default();
    Export::new(level, &request.recipients, out)
}

fn state(request: &PendingRequest) -> String {
    let spoken = request.approved_by.len() + 1;
    match request.approved {
        true => "yes: to be asked for again".to_owned(),
        false => format!("{spoken} of {}", request.approvals),
    }
}

fn many(requests: &[PendingRequest]) -> String {
    let columns = [
        ("REQUEST", Flush::Left),
        ("WANTS", Flush::Left),
        ("LEVEL", Flush::Left),
        ("BUCKET", Flush::Left),
        ("BY", Flush::Left),
        ("APPROVED", Flush::Left),
        ("EXPIRES (UTC)", Flush::Left),
    ];
    let row = |request: &PendingRequest| {
        vec![
            request.id.clone(),
            request.wants.clone(),
            request.level.clone().unwrap_or("all".to_owned()),
            request.bucket.clone().unwrap_or("-".to_owned()),
            requester(request),
            state(request),
            moment(&request.expires_at),
        ]
    };
    table(&columns, requests.iter().map(row))
}

const APPROVE_EXAMPLES: &str = "\
Who approves an erase types the name of what is erased, as whoever asked for it did. Whoever
approves an export last gets it.

Exit status 3: it takes the approval of yet others, and is not done.

Examples:
  coffer request approve 3f2a9c… --endpoint https://coffer.example.org:9001
  coffer request approve 3f2a9c… --yes --json > receipt.json
  coffer request approve 3f2a9c… --out secret.age";

const EXAMPLES: &str = "\
A level of two custodians (`coffer level create NAME --rank N --approvals 2`) is erased, and its
key exported or rotated, only when another custodian than who asked approves it, within a day. So
is the root key rotated or moved, where there is such a level.

Examples:
  coffer request list
  coffer request approve 3f2a9c… --endpoint https://coffer.example.org:9001
  coffer request withdraw 3f2a9c…";
