//! Heads: each says all that the copy holds.

use std::collections::BTreeMap;

use bytes::Bytes;
use coffer_seal::{Context, SecretKey, open, seal};
use serde::{Deserialize, Serialize};

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::limits::{GAP_MIN_MS, GAPS_MAX};
use crate::names::{self, CopyId, Number};

/// What is told of one that does not open by the copy's key.
pub(crate) const NOT_OPEN: &str =
    "it does not open: it was altered, or is of another copy or keystore";

pub(crate) mod record;

pub(crate) mod entry;

/// All that a copy holds at one moment. It lies sealed under the copy key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Head {
    /// Heads are numbered from 1.
    pub number: u64,
    /// Which start of a writer wrote it.
    pub epoch: u32,
    /// A random name of that start.
    pub writer: String,
    /// SHA-256 of the head before, as it lies there; empty in the first.
    pub previous: String,
    /// When it was written, in milliseconds since 1970, by the clock of who did: all that is in it
    /// was read before.
    pub written_ms: i64,
    /// All that was acknowledged by then is in it, in milliseconds since 1970; 0 as long as the
    /// copy is not whole for the first time.
    pub as_of_ms: i64,
    /// The head before was all that there was until then, in milliseconds since 1970: between that
    /// and `as_of_ms` there was what no head has.
    pub after_ms: i64,
    /// From when on there is a state, in milliseconds since 1970: the first whole head has nothing
    /// from after it. 0 before that.
    pub first_ms: i64,
    /// How long what was removed stays to be restored, in milliseconds.
    pub keep_ms: i64,
    /// What was put with this number of this epoch or a later one, this head does not name.
    pub next: u64,
    /// Times within the window of which the copy has no state, oldest first.
    pub gaps: Vec<Gap>,
    /// The generation of the keystore that opens it.
    pub keystore_generation: u64,
    /// How often a standby that followed the copy was promoted: from then on the server that wrote
    /// it before is fenced off, and no server goes on with it.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub promotions: u32,
    /// It is the log of an engine: no server goes on with it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_engine: bool,
    /// The keystore that the copy holds, or an earlier one: then that one is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keystore: Option<KeystoreRef>,
    /// Of a log that has records: which of those before it are in it. Without, all are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covers: Option<Covers>,
    /// Small files, by their paths in the data folder.
    pub files: BTreeMap<String, Vec<Piece>>,
    /// Catalogs, by their buckets' ids.
    pub buckets: BTreeMap<String, BucketState>,
}

/// Which records a head has in it. Those that were written while it was put together may say of a
/// catalog more than it does: its readers read these as well.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Covers {
    /// Those of up to this number.
    pub number: u64,
    /// How far the files have come that records add to: a count that only rises.
    pub files: u64,
}

/// A time in which changes were not copied as they came: between its ends the copy has no state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gap {
    /// The last moment before, in milliseconds since 1970.
    pub from_ms: i64,
    /// The first moment after.
    pub to_ms: i64,
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Piece {
    pub(crate) at: Number,
    /// Its length.
    pub bytes: u64,
    /// What it is, in hexadecimal digits.
    pub sha256: String,
    /// Its bytes, where they came in a record: then it has no object of its own.
    #[serde(skip)]
    pub(crate) carried: Option<Bytes>,
}

/// A keystore in the copy, by name and by hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeystoreRef {
    /// In which epoch it was put, and its generation.
    pub(crate) at: Number,
    /// SHA-256 of it as it lies there.
    pub sha256: String,
}

impl Piece {
    /// Whether these are its bytes.
    pub fn is(&self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == self.bytes && sha256_hex(bytes) == self.sha256
    }
}

impl KeystoreRef {
    /// Its generation.
    pub fn generation(&self) -> u64 {
        self.at.number
    }

    /// Its name in the store.
    pub fn object(&self) -> String {
        names::keystore(self.at).to_string()
    }

    /// Whether it is from before another one. A store can put an old one under a new name, and not
    /// as one of another generation.
    pub fn is_before(&self, other: &Self) -> bool {
        self.at < other.at || self.generation() < other.generation()
    }

    /// Refuses a keystore that has another one's name: what is in it can't be altered, and its name
    /// can.
    ///
    /// # Errors
    /// [`ReplicaError::Altered`].
    pub fn check_generation(&self, inside: u64) -> Result<()> {
        if inside == self.generation() {
            return Ok(());
        }
        Err(ReplicaError::Altered {
            object: self.object(),
            problem: "it is of another generation than its name says",
        })
    }
}

/// A segment, by name and by hash.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentRef {
    pub(crate) at: Number,
    /// SHA-256 of all of it but the pages, whose hashes are in it.
    pub sha256: String,
}

/// What there is of a catalog.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BucketState {
    /// The newest segment, with which the catalog is whole.
    pub last: SegmentRef,
    pub(crate) first: Number,
    /// How many commits the catalog has.
    pub commits: u64,
    /// How many pages it has.
    pub page_count: u32,
    /// How many segments there are from the base on.
    pub segment_count: u32,
    /// How many bytes these have.
    pub bytes: u64,
}

/// A head that is known to have been written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KnownHead {
    /// Its number.
    pub number: u64,
    /// Its SHA-256, in hexadecimal digits.
    pub sha256: String,
}

impl std::str::FromStr for KnownHead {
    type Err = &'static str;

    /// As `coffer replica status` shows it: `NUMBER:SHA256`.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        let wrong = "write NUMBER:SHA256, as `coffer replica status` shows it";
        let (number, sha256) = text.split_once(':').ok_or(wrong)?;
        let is_hash = sha256.len() == 64 && sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
        Ok(Self {
            number: number.parse().map_err(|_| wrong)?,
            sha256: is_hash.then(|| sha256.to_ascii_lowercase()).ok_or(wrong)?,
        })
    }
}

impl std::fmt::Display for KnownHead {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.number, self.sha256)
    }
}

/// Whether what is as of one moment was written at another that is long before it: the clock was
/// ahead before, or is behind.
pub(crate) fn is_behind(as_of_ms: i64, written_ms: i64) -> bool {
    as_of_ms.saturating_sub(written_ms) > GAP_MIN_MS
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

fn context(copy: CopyId, number: u64) -> Context {
    let mut bytes = b"coffer copy head v1\0".to_vec();
    bytes.extend(copy.0);
    bytes.extend(number.to_be_bytes());
    Context::raw(bytes)
}

impl Head {
    /// The number of the last record that is in it for sure.
    pub(crate) fn covered(&self) -> u64 {
        let all = self.number.saturating_sub(1);
        self.covers.map_or(all, |covers| covers.number.min(all))
    }

    /// Nothing that was asked for after this is in it, in milliseconds since 1970: buckets and
    /// files are read one after the other, the last of them before it is written.
    pub fn until_ms(&self) -> i64 {
        self.as_of_ms.max(self.written_ms)
    }

    /// Whether the clock of who wrote it was behind what the log says.
    pub fn is_behind(&self) -> bool {
        is_behind(self.as_of_ms, self.written_ms)
    }

    /// What is said of time by the head that follows the head `before`, and behind that perhaps
    /// records, of which the last is as of `as_of_ms`. Times never go back, whatever the clock
    /// does, so that the head of a moment can be searched for.
    pub(crate) fn follow(&mut self, before: &Self, as_of_ms: i64) {
        let began_ms = self.as_of_ms.min(self.written_ms);
        self.as_of_ms = self.as_of_ms.max(as_of_ms);
        self.after_ms = self.after_ms.clamp(as_of_ms, self.as_of_ms);
        self.first_ms = match before.first_ms {
            // Not whole yet.
            0 if self.as_of_ms == 0 => 0,
            0 => self.until_ms(),
            first => first,
        };
        self.gaps.clone_from(&before.gaps);
        if before.as_of_ms > 0 && self.as_of_ms - self.after_ms > GAP_MIN_MS {
            self.gaps.push(Gap {
                from_ms: self.after_ms,
                to_ms: self.as_of_ms,
            });
        }
        // The clock was ahead before, or is behind: of which of these times an entry is, it does
        // not tell until the later of the two has come.
        // A time without a state may end then as well.
        let tells = |gap: &Gap| gap.to_ms == as_of_ms && gap.from_ms <= began_ms;
        let is_told = self.gaps.iter().any(tells);
        if is_behind(as_of_ms, self.written_ms) && !is_told {
            self.gaps.push(Gap {
                from_ms: began_ms,
                to_ms: as_of_ms,
            });
            self.gaps.sort_by_key(|gap| gap.from_ms);
        }
        let from_ms = self.as_of_ms - self.keep_ms;
        self.gaps.retain(|gap| gap.to_ms > from_ms);
        if self.gaps.len() > GAPS_MAX {
            // Too many to name: the oldest two and what is between are told as one.
            let oldest = self.gaps.remove(0);
            self.gaps[0].from_ms = oldest.from_ms;
            self.gaps[0].to_ms = oldest.to_ms.max(self.gaps[0].to_ms);
        }
    }

    /// Whether the server that wrote the copy is to write it no more.
    pub(crate) fn refuse_promoted(&self) -> Result<()> {
        match self.promotions {
            0 => Ok(()),
            _ => Err(ReplicaError::Promoted {
                number: self.number,
            }),
        }
    }

    /// Whether it is of the log of an engine. Records, of which `covers` tells, are in such a log
    /// only, and one that an earlier version wrote says no more.
    pub fn is_log(&self) -> bool {
        self.is_of_engine || self.covers.is_some()
    }

    /// Whether it is for gateways alone to go on from.
    pub(crate) fn refuse_engine(&self) -> Result<()> {
        if self.is_log() {
            let number = self.number;
            return Err(ReplicaError::OfEngine { number });
        }
        Ok(())
    }

    /// The number that follows those of all that it can name.
    pub(crate) fn bound(&self) -> Number {
        Number {
            epoch: self.epoch,
            number: self.next,
        }
    }

    /// As it lies there.
    pub(crate) fn seal(&self, key: &SecretKey, copy: CopyId) -> (Vec<u8>, KnownHead) {
        let json = serde_json::to_vec(self).unwrap_or_default();
        let sealed = seal(key, &context(copy, self.number), &json);
        let known = KnownHead {
            number: self.number,
            sha256: sha256_hex(&sealed),
        };
        (sealed, known)
    }

    /// Opens the head of a number.
    pub(crate) fn open(
        key: &SecretKey,
        copy: CopyId,
        number: u64,
        sealed: &[u8],
    ) -> Result<(Self, KnownHead)> {
        let altered = |problem| ReplicaError::Altered {
            object: names::head(number).to_string(),
            problem,
        };
        let json = open(key, &context(copy, number), sealed);
        let json = json.map_err(|_| altered(NOT_OPEN))?;
        let head: Self = serde_json::from_slice(&json)
            .map_err(|_| altered("it is of a format that this version does not know"))?;
        if head.number != number {
            return Err(altered("it has another number"));
        }
        let known = KnownHead {
            number,
            sha256: sha256_hex(sealed),
        };
        Ok((head, known))
    }
}
