//! `coffer offline`, as it is typed.

use clap::{Args, Subcommand};

use crate::passphrase::PassphraseArgs;

/// `coffer offline`.
#[derive(Debug, Args)]
#[command(after_help = OFFLINE_EXAMPLES, disable_help_subcommand = true)]
pub struct OfflineArgs {
    /// Where the passphrase of the root key comes from.
    #[command(flatten)]
    pub passphrase: PassphraseArgs,
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
