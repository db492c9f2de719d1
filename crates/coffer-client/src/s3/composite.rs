//! Checksums of checksums: what S3 tells of an object whose parts had a checksum each.

use std::collections::VecDeque;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::HeaderMap;

use crate::s3::checksum::{Algorithm, Running, TOLD, etag_of_bytes, md5_of_hex};

/// A checksum of the checksums of an object's parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Composite {
    /// How both are formed.
    pub algorithm: Algorithm,
    /// Its bytes.
    pub value: Vec<u8>,
    /// How many parts there are.
    pub part_count: u32,
    /// Whether it is an ETag that looks like one.
    is_etag: bool,
}

impl Composite {
    /// What headers tell of an object of parts: a checksum, and behind it the number of parts.
    pub fn of_headers(headers: &HeaderMap) -> Option<Self> {
        let told = TOLD.into_iter().find_map(|algorithm| {
            let told = headers.get(algorithm.header())?.to_str().ok()?;
            let (value, part_count) = counted(told)?;
            Some(Self {
                algorithm,
                value: BASE64.decode(value).ok()?,
                part_count,
                is_etag: false,
            })
        });
        told.or_else(|| Self::of_etag(headers))
    }

    /// An ETag of parts looks like the MD5 of their MD5s where it is that, and sometimes where it
    /// is not: see [`is_likely`](Self::is_likely).
    fn of_etag(headers: &HeaderMap) -> Option<Self> {
        let (value, part_count) = counted(etag_of_bytes(headers)?)?;
        Some(Self {
            algorithm: Algorithm::Md5,
            value: md5_of_hex(value)?,
            part_count,
            is_etag: true,
        })
    }

    /// Whether it may be something else: it proves what it fits then, and nothing where it does
    /// not.
    pub fn is_likely(&self) -> bool {
        self.is_etag
    }
}

/// What stands before the number of parts, and that number.
fn counted(text: &str) -> Option<(&str, u32)> {
    let (value, count) = text.rsplit_once('-')?;
    Some((value, count.parse().ok().filter(|count| *count > 0)?))
}

impl fmt::Display for Composite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, value) = (self.algorithm.name(), BASE64.encode(&self.value));
        write!(f, "{name} {value}-{}", self.part_count)
    }
}

/// Such a checksum that grows, of parts whose lengths are known.
pub struct RunningComposite {
    algorithm: Algorithm,
    part: Running,
    /// What is missing of the part.
    left: u64,
    rest: VecDeque<u64>,
    whole: Running,
    part_count: u32,
}

impl RunningComposite {
    /// One of nothing yet; the parts have these lengths, of which there is at least one.
    pub fn new(algorithm: Algorithm, part_bytes: impl IntoIterator<Item = u64>) -> Self {
        let mut rest: VecDeque<u64> = part_bytes.into_iter().collect();
        Self {
            algorithm,
            part: Running::new(algorithm),
            left: rest.pop_front().unwrap_or(0),
            rest,
            whole: Running::new(algorithm),
            part_count: 0,
        }
    }

    /// Takes more bytes. What goes beyond the last part belongs to it.
    pub fn update(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            if self.left == 0 && self.next_part() {
                continue;
            }
            let here = if self.rest.is_empty() {
                bytes.len()
            } else {
                bytes
                    .len()
                    .min(usize::try_from(self.left).unwrap_or(usize::MAX))
            };
            self.part.update(&bytes[..here]);
            self.left = self.left.saturating_sub(here as u64);
            bytes = &bytes[here..];
        }
    }

    /// Ends a part, and begins the next, if there is one.
    fn next_part(&mut self) -> bool {
        let Some(next) = self.rest.pop_front() else {
            return false;
        };
        self.end_part();
        self.left = next;
        true
    }

    fn end_part(&mut self) {
        let part = std::mem::replace(&mut self.part, Running::new(self.algorithm));
        self.whole.update(&part.done().value);
        self.part_count += 1;
    }

    /// The checksum of all parts.
    pub fn done(mut self) -> Composite {
        while self.next_part() {}
        self.end_part();
        Composite {
            algorithm: self.algorithm,
            value: self.whole.done().value,
            part_count: self.part_count,
            is_etag: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::s3::checksum::checksum;

    #[test]
    fn parts_are_summed_however_the_bytes_come() {
        for algorithm in TOLD {
            let part = |text: &str| checksum(algorithm, text.as_bytes()).value;
            let parts = [part("1234"), part("567"), part("89"), part("")].concat();
            let expected = Composite {
                algorithm,
                value: checksum(algorithm, &parts).value,
                part_count: 4,
                is_etag: false,
            };
            for step in 1..=9 {
                let mut running = RunningComposite::new(algorithm, [4, 3, 2, 0]);
                b"123456789"
                    .chunks(step)
                    .for_each(|bytes| running.update(bytes));
                assert_eq!(running.done(), expected, "{algorithm:?}, {step}");
            }
            let empty = RunningComposite::new(algorithm, [0]).done();
            assert_eq!(empty.value, checksum(algorithm, &part("")).value);
            assert_eq!(empty.part_count, 1);
        }
    }

    #[test]
    fn other_lengths_of_parts_make_another_checksum() {
        let of = |parts: [u64; 2]| {
            let mut running = RunningComposite::new(Algorithm::Sha256, parts);
            running.update(b"123456789");
            running.done()
        };
        assert_ne!(of([4, 5]), of([5, 4]));
        // More than was told does not get lost.
        assert_eq!(of([4, 4]), of([4, 5]));
    }

    #[test]
    fn what_headers_tell() {
        let told = |value: &str| {
            let name = http::HeaderName::from_static("x-amz-checksum-crc32");
            Composite::of_headers(&HeaderMap::from_iter([(name, value.parse().unwrap())]))
        };
        let composite = told("y/Q5Jg==-3").unwrap();
        assert_eq!(composite.part_count, 3);
        assert_eq!(composite.to_string(), "CRC32 y/Q5Jg==-3");
        for none in ["y/Q5Jg==", "y/Q5Jg==-0", "y/Q5Jg==-x", "?-3", "-", ""] {
            assert_eq!(told(none), None, "{none}");
        }
    }

    #[test]
    fn what_an_entity_tag_of_parts_tells() {
        let told = |pairs: &[(&'static str, &str)]| {
            let pairs = pairs.iter().map(|(name, value)| {
                let name = http::HeaderName::from_static(name);
                (name, value.parse().unwrap())
            });
            Composite::of_headers(&HeaderMap::from_iter(pairs))
        };
        let tag = "\"d316408c159ea701ab954894bd3a92c2-2\"";
        let composite = told(&[("etag", tag)]).unwrap();
        assert_eq!(composite.part_count, 2);
        assert!(composite.is_likely());
        let kms = ("x-amz-server-side-encryption", "aws:kms");
        let random = "\"0a8b7c6d5e4f30213243546576879809-x\"";
        for none in [
            &[("etag", tag), kms][..],
            &[("etag", random)],
            &[("etag", "\"d3-2\"")],
        ] {
            assert_eq!(told(none), None, "{none:?}");
        }
        let both = [("etag", tag), ("x-amz-checksum-crc32", "y/Q5Jg==-3")];
        assert!(!told(&both).unwrap().is_likely());
        let both = [
            ("etag", tag),
            ("x-amz-checksum-md5", "0xZAjBWepwGrlUiUvTqSwg==-2"),
        ];
        assert!(!told(&both).unwrap().is_likely());
        // The MD5 of the MD5s of "ab" and "c", as S3 makes it.
        let mut running = RunningComposite::new(Algorithm::Md5, [2, 1]);
        running.update(b"abc");
        let parts = [b"ab".as_slice(), b"c"].map(|part| checksum(Algorithm::Md5, part).value);
        let expected = checksum(Algorithm::Md5, &parts.concat()).value;
        assert_eq!(running.done().value, expected);
    }
}
