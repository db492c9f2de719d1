//! The command line: what can be asked of the program, with its help.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use coffer_keys::SourceSpec;

use crate::commands::audit::AuditArgs;
use crate::commands::bucket::BucketArgs;
use crate::commands::key::KeyArgs;
use crate::commands::keystore::KeystoreArgs;
use crate::commands::level::LevelArgs;
use crate::commands::receipt::ReceiptArgs;
use crate::commands::request::RequestArgs;
use crate::commands::subject_args::SubjectArgs;
use crate::error::Error;
use crate::passphrase::PassphraseArgs;
use crate::remote::RemoteArgs;

mod offline;

mod prove;

mod tls;

mod verify;

pub use self::offline::{OfflineArgs, OfflineCommand};
pub use self::prove::ProveArgs;
pub use self::tls::{TlsArgs, TlsCommand};
pub use self::verify::VerifyArgs;

/// An S3-compatible storage server that never writes a readable byte.
#[derive(Debug, Parser)]
#[command(
    name = "coffer",
    version,
    arg_required_else_help = true,
    disable_help_subcommand = true,
    after_help = TOP_EXAMPLES
)]
pub struct Cli {
    /// What the subcommands share.
    #[command(flatten)]
    pub place: Place,
    /// How the subcommands that ask a running server reach it.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// Refuses options that mean nothing to a command that asks no running server.
    pub fn alone(&self, command: &str) -> Result<(), Error> {
        if self.remote.endpoint.is_none() {
            return Ok(());
        }
        Err(Error::Option {
            option: "--endpoint",
            problem: format!("`coffer {command}` works on the data folder of this machine"),
        })
    }
}

/// Where the data is.
#[derive(Debug, Default, Args)]
pub struct Place {
    /// Data folder [default: ./coffer-data]
    #[arg(
        long,
        value_name = "DIR",
        env = "COFFER_DATA",
        global = true,
        hide_env_values = true
    )]
    pub data: Option<PathBuf>,
    /// Configuration file (TOML); its keys are the names of the options
    #[arg(
        long,
        value_name = "FILE",
        env = "COFFER_CONFIG",
        global = true,
        hide_env_values = true
    )]
    pub config: Option<PathBuf>,
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve S3 over TLS
    Serve(ServeArgs),
    /// Make and list levels
    Level(LevelArgs),
    /// Make, list and delete buckets
    Bucket(BucketArgs),
    /// Make, list and change subjects and their access keys
    Subject(SubjectArgs),
    /// Export and import levels' keys
    Key(KeyArgs),
    /// List, approve and withdraw what takes more than one custodian
    Request(RequestArgs),
    /// Look after the keystore and its root key
    Keystore(KeystoreArgs),
    /// List, show and verify the receipts of erases
    Receipt(ReceiptArgs),
    /// Show, follow, verify and export the audit log
    Audit(AuditArgs),
    /// Open every stored chunk of a running server and report damage
    Verify(VerifyArgs),
    /// Show from outside that nothing in a data folder is readable
    Prove(ProveArgs),
    /// Look after the certificates of the local authority
    Tls(TlsArgs),
    /// Read a stopped server's data with its root key
    Offline(OfflineArgs),
}

/// `coffer serve`.
#[derive(Debug, Default, Args)]
#[command(after_help = SERVE_EXAMPLES)]
pub struct ServeArgs {
    /// Address of the S3 service [default: 127.0.0.1:9000]
    #[arg(long, value_name = "ADDRESS:PORT", env = "COFFER_LISTEN", hide_env_values = true,
          value_parser = address)]
    pub listen: Option<SocketAddr>,
    /// Address of administration, health and metrics [default: 127.0.0.1:9001]
    #[arg(long, value_name = "ADDRESS:PORT", env = "COFFER_ADMIN_LISTEN", hide_env_values = true,
          value_parser = address)]
    pub admin_listen: Option<SocketAddr>,
    /// Certificate chain of the server (PEM) [default: one of a local authority, DATA/tls]
    #[arg(
        long,
        value_name = "FILE",
        env = "COFFER_TLS_CERT",
        hide_env_values = true
    )]
    pub tls_cert: Option<PathBuf>,
    /// Private key of that certificate (PEM)
    #[arg(
        long,
        value_name = "FILE",
        env = "COFFER_TLS_KEY",
        hide_env_values = true
    )]
    pub tls_key: Option<PathBuf>,
    /// Where the root key is made at the first start: file, passphrase, keyring, or a PKCS#11 URI
    #[arg(
        long,
        value_name = "SOURCE",
        env = "COFFER_ROOT_KEY",
        hide_env_values = true
    )]
    pub root_key: Option<SourceSpec>,
    /// Where the passphrase of the root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Serve BUCKET.NAME as well as NAME/BUCKET; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "COFFER_DOMAIN",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub domain: Vec<String>,
    /// Go on from older copies of files that were put back; recorded in the audit log
    #[arg(long)]
    pub accept_rollback: bool,
    /// How much to log to standard error: error, warn, info or debug [default: info]
    #[arg(
        long,
        value_name = "LEVEL",
        env = "COFFER_LOG",
        hide_env_values = true,
        hide_possible_values = true
    )]
    pub log: Option<LogLevel>,
    /// How to write the log: text or json, an object a line [default: text]
    #[arg(
        long,
        value_name = "FORMAT",
        env = "COFFER_LOG_FORMAT",
        hide_env_values = true,
        hide_possible_values = true
    )]
    pub log_format: Option<LogFormat>,
}

/// How much to log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// What stops something from working.
    Error,
    /// And what somebody should look at.
    Warn,
    /// And what the server does.
    #[default]
    Info,
    /// And how.
    Debug,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs: an object a line.
    Json,
}

fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"))
        .unwrap_or_else(|| text.to_owned());
    text.parse().map_err(|_| {
        "not an address and port; write 127.0.0.1:9000, 0.0.0.0:9000 or [::1]:9000".to_owned()
    })
}

/// Reads an address as the command line does; the configuration file uses it too.
pub fn parse_address(text: &str) -> Result<SocketAddr, String> {
    address(text)
}

const TOP_EXAMPLES: &str = "\
Examples:
  coffer serve                              data in ./coffer-data, https://127.0.0.1:9000
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000
  coffer level create secret --rank 2       keep data of rank 2 apart, under a key of its own
  coffer subject create ann --clearance default..secret
  coffer verify --data /srv/coffer          while the server runs
  coffer prove --data /srv/coffer           shows that nothing there is readable
  coffer offline ls --data /srv/coffer      while it does not";

const SERVE_EXAMPLES: &str = "\
Options come from the command line, else the environment, else the configuration file.

Examples:
  coffer serve
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000 --domain s3.example.org
  coffer serve --tls-cert chain.pem --tls-key key.pem
  coffer serve --root-key keyring           at the first start; later `coffer keystore move`
  coffer serve --config coffer.toml

A configuration file (TOML) has the options as keys, and two more (docs/CONFIGURATION.md):
  data = \"/srv/coffer\"            # relative paths start at the file's folder
  listen = \"0.0.0.0:9000\"
  domain = [\"s3.example.org\"]
  etag = \"md5\"                    # ETags are MD5 sums, at their cost; default \"random\"
  [limits]                        # of connections, requests and patience
  connections = 2048

The first start makes keys, a certificate and DATA/credentials. A line that begins with
`ready` on standard output says that the server serves. SIGTERM lets requests end.";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_help_shows_examples() {
        fn check(command: &mut clap::Command) {
            let help = command.render_long_help().to_string();
            assert!(
                help.contains("Examples:\n  coffer "),
                "no example in:\n{help}"
            );
            assert!(
                help.lines().all(|line| line.len() <= 110),
                "wide line in:\n{help}"
            );
            for sub in command.get_subcommands_mut() {
                check(sub);
            }
        }
        check(&mut Cli::command());
    }

    #[test]
    fn data_stands_before_or_after_any_subcommand() {
        for line in [
            "coffer --data /d serve",
            "coffer serve --data /d",
            "coffer --data /d verify",
            "coffer verify --data /d",
            "coffer --data /d offline ls",
            "coffer offline --data /d ls",
            "coffer offline ls --data /d bucket prefix",
            "coffer offline cat --data /d bucket name",
            "coffer offline keys bucket name --data /d",
            "coffer --data /d level list",
            "coffer level --data /d list --json",
            "coffer audit show --last 3 --data /d",
            "coffer level create secret --rank 2 --data /d",
            "coffer --data /d bucket create b --level secret",
            "coffer bucket list --data /d",
            "coffer --data /d subject create ann --clearance default..secret --json",
            "coffer subject --data /d set ann --grant b=read --revoke c",
        ] {
            let cli =
                Cli::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(cli.place.data, Some(PathBuf::from("/d")), "{line}");
        }
    }

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:1"), Ok("127.0.0.1:1".parse().unwrap()));
        assert_eq!(address("[::1]:9000"), Ok("[::1]:9000".parse().unwrap()));
        assert!(address("9000").is_err());
        assert!(address("example.org:9000").is_err());
    }
}
