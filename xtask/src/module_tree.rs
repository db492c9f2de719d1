//! The modules of a crate as a tree, with what each names of the others.

use std::collections::{BTreeMap, BTreeSet};

use crate::tokens::{Token, tokens, without_tests};
use crate::tree::Source;

pub(crate) struct Module<'a> {
    /// `["read", "range"]` for `crate::read::range`; empty for the crate itself.
    pub(crate) path: Vec<String>,
    pub(crate) source: &'a Source,
    /// In the order of their declaration.
    pub(crate) children: Vec<String>,
    pub(crate) references: Vec<Reference>,
    /// What it offers under a name of its own, and where that comes from.
    exports: BTreeMap<String, Vec<String>>,
    /// Modules of which it offers everything (`pub use x::*`).
    exported_whole: Vec<Vec<String>>,
    /// Names of the items that it defines.
    items: BTreeSet<String>,
}

pub(crate) struct Reference {
    pub(crate) path: Vec<String>,
    pub(crate) line: usize,
}

pub(crate) struct Tree<'a> {
    pub(crate) modules: Vec<Module<'a>>,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(sources: &'a [Source], root: &'a Source) -> Self {
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

    pub(crate) fn module(&self, path: &[String]) -> Option<&Module<'a>> {
        self.modules.iter().find(|module| module.path == path)
    }

    /// Follows re-exports until the path names the module that holds the item.
    pub(crate) fn resolve(&self, path: &[String], depth: usize) -> Vec<String> {
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
        let all = tokens(&source.path, &source.text);
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

    fn collect_paths(&mut self, code: &[Token]) {
        for (index, token) in code.iter().enumerate() {
            let preceded_by = |text| index > 0 && code[index - 1].text == text;
            let is_use = preceded_by("use");
            let starts =
                ["crate", "super", "self"].contains(&token.text.as_str()) && !preceded_by(":");
            if !starts && !is_use {
                continue;
            }
            let mut leaves = Vec::new();
            path_leaves(code, index, &Vec::new(), &mut leaves);
            let exported = is_use
                && index > 1
                && code[index - 2].text != ";"
                && ["pub", ")"].contains(&code[index - 2].text.as_str());
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
    code: &[Token],
    mut at: usize,
    prefix: &[String],
    leaves: &mut Vec<(Vec<String>, String)>,
) -> usize {
    let text = |index: usize| code.get(index).map_or("", |token| token.text.as_str());
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
pub(crate) fn declared_modules(tokens: &[Token]) -> Vec<String> {
    let declared = |window: &[Token]| window[0].text == "mod" && window[2].text == ";";
    tokens
        .windows(3)
        .filter(|w| declared(w))
        .map(|w| w[1].text.clone())
        .collect()
}

fn defined_items(tokens: &[Token]) -> BTreeSet<String> {
    const KINDS: [&str; 8] = [
        "struct", "enum", "fn", "type", "trait", "const", "static", "union",
    ];
    let defines = |window: &&[Token]| KINDS.contains(&window[0].text.as_str());
    tokens
        .windows(2)
        .filter(defines)
        .map(|window| window[1].text.clone())
        .collect()
}
