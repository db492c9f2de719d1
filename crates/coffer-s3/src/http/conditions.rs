//! Conditional requests (RFC 9110, section 13) as S3 reads them.

use coffer_vault::record::{ObjectName, Precondition};
use coffer_vault::{Conditions, EtagMatch};
use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};
use s3s::{S3Result, s3_error};

use crate::http::dates::parse_http_date;

const COPY_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-match");
const COPY_IF_NONE_MATCH: HeaderName = HeaderName::from_static("x-amz-copy-source-if-none-match");
const COPY_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-modified-since");
const COPY_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-copy-source-if-unmodified-since");

const RENAME_IF_MATCH: HeaderName = HeaderName::from_static("x-amz-rename-source-if-match");
const RENAME_IF_NONE_MATCH: HeaderName =
    HeaderName::from_static("x-amz-rename-source-if-none-match");
const RENAME_IF_MODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-rename-source-if-modified-since");
const RENAME_IF_UNMODIFIED_SINCE: HeaderName =
    HeaderName::from_static("x-amz-rename-source-if-unmodified-since");

/// One entity tag of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EtagItem {
    /// `*`.
    Any,
    /// `"value"`, or, as many S3 clients write it, `value`.
    Strong(String),
    /// `W/"value"`: not byte for byte the same, perhaps.
    Weak(String),
}

/// The conditions of a read.
pub(crate) fn of_read(headers: &HeaderMap) -> Conditions {
    conditions(
        headers,
        [
            IF_MATCH,
            IF_NONE_MATCH,
            IF_MODIFIED_SINCE,
            IF_UNMODIFIED_SINCE,
        ],
    )
}

/// The condition under which a range is still of the object that the client has a part of
/// (`If-Range`, RFC 9110, section 13.1.5); `None` where there is no such header.
pub(crate) fn of_range(headers: &HeaderMap) -> Option<Conditions> {
    let value = headers.get(IF_RANGE)?.to_str().unwrap_or("");
    // The same date, not an earlier one: S3 tells times in whole seconds, and so a date can't be
    // later than the object's and still name it.
    let date = parse_http_date(value);
    let if_match = match date {
        Some(_) => None,
        None => strong_match(etag_list(value)).or(Some(EtagMatch::OneOf(Vec::new()))),
    };
    Some(Conditions {
        if_match,
        if_unmodified_since_ms: date,
        ..Conditions::default()
    })
}

/// The conditions on the source of a copy.
pub(crate) fn of_copy_source(headers: &HeaderMap) -> Conditions {
    conditions(
        headers,
        [
            COPY_IF_MATCH,
            COPY_IF_NONE_MATCH,
            COPY_IF_MODIFIED_SINCE,
            COPY_IF_UNMODIFIED_SINCE,
        ],
    )
}

/// The conditions on the object that is to be renamed.
pub(crate) fn of_rename_source(headers: &HeaderMap) -> Conditions {
    conditions(
        headers,
        [
            RENAME_IF_MATCH,
            RENAME_IF_NONE_MATCH,
            RENAME_IF_MODIFIED_SINCE,
            RENAME_IF_UNMODIFIED_SINCE,
        ],
    )
}

fn conditions(headers: &HeaderMap, names: [HeaderName; 4]) -> Conditions {
    // The usual read has none of them.
    if !names.iter().any(|name| headers.contains_key(name)) {
        return Conditions::default();
    }
    let [if_match, if_none_match, modified, unmodified] = names;
    Conditions {
        if_match: strong_match(items(headers, &if_match)),
        if_none_match: weak_match(items(headers, &if_none_match)),
        if_modified_since_ms: date(headers, &modified),
        if_unmodified_since_ms: date(headers, &unmodified),
    }
}

/// What a write requires of the object that is there now. S3 takes `If-None-Match: *` and
/// `If-Match` with one entity tag or `*`; anything else would be a condition not kept.
pub(crate) fn of_write(headers: &HeaderMap) -> S3Result<Precondition> {
    if headers.contains_key(IF_UNMODIFIED_SINCE) || headers.contains_key(IF_MODIFIED_SINCE) {
        return Err(s3_error!(
            NotImplemented,
            "If-Modified-Since and If-Unmodified-Since are not implemented on writes; use \
             If-Match or If-None-Match"
        ));
    }
    match (
        items(headers, &IF_MATCH).as_slice(),
        items(headers, &IF_NONE_MATCH).as_slice(),
    ) {
        ([], []) => Ok(Precondition::None),
        ([], [EtagItem::Any]) => Ok(Precondition::Absent),
        ([EtagItem::Any], []) => Ok(Precondition::Present),
        ([EtagItem::Strong(etag)], []) => Ok(Precondition::Etag(etag.clone())),
        ([EtagItem::Weak(_)], []) => Err(s3_error!(
            InvalidArgument,
            "If-Match needs a strong entity tag"
        )),
        ([], _) => Err(s3_error!(
            NotImplemented,
            "On writes, If-None-Match is implemented for * only"
        )),
        (_, []) => Err(s3_error!(
            NotImplemented,
            "On writes, If-Match is implemented for one entity tag"
        )),
        (_, _) => Err(s3_error!(
            NotImplemented,
            "If-Match and If-None-Match together are not implemented on writes"
        )),
    }
}

/// The text of `If-Match` or `If-None-Match`; none where it names no entity tag, and so is no
/// condition.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values = values.filter_map(|value| value.to_str().ok());
    let named: Vec<_> = values
        .filter(|value| !etag_list(value).is_empty())
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
}

/// The object that a write wants to be there.
pub(crate) fn wanted(precondition: &Precondition, name: &ObjectName) -> Option<ObjectName> {
    match precondition {
        Precondition::Present | Precondition::Etag(_) => Some(name.clone()),
        Precondition::None | Precondition::Absent => None,
    }
}

/// `If-Match` compares strongly (RFC 9110, section 8.8.3.2): a weak tag never matches.
fn strong_match(items: Vec<EtagItem>) -> Option<EtagMatch> {
    let strong = |item| match item {
        EtagItem::Strong(etag) => Some(etag),
        EtagItem::Any | EtagItem::Weak(_) => None,
    };
    if items.is_empty() {
        None
    } else if items.contains(&EtagItem::Any) {
        Some(EtagMatch::Any)
    } else {
        Some(EtagMatch::OneOf(
            items.into_iter().filter_map(strong).collect(),
        ))
    }
}

/// `If-None-Match` compares weakly: proxies that compress make strong tags weak.
fn weak_match(items: Vec<EtagItem>) -> Option<EtagMatch> {
    let items = items.into_iter().map(|item| match item {
        EtagItem::Weak(etag) => EtagItem::Strong(etag),
        other => other,
    });
    strong_match(items.collect())
}

fn items(headers: &HeaderMap, name: &HeaderName) -> Vec<EtagItem> {
    let values = headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok());
    values.flat_map(etag_list).collect()
}

/// Reads a list of entity tags. Quoted ones may hold commas; what is not quoted ends at a comma.
pub(crate) fn etag_list(text: &str) -> Vec<EtagItem> {
    let mut items = Vec::new();
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        if rest.is_empty() {
            return items;
        }
        let (weak, tag) = match rest.strip_prefix("W/\"") {
            Some(_) => (true, &rest[2..]),
            None => (false, rest),
        };
        let quoted = tag.strip_prefix('"').and_then(|tag| tag.split_once('"'));
        let value = match quoted {
            Some((value, after)) => {
                rest = after;
                value
            }
            None => {
                let (value, after) = tag.split_once(',').unwrap_or((tag, ""));
                rest = after;
                value.trim_end().trim_matches('"')
            }
        };
        items.push(match (weak, value) {
            (true, value) => EtagItem::Weak(value.to_owned()),
            (false, "*") if quoted.is_none() => EtagItem::Any,
            (false, value) => EtagItem::Strong(value.to_owned()),
        });
    }
}

fn date(headers: &HeaderMap, name: &HeaderName) -> Option<i64> {
    // A date that is none is ignored (RFC 9110, section 13.1.3).
    headers.get(name)?.to_str().ok().and_then(parse_http_date)
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;
    use proptest::prelude::*;

    use super::*;

    fn headers(pairs: &[(HeaderName, &str)]) -> HeaderMap {
        let value = |text: &str| HeaderValue::from_str(text).unwrap();
        pairs
            .iter()
            .map(|(name, text)| (name.clone(), value(text)))
            .collect()
    }

    fn one_of(etags: &[&str]) -> Option<EtagMatch> {
        Some(EtagMatch::OneOf(
            etags.iter().map(|etag| (*etag).to_owned()).collect(),
        ))
    }

    #[test]
    fn entity_tags_come_quoted_weak_bare_and_in_lists() {
        let strong = |value: &str| EtagItem::Strong(value.into());
        assert_eq!(etag_list("\"a\""), [strong("a")]);
        assert_eq!(etag_list("0123abc-4"), [strong("0123abc-4")]);
        assert_eq!(etag_list("*"), [EtagItem::Any]);
        assert_eq!(etag_list("\"*\""), [strong("*")]);
        assert_eq!(
            etag_list(" \"a,b\" , W/\"c\",d,"),
            [strong("a,b"), EtagItem::Weak("c".into()), strong("d")]
        );
        assert_eq!(etag_list("\"open"), [strong("open")]);
        assert_eq!(etag_list(""), []);
    }

    #[test]
    fn weak_tags_match_reads_that_must_not_but_never_those_that_must() {
        let both = headers(&[(IF_MATCH, "W/\"a\", \"b\""), (IF_NONE_MATCH, "W/\"a\"")]);
        let conditions = of_read(&both);
        assert_eq!(conditions.if_match, one_of(&["b"]));
        assert_eq!(conditions.if_none_match, one_of(&["a"]));
    }

    #[test]
    fn a_range_may_depend_on_the_object() {
        let of = |text: &'static str| of_range(&headers(&[(IF_RANGE, text)])).unwrap();
        assert_eq!(of("\"a\"").if_match, one_of(&["a"]));
        assert_eq!(of("W/\"a\"").if_match, one_of(&[]));
        let date = of("Sun, 06 Nov 1994 08:49:37 GMT");
        assert_eq!(date.if_unmodified_since_ms, Some(784_111_777_000));
        assert_eq!(date.if_match, None);
        assert_eq!(of_range(&HeaderMap::new()), None);
    }

    #[test]
    fn dates_that_are_none_are_ignored() {
        let since = headers(&[(IF_MODIFIED_SINCE, "soon")]);
        assert_eq!(of_read(&since), Conditions::default());
    }

    #[test]
    fn writes_take_what_they_can_keep() {
        let write = |pairs: &[(HeaderName, &str)]| of_write(&headers(pairs)).ok();
        assert_eq!(write(&[]), Some(Precondition::None));
        assert_eq!(write(&[(IF_NONE_MATCH, "*")]), Some(Precondition::Absent));
        assert_eq!(write(&[(IF_MATCH, "*")]), Some(Precondition::Present));
        assert_eq!(
            write(&[(IF_MATCH, "\"a\"")]),
            Some(Precondition::Etag("a".into()))
        );
        assert_eq!(write(&[(IF_NONE_MATCH, "\"a\"")]), None);
        assert_eq!(write(&[(IF_MATCH, "\"a\", \"b\"")]), None);
        assert_eq!(write(&[(IF_MATCH, "\"a\""), (IF_NONE_MATCH, "*")]), None);
        assert_eq!(
            write(&[(IF_UNMODIFIED_SINCE, "Sun, 06 Nov 1994 08:49:37 GMT")]),
            None
        );
    }

    proptest! {
        #[test]
        fn lists_are_read_back(etags in prop::collection::vec("[a-z0-9 ,*-]{1,9}", 0..5)) {
            let text = etags.iter().map(|etag| format!("\"{etag}\"")).collect::<Vec<_>>();
            let expected: Vec<_> = etags.into_iter().map(EtagItem::Strong).collect();
            prop_assert_eq!(etag_list(&text.join(", ")), expected);
        }

        #[test]
        fn no_text_is_too_odd(text in "\\PC{0,40}") {
            etag_list(&text);
        }
    }
}
