//! Modules: every file is one, each uses only those declared above it, and none has a name that
//! says nothing.
//!
//! Cargo refuses circles between crates and nothing refuses them inside one. So `lib.rs` declares
//! modules in the order of their dependencies, and a module may name only those above it. Tests
//! inside a module may use what they like.

use std::collections::{BTreeMap, BTreeSet};

use crate::finding::Finding;
use crate::lexer::{Token, code_only, tokens, without_tests};
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
                .flat_map(|module| tree.upward_uses_of(module))
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

struct Module<'a> {
    /// `["read", "range"]` for `crate::read::range`; empty for the crate itself.
    path: Vec<String>,
    source: &'a Source,
    /// In the order of their declaration.
    children: Vec<String>,
    references: Vec<Reference>,
    /// What it offers under a name of its own, and where that comes from.
    exports: BTreeMap<String, Vec<String>>,
    /// Modules of which it offers everything (`pub use x::*`).
    exported_whole: Vec<Vec<String>>,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
}

struct Reference {
    path: Vec<String>,
    line: usize,
}

struct Tree<'a> {
    modules: Vec<Module<'a>>,
}

impl<'a> Tree<'a> {
    fn new(sources: &'a [Source], root: &'a Source) -> Self {
        let mut tree = Self {
            modules: Vec::new(),
        };
        tree.add(sources, root, Vec::new());
        tree
    }

    fn add(&mut self, sources: &'a [Source], source: &'a Source, path: Vec<String>) {
        let module = Module::parse(source, path.clone());
        let children = module.children.clone();
        self.modules.push(module);
        let folder = children_folder(&source.path, path.is_empty());
        for child in children {
            let places = [
                format!("{folder}/{child}.rs"),
                format!("{folder}/{child}/mod.rs"),
            ];
            if let Some(file) = sources.iter().find(|other| places.contains(&other.path)) {
                let mut below = path.clone();
                below.push(child);
                self.add(sources, file, below);
            }
        }
    }

    fn module(&self, path: &[String]) -> Option<&Module<'a>> {
        self.modules.iter().find(|module| module.path == path)
    }

    fn upward_uses_of(&self, module: &Module<'_>) -> Vec<Finding> {
        let mut found = Vec::new();
        for reference in &module.references {
            let target = self.resolve(&reference.path, 0);
            let shared = module
                .path
                .iter()
                .zip(&target)
                .take_while(|(own, other)| own == other)
                .count();
            let Some(parent) = self.module(&module.path[..shared]) else {
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

    /// Follows re-exports until the path names the module that holds the item.
    fn resolve(&self, path: &[String], depth: usize) -> Vec<String> {
        // Eight re-exports in a row are a circle.
        if depth == 8 {
            return path.to_vec();
        }
        for length in (0..path.len()).rev() {
            let Some(module) = self.module(&path[..length]) else {
                continue;
            };
            let name = &path[length];
            if module.children.contains(name) {
                return path.to_vec();
            }
            if let Some(origin) = module.exports.get(name) {
                return self.resolve(origin, depth + 1);
            }
            let holds = |whole: &&Vec<String>| {
                self.module(whole)
                    .is_some_and(|other| other.items.contains(name))
            };
            if let Some(whole) = module.exported_whole.iter().find(holds) {
                return whole.clone();
            }
            return path.to_vec();
        }
        path.to_vec()
    }
}

/// Where the files of a module's children lie.
fn children_folder(path: &str, is_root: bool) -> String {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    if is_root || file == "mod.rs" {
        folder.to_owned()
    } else {
        format!("{folder}/{}", file.trim_end_matches(".rs"))
    }
}

impl<'a> Module<'a> {
    fn parse(source: &'a Source, path: Vec<String>) -> Self {
        let code = code_only(&source.text);
        let all = tokens(&code);
        let code = without_tests(&all);
        let mut module = Self {
            source,
            children: declared_modules(&all),
            references: Vec::new(),
            exports: BTreeMap::new(),
            exported_whole: Vec::new(),
            items: defined_items(&code),
            path,
        };
        module.collect_paths(&code);
        module
    }

    fn collect_paths(&mut self, code: &[Token<'_>]) {
        for (index, token) in code.iter().enumerate() {
            let preceded_by = |text| index > 0 && code[index - 1].text == text;
            let is_use = preceded_by("use");
            let starts = ["crate", "super", "self"].contains(&token.text) && !preceded_by(":");
            if !starts && !is_use {
                continue;
            }
            let mut leaves = Vec::new();
            path_leaves(code, index, &Vec::new(), &mut leaves);
            let exported = is_use
                && index > 1
                && code[index - 2].text != ";"
                && ["pub", ")"].contains(&code[index - 2].text);
            for (leaf, name) in leaves {
                if let Some(absolute) = self.absolute(&leaf) {
                    self.record(absolute, name, exported, token.line);
                }
            }
        }
    }

    fn record(&mut self, path: Vec<String>, name: String, exported: bool, line: usize) {
        if exported && name == "*" {
            self.exported_whole.push(path.clone());
        } else if exported {
            self.exports.insert(name, path.clone());
        }
        self.references.push(Reference { path, line });
    }

    /// The path from the crate's root; none for the path of another crate.
    fn absolute(&self, path: &[String]) -> Option<Vec<String>> {
        let first = path.first()?;
        let ups = path.iter().take_while(|part| *part == "super").count();
        let (base, rest) = match first.as_str() {
            "crate" => (&self.path[..0], &path[1..]),
            "self" => (&self.path[..], &path[1..]),
            "super" => (
                &self.path[..self.path.len().saturating_sub(ups)],
                &path[ups..],
            ),
            child if self.children.iter().any(|known| known == child) => (&self.path[..], path),
            _ => return None,
        };
        Some(base.iter().chain(rest).cloned().collect())
    }
}

/// Collects the paths of a use tree or of a path in an expression, which begins at `at`: each
/// with the name under which it is known afterwards. Returns the index behind it.
fn path_leaves(
    code: &[Token<'_>],
    mut at: usize,
    prefix: &[String],
    leaves: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let text = |index: usize| code.get(index).map_or("", |token| token.text);
    let is_word = |text: &str| text.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let mut path = prefix.to_vec();
    loop {
        match text(at) {
            "{" => {
                at += 1;
                while !["}", ""].contains(&text(at)) {
                    let next = path_leaves(code, at, &path, leaves);
                    at = next.max(at + usize::from(next == at));
                }
                return at + 1;
            }
            "*" => {
                leaves.push((path, "*".to_owned()));
                return at + 1;
            }
            // `use a::{self, b}`: `self` is `a`.
            "self" if !path.is_empty() => at += 1,
            word if is_word(word) => {
                path.push(word.to_owned());
                at += 1;
            }
            _ => return at,
        }
        if text(at) == ":" && text(at + 1) == ":" {
            at += 2;
            continue;
        }
        let mut name = path.last().cloned().unwrap_or_default();
        if text(at) == "as" {
            name = text(at + 1).to_owned();
            at += 2;
        }
        leaves.push((path, name));
        return at;
    }
}

/// Names in `mod name;`, also of modules for tests.
fn declared_modules(tokens: &[Token<'_>]) -> Vec<String> {
    let declared = |window: &[Token<'_>]| window[0].text == "mod" && window[2].text == ";";
    tokens
        .windows(3)
        .filter(|w| declared(w))
        .map(|w| w[1].text.to_owned())
        .collect()
}

fn defined_items(tokens: &[Token<'_>]) -> BTreeSet<String> {
    const KINDS: [&str; 8] = [
        "struct", "enum", "fn", "type", "trait", "const", "static", "union",
    ];
    let defines = |window: &&[Token<'_>]| KINDS.contains(&window[0].text);
    tokens
        .windows(2)
        .filter(defines)
        .map(|window| window[1].text.to_owned())
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
