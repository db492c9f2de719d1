//! `coffer request`.

use clap::{Args, Subcommand};
use coffer_admin::{Outcome, PendingRequest};
use http::Method;

use crate::commands::asked::show_outcome;
use crate::commands::key::save_export;
use crate::commands::table::{Flush, moment, show, table};
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
    #[command(after_help = EXAMPLES)]
    Approve {
        /// The request's id
        id: String,
        /// Where to write an export [default: standard output]
        #[arg(long, value_name = "FILE")]
        out: Option<std::path::PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Withdraw a request
    #[command(after_help = EXAMPLES)]
    Withdraw {
        /// The request's id
        id: String,
    },
}

/// Asks, and shows the answer.
pub async fn request(remote: &Remote, command: &RequestCommand) -> Result<(), Error> {
    match command {
        RequestCommand::List { json } => {
            let requests: Vec<PendingRequest> = remote.get("/v1/requests").await?;
            show(*json, &requests, |requests| many(requests))
        }
        RequestCommand::Approve { id, out, json } => {
            let path = format!("/v1/requests/{}/approve", segment(id));
            let outcome: Outcome = remote.call(Method::POST, &path, None::<&()>).await?;
            match &outcome.export {
                Some(export) => save_export(export, out.as_deref()),
                None => show_outcome(*json, &outcome),
            }
        }
        RequestCommand::Withdraw { id } => {
            let path = format!("/v1/requests/{}", segment(id));
            remote.call(Method::DELETE, &path, None::<&()>).await
        }
    }
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

const EXAMPLES: &str = "\
A level of two custodians (`coffer level create NAME --rank N --approvals 2`) is erased, and its
key exported, only when another custodian than who asked approves it, within a day.

Examples:
  coffer request list
  coffer request approve 3f2a9c… --endpoint https://coffer.example.org:9001
  coffer request withdraw 3f2a9c…";
