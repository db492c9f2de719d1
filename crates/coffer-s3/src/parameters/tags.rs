//! Tags of objects and buckets, and their limits.

use std::collections::HashSet;

use coffer_vault::record::Tags;
use s3s::dto::Tag;
use s3s::xml::Deserializer;
use s3s::{S3Result, s3_error};

use crate::http::percent::form_pairs;
use crate::limits::{BUCKET_TAGS_MAX, TAG_KEY_MAX_CHARS, TAG_VALUE_MAX_CHARS};

/// Reads an `x-amz-tagging` header: `key=value&key=value`, percent-encoded.
pub(crate) fn from_header(header: Option<&str>, tags_max: usize) -> S3Result<Tags> {
    let Some(header) = header else {
        return Ok(Tags::new());
    };
    let tags = form_pairs(header).ok_or_else(|| {
        s3_error!(
            InvalidArgument,
            "The header 'x-amz-tagging' shall be encoded as UTF-8 then URLEncoded URL query \
             parameters without tag name duplicates."
        )
    })?;
    checked(tags, tags_max)
}

/// Reads a tag set of an XML body.
pub(crate) fn from_set(set: Vec<Tag>, tags_max: usize) -> S3Result<Tags> {
    let pair = |tag: Tag| match tag {
        Tag {
            key: Some(key),
            value,
        } => Ok((key, value.unwrap_or_default())),
        Tag { key: None, .. } => Err(s3_error!(MalformedXML, "A tag needs a key")),
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
        if key.is_empty() || key.chars().count() > TAG_KEY_MAX_CHARS {
            return Err(s3_error!(
                InvalidTag,
                "A tag's key has 1 to {TAG_KEY_MAX_CHARS} characters"
            ));
        }
        if value.chars().count() > TAG_VALUE_MAX_CHARS {
            return Err(s3_error!(
                InvalidTag,
                "A tag's value has at most {TAG_VALUE_MAX_CHARS} characters"
            ));
        }
        if key.starts_with("aws:") {
            return Err(s3_error!(
                InvalidTag,
                "Keys of tags may not begin with aws:"
            ));
        }
        for (what, text) in [("TagKey", key), ("TagValue", value)] {
            if !text.chars().all(is_of_tags) {
                return Err(s3_error!(
                    InvalidTag,
                    "The {what} you have provided is invalid"
                ));
            }
        }
        if !keys.insert(key) {
            return Err(s3_error!(
                InvalidTag,
                "Cannot provide multiple Tags with the same key"
            ));
        }
    }
    Ok(tags)
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
