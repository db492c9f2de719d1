//! Compiles AES in plain C, with the optimisation that kernels are built with, and asks git for the
//! commit that the lab is built from.

use std::process::Command;

/// What the lab's figures depend on.
const SOURCES: [&str; 4] = ["src", "c", "published.json", "../measure/src"];

fn main() {
    compile();
    for path in SOURCES {
        println!("cargo::rerun-if-changed={path}");
    }
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let mut commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let changed = git(&["status", "--porcelain", "--", "src", "c", "../measure/src"]);
    if !commit.is_empty() && changed.is_none_or(|files| !files.is_empty()) {
        commit += "-dirty";
    }
    println!("cargo::rustc-env=COFFER_LAB_COMMIT={commit}");
}

/// What git says; None where there is no git, or no repository.
fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let said = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| said.trim().to_owned())
}

fn compile() {
    let sources = ["c/aes_loop.c", "c/aes_plain.c", "c/aes_plain_modes.c"];
    for file in sources.iter().chain(&["c/aes_plain.h"]) {
        println!("cargo::rerun-if-changed={file}");
    }
    // -O2 in every profile: a debug build would otherwise measure something else, and the kernel
    // module that shares these files is built with -O2 too.
    cc::Build::new()
        .files(sources)
        .opt_level(2)
        .warnings(true)
        .extra_warnings(true)
        .std("gnu11")
        .compile("aes_plain");
}
