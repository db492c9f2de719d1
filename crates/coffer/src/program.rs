//! The program from its first line to its exit code.

use std::io::Write;
use std::process::ExitCode;

use clap::builder::Resettable;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use coffer_client::AdminClient;
use coffer_keys::SourceSecrets;
use tokio::runtime::{Builder, Runtime};

use crate::commands::audit::{AuditCommand, audit};
use crate::commands::bucket::bucket;
use crate::commands::bucket::quota::quota;
use crate::commands::completions::completions;
use crate::commands::key::key;
use crate::commands::keystore::keystore;
use crate::commands::keystore::lock_time::lock_time;
use crate::commands::level::level;
use crate::commands::man::man;
use crate::commands::objects::cp::cp;
use crate::commands::objects::get::get;
use crate::commands::objects::ls::ls;
use crate::commands::objects::migrate::migrate;
use crate::commands::objects::put::put;
use crate::commands::objects::rm::rm;
use crate::commands::offline::offline;
use crate::commands::receipt::{ReceiptArgs, ReceiptCommand, receipt, verify as verify_receipt};
use crate::commands::request::request;
use crate::commands::storage::backup::backup;
use crate::commands::storage::replica::replica;
use crate::commands::storage::restore::restore;
use crate::commands::storage::standby::{how_asked, standby};
use crate::commands::storage::verify::verify;
use crate::commands::subject::subject;
use crate::commands::tls::{TlsArgs, TlsCommand, renew_authority};
use crate::commands::{Cli, Command};
use crate::config::args::ServeArgs;
use crate::config::{self, Config};
use crate::connection::quanta;
use crate::error::Error;
use crate::hardening::{UserMask, harden};
use crate::limits::{BLOCKING_THREADS, END_WAIT, EVENT_INTERVAL};
use crate::log::{self, LogFormat, LogLevel};
use crate::prove::prove;
use crate::secrets::root_source::secrets_of;
use crate::serve::serve;

/// Runs what the command line says. An error is one line on standard error.
pub fn run() -> ExitCode {
    let users = harden();
    let (cli, mut errors) = match typed(users) {
        Ok(typed) => typed,
        Err(code) => return code,
    };
    let outcome = match &cli.command {
        Command::Serve(args) => cli.alone("serve").and_then(|()| {
            let config = Config::for_serve(&cli.data, args)?;
            log::start(config.log, config.log_format);
            if config.log_format == LogFormat::Json {
                errors = Errors::Json;
            }
            run_server(config, args)
        }),
        Command::Offline(args) => cli.alone("offline").and_then(|()| {
            log::start(LogLevel::Warn, LogFormat::Text);
            let data = config::data(&cli.data)?;
            block_on(async { offline(&data, args).await }).map(|()| ExitCode::SUCCESS)
        }),
        Command::Restore(args) => cli.alone("restore").and_then(|()| {
            log::start(LogLevel::Warn, LogFormat::Text);
            let data = config::data(&cli.data)?;
            block_on(async { restore(&data, args).await })
        }),
        Command::Tls(TlsArgs {
            command: TlsCommand::RenewAuthority,
            answer,
        }) => cli.alone("tls renew-authority").and_then(|()| {
            let data = config::data(&cli.data)?;
            renew_authority(&data, answer.json).map(|()| ExitCode::SUCCESS)
        }),
        Command::Prove(args) => cli.alone("prove").and_then(|()| {
            log::start(LogLevel::Error, LogFormat::Text);
            block_on(prove(&cli.data, &cli.remote, args))
        }),
        Command::Receipt(ReceiptArgs {
            command: ReceiptCommand::Verify(args),
            answer,
        }) => cli
            .alone("receipt verify")
            .and_then(|()| verify_receipt(args, answer.json)),
        Command::Completions(args) => cli
            .alone("completions")
            .and_then(|()| completions(args, Cli::command()))
            .map(|()| ExitCode::SUCCESS),
        Command::Man(args) => cli
            .alone("man")
            .and_then(|()| man(args, Cli::command()))
            .map(|()| ExitCode::SUCCESS),
        Command::Put(args) => block_on(put(&cli.typed(), args)),
        Command::Get(args) => block_on(get(&cli.typed(), args)),
        Command::Ls(args) => block_on(ls(&cli.typed(), args)),
        Command::Rm(args) => block_on(rm(&cli.typed(), args)),
        Command::Cp(args) => block_on(cp(&cli.typed(), args)),
        Command::Migrate(args) => block_on(migrate(&cli.typed(), args)),
        asking => cli
            .remote
            .server(&cli.data)
            .and_then(|server| block_on(ask(&server, asking))),
    };
    // For these, 1 says that something was found, so all else is 2.
    let failure = verifies(&cli.command).then(|| ExitCode::from(2));
    log::queue::flush();
    outcome.unwrap_or_else(|error| {
        let error = error.saying_what_the_folder_is();
        errors.tell(&error);
        failure.unwrap_or_else(|| error.exit_code())
    })
}

/// Asks for what opens the root key, and serves. What opens an engine is asked for later, when its
/// store was looked into.
fn run_server(config: Config, args: &ServeArgs) -> Result<ExitCode, Error> {
    let root_key = config.root_key.as_ref();
    let how = how_asked(args, root_key)?;
    let secrets = match how.engine {
        Some(_) => SourceSecrets::default(),
        None => secrets_of(&config.data, root_key, &args.passphrase)?,
    };
    let data = config.data.clone();
    let served = block_on(serve(config, secrets, how));
    served
        .map(|()| ExitCode::SUCCESS)
        .map_err(|error| error.of_folder(&data))
}

/// What was typed, and how errors are to be told. What `coffer get` fetches is the user's, as a
/// copy by cp is, and gets the user's mask; all other commands may write secrets.
///
/// # Errors
/// The exit code, where it makes no sense, or help was asked for: that has been written.
fn typed(users: UserMask) -> Result<(Cli, Errors), ExitCode> {
    let parsed = Cli::command().try_get_matches().and_then(|matches| {
        let errors = Errors::wanted(&matches);
        let mut cli = Cli::from_arg_matches(&matches)?;
        cli.data.take_sources(&matches);
        Ok((cli, errors))
    });
    if let Ok((cli, _)) = &parsed
        && matches!(cli.command, Command::Get(_))
    {
        users.restore();
    }
    parsed.map_err(|told| {
        let plain = without_environment().filter(|plain| plain.kind() == told.kind());
        let told = plain.filter(|_| told.use_stderr()).unwrap_or(told);
        if told.use_stderr() && std::env::args_os().any(|word| word == "--json") {
            Errors::Json.write("invalid_argument", &sentence(&told.to_string()));
            return ExitCode::from(2);
        }
        // Help that can't be written is no success.
        let written = told.print().and_then(|()| std::io::stdout().flush());
        match (written, told.exit_code()) {
            (Err(_), 0) => ExitCode::FAILURE,
            (_, code) => u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from),
        }
    })
}

/// The same error as it is without the environment, for clap tells what is set there as required.
fn without_environment() -> Option<clap::Error> {
    fn strip(command: clap::Command) -> clap::Command {
        let command = command.mut_args(|arg| arg.env(Resettable::Reset));
        command.mut_subcommands(strip)
    }
    strip(Cli::command()).try_get_matches().err()
}

/// What is wrong with the arguments, without the help that follows it, on one line.
fn sentence(told: &str) -> String {
    let wrong = told.split("\n\nUsage:").next().unwrap_or(told);
    let wrong = wrong.strip_prefix("error: ").unwrap_or(wrong);
    wrong.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// How errors are told: a line, or an object on a line for who asked for JSON.
#[derive(Clone, Copy)]
enum Errors {
    Text,
    Json,
}

impl Errors {
    /// As answers are wanted, or the log of a server.
    fn wanted(matches: &ArgMatches) -> Self {
        let is_set = |matches: &ArgMatches| {
            let json = matches.try_get_one::<bool>("json").ok().flatten();
            let log = matches.try_get_one::<LogFormat>("log_format");
            json == Some(&true) || log.ok().flatten() == Some(&LogFormat::Json)
        };
        let mut of = Some(matches);
        while let Some(matches) = of {
            if is_set(matches) {
                return Self::Json;
            }
            of = matches.subcommand().map(|(_, inner)| inner);
        }
        Self::Text
    }

    fn tell(self, error: &Error) {
        self.write(error.code(), &error.to_string());
    }

    /// Where it can't be written, the exit code tells.
    fn write(self, code: &str, message: &str) {
        let line = match self {
            Self::Text => format!("error: {message}"),
            Self::Json => {
                let error = serde_json::json!({ "code": code, "message": message });
                serde_json::json!({ "error": error }).to_string()
            }
        };
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}

fn verifies(command: &Command) -> bool {
    match command {
        Command::Verify(_) | Command::Prove(_) => true,
        Command::Audit(args) => matches!(args.command, AuditCommand::Verify(_)),
        _ => false,
    }
}

/// The commands that ask a running server.
async fn ask(server: &AdminClient, command: &Command) -> Result<ExitCode, Error> {
    match command {
        Command::Level(args) => level(server, args).await,
        Command::Quota(args) => quota(server, args).await,
        Command::LockTime(args) => lock_time(server, args).await,
        Command::Bucket(args) => bucket(server, args).await,
        Command::Subject(args) => subject(server, args).await,
        Command::Key(args) => key(server, args).await,
        Command::Request(args) => request(server, args).await,
        Command::Keystore(args) => keystore(server, args).await,
        Command::Receipt(args) => receipt(server, args).await,
        Command::Audit(args) => audit(server, args).await,
        Command::Verify(args) => verify(server, args).await,
        Command::Backup(args) => backup(server, args).await,
        Command::Replica(args) => replica(server, args).await,
        Command::Standby(args) => standby(server, args).await,
        Command::Serve(_)
        | Command::Offline(_)
        | Command::Restore(_)
        | Command::Prove(_)
        | Command::Tls(_)
        | Command::Put(_)
        | Command::Get(_)
        | Command::Ls(_)
        | Command::Rm(_)
        | Command::Cp(_)
        | Command::Migrate(_)
        | Command::Completions(_)
        | Command::Man(_) => Ok(ExitCode::SUCCESS),
    }
}

/// As many workers as there are processors to run on; tokio asks the system, which knows about
/// affinity and control groups.
fn block_on<T>(work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let runtime: Runtime = Builder::new_multi_thread()
        .enable_all()
        .event_interval(EVENT_INTERVAL)
        .on_thread_unpark(quanta::thread_woke)
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
