//! What objects of a copy are called.

use std::fmt;

use coffer_seal::{BlobId, BucketId, random_bytes};
use object_store::path::Path;
use serde::{Deserialize, Serialize};

/// What a copy says of itself, in the clear.
pub const RECORD: &str = "copy.json";

/// Where heads are.
pub(crate) const HEADS: &str = "heads";

/// Where pieces of files are.
pub(crate) const PIECES: &str = "files";

/// Where segments are, in a folder a bucket.
pub(crate) const SEGMENTS: &str = "buckets";

/// Where blobs are, in a folder a bucket.
pub(crate) const BLOBS: &str = "blobs";

/// Where lists of blobs are that are of no object any more.
pub(crate) const GONE: &str = "gone";

/// Where keystores are, of a copy that holds any.
pub(crate) const KEYSTORES: &str = "keystores";

/// The lease of an engine.
pub(crate) const LEASE: &str = "lease.json";

/// The identity of an engine, sealed.
pub(crate) const IDENTITY: &str = "identity";

/// Where a start of an engine tries its store.
pub(crate) const PROBES: &str = "probes";

/// So many numbers share a folder, so that what has low numbers is found without listing the rest.
const GROUP: u64 = 1_000;

/// The id of a copy.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct CopyId(pub [u8; 16]);

impl CopyId {
    /// A new one.
    pub fn random() -> Self {
        Self(random_bytes())
    }
}

impl fmt::Display for CopyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for CopyId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl From<CopyId> for String {
    fn from(id: CopyId) -> Self {
        id.to_string()
    }
}

impl TryFrom<String> for CopyId {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let id = BucketId::from_hex(&text).ok_or("not 32 lower-case hexadecimal digits")?;
        Ok(Self(id.0))
    }
}

/// The number of a segment or a piece: it is given once, in the epoch of one start of a writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Number {
    pub(crate) epoch: u32,
    pub(crate) number: u64,
}

impl Number {
    /// As in the name of an object.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let (epoch, number) = name.split_once('-')?;
        (epoch.len() == 8 && number.len() == 12).then_some(())?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            number: number.parse().ok()?,
        })
    }

    /// Whether a folder whose first number is this one may have the number, or later ones of its
    /// epoch.
    pub(crate) fn begins_folder_from(self, number: Self) -> bool {
        self.epoch == number.epoch && self.number / GROUP >= number.number / GROUP
    }

    /// The folder that it is in.
    fn group(self) -> String {
        format!("{:08}-{:09}", self.epoch, self.number / GROUP)
    }

    /// The first number of a folder.
    pub(crate) fn first_of_group(name: &str) -> Option<Self> {
        let (epoch, group) = name.split_once('-')?;
        (epoch.len() == 8 && group.len() == 9).then_some(())?;
        Some(Self {
            epoch: epoch.parse().ok()?,
            number: group.parse::<u64>().ok()? * GROUP,
        })
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:08}-{:012}", self.epoch, self.number)
    }
}

pub(crate) fn head(number: u64) -> Path {
    Path::from(format!("{}/{number:012}", heads_of(head_group(number))))
}

pub(crate) fn head_group(number: u64) -> u64 {
    number / GROUP
}

pub(crate) fn heads_of(group: u64) -> Path {
    Path::from(format!("{HEADS}/{group:09}"))
}

pub(crate) fn head_group_at(name: &str) -> Option<u64> {
    (name.len() == 9).then(|| name.parse().ok())?
}

pub(crate) fn head_number(name: &str) -> Option<u64> {
    (name.len() == 12).then(|| name.parse().ok())?
}

pub(crate) fn piece(number: Number) -> Path {
    Path::from(format!("{PIECES}/{}/{number}", number.group()))
}

pub(crate) fn gone(number: Number) -> Path {
    Path::from(format!("{GONE}/{}/{number}", number.group()))
}

/// The keystore of a generation, which has the place of the number.
pub(crate) fn keystore(at: Number) -> Path {
    Path::from(format!("{KEYSTORES}/{at}"))
}

pub(crate) fn segments_of(bucket: BucketId) -> Path {
    Path::from(format!("{SEGMENTS}/{bucket}"))
}

pub(crate) fn segment(bucket: BucketId, number: Number) -> Path {
    Path::from(format!("{SEGMENTS}/{bucket}/{}/{number}", number.group()))
}

pub(crate) fn blobs_of(bucket: BucketId) -> Path {
    Path::from(format!("{BLOBS}/{bucket}"))
}

/// The folder of the blobs whose ids begin with this byte.
pub(crate) fn blobs_from(bucket: BucketId, first: u8) -> Path {
    Path::from(format!("{BLOBS}/{bucket}/{first:02x}"))
}

pub(crate) fn blob(bucket: BucketId, id: BlobId) -> Path {
    let id = id.to_string();
    let (first, rest) = id.split_at(2);
    Path::from(format!("{BLOBS}/{bucket}/{first}/{rest}"))
}

/// Whether it is what a put left in a folder that was ended half-way.
pub(crate) fn is_unfinished(path: &Path) -> bool {
    path.filename().is_some_and(|name| finished(name) != name)
}

/// The name that a file was to have: itself, or what is before `#N`.
pub(crate) fn finished(name: &str) -> &str {
    match name.rsplit_once('#') {
        Some((name, number)) if number.parse::<u32>().is_ok() => name,
        _ => name,
    }
}

/// The blob that lies there.
pub(crate) fn blob_at(path: &Path) -> Option<BlobId> {
    let parts: Vec<_> = path.parts().collect();
    let [.., first, rest] = &parts[..] else {
        return None;
    };
    BlobId::from_hex(&format!("{}{}", first.as_ref(), rest.as_ref()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_format() {
        let number = Number {
            epoch: 3,
            number: 14,
        };
        assert_eq!(number.to_string(), "00000003-000000000014");
        assert_eq!(Number::from_name("00000003-000000000014"), Some(number));
        assert_eq!(Number::from_name("3-14"), None);
        assert_eq!(head_number("000000000012"), Some(12));
        assert_eq!(head_number("12"), None);
        let found = head(1_234_567).to_string();
        assert_eq!(found, "heads/000001234/000001234567");
        let found = piece(number).to_string();
        assert_eq!(found, "files/00000003-000000000/00000003-000000000014");
        let group = Number {
            number: 0,
            ..number
        };
        assert_eq!(Number::first_of_group("00000003-000000000"), Some(group));
        let path = blob(BucketId([1; 16]), BlobId([0xab; 16]));
        assert!(
            path.as_ref()
                .ends_with("/ab/ababababababababababababababab"),
            "{path}"
        );
        assert_eq!(blob_at(&path), Some(BlobId([0xab; 16])));
    }
}
