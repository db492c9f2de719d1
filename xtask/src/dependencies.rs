//! What coffer is built from, held against `deny.toml`: licences, bans and sources.
//!
//! `cargo deny` reads the same file and more, but takes longer to compile than all else in CI.

use std::collections::BTreeSet;
use std::process::Command;

use serde::Deserialize;
use spdx::{Expression, ParseMode};

use crate::finding::Finding;
use crate::tree::workspace_root;

const LOCK: &str = "Cargo.lock";

/// As much of `deny.toml` as is checked here.
#[derive(Debug, Deserialize)]
pub struct Policy {
    licenses: Licenses,
    bans: Bans,
}

#[derive(Debug, Deserialize)]
struct Licenses {
    allow: BTreeSet<String>,
}

#[derive(Debug, Deserialize)]
struct Bans {
    deny: Vec<Ban>,
}

#[derive(Debug, Deserialize)]
struct Ban {
    #[serde(rename = "crate")]
    name: String,
    /// Who may use it nevertheless.
    #[serde(default)]
    wrappers: BTreeSet<String>,
}

/// A package that something here is built from.
#[derive(Debug, Deserialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    license: Option<String>,
    /// None for our own.
    source: Option<String>,
    dependencies: Vec<Dependency>,
}

#[derive(Debug, Deserialize)]
struct Dependency {
    name: String,
    optional: bool,
    /// None for what is linked.
    kind: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

/// All packages in `Cargo.lock` that a platform or a feature could need.
pub fn packages() -> Vec<Package> {
    let output = Command::new(env!("CARGO"))
        .current_dir(workspace_root())
        .args(["metadata", "--format-version=1", "--locked"])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{output:?}");
    let metadata: Metadata = serde_json::from_slice(&output.stdout).expect("cargo writes JSON");
    metadata.packages
}

/// Finds licences that are not allowed.
pub fn licences(policy: &Policy, packages: &[Package]) -> Vec<Finding> {
    let allowed = &policy.licenses.allow;
    let finding = |package: &Package| {
        let named = package.license.as_deref().unwrap_or("none");
        let is_allowed = Expression::parse_mode(named, ParseMode::LAX).is_ok_and(|expression| {
            expression.evaluate(|licence| allowed.contains(&licence.to_string()))
        });
        let message = format!(
            "{} has licence {named}, which deny.toml does not allow",
            package.name
        );
        (!is_allowed).then(|| Finding::new(LOCK, 0, message))
    };
    packages.iter().filter_map(finding).collect()
}

/// Finds packages that are banned, but for those that may use them.
pub fn bans(policy: &Policy, packages: &[Package]) -> Vec<Finding> {
    let mut found = Vec::new();
    for ban in &policy.bans.deny {
        let uses = |package: &&Package| {
            let of_ban = |dependency: &Dependency| {
                let is_test = dependency.kind.as_deref() == Some("dev");
                dependency.name == ban.name && !dependency.optional && !is_test
            };
            package.dependencies.iter().any(of_ban) && !ban.wrappers.contains(&package.name)
        };
        for user in packages.iter().filter(uses) {
            let message = format!("{} uses {}, which deny.toml bans", user.name, ban.name);
            found.push(Finding::new(LOCK, 0, message));
        }
    }
    found
}

/// Finds what comes from elsewhere than this folder and one registry.
pub fn sources(packages: &[Package]) -> Vec<Finding> {
    let mut registries = BTreeSet::new();
    let mut found = Vec::new();
    for package in packages {
        let Some(source) = &package.source else {
            continue;
        };
        let registry = source.starts_with("registry+").then_some(source);
        if registry.is_none_or(|it| registries.insert(it) && registries.len() > 1) {
            let message = format!(
                "{} comes from {source}: packages come from one registry",
                package.name
            );
            found.push(Finding::new(LOCK, 0, message));
        }
    }
    found
}
