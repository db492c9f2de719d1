//! Names of buckets.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use crate::limits::{BUCKET_NAME_BYTES, S3_BUCKET_NAME_MIN_BYTES};

/// What no name of a new bucket begins with (Amazon S3 User Guide, "General purpose bucket naming
/// rules").
const RESERVED_STARTS: [&str; 2] = ["sthree-", "amzn-s3-demo-"];

/// What none ends with.
const RESERVED_ENDS: [&str; 5] = ["-s3alias", "--ol-s3", ".mrap", "--x-s3", "--table-s3"];

/// A bucket's name by S3's rules, but that it may be shorter: 1 to 63 of `a-z 0-9 . -`, beginning
/// and ending with a letter or digit, no two dots together, and not shaped like an IPv4 address.
/// Cheap to clone.
///
/// ```
/// use coffer_vault::BucketName;
/// assert!(BucketName::new("evidence-2026").is_some());
/// assert!(BucketName::new("Evidence").is_none());
/// assert!(BucketName::new("192.168.0.1").is_none());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BucketName(Arc<str>);

/// So that a bucket is found by its name as it was sent.
impl Borrow<str> for BucketName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl BucketName {
    /// Takes a name that keeps the rules.
    pub fn new(name: &str) -> Option<Self> {
        Self::is_one(name).then(|| Self(name.into()))
    }

    /// Whether a name keeps the rules.
    pub fn is_one(name: &str) -> bool {
        let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = name.as_bytes();
        BUCKET_NAME_BYTES.contains(&bytes.len())
            && bytes
                .iter()
                .all(|&byte| alphanumeric(byte) || byte == b'-' || byte == b'.')
            && bytes.first().is_some_and(|&byte| alphanumeric(byte))
            && bytes.last().is_some_and(|&byte| alphanumeric(byte))
            && !bytes.windows(2).any(|pair| pair == b"..")
            && (bytes.iter().any(|&byte| byte.is_ascii_lowercase())
                || name.parse::<std::net::Ipv4Addr>().is_err())
    }

    /// Whether S3 would make a bucket of this name: it keeps some for itself.
    pub fn could_be_made_over_s3(&self) -> bool {
        let begins = { RESERVED_STARTS.iter() }.any(|start| self.0.starts_with(start));
        let ends = RESERVED_ENDS.iter().any(|end| self.0.ends_with(end));
        self.is_of_s3() && !begins && !ends
    }

    /// Whether S3's clients take it for a bucket's name: names that begin so stand for others in
    /// DNS.
    pub fn is_of_s3(&self) -> bool {
        self.0.len() >= S3_BUCKET_NAME_MIN_BYTES && !self.0.starts_with("xn--")
    }

    /// The name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BucketName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::BucketName;

    #[test]
    fn names_keep_the_rules_of_s3() {
        for good in ["b", "abc", "a-b", "a.b", "0ab", &"a".repeat(63), "1.2.3"] {
            assert!(BucketName::new(good).is_some(), "{good}");
        }
        for bad in [
            "",
            &"a".repeat(64),
            "aBc",
            "a_c",
            "-ab",
            "ab-",
            ".ab",
            "a..b",
            "1.2.3.4",
            "aäb",
        ] {
            assert!(BucketName::new(bad).is_none(), "{bad}");
        }
    }
    #[test]
    fn names_that_s3_keeps_for_itself_are_those_of_no_new_bucket() {
        let could = |name: &str| BucketName::new(name).unwrap().could_be_made_over_s3();
        for good in [
            "abc",
            "sthree",
            "a-sthree-b",
            "s3alias",
            "a--x-s3-b",
            "mrap",
        ] {
            assert!(could(good), "{good}");
        }
        for reserved in [
            "b",
            "xn--a",
            "sthree-a",
            "sthree-configurator-a",
            "amzn-s3-demo-bucket",
            "a-s3alias",
            "a--ol-s3",
            "a.mrap",
            "a--use1-az4--x-s3",
            "a--table-s3",
        ] {
            assert!(!could(reserved), "{reserved}");
        }
        let is_of_s3 = |name: &str| BucketName::new(name).unwrap().is_of_s3();
        assert!(is_of_s3("sthree-a") && !is_of_s3("b") && !is_of_s3("xn--a"));
    }
}
