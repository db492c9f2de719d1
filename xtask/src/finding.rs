//! What a check reports.

use std::fmt;

/// One broken rule: where, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Path relative to the workspace.
    pub path: String,
    /// Line, counted from 1; 0 where the finding is about the whole file.
    pub line: usize,
    /// What is wrong, and what to do.
    pub message: String,
}

impl Finding {
    /// A finding about `path`, at `line` or about the whole file (0).
    pub fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line,
            message: message.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Panics with one finding a line, in the form that editors jump to.
pub fn assert_clean(findings: &[Finding]) {
    if !findings.is_empty() {
        let lines: Vec<String> = findings.iter().map(Finding::to_string).collect();
        panic!(
            "{} broken house rules:\n{}\n",
            findings.len(),
            lines.join("\n")
        );
    }
}
