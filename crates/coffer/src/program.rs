//! The program from its first line to its exit code.

use std::process::ExitCode;

use clap::Parser;
use tokio::runtime::{Builder, Runtime};

use crate::cli::{Cli, Command, LogFormat, LogLevel};
use crate::config::{self, Config};
use crate::error::Error;
use crate::hardening::harden;
use crate::limits::{BLOCKING_THREADS, END_WAIT};
use crate::logging;
use crate::offline::offline;
use crate::serve::serve;
use crate::verify::verify;

/// Runs what the command line says. An error is one line on standard error.
pub fn run() -> ExitCode {
    harden();
    let Cli { place, command } = Cli::parse();
    let (outcome, failure) = match &command {
        Command::Serve(args) => {
            let outcome = Config::for_serve(&place, args).and_then(|config| {
                logging::start(config.log, config.log_format);
                block_on(serve(config)).map(|()| ExitCode::SUCCESS)
            });
            (outcome, None)
        }
        // 1 says that something is damaged, so all else is 2.
        Command::Verify(args) => {
            let outcome =
                config::data(&place).and_then(|data| block_on(async { verify(&data, args).await }));
            (outcome, Some(ExitCode::from(2)))
        }
        Command::Offline(args) => {
            logging::start(LogLevel::Warn, LogFormat::Text);
            let outcome = config::data(&place).and_then(|data| {
                block_on(async { offline(&data, &args.command).await }).map(|()| ExitCode::SUCCESS)
            });
            (outcome, None)
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        failure.unwrap_or_else(|| error.exit_code())
    })
}

/// As many workers as there are processors to run on; tokio asks the system, which knows about
/// affinity and control groups.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime: Runtime = Builder::new_multi_thread()
        .enable_all()
        .max_blocking_threads(BLOCKING_THREADS)
        .build()
        .map_err(|source| Error::System {
            doing: "starting threads",
            source,
        })?;
    let outcome = runtime.block_on(work);
    // What still runs has been told to end; a disk that hangs must not hold us.
    runtime.shutdown_timeout(END_WAIT);
    outcome
}
