//! Modules: every file is one, each uses only those declared above it, and none has a name that
//! says nothing.
//!
//! Cargo refuses circles between crates and nothing refuses them inside one. So `lib.rs` declares
//! modules in the order of their dependencies, and a module may name only those above it. Tests
//! inside a module may use what they like.

use std::collections::BTreeSet;

use crate::finding::Finding;
use crate::module_tree::{Module, Tree};
use crate::tree::Source;

/// File and folder names that invite whatever has no place.
const EMPTY_NAMES: [&str; 9] = [
    "util", "utils", "helper", "helpers", "common", "manager", "managers", "misc", "types",
];

/// Finds files and folders whose name says nothing.
pub fn empty_names<'a>(paths: impl IntoIterator<Item = &'a str>) -> Vec<Finding> {
    let says_nothing = |path: &&str| {
        path.split('/')
            .any(|part| EMPTY_NAMES.contains(&part.split('.').next().unwrap_or(part)))
    };
    let finding = |path| {
        let message = "has a name that says nothing: call it after the one idea that it holds";
        Finding::new(path, 0, message)
    };
    paths
        .into_iter()
        .filter(says_nothing)
        .map(finding)
        .collect()
}

/// Finds files below `src/` that no `mod` reaches.
pub fn dead_files(sources: &[Source]) -> Vec<Finding> {
    let mut reached = BTreeSet::new();
    for root in roots(sources) {
        let tree = Tree::new(sources, root);
        reached.extend(
            tree.modules
                .iter()
                .map(|module| module.source.path.as_str()),
        );
    }
    sources
        .iter()
        .filter(|source| !reached.contains(source.path.as_str()))
        .map(|source| {
            Finding::new(
                &source.path,
                0,
                "is reached by no `mod`: declare it or remove it",
            )
        })
        .collect()
}

/// Finds modules of one crate that use a module which is not declared above them.
pub fn upward_uses(sources: &[Source]) -> Vec<Finding> {
    let trees: Vec<Tree<'_>> = roots(sources)
        .map(|root| Tree::new(sources, root))
        .collect();
    let mut found: Vec<Finding> = trees
        .iter()
        .flat_map(|tree| {
            tree.modules
                .iter()
                .flat_map(|module| upward_uses_of(tree, module))
        })
        .collect();
    found.dedup();
    found
}

fn roots(sources: &[Source]) -> impl Iterator<Item = &Source> {
    sources.iter().filter(|source| {
        let inside = source
            .path
            .rsplit_once("src/")
            .map_or("", |(_, inside)| inside);
        ["lib.rs", "main.rs"].contains(&inside) || inside.starts_with("bin/")
    })
}

fn upward_uses_of(tree: &Tree<'_>, module: &Module<'_>) -> Vec<Finding> {
    let mut found = Vec::new();
    for reference in &module.references {
        let target = tree.resolve(&reference.path, 0);
        let shared = module
            .path
            .iter()
            .zip(&target)
            .take_while(|(own, other)| own == other)
            .count();
        let Some(parent) = tree.module(&module.path[..shared]) else {
            continue;
        };
        let place = |path: &[String]| {
            let child = path.get(shared)?;
            parent.children.iter().position(|known| known == child)
        };
        let (Some(own), Some(other)) = (place(&module.path), place(&target)) else {
            continue;
        };
        if other > own {
            let message = format!(
                "`{}` uses `{}`, which {} declares below it: move the declaration up, or what \
                 is needed down into a module of its own",
                module.path[shared], target[shared], parent.source.path,
            );
            found.push(Finding::new(&module.source.path, reference.line, message));
        }
    }
    found
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

    fn upward(files: &[(&str, &str)]) -> usize {
        upward_uses(&sources(files)).len()
    }

    const ROOT: (&str, &str) = (
        "lib.rs",
        "mod floor; mod roof; pub use crate::roof::{Tile as T};",
    );

    #[test]
    fn lower_modules_may_be_used() {
        let roof = "use crate::{floor::{self, A}, roof::Tile}; fn f() { crate::floor::g() }";
        assert_eq!(upward(&[ROOT, ("floor.rs", ""), ("roof.rs", roof)]), 0);
    }

    #[test]
    fn higher_modules_may_not_be_used() {
        for floor in [
            "use crate::roof::Tile;",
            "use crate::{a, roof};",
            "use crate::{a::{b, c}, roof::{Tile}};",
            "use super::roof::Tile;",
            "fn f() -> crate::roof::Tile { todo() }",
            "fn f() { super::roof::g() }",
            "use crate::T;",
        ] {
            assert_eq!(
                upward(&[ROOT, ("floor.rs", floor), ("roof.rs", "")]),
                1,
                "{floor}"
            );
        }
    }

    #[test]
    fn whole_re_exports_are_followed() {
        let root = ("lib.rs", "mod floor; mod roof; pub use roof::*;");
        let roof = ("roof.rs", "pub struct Tile;");
        assert_eq!(upward(&[root, ("floor.rs", "use crate::Tile;"), roof]), 1);
        assert_eq!(upward(&[root, ("floor.rs", "use crate::Plank;"), roof]), 0);
    }

    #[test]
    fn the_order_holds_inside_folders() {
        let files = |inner| {
            [
                ("lib.rs", "mod a; mod b;"),
                ("a.rs", ""),
                ("b.rs", "mod lower; mod upper;"),
                ("b/lower.rs", inner),
                ("b/upper.rs", "use super::lower::x; use crate::a::y;"),
            ]
        };
        assert_eq!(upward(&files("use crate::a::y;")), 0);
        assert_eq!(upward(&files("use super::upper::z;")), 1);
        assert_eq!(upward(&files("use crate::b::upper::z;")), 1);
    }

    #[test]
    fn comments_and_tests_do_not_count() {
        let floor = "// crate::roof::x\nconst A: &str = \"crate::roof\";\n\
                     #[cfg(test)]\nmod tests { use crate::roof::Tile; }";
        assert_eq!(upward(&[ROOT, ("floor.rs", floor), ("roof.rs", "")]), 0);
    }

    #[test]
    fn dead_files_are_found() {
        let files = sources(&[
            ("lib.rs", "mod a;"),
            ("a.rs", "mod b;"),
            ("a/b.rs", ""),
            ("a/c.rs", ""),
            ("main.rs", "mod d;"),
            ("d/mod.rs", ""),
            ("e.rs", "// mod e;"),
        ]);
        let dead: Vec<String> = dead_files(&files)
            .into_iter()
            .map(|found| found.path)
            .collect();
        assert_eq!(dead, ["crates/x/src/a/c.rs", "crates/x/src/e.rs"]);
    }

    #[test]
    fn empty_names_are_found() {
        let paths = [
            "a/src/util.rs",
            "a/tests/common/mod.rs",
            "tests/helpers.py",
            "a/utility.rs",
        ];
        assert_eq!(empty_names(paths).len(), 3);
    }
}
