//! Checksums in the fields of s3s's types. Those that it has no fields for pass through it in that
//! of CRC-32, with their name before them, and get their own header or element when the answer is
//! complete. No value is taken for such a one, for Base64 has no colon.

use coffer_vault::record::{Checksum, ChecksumAlgorithm, ChecksumKind};
use http::{HeaderMap, HeaderValue};

use crate::checksums::algorithms::{Algorithm, by_word, row};
use crate::http::has_any;

/// Puts a checksum into the field that an output has for its algorithm, or disguised into another.
macro_rules! set_checksum {
    ($output:expr, $checksum:expr) => {
        if let Some(checksum) = $checksum {
            let value = checksum.value.clone();
            let (field, value) = match checksum.algorithm {
                coffer_vault::record::ChecksumAlgorithm::Crc32 => {
                    (&mut $output.checksum_crc32, value)
                }
                coffer_vault::record::ChecksumAlgorithm::Crc32c => {
                    (&mut $output.checksum_crc32c, value)
                }
                coffer_vault::record::ChecksumAlgorithm::Crc64nvme => {
                    (&mut $output.checksum_crc64nvme, value)
                }
                coffer_vault::record::ChecksumAlgorithm::Sha1 => {
                    (&mut $output.checksum_sha1, value)
                }
                coffer_vault::record::ChecksumAlgorithm::Sha256 => {
                    (&mut $output.checksum_sha256, value)
                }
                _ => (
                    &mut $output.checksum_crc32,
                    crate::checksums::fields::disguised(checksum),
                ),
            };
            *field = Some(value);
        }
    };
}
pub(crate) use set_checksum;

/// A checksum as headers, for answers that s3s does not write.
pub(crate) fn in_headers(checksum: &Checksum) -> HeaderMap {
    let row = row(checksum.algorithm);
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::try_from(&checksum.value) {
        headers.insert(row.header, value);
    }
    let kind = match checksum.kind {
        ChecksumKind::FullObject => "FULL_OBJECT",
        ChecksumKind::Composite => "COMPOSITE",
    };
    headers.insert("x-amz-checksum-type", HeaderValue::from_static(kind));
    headers
}

/// What stands in the field of CRC-32.
pub(crate) fn disguised(checksum: &Checksum) -> String {
    format!("{}:{}", checksum.algorithm.word(), checksum.value)
}

fn seen_through(text: &str) -> Option<(&'static Algorithm, &str)> {
    let (word, value) = text.split_once(':')?;
    Some((by_word(word)?, value))
}

fn field() -> &'static Algorithm {
    row(ChecksumAlgorithm::Crc32)
}

/// Gives a header of an answer its own name.
pub(crate) fn uncover_header(headers: &mut HeaderMap) {
    // Nearly none has it.
    if !has_any(headers, field().header) {
        return;
    }
    let Some(value) = headers.get(field().header) else {
        return;
    };
    let Some((row, value)) = value.to_str().ok().and_then(seen_through) else {
        return;
    };
    let value = HeaderValue::try_from(value);
    headers.remove(field().header);
    if let Ok(value) = value {
        headers.insert(row.header, value);
    }
}

/// Gives elements of an answer their own names; none where there are no such elements.
pub(crate) fn uncover_elements(body: &[u8]) -> Option<String> {
    let (start, end) = element(field().element);
    let text = std::str::from_utf8(body).ok()?;
    let mut written = None;
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once(&start) {
        let (content, after) = behind.split_once(&end)?;
        let Some((row, value)) = seen_through(content) else {
            return written; // one that is: an answer has checksums of one kind
        };
        let out: &mut String = written.get_or_insert_with(|| String::with_capacity(text.len()));
        let (start, end) = element(row.element);
        for part in [before, &start, value, &end] {
            out.push_str(part);
        }
        rest = after;
    }
    if let Some(out) = &mut written {
        out.push_str(rest);
    }
    written
}

fn element(name: &str) -> (String, String) {
    (format!("<{name}>"), format!("</{name}>"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(algorithm: ChecksumAlgorithm) -> Checksum {
        Checksum {
            algorithm,
            kind: ChecksumKind::Composite,
            value: "c3Vt-2".to_owned(),
        }
    }

    #[test]
    fn headers_get_their_names_back() {
        let uncovered = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(field().header, value.parse().unwrap());
            uncover_header(&mut headers);
            let (name, value) = headers.iter().next().unwrap();
            format!("{name}: {}", value.to_str().unwrap())
        };
        let disguise = disguised(&sum(ChecksumAlgorithm::Sha512));
        assert_eq!(uncovered(&disguise), "x-amz-checksum-sha512: c3Vt-2");
        assert_eq!(uncovered("y/Q5Jg=="), "x-amz-checksum-crc32: y/Q5Jg==");
    }

    #[test]
    fn elements_get_their_names_back() {
        let disguise = disguised(&sum(ChecksumAlgorithm::Xxhash3));
        let one = format!("<P><N>1</N><ChecksumCRC32>{disguise}</ChecksumCRC32></P>");
        let own = "<P><N>1</N><ChecksumXXHASH3>c3Vt-2</ChecksumXXHASH3></P>";
        let body = format!("<R>{one}{one}</R>");
        let expected = format!("<R>{own}{own}</R>");
        assert_eq!(uncover_elements(body.as_bytes()), Some(expected));
        for same in [
            "<R><ChecksumCRC32>y/Q5Jg==</ChecksumCRC32></R>",
            "<R><Key>&lt;ChecksumCRC32&gt;md5:x</Key></R>",
            "<R></R>",
        ] {
            assert_eq!(uncover_elements(same.as_bytes()), None);
        }
    }
}
