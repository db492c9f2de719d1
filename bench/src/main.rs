//! The benchmarks: see bench/README.md.

#![forbid(unsafe_code)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Parser, ValueEnum};
use coffer_bench::args::{Args, WorkName};
use coffer_bench::bench::{Bench, Effort};
use coffer_bench::circumstances;
use coffer_bench::contenders::{plain_receiver, receiver};
use coffer_bench::error::{Doing, Result};
use coffer_bench::machine::pinning;
use coffer_bench::report::figures::Report;
use coffer_bench::report::table;
use coffer_bench::works::buckets::{features, lifecycle, versions};
use coffer_bench::works::{
    builds, copy, engine, fairness, handshakes, memory, mover, rotation, sealed, sealing, small,
    transfers,
};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Rounds, and rounds of what is heavy.
const ROUNDS: (u16, u16) = (5, 5);
const QUICK_ROUNDS: (u16, u16) = (2, 1);

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("coffer-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if let (Some(folder), Some(address)) = (&args.receive_into, args.listen) {
        return if args.plain {
            plain_receiver::serve(folder, address)
        } else {
            receiver::serve(folder, address)
        };
    }
    let bench = prepare(args)?;
    let report = measure(args, &bench)?;
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).doing(|| "writing JSON".into())?;
        fs::write(path, text + "\n").doing(|| format!("writing {}", path.display()))?;
    }
    let text = if args.markdown {
        table::markdown(&report)
    } else {
        table::terminal(&report)
    };
    println!("{text}");
    Ok(())
}

fn prepare(args: &Args) -> Result<Bench> {
    let pinned = !args.unpinned && pinning::possible();
    pinning::pin_client(pinned)?;
    let program = std::env::current_exe().doing(|| "looking for this program".into())?;
    let beside = program.parent().unwrap_or(Path::new("."));
    let coffer = args.coffer.clone().unwrap_or_else(|| beside.join("coffer"));
    let coffer = std::path::absolute(&coffer).doing(|| "looking for coffer".into())?;
    let (rounds, heavy_rounds) = if args.quick { QUICK_ROUNDS } else { ROUNDS };
    let effort = Effort {
        rounds: args.rounds.unwrap_or(rounds).into(),
        heavy_rounds: args.rounds.unwrap_or(heavy_rounds).into(),
        quick: args.quick,
    };
    let only = args.only.iter().filter_map(|name| name.to_possible_value());
    let only = only.map(|name| name.get_name().to_owned()).collect();
    let parent: PathBuf = args.folder.clone().unwrap_or_else(|| beside.into());
    let mut bench = Bench::new(effort, pinned, coffer, only, &parent)?;
    let absolute = |path| std::path::absolute(path).doing(|| "looking for a program".into());
    bench.other = args.other.as_ref().map(absolute).transpose()?;
    bench.nginx = args.nginx.as_ref().map(absolute).transpose()?;
    bench.rows_with.clone_from(&args.row);
    Ok(bench)
}

fn measure(args: &Args, bench: &Bench) -> Result<Report> {
    type Measure = fn(&Bench) -> Result<Vec<coffer_bench::report::figures::Work>>;
    let measures: [(WorkName, Measure); 18] = [
        (WorkName::Seal, sealing::seal_and_open),
        (WorkName::Get, transfers::get),
        (WorkName::Put, transfers::put),
        (WorkName::Small, small::small),
        (WorkName::Handshakes, handshakes::handshakes),
        (WorkName::Memory, memory::memory),
        (WorkName::Rotation, rotation::rotation),
        (WorkName::Builds, builds::builds),
        (WorkName::Features, features::features),
        (WorkName::Versions, versions::versions),
        (WorkName::Lifecycle, lifecycle::lifecycle),
        (WorkName::SealedGet, sealed::get::get),
        (WorkName::SealedPut, sealed::put::put),
        (WorkName::SealedBoth, sealed::together::together),
        (WorkName::Mover, mover::mover),
        (WorkName::Fairness, fairness::fairness),
        (WorkName::Copy, copy::copy),
        (WorkName::Engine, engine::engine),
    ];
    let now = OffsetDateTime::now_utc();
    let mut report = Report {
        date: now.format(&Rfc3339).unwrap_or_default(),
        circumstances: circumstances::describe(bench),
        works: Vec::new(),
    };
    for (name, measure) in measures {
        if args.wants(name) {
            report.works.extend(measure(bench)?);
        }
    }
    Ok(report)
}
