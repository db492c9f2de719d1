//! The command line.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

/// Measures coffer against its peers, in interleaved rounds, server and client on a core each.
///
/// Missed targets don't make it fail; contenders that don't run or answer wrongly do.
#[derive(Debug, Parser)]
#[command(name = "coffer-bench", version)]
pub struct Args {
    /// What to measure
    #[arg(value_enum, default_value = "all")]
    pub works: Vec<WorkName>,
    /// Fewer and shorter runs, in about 90 seconds: figures to look at, not to publish
    #[arg(long)]
    pub quick: bool,
    /// Interleaved rounds [default: 5; quick: 2, of heavy uploads 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=100))]
    pub rounds: Option<u16>,
    /// Write every sample to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Print the table as Markdown
    #[arg(long)]
    pub markdown: bool,
    /// The program to measure [default: the one beside this program]
    #[arg(long, value_name = "PATH")]
    pub coffer: Option<PathBuf>,
    /// Where to put data, on a real disk [default: the folder of this program]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Leave out all contenders but these
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    pub only: Vec<ContenderName>,
    /// Let server and client run on any core
    #[arg(long)]
    pub unpinned: bool,

    /// Be the server that receives uploads and writes plain files
    #[arg(long, value_name = "DIR", hide = true, requires = "listen")]
    pub receive_into: Option<PathBuf>,
    /// Where that server listens
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    pub listen: Option<SocketAddr>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkName {
    /// All of the others
    All,
    /// GET 64 MiB, against nginx on plain files
    Get,
    /// PUT 64 MiB, durable, against receiving and writing plain files
    Put,
    /// GET and durable PUT of 4 KiB, against nginx and bare SQLCipher commits
    Small,
    /// Resident memory, idle and with a hundred clients
    Memory,
    /// TLS handshakes with X25519MLKEM768, against those with X25519
    Handshakes,
    /// Sealing and opening, against the cipher itself
    Seal,
    /// Rotation of a level over 100,000 blobs while small objects are read, and its erase; not
    /// among all
    Rotation,
}

/// Who can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ContenderName {
    /// The server that all this is about
    Coffer,
    /// Plain files over TLS
    Nginx,
    /// Receives over TLS and writes plain files
    Receiver,
    /// Commits without a server
    Sqlcipher,
}

impl Args {
    /// Whether a work was asked for.
    pub fn wants(&self, work: WorkName) -> bool {
        self.works
            .iter()
            .any(|&asked| asked == work || (asked == WorkName::All && work != WorkName::Rotation))
    }
}
