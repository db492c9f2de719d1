//! The machine that is measured on, as it describes itself.

use std::fs;

/// The processor's name.
pub fn processor() -> String {
    let text = read("/proc/cpuinfo");
    field(&text, "model name").unwrap_or("unknown").to_owned()
}

/// The kernel's release.
pub fn kernel() -> String {
    read("/proc/sys/kernel/osrelease").trim().to_owned()
}

/// The distribution.
pub fn system() -> String {
    let text = read("/etc/os-release");
    let name = text
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    name.unwrap_or("unknown system")
        .trim_matches('"')
        .to_owned()
}

/// A file of the system; nothing where there is none.
pub fn read(path: &str) -> String {
    fs::read_to_string(path).unwrap_or_default()
}

/// The value behind a name and a colon, in a file of `/proc`: the first one.
pub fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(key, _)| key.trim() == name)
        .map(|(_, value)| value.trim())
}
