//! What is built beside the server does not change it: CI tests the program that users get.

use std::collections::BTreeSet;
use std::process::Command;

use xtask::workspace_root;

/// What these packages are linked from when they are built at once: names, versions, features.
fn linked(packages: &[&str]) -> BTreeSet<String> {
    let mut tree = Command::new(env!("CARGO"));
    tree.current_dir(workspace_root()).args([
        "tree",
        "--locked",
        "--offline",
        "--edges=normal,no-proc-macro",
        "--prefix=none",
        "--format={p} {f}",
    ]);
    for package in packages {
        tree.args(["--package", package]);
    }
    let output = tree.output().expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8_lossy(&output.stdout);
    let line = |line: &str| line.trim_end_matches("(*)").trim_end().to_owned();
    text.lines().map(line).collect()
}

#[test]
fn the_server_is_the_same_beside_lab_and_bench() {
    let alone = linked(&["coffer"]);
    assert!(alone.len() > 100, "{} packages are too few", alone.len());
    let beside = linked(&["coffer", "coffer-lab", "coffer-bench", "coffer-faults"]);
    let other: Vec<&String> = alone.difference(&beside).collect();
    assert!(
        other.is_empty(),
        "beside the others, these have other features; ask for the same ones in the workspace's \
         Cargo.toml: {other:#?}"
    );
}
