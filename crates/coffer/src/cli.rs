//! The command line: what can be asked of the program, with its help.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

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
    /// The subcommand.
    #[command(subcommand)]
    pub command: Command,
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
    /// Open every stored chunk of a running server and report damage
    Verify(VerifyArgs),
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
    /// Serve BUCKET.NAME as well as NAME/BUCKET; may be repeated
    #[arg(
        long,
        value_name = "NAME",
        env = "COFFER_DOMAIN",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub domain: Vec<String>,
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

/// `coffer verify`.
#[derive(Debug, Args)]
#[command(after_help = VERIFY_EXAMPLES)]
pub struct VerifyArgs {
    /// Read at most this much a second, e.g. 100MB [default: as fast as it goes]
    #[arg(long, value_name = "BYTES", value_parser = bytes_per_second)]
    pub rate: Option<u64>,
    /// Report as JSON, an event a line
    #[arg(long)]
    pub json: bool,
}

/// `coffer offline`.
#[derive(Debug, Args)]
#[command(after_help = OFFLINE_EXAMPLES, disable_help_subcommand = true)]
pub struct OfflineArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: OfflineCommand,
}

/// What can be done with a stopped server's data.
#[derive(Debug, Subcommand)]
pub enum OfflineCommand {
    /// List buckets, or the objects of a bucket
    #[command(after_help = OFFLINE_EXAMPLES)]
    Ls {
        /// Bucket whose objects to list
        bucket: Option<String>,
        /// Only names that begin so
        prefix: Option<String>,
        /// Exact names and more, as JSON, an object a line
        #[arg(long)]
        json: bool,
    },
    /// Write an object to standard output
    #[command(after_help = OFFLINE_EXAMPLES)]
    Cat {
        /// Bucket
        bucket: String,
        /// Object name
        name: String,
    },
    /// Print the files and keys of an object, for any Cobblestone-256 implementation
    #[command(after_help = KEYS_EXAMPLES)]
    Keys {
        /// Bucket
        bucket: String,
        /// Object name
        name: String,
    },
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

/// `100MB`, `1.5GiB`, `64k`, `1000000`, each with or without `/s`.
fn bytes_per_second(text: &str) -> Result<u64, String> {
    let advice = || "write a number of bytes a second such as 100MB, 1.5GiB or 500000".to_owned();
    let text = text.trim();
    let text = text.strip_suffix("/s").unwrap_or(text);
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let number: f64 = number.parse().map_err(|_| advice())?;
    let factor = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kb" => 1e3,
        "m" | "mb" => 1e6,
        "g" | "gb" => 1e9,
        "kib" => 1024.0,
        "mib" => 1024.0 * 1024.0,
        "gib" => 1024.0 * 1024.0 * 1024.0,
        _ => return Err(advice()),
    };
    let rate = number * factor;
    // The cast is exact enough below 2^53, far above any disk.
    if (1.0..9e15).contains(&rate) {
        Ok(rate as u64)
    } else {
        Err(advice())
    }
}

const TOP_EXAMPLES: &str = "\
Examples:
  coffer serve                              data in ./coffer-data, https://127.0.0.1:9000
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000
  coffer verify --data /srv/coffer          while the server runs
  coffer offline ls --data /srv/coffer      while it does not";

const SERVE_EXAMPLES: &str = "\
Options come from the command line, else the environment, else the configuration file.

Examples:
  coffer serve
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000 --domain s3.example.org
  coffer serve --tls-cert chain.pem --tls-key key.pem
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

const VERIFY_EXAMPLES: &str = "\
Ends with 0 when all is sound, 1 when something is damaged, 2 when it could not look.

Examples:
  coffer verify
  coffer verify --data /srv/coffer --rate 100MB
  coffer verify --json > report.ndjson";

const OFFLINE_EXAMPLES: &str = "\
Needs the data folder with its root key, and that no server uses it. Changes nothing.

Examples:
  coffer offline ls --data /srv/coffer
  coffer offline ls --data /srv/coffer photos 2026/
  coffer offline cat --data /srv/coffer photos 2026/a.jpg > a.jpg
  coffer offline keys --data /srv/coffer photos 2026/a.jpg";

const KEYS_EXAMPLES: &str = "\
Prints a JSON list, an element a blob in order: blob_file (relative to the data folder),
context_hex, data_key_hex, plaintext_bytes. WHOEVER HAS THIS LIST CAN READ THE OBJECT.
An object of at most 16 KiB lies in its bucket's catalog and has no blob: use `offline cat`.

Examples:
  coffer offline keys --data /srv/coffer photos 2026/a.jpg > keys.json";

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
        ] {
            let cli =
                Cli::try_parse_from(line.split(' ')).unwrap_or_else(|e| panic!("{line}: {e}"));
            assert_eq!(cli.place.data, Some(PathBuf::from("/d")), "{line}");
        }
    }

    #[test]
    fn rates() {
        for (text, rate) in [
            ("100MB", 100_000_000),
            ("100MB/s", 100_000_000),
            ("1.5GiB", 3 * 512 * 1024 * 1024),
            ("64k", 64_000),
            ("1", 1),
            ("2 mib", 2 * 1024 * 1024),
        ] {
            assert_eq!(bytes_per_second(text), Ok(rate), "{text}");
        }
        for text in [
            "",
            "MB",
            "0",
            "-1",
            "1e9",
            "10XB",
            "nan",
            "inf",
            "0.1",
            "99999999999GB",
            "1.2.3",
        ] {
            assert!(bytes_per_second(text).is_err(), "{text}");
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
