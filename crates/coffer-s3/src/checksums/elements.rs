//! Checksums in the XML that completes an upload, as it was written anew: s3s knows five of them,
//! and refuses a document that has others.

use std::borrow::Cow;

use coffer_vault::record::ChecksumAlgorithm;
use s3s::{S3Result, s3_error};

use crate::checksums::algorithms::{ALGORITHMS, Algorithm, is_value};

/// A checksum of a part, if it has one.
pub(crate) type PartSum = Option<(ChecksumAlgorithm, String)>;

/// The checksum of each part of a completion, in their order.
///
/// # Errors
/// `InvalidArgument` where a part has several, or what is none.
pub(crate) fn sums_of_parts(text: &str) -> S3Result<Vec<PartSum>> {
    let mut sums = Vec::new();
    let mut rest = text;
    while let Some(part) = next(rest, |name| name == "Part") {
        let end = "</Part>";
        let inside = part.behind.split_once(end);
        let (inside, behind) = inside.unwrap_or((part.behind, ""));
        sums.push(sum_of(inside)?);
        rest = behind;
    }
    Ok(sums)
}

fn sum_of(part: &str) -> S3Result<PartSum> {
    let mut found = None;
    let mut rest = part;
    while let Some(element) = next(rest, |name| row_of(name).is_some()) {
        let row = row_of(element.name);
        let (value, behind) = element.content();
        rest = behind;
        if value.is_empty() {
            continue; // as if it were not there
        }
        let sum = row.filter(|row| is_value(row.algorithm, value));
        let sum = sum.map(|row| (row.algorithm, value.to_owned()));
        if sum.is_none() || found.is_some() {
            return Err(s3_error!(
                InvalidArgument,
                "Invalid Base64 or multiple checksums present in request"
            ));
        }
        found = sum;
    }
    Ok(found)
}

/// A document without the checksums that s3s does not know.
pub(crate) fn without_unknown(text: &str) -> Cow<'_, str> {
    let is_unknown = |name: &str| row_of(name).is_some_and(|row| !row.is_known_to_s3s);
    let mut written = Cow::Borrowed("");
    let mut rest = text;
    while let Some(element) = next(rest, is_unknown) {
        written.to_mut().push_str(element.before);
        rest = element.content().1;
    }
    if written.is_empty() {
        return Cow::Borrowed(text);
    }
    written.to_mut().push_str(rest);
    written
}

fn row_of(name: &str) -> Option<&'static Algorithm> {
    ALGORITHMS.iter().find(|row| row.element == name)
}

/// An element, and what is around its start.
struct Element<'a> {
    before: &'a str,
    name: &'a str,
    behind: &'a str,
}

impl<'a> Element<'a> {
    /// What is in it, and what follows it.
    fn content(&self) -> (&'a str, &'a str) {
        let end = format!("</{}>", self.name);
        self.behind.split_once(&end).unwrap_or((self.behind, ""))
    }
}

/// The next element that has such a name.
fn next<'a>(text: &'a str, is_wanted: impl Fn(&str) -> bool) -> Option<Element<'a>> {
    let mut from = 0;
    while let Some(found) = text[from..].find('<') {
        let at = from + found;
        let (tag, behind) = text[at + 1..].split_once('>')?;
        let name = tag.split(' ').next().unwrap_or(tag);
        if is_wanted(name) {
            return Some(Element {
                before: &text[..at],
                name,
                behind,
            });
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const CRC: &str = "<ChecksumCRC32>y/Q5Jg==</ChecksumCRC32>";
    const MD5: &str = "<ChecksumMD5>JfnnlDI7RTiF9RgfG2JNCw==</ChecksumMD5>";

    fn part(sums: &str) -> String {
        format!("<Part><PartNumber>1</PartNumber>{sums}<ETag>a</ETag></Part>")
    }

    fn document(parts: &[String]) -> String {
        format!("<C>{}</C>", parts.concat())
    }

    #[test]
    fn each_part_has_its_own() {
        let empty = "<ChecksumMD5></ChecksumMD5>";
        let text = document(&[part(&format!("{empty}{CRC}")), part(empty), part(MD5)]);
        let crc = (ChecksumAlgorithm::Crc32, "y/Q5Jg==".to_owned());
        let md5 = (ChecksumAlgorithm::Md5, "JfnnlDI7RTiF9RgfG2JNCw==".into());
        let sums = sums_of_parts(&text).unwrap();
        assert_eq!(sums, [Some(crc), None, Some(md5)]);
        assert!(sums_of_parts("<C></C>").unwrap().is_empty());
        for bad in [
            &format!("{CRC}{MD5}"),
            "<ChecksumMD5>c3Vt</ChecksumMD5>",
            "<ChecksumSHA1>y/Q5Jg==</ChecksumSHA1>",
            "<ChecksumSHA512><b></b></ChecksumSHA512>",
        ] {
            let error = sums_of_parts(&document(&[part(bad)])).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{bad}");
        }
    }

    #[test]
    fn what_is_unknown_is_left_out() {
        let text = document(&[part(CRC), part(MD5), part(MD5)]);
        let expected = document(&[part(CRC), part(""), part("")]);
        assert_eq!(without_unknown(&text), expected);
        let known = document(&[part(CRC)]);
        assert!(matches!(without_unknown(&known), Cow::Borrowed(same) if same == known));
    }
}
