//! Rooms: the folders of a crate, drawn in ARCHITECTURE.md in the order in which they build on each
//! other, each small enough to be seen at once.

use std::collections::BTreeMap;

use crate::finding::Finding;
use crate::module_tree::declared_modules;
use crate::tokens::tokens;
use crate::tree::Source;

/// Finds folders below `src/` with more Rust files beside each other than `most`.
pub fn crowded(sources: &[Source], most: usize) -> Vec<Finding> {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for source in sources {
        let (folder, _) = source.path.rsplit_once('/').unwrap_or_default();
        *counts.entry(folder).or_default() += 1;
    }
    let finding = |(folder, count): (&str, usize)| {
        let message = format!("holds {count} files beside each other, more than {most}: part it");
        Finding::new(folder, 0, message)
    };
    let is_crowded = |&(_, count): &(&str, usize)| count > most;
    counts.into_iter().filter(is_crowded).map(finding).collect()
}

/// Finds rooms whose file says nothing of what belongs there.
pub fn unlabelled(sources: &[Source]) -> Vec<Finding> {
    let holds_room = |source: &&Source| {
        let folder = source.path.trim_end_matches(".rs");
        let folder = folder.trim_end_matches("/mod").to_owned() + "/";
        sources
            .iter()
            .any(|other| other.path.starts_with(&folder) && other.path != source.path)
    };
    sources
        .iter()
        .filter(holds_room)
        .filter(|source| !source.text.starts_with("//! "))
        .map(|source| Finding::new(&source.path, 1, "does not say what belongs in its folder"))
        .collect()
}

/// Compares what is drawn of a crate with its folders, in the order of its modules. `sources` are
/// its files, `crate_name` is how the drawing calls it.
pub fn drawn_otherwise(drawing: &str, crate_name: &str, sources: &[Source]) -> Option<Finding> {
    let root = sources
        .iter()
        .find(|source| source.path.ends_with("/src/lib.rs"))?;
    let folder = root.path.trim_end_matches("lib.rs");
    let is_room = |name: &String| {
        let room = format!("{folder}{name}/");
        name != "tests" && sources.iter().any(|source| source.path.starts_with(&room))
    };
    let mut there = declared_modules(&tokens(&root.path, &root.text));
    there.retain(is_room);
    let drawn = rooms(drawing, crate_name);
    (there != drawn).then(|| {
        let message = format!(
            "has the rooms {there:?}, in the order of its modules; ARCHITECTURE.md draws {drawn:?}"
        );
        Finding::new(&root.path, 0, message)
    })
}

/// The rooms drawn under a crate's name: lines that are indented, up to a slash.
fn rooms(drawing: &str, crate_name: &str) -> Vec<String> {
    drawing
        .lines()
        .skip_while(|line| *line != crate_name)
        .skip(1)
        .take_while(|line| line.starts_with(' '))
        .filter_map(|line| line.trim_start().split_once('/'))
        .map(|(room, _)| room.to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources(files: &[(&str, &str)]) -> Vec<Source> {
        let source = |&(path, text): &(&str, &str)| Source {
            path: format!("crates/x/src/{path}"),
            text: text.to_owned(),
        };
        files.iter().map(source).collect()
    }

    #[test]
    fn crowds_are_found() {
        let files = sources(&[("lib.rs", ""), ("a.rs", ""), ("a/b.rs", "")]);
        assert_eq!(crowded(&files, 2), []);
        assert_eq!(crowded(&files, 1).len(), 1);
    }

    #[test]
    fn rooms_say_what_they_are_for() {
        let said = [
            ("a.rs", "//! What."),
            ("a/b.rs", ""),
            ("c/mod.rs", "//! C"),
            ("c/d.rs", ""),
        ];
        assert_eq!(unlabelled(&sources(&said)), []);
        assert_eq!(
            unlabelled(&sources(&[("a.rs", "mod b;"), ("a/b.rs", "")])).len(),
            1
        );
    }

    #[test]
    fn the_drawing_follows_the_modules() {
        let root = ("lib.rs", "mod floor; mod stairs; mod roof;");
        let files = sources(&[
            root,
            ("floor/a.rs", ""),
            ("stairs.rs", ""),
            ("roof/b.rs", ""),
        ]);
        let differs = |drawing: &str| drawn_otherwise(drawing, "x", &files).is_some();
        assert!(!differs(
            "y\n  roof/\nx\n  floor/  below\n  roof/   above\nz\n  attic/\n"
        ));
        assert!(differs("x\n  roof/\n  floor/\n"), "another order");
        assert!(differs("x\n  floor/\n"), "one is missing");
        assert!(differs(""));
    }
}
