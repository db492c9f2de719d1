//! One word, one meaning.

use crate::finding::Finding;
use crate::tokens::{Token, begins, tokens, without_tests};

/// Words to avoid, and what to say instead. In pieces, so that this list does not find itself.
const AVOIDED: [(&str, &str); 6] = [
    (concat!("master", " key"), "root key"),
    (concat!("master", "_key"), "root_key"),
    (concat!("Master", "Key"), "RootKey"),
    (concat!("shr", "ed"), "erase (a key), reclaim (files)"),
    (concat!("wip", "e"), "zeroize (memory), erase (a key)"),
    (
        concat!("scr", "ub"),
        "zeroize (memory), verify (stored seals)",
    ),
];

/// What S3 and the traits of `s3s` and `object_store` call so keeps its name; everything of ours
/// does without `get_`.
const S3_OPERATIONS: [&str; 4] = ["get_object", "get_bucket", "get_secret_key", "get_opts"];

/// Finds words to avoid, in code and comments alike.
pub fn avoided(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let words = line.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ' ');
        let hits = |avoided: &str| {
            let begins = |phrase: &str| {
                phrase.match_indices(avoided).any(|(at, _)| {
                    !phrase[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_')
                })
            };
            words.clone().any(begins)
        };
        for (avoided, instead) in AVOIDED.iter().filter(|(avoided, _)| hits(avoided)) {
            let message = format!("says `{avoided}`; the house says {instead}");
            found.push(Finding::new(path, index + 1, message));
        }
    }
    found
}

/// How many lines leave open who is meant. The words in pieces, as above.
pub fn vague_lines(text: &str) -> usize {
    const VAGUE: [&str; 4] = [
        concat!("who", "ever"),
        concat!("no", "body"),
        concat!("some", "body"),
        concat!("any", "body"),
    ];
    let is_vague = |line: &&str| {
        let line = line.to_lowercase();
        line.split(|c: char| !c.is_alphanumeric())
            .any(|word| VAGUE.contains(&word))
    };
    text.lines().filter(is_vague).count()
}

/// Finds functions called `get_…` and error variants that carry only text.
pub fn empty_prefixes(path: &str, text: &str) -> Vec<Finding> {
    let tokens = tokens(path, text);
    let mut found = Vec::new();
    for window in tokens.windows(4) {
        let [first, second, ..] = window else {
            continue;
        };
        let is_s3 = S3_OPERATIONS
            .iter()
            .any(|operation| second.text.starts_with(operation));
        if first.text == "fn" && second.text.starts_with("get_") && !is_s3 {
            let message = format!("`{}`: name it after what it returns", second.text);
            found.push(Finding::new(path, second.line, message));
        }
        if begins(window, &["Other", "(", "String", ")"]) {
            let message = "`Other(String)`: give the error a variant with fields";
            found.push(Finding::new(path, first.line, message));
        }
    }
    found
}

/// Finds what a library prints past the log: only the program speaks to the terminal.
pub fn prints(path: &str, text: &str) -> Vec<Finding> {
    const MACROS: [&str; 4] = ["println", "eprintln", "print", "eprint"];
    let tokens = without_tests(&tokens(path, text));
    let is_print =
        |window: &&[Token]| MACROS.contains(&window[0].text.as_str()) && window[1].text == "!";
    let finding = |window: &[Token]| {
        let message = "prints from a library: return it, or log it";
        Finding::new(path, window[0].line, message)
    };
    tokens.windows(2).filter(is_print).map(finding).collect()
}

/// Finds code of the product that stands on a simulated disk (`coffer_durable::simulated`), which
/// is for tests and for the bodies of fuzz targets.
pub fn simulations(path: &str, text: &str) -> Vec<Finding> {
    if ["/tests/", "/tests.rs", "/fuzzing.rs"]
        .iter()
        .any(|part| path.contains(part))
    {
        return Vec::new();
    }
    let finding = |token: &Token| {
        let message = "uses a simulated disk outside of tests: nothing there is durable";
        Finding::new(path, token.line, message)
    };
    let tokens = without_tests(&tokens(path, text));
    let simulated = tokens.iter().filter(|token| token.text == "simulated");
    simulated.map(finding).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn avoided_words_are_found() {
        for (word, _) in AVOIDED {
            assert_eq!(
                avoided("a.rs", &format!("// the {word}s\n")).len(),
                1,
                "{word}"
            );
            assert_eq!(
                avoided("a.rs", &format!("let x{word} = 1;\n")).len(),
                0,
                "{word}"
            );
        }
    }

    #[test]
    fn vague_words_are_counted_by_line() {
        let word = concat!("No", "body");
        assert_eq!(
            vague_lines(&format!("{word} reads, {word} writes\nit_{word}\n{word}s")),
            2
        );
    }

    #[test]
    fn empty_prefixes_are_found() {
        assert_eq!(
            empty_prefixes("a.rs", "async fn get_object_tagging() {}"),
            []
        );
        assert_eq!(
            empty_prefixes("a.rs", "fn gets_along() -> bool { true }"),
            []
        );
        assert_eq!(
            empty_prefixes("a.rs", "fn get_size() -> u64 { 0 }").len(),
            1
        );
        assert_eq!(empty_prefixes("a.rs", "enum E { Other(String) }").len(), 1);
    }

    #[test]
    fn simulations_are_found_but_not_in_tests() {
        let uses = "use coffer_durable::simulated::SimulatedDisk;";
        let within = format!("#[cfg(test)]\nmod tests {{ {uses} }}");
        assert_eq!(simulations("crates/a/src/b.rs", uses).len(), 1);
        assert_eq!(simulations("crates/a/src/b.rs", &within), []);
        assert_eq!(simulations("crates/a/src/tests/b.rs", uses), []);
    }

    #[test]
    fn printing_libraries_are_found() {
        assert_eq!(
            prints(
                "a.rs",
                "// println!()\n#[cfg(test)]\nmod t { fn a() { println!() } }"
            ),
            []
        );
        assert_eq!(prints("a.rs", "fn a() { eprintln!(\"x\") }").len(), 1);
    }
}
