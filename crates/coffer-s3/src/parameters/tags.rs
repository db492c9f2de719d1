//! Tags of objects and buckets, and their limits.

use std::collections::HashSet;

use coffer_vault::record::Tags;
use s3s::dto::Tag;
use s3s::xml::Deserializer;
use s3s::{S3Error, S3Result, s3_error};

use crate::errors::details::{carried, of_argument};
use crate::http::percent::form_pairs;
use crate::limits::{BUCKET_TAGS_MAX, ECHO_MAX_BYTES, TAG_KEY_MAX_CHARS, TAG_VALUE_MAX_CHARS};

const HEADER: &str = "x-amz-tagging";

/// What names of tags begin with that AWS keeps for itself.
const SYSTEM_PREFIX: &str = "aws:";

/// Reads an `x-amz-tagging` header: `key=value&key=value`, percent-encoded.
pub(crate) fn from_header(header: Option<&str>, tags_max: usize) -> S3Result<Tags> {
    let Some(header) = header else {
        return Ok(Tags::new());
    };
    let tags = form_of(header).ok_or_else(|| {
        let error = s3_error!(
            InvalidArgument,
            "The header '{HEADER}' shall be encoded as UTF-8 then URLEncoded URL query parameters \
             without tag name duplicates."
        );
        of_argument(error, HEADER, header)
    })?;
    checked(tags, tags_max)
}

/// The pairs of a header that is such a form: with whole escapes, with names, and each name once. A
/// comma as it is stands between headers, not in a tag.
fn form_of(header: &str) -> Option<Tags> {
    let is_escape = |after: &str| {
        let digits = after.as_bytes().get(..2);
        digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit))
    };
    if header.contains(',') || !header.split('%').skip(1).all(is_escape) {
        return None;
    }
    let tags = form_pairs(header)?;
    let has_names = tags.iter().all(|(key, _)| !key.is_empty());
    let names_count = tags
        .iter()
        .map(|(key, _)| key)
        .collect::<HashSet<_>>()
        .len();
    let is_form = has_names && names_count == tags.len();
    is_form.then_some(tags)
}

/// Reads a tag set of an XML body.
pub(crate) fn from_set(set: Vec<Tag>, tags_max: usize) -> S3Result<Tags> {
    let pair = |tag: Tag| match tag {
        Tag {
            key: Some(key),
            value: Some(value),
        } => Ok((key, value)),
        Tag { .. } => Err(s3_error!(
            MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published \
             schema: a Tag has a Key and a Value"
        )),
    };
    checked(
        set.into_iter().map(pair).collect::<S3Result<_>>()?,
        tags_max,
    )
}

/// What the body of `CreateBucket` says of tags, for which s3s has no field: none where it says
/// nothing of them, or names none.
pub(crate) fn of_new_bucket(document: &[u8]) -> S3Result<Option<Tags>> {
    let malformed = || {
        s3_error!(
            MalformedXML,
            "The XML you provided was not well-formed or did not validate against our published \
             schema"
        )
    };
    // Text of elements has no `<` in a document that was written anew.
    let document = std::str::from_utf8(document).map_err(|_| malformed())?;
    let Some((_, rest)) = document.split_once("<Tags") else {
        return Ok(None);
    };
    let (element, after) = rest.split_once("</Tags>").ok_or_else(malformed)?;
    if after.contains("<Tags") {
        return Err(malformed());
    }
    let element = format!("<Tags{element}</Tags>");
    let mut reader = Deserializer::new(element.as_bytes());
    let set = reader.named_element("Tags", |reader| reader.list_content("Tag"));
    let tags = from_set(set.map_err(|_| malformed())?, BUCKET_TAGS_MAX)?;
    Ok((!tags.is_empty()).then_some(tags))
}

/// Tags as a tag set.
pub(crate) fn to_set(tags: Tags) -> Vec<Tag> {
    let tag = |(key, value)| Tag {
        key: Some(key),
        value: Some(value),
    };
    tags.into_iter().map(tag).collect()
}

fn checked(tags: Tags, tags_max: usize) -> S3Result<Tags> {
    if tags.len() > tags_max {
        return Err(s3_error!(
            InvalidTag,
            "There may be at most {tags_max} tags"
        ));
    }
    let mut keys = HashSet::new();
    for (key, value) in &tags {
        if !keys.insert(key) {
            let what = "Cannot provide multiple Tags with the same key";
            return Err(refused(what, key, None));
        }
        if is_of_system(key) {
            let what = match tags_max {
                BUCKET_TAGS_MAX if key.starts_with(SYSTEM_PREFIX) => {
                    "System tags cannot be added/updated by requester"
                }
                BUCKET_TAGS_MAX => {
                    "Invalid Tag. Tags cannot start with \"aws:\"(case insensitive) unless they \
                     are System Tags that start with \"aws:\"(case sensitive)"
                }
                _ => "Your TagKey cannot be prefixed with aws:",
            };
            return Err(refused(what, key, None));
        }
        if key.is_empty() || !is_within(key, TAG_KEY_MAX_CHARS) {
            return Err(refused(
                "The TagKey you have provided is invalid",
                key,
                None,
            ));
        }
        if !is_within(value, TAG_VALUE_MAX_CHARS) {
            let what = "The TagValue you have provided is invalid";
            return Err(refused(what, key, Some(value.as_str())));
        }
    }
    Ok(tags)
}

/// Whether a name is AWS's own, in any letter case.
fn is_of_system(key: &str) -> bool {
    { key.as_bytes().get(..SYSTEM_PREFIX.len()) }
        .is_some_and(|start| start.eq_ignore_ascii_case(SYSTEM_PREFIX.as_bytes()))
}

/// The refusal of a tag with what was sent of it, unless that is long.
fn refused(what: &'static str, key: &str, value: Option<&str>) -> S3Error {
    let mut told = vec![("TagKey", key.to_owned())];
    told.extend(value.map(|value| ("TagValue", value.to_owned())));
    told.retain(|(_, sent)| sent.len() <= ECHO_MAX_BYTES);
    carried(s3_error!(InvalidTag, "{what}"), &told)
}

fn is_within(text: &str, max_chars: usize) -> bool {
    text.chars().count() <= max_chars && text.chars().all(is_of_tags)
}

/// What tags may hold: letters, digits and spaces of any writing, and eight signs (S3,
/// "Categorizing your storage using tags"). Spaces are separators of Unicode: not what is white
/// and a control character, such as tabs and ends of lines.
fn is_of_tags(sign: char) -> bool {
    let is_separator = sign.is_whitespace() && !sign.is_control();
    sign.is_alphanumeric() || is_separator || "+-=._:/@".contains(sign)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::details::taken;
    use crate::limits::OBJECT_TAGS_MAX;

    fn read(header: &str) -> Option<Tags> {
        from_header(Some(header), OBJECT_TAGS_MAX).ok()
    }

    #[test]
    fn the_header_is_a_form() {
        let expected = vec![("a b".into(), "1+ä".into()), ("c".into(), String::new())];
        assert_eq!(read("a%20b=1%2B%C3%A4&c"), Some(expected));
        assert!(read("a=b%C2%A0c%E3%80%80d%E2%80%A8e").is_some());
        assert_eq!(read(""), Some(vec![]));
    }

    #[test]
    fn a_header_that_is_no_form_is_told() {
        for bad in ["k=v&k=w", "k=v,l=w", "=", "=v", "key%", "k=%zz", "a=%ff"] {
            let error = from_header(Some(bad), OBJECT_TAGS_MAX).unwrap_err();
            assert_eq!(error.code().as_str(), "InvalidArgument", "{bad}");
            let told = taken(&mut error.headers().unwrap().clone()).unwrap();
            let name = "<ArgumentName>x-amz-tagging</ArgumentName>";
            assert!(told.starts_with(name), "{told}");
        }
    }

    #[test]
    fn a_tag_that_is_refused_is_told_in_the_words_of_s3() {
        let told = |key: &str, value: Option<&str>, max| {
            let tag = Tag {
                key: Some(key.to_owned()),
                value: value.map(str::to_owned),
            };
            let error = from_set(vec![tag], max).unwrap_err();
            let details = { error.headers().cloned() }.and_then(|mut all| taken(&mut all));
            let code = error.code().as_str().to_owned();
            (code, error.message().unwrap().to_owned(), details)
        };
        let invalid = |message: &str, details: &str| {
            let details = Some(details.to_owned());
            ("InvalidTag".to_owned(), message.to_owned(), details)
        };
        let key = "<TagKey>aws:a</TagKey>";
        assert_eq!(
            told("aws:a", Some("v"), OBJECT_TAGS_MAX),
            invalid("Your TagKey cannot be prefixed with aws:", key)
        );
        assert_eq!(
            told("aws:a", Some("v"), BUCKET_TAGS_MAX),
            invalid("System tags cannot be added/updated by requester", key)
        );
        assert_eq!(
            told("k", Some("!"), OBJECT_TAGS_MAX),
            invalid(
                "The TagValue you have provided is invalid",
                "<TagKey>k</TagKey><TagValue>!</TagValue>"
            )
        );
        let long = "k".repeat(ECHO_MAX_BYTES + 1);
        assert_eq!(
            told(&long, Some("v"), OBJECT_TAGS_MAX),
            invalid("The TagKey you have provided is invalid", "")
        );
        let (code, ..) = told("k", None, OBJECT_TAGS_MAX);
        assert_eq!(code, "MalformedXML", "a tag has a value, be it empty");
    }

    #[test]
    fn names_of_aws_are_refused_in_any_letter_case() {
        for key in ["aws:a", "AWS:a", "Aws:", "aWS:cost"] {
            let tag = || Tag {
                key: Some(key.to_owned()),
                value: Some("v".to_owned()),
            };
            for max in [OBJECT_TAGS_MAX, BUCKET_TAGS_MAX] {
                let error = from_set(vec![tag()], max).unwrap_err();
                assert_eq!(error.code().as_str(), "InvalidTag", "{key}");
            }
            assert!(read(&format!("{key}=v")).is_none(), "{key}");
            let tags = format!("<Tags><Tag><Key>{key}</Key><Value>v</Value></Tag></Tags>");
            assert!(of_new_bucket(tags.as_bytes()).is_err(), "{key}");
        }
        for key in ["aws", "aw:s", "AWS", "a:aws:", "\u{e4}ws:"] {
            assert!(read(&format!("{key}=v")).is_some(), "{key}");
        }
    }

    #[test]
    fn tags_of_a_new_bucket_stand_beside_its_location() {
        let of = |inner: &str| {
            let document =
                format!("<CreateBucketConfiguration>{inner}</CreateBucketConfiguration>");
            of_new_bucket(document.as_bytes()).ok()
        };
        let tag = |key| format!("<Tag><Key>{key}</Key><Value>v</Value></Tag>");
        let location = "<LocationConstraint>l</LocationConstraint>";
        let expected = vec![("a".to_owned(), "v".to_owned())];
        let tagged = format!("{location}<Tags>{}</Tags>", tag("a"));
        assert_eq!(of(&tagged), Some(Some(expected)));
        for none in [location, "", "<Tags></Tags>"] {
            assert_eq!(of(none), Some(None), "{none}");
        }
        let twice = format!("<Tags>{}</Tags>", tag("a").repeat(2));
        for bad in [
            twice.as_str(),
            "<Tags></Tags><Tags></Tags>",
            "<Tags><Tag></Tag></Tags>",
        ] {
            assert_eq!(of(bad), None, "{bad}");
        }
    }

    #[test]
    fn limits_are_those_of_s3() {
        let many = |count: usize| {
            (0..count)
                .map(|n| format!("k{n}=v"))
                .collect::<Vec<_>>()
                .join("&")
        };
        assert!(read(&many(10)).is_some());
        assert!(read(&many(11)).is_none());
        assert!(read(&format!("{}=v", "ä".repeat(128))).is_some());
        assert!(read(&format!("{}=v", "k".repeat(129))).is_none());
        assert!(read(&format!("k={}", "v".repeat(257))).is_none());
        for bad in [
            "a=1&a=2",
            "=v",
            "aws:x=1",
            "a=%ff",
            "a%21=1",
            "a=%3Cb%3E",
            "a=%2A",
            "a=%0A",
            "a=b%09c",
            "a%0D=b",
            "a=%C2%85",
        ] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
