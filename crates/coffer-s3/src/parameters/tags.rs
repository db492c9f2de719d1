//! Tags of objects and buckets, and their limits.

use std::collections::HashSet;

use coffer_vault::record::Tags;
use s3s::dto::Tag;
use s3s::{S3Result, s3_error};

use crate::http::percent::form_pairs;
use crate::limits::{TAG_KEY_MAX_CHARS, TAG_VALUE_MAX_CHARS};

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
        if !keys.insert(key) {
            return Err(s3_error!(
                InvalidTag,
                "Cannot provide multiple Tags with the same key"
            ));
        }
    }
    Ok(tags)
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
        assert_eq!(read(""), Some(vec![]));
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
        for bad in ["a=1&a=2", "=v", "aws:x=1", "a=%ff"] {
            assert!(read(bad).is_none(), "{bad}");
        }
    }
}
