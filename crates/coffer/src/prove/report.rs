//! What a proof came to, for people and for programs.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;

use crate::limits::FINDINGS_MAX;
use crate::output::printable::printable;
use crate::prove::kind::Kind;

/// What is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Relative to the data folder; empty: the folder itself, or the server.
    pub path: String,
    /// What is wrong.
    pub what: String,
}

/// All that was looked at, and what was found.
#[derive(Debug, Default, Serialize)]
pub struct Proof {
    /// Whether nothing was found.
    pub proven: bool,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// How many there are.
    pub finding_count: u64,
    /// What was not checked, and why.
    pub not_checked: Vec<String>,
    /// Whether something of that was to be checked, and could not be.
    pub failed: bool,
    /// How many files there are, by kind.
    pub files: BTreeMap<&'static str, u64>,
    /// How many pages of them the statistic was formed of.
    pub page_count: u64,
    /// Files that are readable by design: for their owner alone.
    pub readable_by_design: Vec<String>,
    /// Whether the blobs' commitments were compared, and by whom.
    pub commitments: Option<Commitments>,
    /// Whether a canary was planted.
    pub canary: Option<Planted>,
}

/// That commitments were compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commitments {
    /// Who did: the running server, or this command with the root key.
    pub by: &'static str,
    /// How many objects or blobs.
    pub checked_count: u64,
}

/// That a canary was planted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Planted {
    /// Where: the S3 service's address.
    pub through: String,
    /// How many files were searched: those written since, and all that are no blobs.
    pub files_searched: u64,
    /// How many forms of it were looked for.
    pub forms_searched: u64,
}

impl Proof {
    /// Adds a finding.
    pub fn find(&mut self, path: &Path, what: impl Into<String>) {
        self.finding_count += 1;
        if self.findings.len() < FINDINGS_MAX {
            self.findings.push(Finding {
                path: printable(&path.to_string_lossy()),
                what: printable(&what.into()),
            });
        }
    }

    /// Adds what was not checked.
    pub fn leave_out(&mut self, what: impl Into<String>) {
        self.not_checked.push(printable(&what.into()));
    }

    /// Adds what was to be checked and could not be.
    pub fn fail(&mut self, what: impl Into<String>) {
        self.failed = true;
        self.leave_out(what);
    }

    /// Counts a file.
    pub fn count(&mut self, kind: Kind) {
        *self.files.entry(kind.name()).or_default() += 1;
    }

    /// Writes it for programs: one JSON object, on one line.
    pub fn write_json(&self, out: &mut impl Write) -> io::Result<()> {
        serde_json::to_writer(&mut *out, self)?;
        out.write_all(b"\n")
    }

    /// Writes it for people.
    pub fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        for Finding { path, what } in &self.findings {
            if path.is_empty() {
                writeln!(out, "finding: {what}")?
            } else {
                writeln!(out, "finding: {path}: {what}")?
            }
        }
        let listed = self.findings.len() as u64;
        if self.finding_count > listed {
            writeln!(out, "finding: and {} more", self.finding_count - listed)?;
        }
        let files: u64 = self.files.values().sum();
        let kinds: Vec<_> = self
            .files
            .iter()
            .map(|(name, count)| format!("{count} {name}"))
            .collect();
        writeln!(out, "files         {files} looked at: {}", kinds.join(", "))?;
        writeln!(out, "ciphertext    {} pages tested", self.page_count)?;
        match &self.commitments {
            Some(Commitments { by, checked_count }) => {
                writeln!(out, "commitments   {checked_count} compared by {by}")?;
            }
            None => writeln!(out, "commitments   not compared")?,
        }
        match &self.canary {
            Some(Planted {
                through,
                files_searched,
                forms_searched,
            }) => writeln!(
                out,
                "canary        planted through S3 at {through}, read back, searched for in \
                 {files_searched} files in {forms_searched} forms, deleted"
            )?,
            None => writeln!(out, "canary        not planted")?,
        }
        for what in &self.not_checked {
            writeln!(out, "not checked   {what}")?;
        }
        writeln!(
            out,
            "by design     readable for their owner: {}",
            self.readable_by_design.join(", ")
        )?;
        match self.finding_count {
            0 => writeln!(out, "proven: nothing else is readable in what was checked"),
            1 => writeln!(out, "NOT PROVEN: 1 finding"),
            count => writeln!(out, "NOT PROVEN: {count} findings"),
        }
    }
}
