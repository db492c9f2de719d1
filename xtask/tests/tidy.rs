//! Style that can be checked. Where a limit is exceeded for a reason, the exception is listed here
//! with its reason, and may only shrink.

use xtask::{
    Finding, Source, assert_clean, long_functions, rust_crates, style, words, workspace_files,
};

/// Longest function, in lines.
const FUNCTION_LINES: usize = 70;

/// Longest file, in lines.
const FILE_LINES: usize = 400;

/// Lines of Rust that leave open who is meant. It only falls.
const VAGUE_LINES: usize = 23;

/// Files that may be longer: path, lines, reason.
const LONG_FILES: [(&str, usize, &str); 0] = [];

/// Crates that may hold unsafe code, and for what. Each block says why it is sound.
const UNSAFE_CRATES: [(&str, &str); 4] = [
    (
        "crates/coffer-seal",
        "hands out room for keys in memory that is locked and left out of core dumps, and is a \
         heap that zeroizes what is given back",
    ),
    (
        "crates/coffer-store",
        "keys a database through sqlite3_key, so that the key never becomes SQL text, gives SQLite \
         a heap that zeroizes what is freed, and has SQLCipher zeroize the gaps of pages it seals",
    ),
    (
        "faults",
        "answers a server's system calls in a handler of signals, which is given bare registers",
    ),
    (
        "lab",
        "calls AES in plain C and OpenSSL's C functions in place, and asks the kernel for what \
         no safe interface offers",
    ),
];

fn over(files: &[Source], check: impl Fn(&Source) -> Vec<Finding>) {
    assert!(!files.is_empty(), "nothing to check was found");
    let findings: Vec<Finding> = files.iter().flat_map(check).collect();
    assert_clean(&findings);
}

fn house_sources() -> Vec<Source> {
    rust_crates().into_values().flatten().collect()
}

#[test]
fn lines_are_tidy() {
    let files = workspace_files(&["rs", "py", "sh", "toml"]);
    over(&files, |file| style::lines(&file.path, &file.text));
}

#[test]
fn functions_are_short() {
    let files = workspace_files(&["rs"]);
    over(&files, |file| {
        long_functions(&file.path, &file.text, FUNCTION_LINES)
    });
}

#[test]
fn files_hold_one_idea() {
    let files = workspace_files(&["rs", "py"]);
    over(&files, |file| {
        style::length(&file.path, &file.text, FILE_LINES, &LONG_FILES)
            .into_iter()
            .collect()
    });
    for (path, _, reason) in LONG_FILES {
        assert!(
            files.iter().any(|file| file.path == path),
            "{path} ({reason}) is gone"
        );
    }
}

#[test]
fn unsafe_code_is_forbidden_or_explained() {
    let sources = house_sources();
    let may_be_unsafe = |path: &str| {
        UNSAFE_CRATES
            .iter()
            .any(|(folder, _)| path.starts_with(&format!("{folder}/")))
    };
    over(&sources, |file| {
        let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
        if is_root && !may_be_unsafe(&file.path) {
            style::forbids_unsafe(&file.path, &file.text)
                .into_iter()
                .collect()
        } else {
            style::unexplained_unsafe(&file.path, &file.text)
        }
    });
}

#[test]
fn words_have_one_meaning() {
    let files = workspace_files(&["rs", "py", "md"]);
    over(&files, |file| words::avoided(&file.path, &file.text));
}

#[test]
fn fewer_and_fewer_lines_leave_open_who_is_meant() {
    let files = workspace_files(&["rs"]);
    let count: usize = files
        .iter()
        .map(|file| words::vague_lines(&file.text))
        .sum();
    assert!(
        count <= VAGUE_LINES,
        "{count} lines say `nobody` or the like, more than {VAGUE_LINES}: say who is meant"
    );
    assert_eq!(count, VAGUE_LINES, "there are fewer now: lower the limit");
}

#[test]
fn names_carry_no_empty_words() {
    let in_crates = |file: &Source| file.path.starts_with("crates/");
    let files: Vec<Source> = house_sources().into_iter().filter(in_crates).collect();
    over(&files, |file| words::empty_prefixes(&file.path, &file.text));
}

#[test]
fn nothing_in_the_product_stands_on_a_simulated_disk() {
    let is_product = |file: &Source| {
        file.path.starts_with("crates/") && !file.path.starts_with("crates/coffer-durable/")
    };
    let files: Vec<Source> = house_sources().into_iter().filter(is_product).collect();
    over(&files, |file| words::simulations(&file.path, &file.text));
}

#[test]
fn libraries_do_not_print() {
    let is_library = |file: &Source| {
        file.path.starts_with("crates/") && !file.path.starts_with("crates/coffer/")
    };
    let files: Vec<Source> = house_sources().into_iter().filter(is_library).collect();
    over(&files, |file| words::prints(&file.path, &file.text));
}
