//! What a figure is worth nothing without: the machine, the versions, the settings.

use std::process::Command;

use crate::bench::Bench;
use crate::contenders::nginx;
use crate::machine::pinning::{CLIENT_CORE, SERVER_CORE};
use coffer_measure::machine;
use coffer_measure::tls::CIPHER_SUITE;

/// Lines of text, for people.
pub fn describe(bench: &Bench) -> Vec<String> {
    let mut lines = vec![machine()];
    lines.push(if bench.pinned {
        format!(
            "server on core {SERVER_CORE}, load client on core {CLIENT_CORE}; bare commits and \
             sealing on core {SERVER_CORE}"
        )
    } else {
        "server and load client on any core".into()
    });
    lines.push(format!(
        "{} interleaved rounds{}; medians (min–max); ratios are medians of each round's ratio",
        bench.effort.rounds,
        if bench.effort.quick { ", quick" } else { "" }
    ));
    lines.push(format!(
        "TLS 1.3, {CIPHER_SUITE}, keep-alive; data written right before it is read"
    ));
    if bench.wants("coffer")
        && let Some(version) = first_line(Command::new(&bench.coffer).arg("--version"))
    {
        lines.push(version);
    }
    if bench.wants("nginx")
        && let Ok(version) = nginx::version(bench.nginx.as_deref())
    {
        lines.push(format!("{version}: {}", nginx::SETTINGS));
    }
    lines
}

fn machine() -> String {
    // Not `available_parallelism`: this thread is pinned.
    let cores = machine::read("/proc/cpuinfo");
    let cores = cores.lines().filter(|line| line.starts_with("processor"));
    format!(
        "{}, {} cores, Linux {}, {}",
        machine::processor(),
        cores.count(),
        machine::kernel(),
        machine::system()
    )
}

fn first_line(command: &mut Command) -> Option<String> {
    let output = command.output().ok()?;
    String::from_utf8_lossy(&output.stdout)
        .lines()
        .next()
        .map(str::to_owned)
}
