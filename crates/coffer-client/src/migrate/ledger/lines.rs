//! The lines of a ledger, and what is known of those that were read.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

use aws_lc_rs::digest;
use serde::{Deserialize, Serialize};

use crate::limits::LEDGER_LINE_BYTES;

/// A version, told from all others of its bucket.
pub(super) type Mark = [u8; 16];

pub(super) fn mark(parts: &[&str]) -> Mark {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&(part.len() as u64).to_le_bytes());
        context.update(part.as_bytes());
    }
    let mut mark = Mark::default();
    mark.copy_from_slice(&context.finish().as_ref()[..16]);
    mark
}

/// A line.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(tag = "line", rename_all = "kebab-case")]
pub(super) enum Line {
    /// Of what, and where it goes: the first line.
    Of { source: String, target: String },
    /// A version has arrived.
    Arrived {
        key: String,
        version: String,
        etag: String,
        modified: String,
        bytes: u64,
        target: String,
        /// By which second, in those since 1970 of the target's clock, it was there: where it has
        /// no id there, what is newer is another's. Earlier ledgers have none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc64nvme: Option<String>,
    },
    /// A version of the source is at the target, where another has stored the same.
    Same {
        key: String,
        version: String,
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        crc64nvme: Option<String>,
    },
    /// What this migration stored, and is not what was sent: the next may replace it.
    Spoilt {
        key: String,
        target: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        by: Option<u32>,
    },
    /// A version goes out with this, and may arrive without an answer that says so.
    Sending {
        version: String,
        #[serde(flatten)]
        given: Given,
    },
    /// It did not arrive.
    Unsent { version: String },
    /// What a version that arrived has of this migration's.
    Given {
        version: String,
        #[serde(flatten)]
        given: Given,
    },
    /// What it may have of it: the target is asked for a change, and no answer says yet that it
    /// was made.
    Giving {
        version: String,
        #[serde(flatten)]
        given: Given,
    },
    /// What a bucket that this migration made had of a setting from the first.
    Found { setting: String, document: String },
    /// A setting of the bucket is being made this, and no answer says yet that it was; if it is
    /// empty, none is.
    Setting { setting: String, document: String },
    /// A setting of the bucket was made this; if it is empty, it was removed.
    Set { setting: String, document: String },
    /// A folder of the source is of another file system than the one around it.
    Mount { folder: String },
    /// None of those that were noted need be so any more.
    NoMounts,
    /// An upload of a version in parts was begun.
    Begun { version: String, begun: Begun },
    /// An upload was given up.
    Ended { version: String },
    /// A part of an upload is at the target.
    Part { upload_id: String, part: Part },
}

/// An upload that was begun.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::migrate) struct Begun {
    pub(in crate::migrate) key: String,
    pub(in crate::migrate) upload_id: String,
    pub(in crate::migrate) compares: bool,
    pub(in crate::migrate) part_bytes: u64,
    /// A mark of the headers that it was begun with, tags and locks among them. Earlier ledgers
    /// have none.
    #[serde(default)]
    pub(in crate::migrate) headers: String,
}

/// A part of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::migrate) struct Part {
    pub(in crate::migrate) number: u32,
    pub(in crate::migrate) etag: String,
    pub(in crate::migrate) crc: u64,
}

/// Tags, a legal hold and a retention that a version has of this migration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "GivenText", into = "GivenText")]
pub(in crate::migrate) struct Given {
    /// None but zeros where it has no tags.
    pub(super) tags: Mark,
    pub(in crate::migrate) is_held: bool,
    /// None but zeros where it has none. Earlier ledgers do not tell it.
    pub(super) retention: Mark,
}

/// The same as it stands in a line.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct GivenText {
    #[serde(skip_serializing_if = "String::is_empty")]
    tags: String,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_held: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    retention: String,
}

impl From<GivenText> for Given {
    fn from(text: GivenText) -> Self {
        Self {
            tags: mark_of(&text.tags),
            is_held: text.is_held,
            retention: mark_of(&text.retention),
        }
    }
}

impl From<Given> for GivenText {
    fn from(given: Given) -> Self {
        let text = |mark: Mark| {
            let is_none = mark == Mark::default();
            if is_none {
                String::new()
            } else {
                hex::encode(mark)
            }
        };
        Self {
            tags: text(given.tags),
            is_held: given.is_held,
            retention: text(given.retention),
        }
    }
}

pub(super) struct Arrived {
    pub(super) target: Mark,
    /// By which second it was there.
    pub(super) by: u32,
    pub(super) crc: Option<u64>,
}

#[derive(Default)]
pub(super) struct Known {
    /// What it is of, by each line that says so.
    pub(super) of: Vec<(String, String)>,
    pub(super) arrived: HashMap<Mark, Arrived>,
    /// All that this migration ever stored at the target, and by which second it was there.
    pub(super) ours: HashMap<Mark, u32>,
    /// What was sent, and whose answer is not known, with what it has then.
    pub(super) sending: HashMap<Mark, Given>,
    /// Whether a version that came had an id at the source.
    pub(super) has_ids: bool,
    /// Versions with uploads that the source still has.
    pub(super) needed: HashSet<Mark>,
    pub(super) uploads: HashMap<Mark, (Begun, Vec<Part>)>,
    /// What versions that arrived have of this migration's, where they have any.
    pub(super) given: HashMap<Mark, Given>,
    /// What they may have of it, where no answer tells.
    pub(super) giving: HashMap<Mark, Given>,
    /// What the bucket had when this migration made it, and this migration has not changed since.
    pub(super) found: HashMap<String, String>,
    /// Folders of the source that were of other file systems than those around them.
    pub(super) mounts: HashSet<String>,
    /// What settings were to become, where no answer said that they did.
    pub(super) setting: HashMap<String, String>,
    /// What this migration has set of the bucket.
    pub(super) settings: HashMap<String, String>,
}

impl Known {
    fn has_part(&mut self, upload_id: &str, part: Part) {
        let mut uploads = self.uploads.values_mut();
        if let Some((_, parts)) = uploads.find(|(begun, _)| begun.upload_id == upload_id) {
            parts.push(part);
        }
    }

    /// A version came, with this, in the place of what came of it before.
    fn came_with(&mut self, source: Mark, given: Given) {
        self.giving.remove(&source);
        if given == Given::default() {
            self.given.remove(&source);
        } else {
            self.given.insert(source, given);
        }
    }

    /// No more is noted of a change than of what is.
    fn settle(&mut self, source: Mark) {
        let given = self.given.get(&source).copied().unwrap_or_default();
        if self.giving.get(&source) == Some(&given) {
            self.giving.remove(&source);
        }
    }
}

/// A mark as it stands in a line; of what is none, one that nothing has.
fn mark_of(text: &str) -> Mark {
    let bytes = hex::decode(text).unwrap_or_default();
    bytes.try_into().unwrap_or_default()
}

/// Reads lines; those that are none mean nothing.
pub(super) fn read(file: &File) -> std::io::Result<Known> {
    let mut known = Known::default();
    let mut reader = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.by_ref().take(LEDGER_LINE_BYTES);
        if { read }.read_until(b'\n', &mut line)? == 0 {
            return Ok(known);
        }
        if let Ok(line) = serde_json::from_slice(&line) {
            take(&mut known, line);
        }
    }
}

pub(super) fn take(known: &mut Known, line: Line) {
    match line {
        Line::Of { source, target } => known.of.push((source, target)),
        Line::Arrived {
            key,
            version,
            etag,
            modified,
            bytes,
            target,
            by,
            crc64nvme,
        } => {
            let source = mark(&[&key, &version, &etag, &modified, &bytes.to_string()]);
            let target = mark(&[&key, &target]);
            let crc = crc64nvme.and_then(|text| u64::from_str_radix(&text, 16).ok());
            let by = by.unwrap_or(u32::MAX);
            known.has_ids |= version != "null";
            known.ours.insert(target, by);
            let sent = known.sending.remove(&source);
            known.uploads.remove(&source);
            known.came_with(source, sent.unwrap_or_default());
            known.arrived.insert(source, Arrived { target, by, crc });
        }
        Line::Same {
            key,
            version,
            target,
            crc64nvme,
        } => {
            let source = mark_of(&version);
            let target = mark(&[&key, &target]);
            let crc = crc64nvme.and_then(|text| u64::from_str_radix(&text, 16).ok());
            let by = u32::MAX;
            known.came_with(source, Given::default());
            known.arrived.insert(source, Arrived { target, by, crc });
        }
        Line::Spoilt { key, target, by } => {
            let by = by.unwrap_or(u32::MAX);
            known.ours.insert(mark(&[&key, &target]), by);
        }
        Line::Given { version, given } => {
            known.given.insert(mark_of(&version), given);
            known.settle(mark_of(&version));
        }
        Line::Giving { version, given } => {
            known.giving.insert(mark_of(&version), given);
            known.settle(mark_of(&version));
        }
        Line::Sending { version, given } => {
            known.sending.insert(mark_of(&version), given);
        }
        Line::Unsent { version } => {
            known.sending.remove(&mark_of(&version));
        }
        Line::Begun { version, begun } => {
            known.uploads.insert(mark_of(&version), (begun, Vec::new()));
        }
        Line::Ended { version } => {
            known.uploads.remove(&mark_of(&version));
        }
        Line::Part { upload_id, part } => known.has_part(&upload_id, part),
        of_bucket => take_of_bucket(known, of_bucket),
    }
}

/// A line of what is not of one version.
fn take_of_bucket(known: &mut Known, line: Line) {
    match line {
        Line::Found { setting, document } => {
            known.found.insert(setting, document);
        }
        Line::Mount { folder } => {
            known.mounts.insert(folder);
        }
        Line::NoMounts => known.mounts.clear(),
        Line::Setting { setting, document } if document.is_empty() => {
            known.setting.remove(&setting);
        }
        Line::Setting { setting, document } => {
            known.setting.insert(setting, document);
        }
        Line::Set { setting, document } => {
            known.found.remove(&setting);
            known.setting.remove(&setting);
            known.settings.insert(setting, document);
        }
        _ => {}
    }
}
