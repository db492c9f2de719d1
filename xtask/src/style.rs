//! What can be seen line by line.

use crate::finding::Finding;
use crate::tokens::{Token, begins, tokens};

/// Longest line, in characters.
pub const LINE_CHARS: usize = 100;

/// Left behind while working; the pieces keep this list from finding itself.
const LEFTOVERS: [&str; 6] = [
    concat!("todo", "!("),
    concat!("unimplemented", "!("),
    concat!("dbg", "!("),
    concat!("FIX", "ME"),
    concat!("XX", "X"),
    concat!("HA", "CK"),
];

/// Finds long lines, white space at the end of one, tabs, leftovers, and a missing or doubled end
/// of the last line.
pub fn lines(path: &str, text: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let mut report = |message: String| found.push(Finding::new(path, index + 1, message));
        let length = line.chars().count();
        // An address can't be broken, nor can an inline table of TOML.
        if length > LINE_CHARS && !line.contains("://") && !path.ends_with(".toml") {
            report(format!("has {length} characters, more than {LINE_CHARS}"));
        }
        if line.trim_end() != line {
            report("ends in white space".to_owned());
        }
        if line.contains('\t') && !path.ends_with("Makefile") {
            report("holds a tab".to_owned());
        }
        for leftover in LEFTOVERS
            .iter()
            .filter(|leftover| line.contains(**leftover))
        {
            report(format!("holds a leftover: `{leftover}`"));
        }
    }
    if !text.is_empty() && (!text.ends_with('\n') || text.ends_with("\n\n")) {
        found.push(Finding::new(
            path,
            0,
            "does not end in exactly one line break",
        ));
    }
    found
}

/// Finds a file of more lines than `limit_lines`, or than what `exceptions` grants it; and
/// exceptions that are no longer needed, so that they only ever shrink.
pub fn length(
    path: &str,
    text: &str,
    limit_lines: usize,
    exceptions: &[(&str, usize, &str)],
) -> Option<Finding> {
    let count = text.lines().count();
    let granted = exceptions.iter().find(|(excepted, _, _)| *excepted == path);
    let message = match granted {
        Some((_, _, _)) if count <= limit_lines => {
            format!("has {count} lines now: take it off the list of exceptions")
        }
        Some(&(_, most, _)) if count > most => {
            format!("has {count} lines, more than the {most} granted to it: does it hold one idea?")
        }
        None if count > limit_lines => {
            format!("has {count} lines, more than {limit_lines}: does it hold one idea?")
        }
        _ => return None,
    };
    Some(Finding::new(path, 0, message))
}

/// Finds a crate root that does not forbid unsafe code.
pub fn forbids_unsafe(path: &str, text: &str) -> Option<Finding> {
    const FORBIDS: [&str; 8] = ["#", "!", "[", "forbid", "(", "unsafe_code", ")", "]"];
    let tokens = tokens(path, text);
    let forbids = (0..tokens.len()).any(|at| begins(&tokens[at..], &FORBIDS));
    (!forbids).then(|| Finding::new(path, 0, "lacks `#![forbid(unsafe_code)]`"))
}

/// Finds `unsafe` blocks without a `SAFETY:` comment right above or on the same line.
pub fn unexplained_unsafe(path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<&str> = text.lines().collect();
    let tokens = tokens(path, text);
    let opens = |window: &&[Token]| {
        window[0].text == "unsafe" && ["{", "impl"].contains(&window[1].text.as_str())
    };
    let explained = |line: usize| {
        let comment = |text: &&&str| text.trim_start().starts_with("//");
        let mut above = lines[..line - 1].iter().rev().take_while(comment);
        lines[line - 1].contains("SAFETY:") || above.any(|text| text.contains("SAFETY:"))
    };
    tokens
        .windows(2)
        .filter(opens)
        .filter(|window| !explained(window[0].line))
        .map(|window| {
            let message = "`unsafe` without its reason: say why it holds in `// SAFETY: …`";
            Finding::new(path, window[0].line, message)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn untidy_lines_are_found() {
        assert_eq!(lines("a.rs", "fn a() {}\n"), []);
        assert_eq!(lines("Makefile", "all:\n\ttrue\n"), []);
        for text in [
            format!("// {}\n", "x".repeat(98)),
            "a \n".to_owned(),
            "a\tb\n".to_owned(),
            "no end".to_owned(),
            "two ends\n\n".to_owned(),
        ] {
            assert_eq!(lines("a.rs", &text).len(), 1, "{text:?}");
        }
        for leftover in LEFTOVERS {
            assert_eq!(
                lines("a.rs", &format!("{leftover}\n")).len(),
                1,
                "{leftover}"
            );
        }
    }

    #[test]
    fn exceptions_only_shrink() {
        let exceptions = [("a.rs", 3, "a reason")];
        let found = |path, text| length(path, text, 2, &exceptions).is_some();
        assert!(!found("b.rs", "1\n2\n"));
        assert!(found("b.rs", "1\n2\n3\n"));
        assert!(!found("a.rs", "1\n2\n3\n"));
        assert!(found("a.rs", "1\n2\n3\n4\n"));
        assert!(found("a.rs", "1\n2\n"), "no longer needed");
    }

    #[test]
    fn unsafe_code_is_found() {
        assert!(forbids_unsafe("lib.rs", "//! x\n#![forbid(unsafe_code)]\n").is_none());
        assert!(forbids_unsafe("lib.rs", "// #![forbid(unsafe_code)]\n").is_some());
        let explained = "fn a() {\n    // SAFETY: it is\n    // well known.\n    unsafe { b() }\n}";
        assert_eq!(unexplained_unsafe("a.rs", explained), []);
        assert_eq!(
            unexplained_unsafe("a.rs", "fn a() {\n    unsafe { b() }\n}").len(),
            1
        );
    }
}
