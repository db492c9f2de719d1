//! `coffer serve`, and where a server is, as they are typed.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use coffer_client::AdminClient;
use coffer_keys::SourceSpec;
use coffer_replica::limits::LEASE_ADDRESS_MAX_BYTES;
use serde::Deserialize;

use crate::config;
use crate::config::data_args::DataArgs;
use crate::error::Error;
use crate::log::{LogFormat, LogLevel};
use crate::output::printable::{bytes, span};
use crate::secrets::passphrase::PassphraseArgs;

/// Where the running server is, if not on the data folder of this machine.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Reaching a server elsewhere")]
pub struct RemoteArgs {
    /// Ask the server at this address, not the one on --data
    ///
    /// Administration is at https://coffer.example.org:9001 or the like.
    ///
    /// S3, for put, get, ls, rm, cp and migrate, is at https://coffer.example.org:9000.
    #[arg(long, value_name = "URL", global = true)]
    pub endpoint: Option<String>,
    /// File with the access key to sign in with [default: as AWS's clients find one]
    #[arg(long, value_name = "FILE", global = true)]
    pub credentials: Option<PathBuf>,
    /// Certificate authority of that server (PEM), which is trusted alone then
    ///
    /// Without it: that of AWS_CA_BUNDLE, else those of this system.
    ///
    /// put, get, ls, rm, cp and migrate take DATA/tls/ca.pem before, and a profile's after it.
    #[arg(long, value_name = "FILE", global = true)]
    pub ca: Option<PathBuf>,
}

/// The same options, of commands that ask no running server: refused in [`Cli::alone`], and not
/// shown.
///
/// [`Cli::alone`]: crate::commands::Cli::alone
#[derive(Debug, Default, Args)]
pub struct NoRemoteArgs {
    #[arg(long = "endpoint", id = "endpoint", global = true, hide = true)]
    _endpoint: Option<String>,
    #[arg(long = "credentials", id = "credentials", global = true, hide = true)]
    _credentials: Option<PathBuf>,
}

impl RemoteArgs {
    /// The server whose administration the command line means.
    ///
    /// # Errors
    /// When there is an access key for none, the server's address or the access key is none, or the
    /// folder of the server here can't be told.
    pub fn server(&self, data: &DataArgs) -> Result<AdminClient, Error> {
        match (&self.endpoint, &self.credentials) {
            (None, None) => Ok(AdminClient::Local {
                data: config::data(data)?,
            }),
            // The addresses that AWS's clients know are those of S3, not of administration.
            (None, Some(_)) => Err(Error::Option {
                option: "--credentials",
                problem: "the server on this machine asks for no access key; for one elsewhere, \
                          say where its administration is: --endpoint URL"
                    .to_owned(),
            }),
            (Some(endpoint), credentials) => {
                let ca = self.ca.clone().or_else(ca_of_environment);
                Ok(AdminClient::https(
                    endpoint,
                    credentials.as_deref(),
                    ca.as_deref(),
                )?)
            }
        }
    }
}

/// The authority that the environment names, as to AWS's clients.
pub(crate) fn ca_of_environment() -> Option<PathBuf> {
    let named = std::env::var_os("AWS_CA_BUNDLE").filter(|file| !file.is_empty());
    named.map(PathBuf::from)
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
    /// Address of the port for sealed transfers, or off [default: 9002 at the host of --listen]
    #[arg(long, value_name = "ADDRESS:PORT", env = "COFFER_DATA_LISTEN", hide_env_values = true,
          value_parser = data_address)]
    pub data_listen: Option<DataListen>,
    /// URL that clients reach that port by, if not at the host of S3, e.g. http://data.example.org
    #[arg(long, value_name = "URL", env = "COFFER_DATA_ADVERTISE", hide_env_values = true,
          value_parser = data_url)]
    pub data_advertise: Option<String>,
    /// TLS at that port: off, or kernel, which encrypts where it can, else the server
    /// [default: off]
    #[arg(
        long,
        value_name = "BY",
        env = "COFFER_DATA_TLS",
        hide_env_values = true,
        hide_possible_values = true
    )]
    pub data_tls: Option<DataTlsBy>,
    /// When what arrives sealed is opened: on-commit, or later, by the server itself
    /// [default: on-commit]
    #[arg(
        long,
        value_name = "WHEN",
        env = "COFFER_VERIFY",
        hide_env_values = true,
        hide_possible_values = true
    )]
    pub verify: Option<Verify>,
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
    ///
    /// With --engine, what all gateways share: passphrase, or a PKCS#11 URI.
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
    /// Name or address of the server, for its certificate; a name serves BUCKET.NAME, too; may be
    /// repeated
    #[arg(
        long,
        value_name = "NAME|ADDRESS",
        env = "COFFER_DOMAIN",
        hide_env_values = true,
        value_delimiter = ','
    )]
    pub domain: Vec<String>,
    /// Go on from older copies of files that were put back; recorded in the audit log
    #[arg(long)]
    pub accept_rollback: bool,
    /// Whether it follows a copy, or is fenced off by one.
    #[command(flatten)]
    pub standing: StandingArgs,
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

/// Whether a server follows a copy, or is fenced off by one.
#[derive(Debug, Default, Args)]
pub struct StandingArgs {
    /// Be a standby: follow this copy, which must have its keystore with it, and serve reads of it
    ///
    /// DATA is a folder of its own. All else is refused until `coffer standby promote`.
    #[arg(long, value_name = "URL", conflicts_with_all = ["accept_rollback", "fenced_by"])]
    pub follow: Option<String>,
    /// File of an age identity that opens the keystore of the copy that is followed, or the engine
    #[arg(long, value_name = "FILE")]
    pub identity: Option<PathBuf>,
    /// Be a gateway: serve from this store, beside other gateways; DATA is a cache
    ///
    /// One gateway serves, the others forward, and take over.
    ///
    /// All have the same passphrase or token (--root-key), or --identity.
    #[arg(long, value_name = "URL",
          conflicts_with_all = ["accept_rollback", "fenced_by", "follow"])]
    pub engine: Option<String>,
    /// Where a gateway takes what other gateways forward
    ///
    /// The default is 127.0.0.1:9003.
    #[arg(long, value_name = "ADDRESS", value_parser = address, requires = "engine")]
    pub gateway_listen: Option<SocketAddr>,
    /// Where other gateways find that, if it is elsewhere
    #[arg(long, value_name = "HOST:PORT", value_parser = gateway_address, requires = "engine")]
    pub gateway_advertise: Option<String>,
    /// How much of the data a gateway keeps on its disk, such as 50GB; the rest is fetched
    ///
    /// The default is 10GB.
    #[arg(long, value_name = "SIZE", value_parser = bytes, requires = "engine")]
    pub cache_size: Option<u64>,
    /// Change nothing once a standby of this copy was promoted, nor while the copy can't be asked
    #[arg(long, value_name = "COPY")]
    pub fenced_by: Option<String>,
    /// For how long changes go on while that copy can't be asked
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = patience,
          requires = "fenced_by")]
    pub fenced_after: Duration,
    /// Take changes again, though this server was fenced off: none serves in its place any more
    #[arg(long, conflicts_with_all = ["follow", "engine"])]
    pub end_fence: bool,
}

fn patience(text: &str) -> Result<Duration, String> {
    span(text).ok_or_else(|| "write a number with s, m or h behind it: 30s".to_owned())
}

/// When what arrives sealed is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verify {
    /// Chunk by chunk, before it is written.
    #[default]
    OnCommit,
    /// In the background, after it was stored as it came.
    Later,
}

/// Whether the data port speaks TLS.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DataTlsBy {
    /// It does not: what goes over it is sealed.
    #[default]
    Off,
    /// It does, and the kernel encrypts, if it can.
    Kernel,
}

/// Where the data port is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DataListen {
    /// There is none.
    Off,
    /// At this address.
    At(SocketAddr),
}

/// Reads the address of the data port.
pub fn data_address(text: &str) -> Result<DataListen, String> {
    match text {
        "off" => Ok(DataListen::Off),
        text => address(text).map(DataListen::At),
    }
}

/// Reads the URL of the data port: a host, perhaps a port and a path.
pub fn data_url(text: &str) -> Result<String, String> {
    let uri: Option<http::Uri> = text.parse().ok();
    let has_parts = |uri: &http::Uri| {
        let is_http = matches!(uri.scheme_str(), Some("http" | "https"));
        is_http && uri.host().is_some() && uri.query().is_none()
    };
    match uri.filter(has_parts) {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err("not a URL of HTTP; write http://data.example.org:9002".to_owned()),
    }
}

/// Reads where other gateways find one: a host and a port.
fn gateway_address(text: &str) -> Result<String, String> {
    let authority: Option<http::uri::Authority> = text.parse().ok();
    let has_both = |found: &http::uri::Authority| {
        let port = found.port_u16();
        !found.host().is_empty() && port.is_some() && !found.as_str().contains('@')
    };
    match authority.filter(has_both) {
        Some(found) => {
            let host = found.host().trim_matches(['[', ']']);
            let is_any = |ip: IpAddr| ip.is_unspecified();
            if text.len() > LEASE_ADDRESS_MAX_BYTES {
                return Err("longer than any host name and port".to_owned());
            }
            if host.parse().is_ok_and(is_any) || found.port_u16() == Some(0) {
                return Err("others find nothing there: write gateway1.example.org:9003".into());
            }
            Ok(text.to_owned())
        }
        None => Err("not a host and a port; write gateway1.example.org:9003".to_owned()),
    }
}

/// Reads an address, of the command line or the configuration file.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let text = text
        .strip_prefix("localhost:")
        .map(|port| format!("127.0.0.1:{port}"))
        .unwrap_or_else(|| text.to_owned());
    text.parse().map_err(|_| {
        "not an address and port; write 127.0.0.1:9000, 0.0.0.0:9000 or [::1]:9000".to_owned()
    })
}

const SERVE_EXAMPLES: &str = "\
Options come from the command line, else the environment, else the configuration file.

Examples:
  coffer serve
  coffer serve --data /srv/coffer --listen 0.0.0.0:9000 --domain s3.example.org
  coffer serve --tls-cert chain.pem --tls-key key.pem
  coffer serve --root-key keyring           at the first start; later `coffer keystore move`
  coffer serve --config coffer.toml
  coffer serve --follow file:///mnt/copy --identity key.txt --data /srv/standby
  coffer serve --engine 's3://log/coffer?endpoint=https://store:9000' --root-key passphrase
  coffer serve --engine 's3://log/coffer?endpoint=https://store:9000' --identity key.txt
  coffer serve --fenced-by far              changes nothing once a standby of that copy serves

A configuration file (TOML) has options as keys, but for what a server is (--follow, --engine,
--fenced-by and the like), and more; docs/CONFIGURATION.md has all:
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

    #[test]
    fn addresses() {
        assert_eq!(address("localhost:1"), Ok("127.0.0.1:1".parse().unwrap()));
        assert_eq!(address("[::1]:9000"), Ok("[::1]:9000".parse().unwrap()));
        assert!(address("9000").is_err());
        assert!(address("example.org:9000").is_err());
    }

    #[test]
    fn gateways() {
        for right in ["g1.example.org:9003", "10.0.0.1:9003", "[::1]:9003"] {
            assert_eq!(gateway_address(right), Ok(right.to_owned()));
        }
        for wrong in [
            "",
            "g1",
            ":9003",
            "g1:x",
            "https://g1:9003",
            "id:secret@g1:9003",
            &format!("{}:9003", "g".repeat(1_000)),
        ] {
            assert!(gateway_address(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn data_ports() {
        let at = DataListen::At("127.0.0.1:1".parse().unwrap());
        assert_eq!(data_address("localhost:1"), Ok(at));
        assert_eq!(data_address("off"), Ok(DataListen::Off));
        assert!(data_address("on").is_err());
        assert_eq!(data_url("http://d.org:2/"), Ok("http://d.org:2".to_owned()));
        for wrong in ["ftp://d.org", "d.org:2", "http://d.org/?a", "", "http:///x"] {
            assert!(data_url(wrong).is_err(), "{wrong}");
        }
    }
}
