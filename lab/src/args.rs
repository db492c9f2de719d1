//! The command line.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::kernel::accelerator::Accelerator;
use crate::sendfile::way::Way;
use crate::server::model::Model;
use crate::server::protocol::Wish;

/// Where should encryption run, on this machine: in user space, in the kernel or at the client?
#[derive(Debug, Parser)]
#[command(name = "coffer-lab", version, after_help = EXAMPLES)]
pub struct CommandLine {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

const EXAMPLES: &str = "\
Examples:
  coffer-lab list                          who can run here, and what the others would need
  coffer-lab raw --quick                   a first look, in less than a minute
  coffer-lab file --folder /srv            1 GB through each kind of encrypted file
  coffer-lab sendfile                      from file to network; who encrypts on the way
  coffer-lab raw --report report.html      plots and advice, to look at
  coffer-lab all --json here.json          every sample, to keep and to compare
  coffer-lab kernel --quick                the same under Debian's kernel, in a virtual machine
  coffer-lab kernel --configs              what a kernel's own configuration costs
  coffer-lab report here.json report.html  the report of what was kept
  coffer-lab site pages --machines DIR     pages of many machines, with a picker
  coffer-lab clean                         remove what a killed run left
  coffer-lab compare here.json there.json  two machines, or two kernels, side by side

Speeds are in MB/s of 1,000,000 bytes: medians with intervals, which hold the true median with 95 %
probability from six rounds on, and are all samples with fewer. A contender that can't run here is
listed with the reason, never with a zero.";

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List all contenders, whether they can run here, and if not, why and what would help
    List,
    /// Measure calculation alone: AES in CBC, CTR, GCM and XTS, by size and by threads
    Raw(Measuring),
    /// Measure files: none, fscrypt, dm-crypt, gocryptfs, encfs, openssl enc, age, coffer
    File(Measuring),
    /// Measure files on their way to the network: program, kernel TLS, sealed bytes by sendfile
    Sendfile(Measuring),
    /// Measure links: TCP, TLS, kernel TLS, IPsec, WireGuard, SSH, between two namespaces
    Net(Measuring),
    /// Measure whole servers: a process, threads, a pool, tasks; for 1 to 100 clients
    Server(Measuring),
    /// Be a server that is measured
    #[command(hide = true)]
    ServeModel {
        /// How it divides its work
        model: Model,
    },
    /// Answer one request on standard output
    #[command(hide = true)]
    AnswerRequest {
        /// What is wanted
        wish: Wish,
        /// How many bytes
        bytes: usize,
        /// Where they are stored
        place: usize,
    },
    /// Be observed while a file is transferred
    #[command(hide = true)]
    ObserveTransfer {
        /// How
        way: Way,
        /// Of the file
        bytes: u64,
        /// How often
        transfers: u64,
        /// Where files may be made
        folder: PathBuf,
    },
    /// Measure all of the above
    All {
        /// Only these
        #[arg(long, value_name = "EXPERIMENT", value_delimiter = ',')]
        only: Vec<Measured>,
        /// How
        #[command(flatten)]
        measuring: Measuring,
    },
    /// Measure the loop of A alone
    #[command(hide = true)]
    LoopOfA(Measuring),
    /// Measure in a virtual machine with Debian's own kernels: AF_ALG, kernel TLS, dm-crypt, IPsec
    /// and a kernel module, whatever this machine's kernel lacks
    Kernel(InKernel),
    /// Remove what a lab left that was killed: programs, mounts, devices, namespaces, folders; the
    /// exit status is 1 where something could not be removed
    Clean {
        /// Where it may have put files [default: /var/tmp and the folder of temporary files; where
        /// mounts and loop devices are left, also the folder that they lie in]
        #[arg(long, value_name = "DIR")]
        folder: Option<PathBuf>,
        /// Where it may have kept kernels [default: $XDG_CACHE_HOME/coffer-lab, or
        /// ~/.cache/coffer-lab]
        #[arg(long, value_name = "DIR")]
        cache: Option<PathBuf>,
        /// Only say what there is
        #[arg(long)]
        dry_run: bool,
        /// Print it as JSON: each place, what was found there, and whether it was removed
        #[arg(long)]
        json: bool,
    },
    /// Make the report of a record that --json has written
    Report {
        /// The record
        record: PathBuf,
        /// The page to write
        page: PathBuf,
    },
    /// Make pages of many machines: one of all, with figures relative to the one that is picked,
    /// and one for each
    Site {
        /// Where to write them
        folder: PathBuf,
        /// The records that were sent, each written by --json [default: docs/lab/machines in this
        /// folder or above, or above this program]
        #[arg(long, value_name = "DIR")]
        machines: Option<PathBuf>,
    },
    /// Set two records side by side that --json has written
    Compare {
        /// One record
        first: PathBuf,
        /// The other
        second: PathBuf,
    },
}

/// A group of experiments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Measured {
    /// Calculation alone
    Raw,
    /// Files
    File,
    /// From file to network
    Sendfile,
    /// Links
    Net,
    /// Whole servers
    Server,
}

impl Measured {
    /// As it stands on the command line.
    pub fn word(self) -> &'static str {
        match self {
            Self::Raw => "raw",
            Self::File => "file",
            Self::Sendfile => "sendfile",
            Self::Net => "net",
            Self::Server => "server",
        }
    }
}

/// How to measure.
#[derive(Debug, Args)]
pub struct Measuring {
    /// Fewer sizes and shorter runs, in less than a minute for each experiment
    #[arg(long)]
    pub quick: bool,
    /// Interleaved rounds; six at least for a confidence of 95 % [default: 6 of long samples, 9 of
    /// others; quick: 5, and fewer of long ones]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Where to put files, on the disk that matters; all is removed at the end [default: /var/tmp]
    #[arg(long, value_name = "DIR")]
    pub folder: Option<PathBuf>,
    /// Write every sample to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report to look at: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// This machine is simulated, and its clock counts instructions
    #[arg(long, hide = true)]
    pub instructions: bool,
}

/// What to measure in which virtual machine.
#[derive(Debug, Args)]
pub struct InKernel {
    /// Debian's kernel 6.1, the newer one of its backports, or a kernel of your own (a bzImage that
    /// needs no modules)
    #[arg(long, value_name = "6.1|backports|FILE", default_value = "6.1")]
    pub kernel: String,
    /// Who simulates the processor: KVM, or a program that counts instructions (TCG) [default: KVM
    /// where it works]
    #[arg(long, value_name = "ACCELERATOR")]
    pub accelerator: Option<Accelerator>,
    /// Only these experiments [default: raw, file, sendfile, net]
    #[arg(long, value_name = "EXPERIMENT", value_delimiter = ',')]
    pub only: Vec<Measured>,
    /// Instead, build eleven kernels from Debian's linux-source, from nearly stock (-Os, debugging)
    /// to tuned (-O2, none), and tell the share of each step. Builds once, in half an hour or more,
    /// and keeps them: 2 GB
    #[arg(long, conflicts_with_all = ["kernel", "only"])]
    pub configs: bool,
    /// Fewer sizes and shorter runs
    #[arg(long)]
    pub quick: bool,
    /// Interleaved rounds [default: as on this machine, and 1 where instructions are counted]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    pub rounds: Option<u16>,
    /// Where to keep packages and kernels; remove it to get newer ones
    /// [default: $XDG_CACHE_HOME/coffer-lab, or ~/.cache/coffer-lab]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
    /// Write every sample to a file
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write the report to look at: one HTML file that needs nothing else
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,
    /// Keep the folder of the run: the machine's files and what it said
    #[arg(long)]
    pub keep: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
    }

    /// Five rounds, as of --quick, tell it with 94 %.
    #[test]
    fn help_promises_what_six_rounds_tell() {
        let help = CommandLine::command().render_long_help().to_string();
        let told = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            told.contains("with 95 % probability from six rounds on"),
            "{help}"
        );
    }
}
