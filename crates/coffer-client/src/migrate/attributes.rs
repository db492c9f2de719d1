//! What an object is beside its bytes: headers, metadata, tags, locks.

use http::HeaderMap;
use percent_encoding::percent_decode_str;
use time::format_description::well_known::Rfc3339;
use time::{OffsetDateTime, UtcOffset};

/// Headers that go with an object.
const KEPT: [&str; 7] = [
    "cache-control",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-type",
    "expires",
    "x-amz-website-redirect-location",
];

const METADATA: &str = "x-amz-meta-";
const LOCK_MODE: &str = "x-amz-object-lock-mode";
const LOCK_UNTIL: &str = "x-amz-object-lock-retain-until-date";
const LOCK_HOLD: &str = "x-amz-object-lock-legal-hold";
const CLASS: &str = "x-amz-storage-class";

/// What an object is beside its bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Attributes {
    /// Headers, by which it is stored as well.
    pub(super) headers: Vec<(String, String)>,
    /// How many tags it has, where that was told.
    pub(super) tags: Option<u64>,
    /// Until when it is locked, and whether that is over.
    pub(super) lock: Lock,
    /// What can't be kept.
    pub(super) lost: Vec<String>,
}

/// The mode of a retention, and until when it lasts.
pub(super) type Retention = (String, String);

/// A lock.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Lock {
    /// One that still lasts.
    pub(super) retention: Option<Retention>,
    /// Whether there is a legal hold.
    pub(super) is_held: bool,
}

impl Attributes {
    /// Reads the head of an answer. `now` is the time of this machine.
    pub(super) fn of_headers(headers: &HeaderMap, now: OffsetDateTime) -> Self {
        let mut found = Self::default();
        let text = |name: &str| headers.get(name)?.to_str().ok();
        for (name, value) in headers {
            let name = name.as_str();
            if !KEPT.contains(&name) && !name.starts_with(METADATA) {
                continue;
            }
            // Some services send metadata as UTF-8.
            match std::str::from_utf8(value.as_bytes()) {
                Ok(value) => found.headers.push((name.to_owned(), value.to_owned())),
                Err(_) => found.lost.push(format!("the header {name} is no UTF-8")),
            }
        }
        found.headers.sort_unstable();
        if text("x-amz-missing-meta").is_some_and(|count| count != "0") {
            let lost = "the source has metadata that it can't tell in headers";
            found.lost.push(lost.to_owned());
        }
        if let Some(class) = text(CLASS).filter(|class| *class != "STANDARD") {
            found.lost.push(format!("its storage class {class}"));
        }
        found.tags = text("x-amz-tagging-count").and_then(|count| count.parse().ok());
        let until = text(LOCK_UNTIL);
        if let (Some(mode), Some(until)) = (text(LOCK_MODE), until) {
            found.lock.retention = lasting(mode, until, now);
        }
        found.lock.is_held = text(LOCK_HOLD) == Some("ON");
        found
    }

    /// The headers of a request that stores it, with these tags.
    pub(super) fn to_store(&self, tags: Option<String>) -> Vec<(String, String)> {
        let mut headers = self.headers.clone();
        if let Some((mode, until)) = &self.lock.retention {
            headers.push((LOCK_MODE.to_owned(), mode.clone()));
            headers.push((LOCK_UNTIL.to_owned(), until.clone()));
        }
        if self.lock.is_held {
            headers.push((LOCK_HOLD.to_owned(), "ON".to_owned()));
        }
        headers.extend(tags.map(|tags| ("x-amz-tagging".to_owned(), tags)));
        headers
    }

    /// What of it is other there.
    pub(super) fn difference(&self, there: &Self) -> Option<String> {
        let names = |a: &Self, b: &Self| {
            let missing = { a.headers.iter() }.filter(|header| !b.headers.contains(header));
            missing.map(|(name, _)| name.clone()).collect::<Vec<_>>()
        };
        let mut differ = names(self, there);
        differ.extend(names(there, self));
        if self.lock.retention != there.lock.retention {
            differ.push("the retention".to_owned());
        }
        if self.lock.is_held != there.lock.is_held {
            differ.push("the legal hold".to_owned());
        }
        differ.sort_unstable();
        differ.dedup();
        (!differ.is_empty()).then(|| differ.join(", "))
    }
}

/// A retention, if it still lasts; its time is written in one way, so that both sides can be
/// compared.
pub(super) fn lasting(mode: &str, until: &str, now: OffsetDateTime) -> Option<Retention> {
    let ends = OffsetDateTime::parse(until, &Rfc3339).ok();
    let plain = ends.and_then(|ends| ends.to_offset(UtcOffset::UTC).format(&Rfc3339).ok());
    let lasts = ends.is_none_or(|ends| ends > now);
    lasts.then(|| (mode.to_owned(), plain.unwrap_or_else(|| until.to_owned())))
}

/// Tags as a header has them, in one order and one way of writing.
pub(super) fn plain_tags(text: &str) -> Vec<String> {
    let decoded = |pair: &str| percent_decode_str(pair).decode_utf8_lossy().into_owned();
    let pairs = text.split('&').filter(|pair| !pair.is_empty());
    let mut pairs: Vec<_> = pairs.map(decoded).collect();
    pairs.sort_unstable();
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        { pairs.iter() }
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect::<HeaderMap>()
    }

    #[test]
    fn what_belongs_to_an_object_is_kept_and_what_does_not_is_left() {
        let now = OffsetDateTime::from_unix_timestamp(1_700_000_000).unwrap();
        let of = |pairs: &[_]| Attributes::of_headers(&headers(pairs), now);
        let found = of(&[
            ("content-type", "a/b"),
            ("content-length", "5"),
            ("x-amz-meta-x", "ü"),
            ("x-amz-tagging-count", "2"),
            (LOCK_MODE, "GOVERNANCE"),
            (LOCK_UNTIL, "2099-01-02T03:04:05.600Z"),
            (LOCK_HOLD, "ON"),
            (CLASS, "GLACIER"),
        ]);
        assert_eq!(found.tags, Some(2));
        assert_eq!(found.lost, ["its storage class GLACIER"]);
        let stored = found.to_store(Some("a=b".to_owned()));
        let stored: Vec<_> = { stored.iter() }
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        assert_eq!(
            stored,
            [
                ("content-type", "a/b"),
                ("x-amz-meta-x", "ü"),
                (LOCK_MODE, "GOVERNANCE"),
                (LOCK_UNTIL, "2099-01-02T03:04:05.6Z"),
                (LOCK_HOLD, "ON"),
                ("x-amz-tagging", "a=b"),
            ]
        );
        let over = of(&[
            (LOCK_MODE, "COMPLIANCE"),
            (LOCK_UNTIL, "2020-01-02T03:04:05Z"),
        ]);
        assert_eq!(over.lock, Lock::default());
        let other = of(&[("content-type", "a/c")]);
        let told = other.difference(&found).unwrap();
        assert_eq!(
            told,
            "content-type, the legal hold, the retention, x-amz-meta-x"
        );
        assert_eq!(found.difference(&found.clone()), None);
        assert_eq!(plain_tags("b=%20&a=1"), ["a=1", "b= "]);
    }
}
