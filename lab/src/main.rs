//! `coffer-lab`: see lab/README.md.

#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use coffer_lab::args::{Command, CommandLine, InKernel, Measured, Measuring};
use coffer_lab::cipher::algorithm::Algorithm;
use coffer_lab::cipher::kernel_module;
use coffer_lab::cipher::roster::roster;
use coffer_lab::error::{Doing, LabError, Result};
use coffer_lab::host::cleaning;
use coffer_lab::host::leftovers;
use coffer_lab::host::machine::{Conditions, Machine};
use coffer_lab::host::undo;
use coffer_lab::measuring::calibration::calibrate;
use coffer_lab::measuring::rounds::Effort;
use coffer_lab::raw::{self, loop_alone, raw};
use coffer_lab::record::check::as_text;
use coffer_lab::record::published::{Published, published};
use coffer_lab::record::{Agreement, Experiment, Record, sent};
use coffer_lab::report::{compare, site, table};
use coffer_lab::{file, kernel, net, report, sendfile, server};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Where files are written: on a disk, while /tmp may be memory.
const FOLDER: &str = "/var/tmp";

fn main() -> ExitCode {
    // By this name `clean` knows a lab that runs, also where its file is called otherwise.
    let _ = rustix::thread::set_name(leftovers::PROCESS_NAME);
    let command = CommandLine::parse().command;
    // What is measured from outside is ended by a signal, and has nothing to clean up.
    let cleans_up = !matches!(
        command,
        Command::ServeModel { .. }
            | Command::AnswerRequest { .. }
            | Command::ObserveTransfer { .. }
    );
    let listening = if cleans_up {
        undo::on_interrupt()
    } else {
        Ok(())
    };
    let done = listening.and_then(|()| run(&command));
    undo::before_the_end();
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            undo::say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    match command {
        Command::List => list(),
        Command::Raw(measuring) => measure(measuring, &[raw_experiments]),
        Command::File(measuring) => measure(measuring, &[file_experiments]),
        Command::Sendfile(measuring) => measure(measuring, &[sendfile_experiments]),
        Command::Net(measuring) => measure(measuring, &[net_experiments]),
        Command::Server(measuring) => measure(measuring, &[server_experiments]),
        Command::LoopOfA(measuring) => measure(measuring, &[loop_of_a]),
        Command::ServeModel { model } => server::serve(*model).doing(|| "serving".into()),
        Command::AnswerRequest { wish, bytes, place } => {
            let answered = server::answer_on_standard_output(*wish, *bytes, *place);
            answered.doing(|| "answering".into())
        }
        Command::ObserveTransfer {
            way,
            bytes,
            transfers,
            folder,
        } => sendfile::be_observed(*way, *bytes, *transfers, folder),
        Command::All { only, measuring } => {
            let wanted = |one: &Measured| only.is_empty() || only.contains(one);
            let all: Vec<Experiments> = Measured::value_variants()
                .iter()
                .filter(|one| wanted(one))
                .map(|one| experiments(*one))
                .collect();
            measure(measuring, &all)
        }
        Command::Kernel(wanted) => in_kernel(wanted),
        Command::Clean {
            folder,
            cache,
            dry_run,
            json,
        } => clean(folder.as_deref(), cache.as_deref(), *dry_run, *json),
        Command::Report { record, page } => {
            are_two_files(record, page)?;
            write_report(page, &compare::read(record)?, &published()?)
        }
        Command::Site { folder, machines } => {
            let machines = machines.clone().map_or_else(sent::folder, Ok)?;
            let count = site::write(&site::read(&machines)?, folder)?;
            let index = folder.join("index.html");
            table::print(&format!("{count} pages: {}\n", index.display()))
        }
        Command::Compare { first, second } => {
            let (first, second) = (compare::read(first)?, compare::read(second)?);
            table::print(&compare::compare(&first, &second))
        }
    }
}

/// Who can run here, and what would make the others run.
fn list() -> Result<()> {
    let raw = |algorithm: Algorithm| {
        let contenders = roster(algorithm).into_iter().map(|one| one.contender);
        (format!("raw, {}", algorithm.name()), contenders.collect())
    };
    let mut groups = Algorithm::MODES.map(raw).to_vec();
    groups.push((
        "raw, other authenticated ciphers".to_owned(),
        raw::aeads::contenders(),
    ));
    groups.push(("raw, memory".to_owned(), raw::memory::contenders()));
    let module = vec![kernel_module().contender];
    groups.push(("raw, the loop of A".to_owned(), module));
    let null_cipher = raw::null_cipher::contenders();
    groups.push(("raw, null cipher".to_owned(), null_cipher));
    groups.push(("raw, handshakes".to_owned(), raw::handshakes::contenders()));
    let speed = vec![raw::open_ssl_speed::contender()];
    groups.push(("raw, openssl speed".to_owned(), speed));
    groups.push(("file".to_owned(), file::contenders()));
    groups.push(("sendfile".to_owned(), sendfile::contenders()));
    groups.push(("net".to_owned(), net::contenders()));
    groups.push(("server".to_owned(), server::contenders()));
    groups.push(("kernel".to_owned(), kernel::accelerator::contenders()));
    table::print(&table::list(&groups))
}

fn clean(folder: Option<&Path>, cache: Option<&Path>, dry_run: bool, json: bool) -> Result<()> {
    if let Some(folder) = folder {
        // A name that is mistyped would be told as a folder without leftovers.
        fs::read_dir(folder).doing(|| format!("looking into {}", folder.display()))?;
    }
    let folders = folder.map_or_else(
        || {
            let mut folders = vec![PathBuf::from(FOLDER), std::env::temp_dir()];
            // Before their mounts are gone, which tell of them.
            folders.extend(leftovers::elsewhere());
            folders
        },
        |folder| vec![folder.to_owned()],
    );
    let cache = cache.map_or_else(kernel::default_cache, Path::to_owned);
    let done = cleaning::clean(&folders, &cache, dry_run);
    table::print(&if json { done.json() } else { done.text() })?;
    let stays = done.stays();
    if stays.is_empty() {
        return Ok(());
    }
    Err(LabError::Data {
        file: stays.join(", "),
        what: "could not be removed: try again as root".into(),
    })
}

fn experiments(one: Measured) -> Experiments {
    match one {
        Measured::Raw => raw_experiments,
        Measured::File => file_experiments,
        Measured::Sendfile => sendfile_experiments,
        Measured::Net => net_experiments,
        Measured::Server => server_experiments,
    }
}

/// What a kernel has to do with.
const IN_KERNEL: [Measured; 4] = [
    Measured::Raw,
    Measured::File,
    Measured::Sendfile,
    Measured::Net,
];

fn in_kernel(wanted: &InKernel) -> Result<()> {
    can_be_written(&[wanted.json.as_deref(), wanted.report.as_deref()])?;
    let is_wanted = |one: &&Measured| match wanted.only[..] {
        [] => IN_KERNEL.contains(one),
        _ => wanted.only.contains(one),
    };
    // Each once, however often it was named.
    let only = Measured::value_variants().iter().filter(is_wanted);
    let request = kernel::Request {
        kernel: wanted.kernel.clone(),
        accelerator: wanted.accelerator,
        work: kernel::Work::Experiments(only.map(|one| one.word()).collect()),
        quick: wanted.quick,
        rounds: wanted.rounds,
        cache: wanted.cache.clone().unwrap_or_else(kernel::default_cache),
        keep: wanted.keep,
        lab: std::env::current_exe().doing(|| "finding this program".into())?,
        programs: Vec::new(),
    };
    let mut record = if wanted.configs {
        kernel::configs::measure(&request)?
    } else {
        kernel::measure(&request)?
    };
    record.date = now();
    record.command = arguments();
    show(&record, wanted.json.as_deref(), wanted.report.as_deref())
}

type Experiments = fn(&Measuring, Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)>;

fn raw_experiments(_: &Measuring, effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    raw(effort)
}

fn loop_of_a(_: &Measuring, effort: Effort) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    loop_alone(effort)
}

fn file_experiments(
    measuring: &Measuring,
    effort: Effort,
) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let folder = measuring.folder.as_deref().unwrap_or(Path::new(FOLDER));
    Ok((Vec::new(), file::file(effort, folder)?))
}

fn sendfile_experiments(
    measuring: &Measuring,
    effort: Effort,
) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let folder = measuring.folder.as_deref().unwrap_or(Path::new(FOLDER));
    Ok((Vec::new(), sendfile::sendfile(effort, folder)?))
}

fn net_experiments(
    measuring: &Measuring,
    effort: Effort,
) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let folder = measuring.folder.as_deref().unwrap_or(Path::new(FOLDER));
    Ok((Vec::new(), net::net(effort, folder)?))
}

fn server_experiments(
    measuring: &Measuring,
    effort: Effort,
) -> Result<(Vec<Agreement>, Vec<Experiment>)> {
    let folder = measuring.folder.as_deref().unwrap_or(Path::new(FOLDER));
    Ok((Vec::new(), server::server(effort, folder)?))
}

fn measure(measuring: &Measuring, all: &[Experiments]) -> Result<()> {
    let effort = Effort {
        rounds: measuring.rounds.map(usize::from),
        quick: measuring.quick,
        counts_instructions: measuring.instructions,
    };
    can_be_written(&[measuring.json.as_deref(), measuring.report.as_deref()])?;
    let mut record = Record::begin(now(), arguments());
    if measuring.instructions {
        record.calibration = calibrate()?;
    }
    let json = measuring.json.as_deref();
    for one in all {
        let (agreed, measured) = one(measuring, effort)?;
        record.agreements.extend(agreed);
        record.experiments.extend(measured);
        record.after = Conditions::look();
        // Some drivers are listed only when something has asked for them.
        record.machine = Machine::look();
        // An interruption leaves what was measured by then.
        write_json(&record, json)?;
    }
    show(&record, json, measuring.report.as_deref())
}

/// RFC 3339.
fn now() -> String {
    let now = OffsetDateTime::now_utc().format(&Rfc3339);
    now.unwrap_or_default()
}

/// The command line, without the program. Names of files may hold anything, also what is no text.
fn arguments() -> String {
    let all = std::env::args_os().skip(1);
    let all: Vec<String> = all.map(|one| one.to_string_lossy().into_owned()).collect();
    as_text(&all.join(" "))
}

/// Writes what was asked for, and prints the tables.
fn show(record: &Record, json: Option<&Path>, page: Option<&Path>) -> Result<()> {
    write_json(record, json)?;
    let published = published()?;
    if let Some(path) = page {
        write_report(path, record, &published)?;
    }
    table::print(&table::terminal(record, &published))
}

/// A page must not replace the record that it is drawn from.
fn are_two_files(record: &Path, page: &Path) -> Result<()> {
    let resolved =
        [record, page].map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned()));
    if resolved[0] != resolved[1] {
        return Ok(());
    }
    Err(LabError::Data {
        file: page.display().to_string(),
        what: "is the record: name another file for the page".into(),
    })
}

/// Looks before minutes are spent, and leaves what is there as it is.
fn can_be_written(paths: &[Option<&Path>; 2]) -> Result<()> {
    if let [Some(record), Some(page)] = paths {
        are_two_files(record, page)?;
    }
    for path in paths.iter().flatten() {
        let was_there = path.symlink_metadata().is_ok();
        let opened = OpenOptions::new().append(true).create(true).open(path);
        opened.doing(|| format!("writing {}", path.display()))?;
        if !was_there {
            let _ = fs::remove_file(path);
        }
    }
    Ok(())
}

fn write_json(record: &Record, path: Option<&Path>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    let text = serde_json::to_string_pretty(record).map_err(|error| LabError::Data {
        file: path.display().to_string(),
        what: error.to_string(),
    })?;
    fs::write(path, text + "\n").doing(|| format!("writing {}", path.display()))
}

fn write_report(path: &Path, record: &Record, published: &[Published]) -> Result<()> {
    let page = report::page(record, published);
    fs::write(path, page).doing(|| format!("writing {}", path.display()))
}
