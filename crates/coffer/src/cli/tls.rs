//! `coffer tls`, as it is typed.

use clap::{Args, Subcommand};

/// `coffer tls`.
#[derive(Debug, Args)]
#[command(after_help = TLS_EXAMPLES, arg_required_else_help = true)]
pub struct TlsArgs {
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
