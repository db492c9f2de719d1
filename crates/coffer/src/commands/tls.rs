//! `coffer tls renew-authority`.

use clap::{Args, Subcommand};
use serde_json::json;
use std::path::Path;

use crate::error::Error;
use crate::output::table::{AnswerArgs, show_done};
use crate::tls::authority::give_up_authority;
use crate::tls::folder::Files;

/// `coffer tls`.
#[derive(Debug, Args)]
#[command(after_help = TLS_EXAMPLES, arg_required_else_help = true)]
pub struct TlsArgs {
    /// How to show the answer.
    #[command(flatten)]
    pub answer: AnswerArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: TlsCommand,
}

/// The subcommands of `coffer tls`.
#[derive(Debug, Subcommand)]
pub enum TlsCommand {
    /// Give the local authority up: the next start makes another, whose ca.pem clients need
    #[command(after_help = RENEW_EXAMPLES)]
    RenewAuthority,
}

/// Takes the local authority of a data folder away, and says what to do then.
pub fn renew_authority(data: &Path, json: bool) -> Result<(), Error> {
    let files = Files::of(data);
    give_up_authority(&files).map_err(|error| Error::Certificate {
        path: files.ca_cert(),
        problem: error.to_string(),
        advice: "give the data folder of a server with a local authority, as the user who owns it",
    })?;
    let text = format!(
        "The authority is gone. Restart the server, which makes another: until then clients and \n\
         commands that read {ca} fail. Then give clients the new one:\n\
         those that have only the old one can't connect from then on.\n",
        ca = files.ca_cert().display()
    );
    let told = json!({ "gone": files.ca_cert().display().to_string() });
    show_done(json, &told, |_| text)
}

const TLS_EXAMPLES: &str = "\
Examples:
  coffer tls renew-authority --data /srv/coffer";

const RENEW_EXAMPLES: &str = "\
The authorities of earlier servers constrain addresses, which clients on BoringSSL refuse
(`unsupported name constraint type`); the server says so in its log when it starts. A new one does
not.

Takes away DATA/tls/ca.pem and ca.key. Restart the server then, and give clients the new ca.pem:
none that has only the old one can connect.

Examples:
  coffer tls renew-authority --data /srv/coffer && systemctl restart coffer";
