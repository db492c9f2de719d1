//! `coffer request`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{ApprovalOutcome, PendingRequest};
use coffer_client::{AdminClient, segment};
use coffer_vault::VaultError;
use http::Method;
use serde_json::json;

use crate::commands::approval_outcome::{confirm, requester, tell};
use crate::commands::export::Export;
use crate::commands::rotation::follow;
use crate::error::Error;
use crate::output::table::{AnswerArgs, Flush, done, moment, show, table};

/// `coffer request`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct RequestArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: RequestCommand,
}

/// What can be done with requests.
#[derive(Debug, Subcommand)]
pub enum RequestCommand {
    /// List what waits for an approval
    #[command(after_help = EXAMPLES)]
    List,
    /// Approve what another custodian has asked for; with the last approval it is done
    #[command(after_help = APPROVE_EXAMPLES)]
    Approve(ApproveArgs),
    /// Withdraw a request
    #[command(after_help = EXAMPLES)]
    Withdraw {
        /// The request's id
        id: String,
    },
}

/// `coffer request approve`.
#[derive(Debug, Args)]
pub struct ApproveArgs {
    /// The request's id
    pub id: String,
    /// Don't ask for the name of what is erased to be typed
    #[arg(long, action = clap::ArgAction::Count)]
    pub yes: u8,
    /// Where to write an export: a file that is not there yet [default: standard output]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// Asks, and shows the answer.
pub async fn request(server: &AdminClient, args: &RequestArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        RequestCommand::List => {
            show(json, &waiting(server).await?, |requests| many(requests))?;
        }
        RequestCommand::Approve(args) => return approve(server, args, json).await,
        RequestCommand::Withdraw { id } => {
            server
                .delete(&format!("/v1/requests/{}", segment(id)))
                .await?;
            let told = json!({ "id": id, "withdrawn": true });
            done(json, &told, &format!("request {id} was withdrawn"))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

async fn waiting(server: &AdminClient) -> Result<Vec<PendingRequest>, Error> {
    Ok(server.get("/v1/requests").await?)
}

/// First looks up what is approved: an erase wants a name typed, an export a file.
async fn approve(server: &AdminClient, args: &ApproveArgs, json: bool) -> Result<ExitCode, Error> {
    let requests = waiting(server).await?;
    let named = |request: &&PendingRequest| request.id == args.id;
    let request = requests.iter().find(named);
    let request = request.ok_or(VaultError::NoSuchRequest)?;
    let is_export = ["key.export", "keystore.backup"].contains(&&*request.wants);
    match (&request.bucket, &request.level, &*request.wants) {
        (Some(bucket), _, "bucket.erase") => confirm("bucket", bucket, args.yes)?,
        (_, Some(level), "level.erase") => confirm("level", level, args.yes)?,
        _ => {}
    }
    let level = request.level.as_deref();
    let export = || Export::new(level, &request.recipients, args.out.as_deref(), json);
    let export = is_export.then(export).transpose()?;
    let path = format!("/v1/requests/{}/approve", segment(&args.id));
    let mut outcome: ApprovalOutcome = server.call(Method::POST, &path, None::<&()>).await?;
    match (outcome.rotation.take(), &outcome.request) {
        (Some(rotation), _) => follow(server, rotation, json).await,
        // Nothing is left to be approved.
        (None, Some(request)) if request.approved => {
            let told = format!("approved: {} has to ask for it again", requester(request));
            done(json, request, &told)?;
            Ok(ExitCode::SUCCESS)
        }
        _ => tell(server, outcome, export, json),
    }
}

fn state(request: &PendingRequest) -> String {
    let spoken = request.approved_by.len() + 1;
    if request.approved {
        "yes: to be asked for again".to_owned()
    } else {
        format!("{spoken} of {}", request.approvals)
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
Who approves an erase types the name of what is erased, as the one who asked for it
did. Who approves an export last gets it.

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
