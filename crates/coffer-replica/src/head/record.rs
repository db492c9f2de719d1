//! Records: what was changed since the entry of a log before, in one object.
//!
//! `"cofferRE" format(4) sealed-message`. Its plaintext is `length(4) description contents`: JSON
//! that says what there is, and then the pages and bytes that it counts up, in its order.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use coffer_seal::{BucketId, Context, SecretKey, open, seal};
use serde::{Deserialize, Serialize};

use crate::digest::sha256_hex;
use crate::error::{ReplicaError, Result};
use crate::head::{KnownHead, NOT_OPEN};
use crate::limits::{PAGE_BYTES, RECORD_FILES_MAX_BYTES, RECORD_PAGES_MAX};
use crate::names::{self, CopyId};

const MAGIC: &[u8; 8] = b"cofferRE";
const FORMAT: u32 = 1;
const CLEAR_BYTES: usize = 12;

/// What is to be recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NewRecord {
    /// All that was acknowledged by then is in the log with it, in milliseconds since 1970.
    pub as_of_ms: i64,
    /// The entry before was all that there was until then, in milliseconds since 1970.
    pub after_ms: i64,
    /// Pages of catalogs.
    pub buckets: Vec<RecordedPages>,
    /// What files have more.
    pub files: Option<RecordedFiles>,
}

/// Pages of one catalog: all that were changed from one commit to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedPages {
    /// The bucket.
    pub bucket: BucketId,
    /// How many commits the catalog had before; or fewer, for more pages do no harm.
    pub since: u64,
    /// How many it has with them.
    pub commits: u64,
    /// How many pages it has.
    pub page_count: u32,
    /// Pages, with their numbers.
    pub pages: Vec<(u32, Bytes)>,
}

/// What was added to files that grow, and what was written over.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedFiles {
    /// How far they have come: a count that only rises.
    pub number: u64,
    /// By name: from which byte on, and what is there. None: all of the file.
    pub parts: Vec<(String, Option<u64>, Bytes)>,
}

/// A record, as it lies in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) place: RecordPlace,
    pub(crate) holds: NewRecord,
}

/// Where in the log a record is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordPlace {
    pub(crate) number: u64,
    pub(crate) epoch: u32,
    pub(crate) writer: String,
    /// SHA-256 of the entry before.
    pub(crate) previous: String,
    pub(crate) written_ms: i64,
    /// The newest head before it.
    pub(crate) head: u64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    place: RecordPlace,
    as_of_ms: i64,
    after_ms: i64,
    buckets: Vec<DescribedPages>,
    files: Option<DescribedFiles>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedPages {
    bucket: String,
    since: u64,
    commits: u64,
    page_count: u32,
    pages: Vec<u32>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedFiles {
    number: u64,
    parts: Vec<DescribedPart>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct DescribedPart {
    name: String,
    from_bytes: Option<u64>,
    bytes: usize,
}

fn context(copy: CopyId, number: u64) -> Context {
    let mut bytes = b"coffer copy record v1\0".to_vec();
    bytes.extend(copy.0);
    bytes.extend(number.to_be_bytes());
    Context::raw(bytes)
}

impl NewRecord {
    /// Refuses what is more than a record can hold.
    fn check(&self) -> Result<()> {
        let pages = || self.buckets.iter().flat_map(|of| &of.pages);
        let files = self.files.iter().flat_map(|files| &files.parts);
        let file_bytes: usize = files.map(|(.., bytes)| bytes.len()).sum();
        let is_whole = |(number, page): &(u32, Bytes)| *number > 0 && page.len() == PAGE_BYTES;
        let is_fit = pages().count() <= RECORD_PAGES_MAX
            && pages().all(is_whole)
            && file_bytes <= RECORD_FILES_MAX_BYTES;
        is_fit
            .then_some(())
            .ok_or(ReplicaError::TooLarge { what: "a record" })
    }
}

impl Record {
    /// Whether these are the bytes of a record.
    pub(crate) fn is_one(bytes: &[u8]) -> bool {
        bytes.starts_with(MAGIC)
    }

    /// As it lies there.
    pub(crate) fn seal(&self, key: &SecretKey, copy: CopyId) -> Result<(Bytes, KnownHead)> {
        let NewRecord {
            as_of_ms,
            after_ms,
            buckets,
            files,
        } = &self.holds;
        self.holds.check()?;
        let described = Description {
            place: self.place.clone(),
            as_of_ms: *as_of_ms,
            after_ms: *after_ms,
            buckets: buckets.iter().map(DescribedPages::of).collect(),
            files: files.as_ref().map(DescribedFiles::of),
        };
        let json = serde_json::to_vec(&described).unwrap_or_default();
        let mut plaintext = BytesMut::new();
        plaintext.put_u32(json.len() as u32);
        plaintext.put_slice(&json);
        for (_, page) in buckets.iter().flat_map(|of| &of.pages) {
            plaintext.put_slice(page);
        }
        for (.., bytes) in files.iter().flat_map(|files| &files.parts) {
            plaintext.put_slice(bytes);
        }
        let number = self.place.number;
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORMAT.to_be_bytes());
        bytes.extend(seal(key, &context(copy, number), &plaintext));
        let sha256 = sha256_hex(&bytes);
        Ok((bytes.into(), KnownHead { number, sha256 }))
    }

    /// Opens the record of a number.
    pub(crate) fn open(key: &SecretKey, copy: CopyId, number: u64, bytes: &[u8]) -> Result<Self> {
        let altered = |problem| ReplicaError::Altered {
            object: names::head(number).to_string(),
            problem,
        };
        let (clear, sealed) = bytes
            .split_at_checked(CLEAR_BYTES)
            .ok_or_else(|| altered("it is cut off"))?;
        let found = u32::from_be_bytes([clear[8], clear[9], clear[10], clear[11]]);
        if found != FORMAT {
            let known = FORMAT;
            return Err(ReplicaError::NewerFormat { found, known });
        }
        let opened = open(key, &context(copy, number), sealed).map_err(|_| altered(NOT_OPEN))?;
        let mut contents = Bytes::copy_from_slice(&opened);
        let cut_off = || altered("it has less than it says");
        let length = contents.try_get_u32().map_err(|_| cut_off())? as usize;
        let json = take(&mut contents, length).ok_or_else(cut_off)?;
        let described: Description = serde_json::from_slice(&json)
            .map_err(|_| altered("it is of a format that this version does not know"))?;
        if described.place.number != number {
            return Err(altered("it has another number"));
        }
        let record = described.filled(&mut contents).ok_or_else(cut_off)?;
        if !contents.is_empty() {
            return Err(altered("it has more than it says"));
        }
        record.holds.check()?;
        Ok(record)
    }
}

impl DescribedPages {
    fn of(pages: &RecordedPages) -> Self {
        Self {
            bucket: pages.bucket.to_string(),
            since: pages.since,
            commits: pages.commits,
            page_count: pages.page_count,
            pages: pages.pages.iter().map(|(number, _)| *number).collect(),
        }
    }
}

impl DescribedFiles {
    fn of(files: &RecordedFiles) -> Self {
        let part = |(name, from_bytes, bytes): &(String, Option<u64>, Bytes)| DescribedPart {
            name: name.clone(),
            from_bytes: *from_bytes,
            bytes: bytes.len(),
        };
        Self {
            number: files.number,
            parts: files.parts.iter().map(part).collect(),
        }
    }
}

impl Description {
    /// With what follows it.
    fn filled(self, contents: &mut Bytes) -> Option<Record> {
        let mut buckets = Vec::with_capacity(self.buckets.len());
        for of in self.buckets {
            let numbers = of.pages.into_iter();
            let pages = numbers.map(|number| Some((number, take(contents, PAGE_BYTES)?)));
            buckets.push(RecordedPages {
                bucket: BucketId::from_hex(&of.bucket)?,
                since: of.since,
                commits: of.commits,
                page_count: of.page_count,
                pages: pages.collect::<Option<_>>()?,
            });
        }
        let mut files = None;
        if let Some(described) = self.files {
            let parts = described.parts.into_iter();
            let parts =
                parts.map(|part| Some((part.name, part.from_bytes, take(contents, part.bytes)?)));
            files = Some(RecordedFiles {
                number: described.number,
                parts: parts.collect::<Option<_>>()?,
            });
        }
        Some(Record {
            place: self.place,
            holds: NewRecord {
                as_of_ms: self.as_of_ms,
                after_ms: self.after_ms,
                buckets,
                files,
            },
        })
    }
}

fn take(from: &mut Bytes, length: usize) -> Option<Bytes> {
    (length <= from.len()).then(|| from.split_to(length))
}
