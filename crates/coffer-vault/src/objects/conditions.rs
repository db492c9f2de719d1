//! Conditions and ranges: whether an object is read, and which of its bytes.

use std::ops::Range;

use coffer_store::record::ObjectHead;
use coffer_store::version::Which;

use super::asked::check_customer_key;
use crate::error::{Result, VaultError};
use crate::open_buckets::CustomerKey;

/// Entity tags to match, without quotation marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EtagMatch {
    /// `*`: whatever is there.
    Any,
    /// One of these.
    OneOf(Vec<String>),
}

impl EtagMatch {
    /// Whether `etag` is matched.
    pub fn matches(&self, etag: &str) -> bool {
        match self {
            Self::Any => true,
            Self::OneOf(etags) => etags.iter().any(|one| one == etag),
        }
    }
}

/// Conditions on a read (RFC 9110, section 13).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Conditions {
    /// `If-Match`.
    pub if_match: Option<EtagMatch>,
    /// `If-None-Match`.
    pub if_none_match: Option<EtagMatch>,
    /// `If-Modified-Since`, in milliseconds since 1970.
    pub if_modified_since_ms: Option<i64>,
    /// `If-Unmodified-Since`, in milliseconds since 1970.
    pub if_unmodified_since_ms: Option<i64>,
}

/// Which bytes to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RangeRequest {
    /// All.
    #[default]
    All,
    /// From an offset to another (inclusive) or the end.
    FromTo {
        /// First byte.
        first: u64,
        /// Last byte.
        last: Option<u64>,
    },
    /// So many at the end.
    Suffix {
        /// How many.
        length_bytes: u64,
    },
    /// One part of a multipart object; part 1 of any other is the whole.
    Part(u32),
}

/// How to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadOptions {
    /// Which version.
    pub which: Which,
    /// Only if.
    pub conditions: Conditions,
    /// Which bytes.
    pub range: RangeRequest,
    /// The client's key, where the object is sealed under one.
    pub customer_key: Option<CustomerKey>,
}

pub(super) fn choose(
    head: &ObjectHead,
    options: &ReadOptions,
    part: Option<Range<u64>>,
) -> Result<Range<u64>> {
    check_customer_key(&head.details.encryption, options.customer_key.as_ref())?;
    check(head, &options.conditions)?;
    select(head, options.range, part)
}

/// Evaluates conditions in the order of RFC 9110, section 13.2.2. Dates have whole seconds on the
/// wire, so the object's time is cut to them before it is compared.
fn check(head: &ObjectHead, conditions: &Conditions) -> Result<()> {
    holds(&head.etag, head.modified_ms, conditions)
}

/// The same, of an object of which no more is known.
pub(super) fn holds(etag: &str, modified_ms: i64, conditions: &Conditions) -> Result<()> {
    let made_ms = modified_ms;
    let Conditions {
        if_match,
        if_none_match,
        if_modified_since_ms,
        if_unmodified_since_ms,
    } = conditions;
    let modified_ms = made_ms.div_euclid(1_000) * 1_000;
    let matches = |condition: &EtagMatch| condition.matches(etag);
    match (if_match, if_unmodified_since_ms) {
        (Some(condition), _) if !matches(condition) => return Err(VaultError::PreconditionFailed),
        (None, Some(since)) if modified_ms > *since => return Err(VaultError::PreconditionFailed),
        _ => {}
    }
    let unmodified = match (if_none_match, if_modified_since_ms) {
        (Some(condition), _) => matches(condition),
        (None, Some(since)) => modified_ms <= *since,
        (None, None) => false,
    };
    if unmodified {
        return Err(VaultError::NotModified {
            etag: etag.to_owned(),
            modified_ms: made_ms,
        });
    }
    Ok(())
}

/// The bytes that `request` selects (RFC 9110, section 14.1.2).
fn select(
    head: &ObjectHead,
    request: RangeRequest,
    part: Option<Range<u64>>,
) -> Result<Range<u64>> {
    let size_bytes = head.size_bytes;
    let invalid = VaultError::InvalidRange { size_bytes };
    match request {
        RangeRequest::All => Ok(0..size_bytes),
        RangeRequest::FromTo { first, .. } if first >= size_bytes => Err(invalid),
        RangeRequest::FromTo { first, last } => match last {
            Some(last) if last < first => Err(invalid),
            Some(last) => Ok(first..last.saturating_add(1).min(size_bytes)),
            None => Ok(first..size_bytes),
        },
        RangeRequest::Suffix { length_bytes } if length_bytes == 0 || size_bytes == 0 => {
            Err(invalid)
        }
        RangeRequest::Suffix { length_bytes } => {
            Ok(size_bytes - length_bytes.min(size_bytes)..size_bytes)
        }
        RangeRequest::Part(1) if head.part_count == 0 => Ok(0..size_bytes),
        RangeRequest::Part(_) => match part {
            Some(part) if part.end <= size_bytes => Ok(part),
            _ => Err(VaultError::NoSuchPart),
        },
    }
}

#[cfg(test)]
mod tests {
    use coffer_store::version::VersionId;

    use super::*;

    fn head(size_bytes: u64) -> ObjectHead {
        ObjectHead {
            size_bytes,
            etag: "tag".into(),
            modified_ms: 10_500,
            details: Default::default(),
            part_count: 0,
            tag_count: 0,
            tags: Default::default(),
            version: VersionId::Null,
            lock: Default::default(),
            access: Default::default(),
        }
    }

    #[test]
    fn ranges_select_as_http_says() {
        let head = head(10);
        let from_to = |first, last| select(&head, RangeRequest::FromTo { first, last }, None);
        assert_eq!(from_to(0, Some(0)).unwrap(), 0..1);
        assert_eq!(from_to(9, Some(99)).unwrap(), 9..10);
        assert_eq!(from_to(3, None).unwrap(), 3..10);
        assert_eq!(from_to(0, Some(u64::MAX)).unwrap(), 0..10);
        assert!(matches!(
            from_to(10, None),
            Err(VaultError::InvalidRange { size_bytes: 10 })
        ));
        assert!(from_to(5, Some(4)).is_err());
        let suffix = |length_bytes| select(&head, RangeRequest::Suffix { length_bytes }, None);
        assert_eq!(suffix(3).unwrap(), 7..10);
        assert_eq!(suffix(30).unwrap(), 0..10);
        assert!(suffix(0).is_err());
        assert_eq!(select(&head, RangeRequest::Part(1), None).unwrap(), 0..10);
        assert!(matches!(
            select(&head, RangeRequest::Part(2), None),
            Err(VaultError::NoSuchPart)
        ));
    }

    #[test]
    fn an_empty_object_has_no_range_but_all() {
        assert_eq!(select(&head(0), RangeRequest::All, None).unwrap(), 0..0);
        let first = RangeRequest::FromTo {
            first: 0,
            last: None,
        };
        assert!(select(&head(0), first, None).is_err());
    }

    #[test]
    fn conditions_follow_the_precedence_of_http() {
        let tag = |tag: &str| Some(EtagMatch::OneOf(vec![tag.into()]));
        let verdict = |conditions: Conditions| match check(&head(1), &conditions) {
            Ok(()) => 200,
            Err(VaultError::NotModified { .. }) => 304,
            Err(VaultError::PreconditionFailed) => 412,
            Err(other) => panic!("{other}"),
        };
        let tagged = |condition| Conditions {
            if_match: condition,
            ..Conditions::default()
        };
        let other_than = |condition| Conditions {
            if_none_match: condition,
            ..Conditions::default()
        };
        let since = |ms| Conditions {
            if_modified_since_ms: Some(ms),
            ..Conditions::default()
        };
        let until = |ms| Conditions {
            if_unmodified_since_ms: Some(ms),
            ..Conditions::default()
        };
        // A tag outweighs the date that stands beside it.
        let tag_and_date = Conditions {
            if_match: tag("tag"),
            ..until(0)
        };
        let other_and_date = Conditions {
            if_none_match: tag("no"),
            ..since(i64::MAX)
        };
        let cases = [
            (Conditions::default(), 200),
            (tagged(tag("tag")), 200),
            (tagged(tag("other")), 412),
            (other_than(tag("tag")), 304),
            (other_than(Some(EtagMatch::Any)), 304),
            (since(10_000), 304),
            (since(9_000), 200),
            (until(9_000), 412),
            (until(10_000), 200),
            (tag_and_date, 200),
            (other_and_date, 200),
        ];
        for (conditions, expected) in cases {
            assert_eq!(verdict(conditions.clone()), expected, "{conditions:?}");
        }
    }
}
