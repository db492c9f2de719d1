//! The files of the workspace.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The text of a file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Path relative to the workspace, with `/`.
    pub path: String,
    /// Its content.
    pub text: String,
}

/// Folders that hold nothing of ours: build output and what tests make.
const SKIPPED: [&str; 9] = [
    "target",
    ".git",
    ".venv",
    "__pycache__",
    ".pytest_cache",
    ".ruff_cache",
    "coffer-data",
    "corpus",
    "artifacts",
];

/// The folder that holds this workspace.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent()
        .expect("xtask lies in the workspace")
        .to_owned()
}

/// Reads every file below the workspace whose name ends in one of `extensions` (`rs`, `py`, …).
pub fn workspace_files(extensions: &[&str]) -> Vec<Source> {
    let root = workspace_root();
    let mut paths = Vec::new();
    walk(&root, &mut paths);
    paths.sort();
    let wanted = |path: &PathBuf| {
        let extension = path
            .extension()
            .and_then(|e| e.to_str())
            .unwrap_or_default();
        extensions.contains(&extension)
    };
    paths
        .into_iter()
        .filter(wanted)
        .map(|path| read(&root, &path))
        .collect()
}

/// Reads one file.
pub fn read(root: &Path, path: &Path) -> Source {
    let relative = path
        .strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .replace('\\', "/");
    let text = fs::read_to_string(path)
        .unwrap_or_else(|error| panic!("{relative} can't be read as text: {error}"));
    Source {
        path: relative,
        text,
    }
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).expect("a folder of the workspace can be listed");
    for entry in entries.flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if path.is_symlink() || SKIPPED.contains(&name.as_str()) {
            continue;
        }
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The Rust sources below `src/` of each crate, by the crate's folder (`crates/coffer-seal`).
pub fn rust_crates() -> BTreeMap<String, Vec<Source>> {
    let mut crates: BTreeMap<String, Vec<Source>> = BTreeMap::new();
    for source in workspace_files(&["rs"]) {
        if let Some((folder, _)) = source.path.split_once("/src/") {
            crates.entry(folder.to_owned()).or_default().push(source);
        }
    }
    crates
}
