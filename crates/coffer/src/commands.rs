//! The command line, with a file for each subcommand: how it is typed, what is done, how the answer
//! is shown.
//!
//! What only `serve` needs is in [`crate::serve`], what only `prove` needs in [`crate::prove`].

use clap::{Parser, Subcommand};

pub mod export;

pub mod approval_outcome;

pub mod rotation;

pub mod level;

pub mod bucket;

pub mod subject;

pub mod key;

pub mod request;

pub mod keystore;

pub mod receipt;

pub mod audit;

pub mod storage;

pub mod offline;

pub mod tls;

pub mod objects;

pub mod completions;

pub mod man;

use self::audit::AuditArgs;
use self::bucket::BucketArgs;
use self::bucket::quota::QuotaArgs;
use self::completions::CompletionsArgs;
use self::key::KeyArgs;
use self::keystore::KeystoreArgs;
use self::keystore::lock_time::LockTimeArgs;
use self::level::LevelArgs;
use self::man::ManArgs;
use self::objects::Typed;
use self::objects::cp::CpArgs;
use self::objects::get::GetArgs;
use self::objects::ls::LsArgs;
use self::objects::migrate::MigrateArgs;
use self::objects::put::PutArgs;
use self::objects::rm::RmArgs;
use self::offline::OfflineArgs;
use self::receipt::ReceiptArgs;
use self::request::RequestArgs;
use self::storage::backup::BackupArgs;
use self::storage::replica::ReplicaArgs;
use self::storage::restore::RestoreArgs;
use self::storage::standby::StandbyArgs;
use self::storage::verify::VerifyArgs;
use self::subject::args::SubjectArgs;
use self::tls::TlsArgs;
use crate::config::args::{RemoteArgs, ServeArgs};
use crate::config::data_args::DataArgs;
use crate::error::Error;
use crate::prove::ProveArgs;

/// An S3-compatible storage server that never writes a readable byte.
#[derive(Debug, Parser)]
#[command(
    name = "coffer",
    version,
    arg_required_else_help = true,
    after_help = TOP_EXAMPLES
)]
pub struct Cli {
    /// What the subcommands share.
    #[command(flatten)]
    pub data: DataArgs,
    /// How the subcommands that ask a running server reach it.
    #[command(flatten)]
    pub remote: RemoteArgs,
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
}

impl Cli {
    /// What commands that speak S3 are given.
    pub fn typed(&self) -> Typed<'_> {
        Typed {
            data: &self.data,
            remote: &self.remote,
        }
    }

    /// Refuses options that mean nothing to a command that asks no running server.
    pub fn alone(&self, command: &str) -> Result<(), Error> {
        let option = match (&self.remote.endpoint, &self.remote.credentials) {
            (None, None) => return Ok(()),
            (Some(_), _) => "--endpoint",
            (None, Some(_)) => "--credentials",
        };
        Err(Error::Option {
            option,
            problem: format!("`coffer {command}` works on the data folder of this machine"),
        })
    }
}

/// The subcommands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve S3 over TLS
    Serve(Box<ServeArgs>),
    /// Store files as objects, with this or another S3 server
    Put(PutArgs),
    /// Fetch objects to files
    Get(GetArgs),
    /// List buckets and objects
    Ls(LsArgs),
    /// Delete objects
    Rm(RmArgs),
    /// Have the server copy objects
    Cp(CpArgs),
    /// Move buckets of another S3 server, or folders, in
    Migrate(MigrateArgs),
    /// Make and list levels
    Level(LevelArgs),
    /// Make, list and delete buckets
    Bucket(BucketArgs),
    /// Limit how much buckets, levels and subjects hold
    Quota(QuotaArgs),
    /// Make, list and change subjects and their access keys
    Subject(SubjectArgs),
    /// Export and import levels' keys
    Key(KeyArgs),
    /// List, approve and withdraw what takes more than one custodian
    Request(RequestArgs),
    /// Look after the keystore and its root key
    Keystore(KeystoreArgs),
    /// Look after the time by which object locks end
    LockTime(LockTimeArgs),
    /// List, show and verify the receipts of erases
    Receipt(ReceiptArgs),
    /// Show, follow, verify and export the audit log
    Audit(AuditArgs),
    /// Open every stored chunk of a server, or of a copy, and report damage
    Verify(VerifyArgs),
    /// Copy the data folder of a running server
    Backup(BackupArgs),
    /// Keep sealed copies up on other stores
    Replica(ReplicaArgs),
    /// Show how a standby stands, and promote it in the original's place
    Standby(StandbyArgs),
    /// Put a data folder together from a sealed copy
    Restore(RestoreArgs),
    /// Show from outside that nothing in a data folder is readable
    Prove(ProveArgs),
    /// Look after the certificates of the local authority
    Tls(TlsArgs),
    /// Read a stopped server's data with its root key
    Offline(OfflineArgs),
    /// Print the script by which a shell completes this command line
    Completions(CompletionsArgs),
    /// Write manual pages, one for each subcommand
    Man(ManArgs),
}

const TOP_EXAMPLES: &str = "\
Examples:
  coffer serve                              data in ./coffer-data, https://127.0.0.1:9000
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000
  coffer put -r recordings s3://evidence/recordings/ --endpoint https://127.0.0.1:9000
  coffer level create secret --rank 2       keep data of rank 2 apart, under a key of its own
  coffer subject create ann --clearance default..secret
  coffer verify --data /srv/coffer          while the server runs
  coffer backup /mnt/backup                 copies the data folder, while the server runs
  coffer prove --data /srv/coffer           shows that nothing there is readable
  coffer offline ls --data /srv/coffer      while it does not";

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use std::path::PathBuf;

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
            // clap's own `help` has none.
            let subcommands = command.get_subcommands_mut();
            for sub in subcommands.filter(|sub| sub.get_name() != "help") {
                check(sub);
            }
        }
        check(&mut Cli::command());
    }

    #[test]
    fn what_is_refused_is_not_shown_and_refused_still() {
        for words in [&["offline", "ls"][..], &["prove"]] {
            let mut command = Cli::command();
            command.build();
            let mut shown = &mut command;
            for word in words {
                shown = shown.find_subcommand_mut(word).unwrap();
            }
            let help = shown.render_long_help().to_string();
            assert!(!help.contains("--endpoint"), "{help}");
            assert!(!help.contains("--credentials"), "{help}");
            let mut line = vec!["coffer"];
            line.extend(words);
            line.extend(["--endpoint", "https://host:9001"]);
            let cli = Cli::try_parse_from(line).unwrap();
            assert!(cli.alone(words[0]).is_err(), "{words:?}");
        }
    }

    #[test]
    fn data_stands_before_or_after_any_subcommand() {
        for line in [
            "coffer --data /d serve",
            "coffer serve --data /d",
            "coffer --data /d verify",
            "coffer verify --data /d",
            "coffer backup /b --data /d",
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
            assert_eq!(cli.data.data, Some(PathBuf::from("/d")), "{line}");
        }
    }
}
