//! `coffer lock-time`.

use std::process::ExitCode;

use clap::{Args, Subcommand};
use coffer_admin::{LockTime, LockTimeRequest};
use coffer_client::AdminClient;

use crate::commands::approval_outcome::{ask, lock_time_sheet};
use crate::error::Error;
use crate::output::moments::time_or_ago;
use crate::output::table::{AnswerArgs, show};

/// `coffer lock-time`.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES, disable_help_subcommand = true)]
pub struct LockTimeArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// What to do.
    #[command(subcommand)]
    pub command: LockTimeCommand,
}

/// What can be done with the time by which locks end.
#[derive(Debug, Subcommand)]
pub enum LockTimeCommand {
    /// Show how far it has come, and by how much it is behind the server's clock
    #[command(after_help = EXAMPLES)]
    Show,
    /// Set it forward to a time that has passed, on your word: locks end that ended before that
    #[command(after_help = EXAMPLES)]
    Confirm {
        /// What time it is at least: such as 2026-11-20 or '2026-11-20 18:31' (UTC), or 5m ago
        #[arg(value_name = "TIME", value_parser = time_or_ago)]
        time: String,
    },
}

/// Asks, and shows the answer.
pub async fn lock_time(server: &AdminClient, args: &LockTimeArgs) -> Result<ExitCode, Error> {
    let json = args.answer.json;
    match &args.command {
        LockTimeCommand::Show => {
            let clock: LockTime = server.get("/v1/lock-time").await?;
            show(json, &clock, lock_time_sheet)?;
            Ok(ExitCode::SUCCESS)
        }
        LockTimeCommand::Confirm { time } => {
            let request = LockTimeRequest { time: time.clone() };
            ask(server, "/v1/lock-time/confirm", Some(&request), None, json).await
        }
    }
}

const EXAMPLES: &str = "\
Object locks end by a time of their own. While the server runs it goes with the machine's time since
its start; across a stop it follows the clock for a week at most. After a longer stop it is behind,
and locks end late by that, unless a key custodian says what time it is.

Confirmed wrongly, locks are gone too early, for good: look at a second clock first. The time goes
forward only, and never past the server's clock. It is recorded as lock-time.confirm. Where any
level takes two custodians this does as well, and ends with status 3: it waits for approval.

Examples:
  coffer lock-time show
  coffer lock-time confirm '2026-11-20 18:31'
  coffer lock-time confirm 2026-11-20 --json";
