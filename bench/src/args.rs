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
    /// The program to measure it against, for `builds`
    #[arg(long, value_name = "PATH")]
    pub other: Option<PathBuf>,
    /// The nginx to measure against [default: the distribution's]
    #[arg(long, value_name = "PATH")]
    pub nginx: Option<PathBuf>,
    /// Where to put data, on a real disk [default: the folder of this program]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Leave out all contenders but these
    #[arg(long, value_name = "NAME", value_delimiter = ',', value_enum)]
    pub only: Vec<ContenderName>,
    /// Of `builds` and `features`, only rows whose title has this in it, as "PUT 64 MiB"
    #[arg(long, value_name = "TEXT")]
    pub row: Vec<String>,
    /// Let server and client run on any core
    #[arg(long)]
    pub unpinned: bool,

    /// Be the server that receives uploads and writes plain files
    #[arg(long, value_name = "DIR", hide = true, requires = "listen")]
    pub receive_into: Option<PathBuf>,
    /// Have it receive over TCP, without TLS and HTTP
    #[arg(long, hide = true, requires = "listen")]
    pub plain: bool,
    /// Where that server listens
    #[arg(long, value_name = "ADDRESS:PORT", hide = true)]
    pub listen: Option<SocketAddr>,
}

/// What can be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WorkName {
    /// Those against nginx, the receiver, SQLCipher and the cipher
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
    /// among all, like what follows
    Rotation,
    /// GET and PUT of 64 MiB and 4 KiB by this build and by --other
    Builds,
    /// The same in a bucket with versions, a policy and a quota, and in a plain one
    Features,
    /// Listing 1,000 of 1,000,000 versions, against 1,000 of 100,000 objects
    Versions,
    /// A lifecycle run that ends 100,000 of 1,000,000 objects while small objects are read
    Lifecycle,
    /// Sealed GET of 64 MiB and 1 GiB, against plain nginx and coffer's own TLS
    SealedGet,
    /// Sealed PUT of 64 MiB, against a plain receiver and coffer's own TLS
    SealedPut,
    /// Client and server of a sealed GET of 1 GiB, against curl and nginx https
    SealedBoth,
    /// One client and one file of 1 GiB, both ways, against rclone, aws and s3cmd
    Mover,
    /// The slowest of a hundred clients, and the server's memory meanwhile
    Fairness,
    /// Uploads beside a sealed copy to a folder, and without
    Copy,
    /// Durable PUT of 4 KiB by a gateway of an engine whose store answers 20 ms late, against one
    /// connection's to that store; GET of 4 KiB by two gateways, against one (as root)
    Engine,
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
            .any(|&asked| asked == work || (asked == WorkName::All && work.is_among_all()))
    }
}

impl WorkName {
    fn is_among_all(self) -> bool {
        use WorkName::{Get, Handshakes, Memory, Put, Seal, Small};
        matches!(self, Get | Put | Small | Memory | Handshakes | Seal)
    }
}
