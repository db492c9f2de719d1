//! The house stands: crates keep to their floors, modules to their order.

use std::fs;

use xtask::{
    Finding, assert_clean, floors, modules, rooms, rust_crates, workspace_files, workspace_root,
};

#[test]
fn crates_depend_only_on_lower_floors() {
    let manifests: Vec<_> = workspace_files(&["toml"])
        .into_iter()
        .filter(|file| file.path.ends_with("/Cargo.toml"))
        .collect();
    let findings: Vec<Finding> = manifests
        .iter()
        .flat_map(|manifest| floors::check_manifest(&manifest.path, &manifest.text))
        .collect();
    assert_clean(&findings);
    for (name, _) in floors::FLOORS {
        let path = format!("crates/{name}/Cargo.toml");
        assert!(
            manifests.iter().any(|file| file.path == path),
            "{path} is missing"
        );
    }
}

#[test]
fn modules_use_only_those_declared_above_them() {
    let crates = rust_crates();
    assert!(
        crates.len() >= floors::FLOORS.len(),
        "the sources were not found"
    );
    let findings: Vec<Finding> = crates
        .values()
        .flat_map(|sources| modules::upward_uses(sources))
        .collect();
    assert_clean(&findings);
}

/// Most files beside each other in a folder of Rust.
const FILES_BESIDE: usize = 16;

#[test]
fn folders_are_rooms() {
    let crates = rust_crates();
    let findings = crates.values().flat_map(|sources| {
        let mut found = rooms::crowded(sources, FILES_BESIDE);
        found.extend(rooms::unlabelled(sources));
        found
    });
    assert_clean(&findings.collect::<Vec<_>>());
}

#[test]
fn the_drawing_is_of_this_house() {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).unwrap();
    let section = text.split("\n## Rooms\n").nth(1).unwrap_or_default();
    let drawing = section.split("```").nth(1).unwrap_or_default();
    let crates = rust_crates();
    let findings: Vec<Finding> = floors::FLOORS
        .iter()
        .filter_map(|(name, _)| {
            let sources = crates.get(&format!("crates/{name}"))?;
            rooms::drawn_otherwise(drawing, name, sources)
        })
        .collect();
    assert_clean(&findings);
}

#[test]
fn names_say_something() {
    let files = workspace_files(&["rs", "py", "sh"]);
    assert_clean(&modules::empty_names(
        files.iter().map(|file| file.path.as_str()),
    ));
}

#[test]
fn every_source_file_is_part_of_its_crate() {
    let findings: Vec<Finding> = rust_crates()
        .values()
        .flat_map(|sources| modules::dead_files(sources))
        .collect();
    assert_clean(&findings);
}

#[test]
fn members_of_the_workspace_take_its_lints() {
    let mut findings = Vec::new();
    for manifest in workspace_files(&["toml"]) {
        let is_member = manifest.path.ends_with("/Cargo.toml");
        if is_member && !manifest.text.contains("[lints]\nworkspace = true") {
            let message = "lacks `[lints] workspace = true`";
            findings.push(Finding::new(&manifest.path, 0, message));
        }
    }
    assert_clean(&findings);
    assert!(
        fs::exists(workspace_root().join("Cargo.lock")).unwrap_or(false),
        "no Cargo.lock"
    );
}
