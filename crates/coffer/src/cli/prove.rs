//! `coffer prove`, as it is typed.

use clap::Args;

use crate::passphrase::PassphraseArgs;

/// `coffer prove`.
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub struct ProveArgs {
    /// S3 service of the running server, for the canary [default: the configured port of 127.0.0.1]
    #[arg(long, value_name = "URL")]
    pub s3: Option<String>,
    /// Plant no canary
    #[arg(long, conflicts_with = "s3")]
    pub no_canary: bool,
    /// What opens the root key of a stopped server, if a passphrase does.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
    /// Report as JSON: one object
    #[arg(long)]
    pub json: bool,
}

const PROVE_EXAMPLES: &str = "\
Looks at a data folder from outside, without any key: every file is of a known kind and private,
blobs have the length of sealed messages, blobs, databases, their logs, the keystore and the audit
log look like ciphertext. A running server is asked to compare the blobs' commitments to their keys;
of a stopped one that is done here, if its root key can be read. Through a running server's S3 a
canary is stored, with DATA/credentials or the access key in AWS_ACCESS_KEY_ID and
AWS_SECRET_ACCESS_KEY; it is searched for in every file that was written since, and deleted.

What could not be checked is told. Ends with 0 when nothing was found, 1 when something was, 2 when
it could not look.

Examples:
  coffer prove
  coffer prove --data /srv/coffer --s3 https://coffer.example.org:9000
  coffer prove --data /srv/coffer --passphrase-fd 3 3< passphrase
  coffer prove --data /srv/coffer --json | jq .proven";
