//! Conditional requests (RFC 9110, section 13) as S3 reads them.

use std::time::{SystemTime, UNIX_EPOCH};

use coffer_vault::record::Precondition;
use coffer_vault::{Conditions, EtagMatch};
use http::HeaderMap;
use http::header::{
    HeaderName, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE,
};
use s3s::{S3Error, S3Result, s3_error};

use crate::http::dates::parse_http_date;
use crate::http::text_of;

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

/// How S3 begins the refusal of conditions.
const NOT_IMPLEMENTED: &str = "A header you provided implies functionality that is not implemented";

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

/// The conditions on the source of a copy. That it was modified since a time to come is none, as on
/// S3: the time is no valid one (RFC 2616, section 14.25).
///
/// # Errors
/// `InvalidArgument` for one that can't be read.
pub(crate) fn of_copy_source(headers: &HeaderMap) -> S3Result<Conditions> {
    let mut conditions = of_change(
        headers,
        [
            COPY_IF_MATCH,
            COPY_IF_NONE_MATCH,
            COPY_IF_MODIFIED_SINCE,
            COPY_IF_UNMODIFIED_SINCE,
        ],
    )?;
    let since = conditions.if_modified_since_ms;
    conditions.if_modified_since_ms = since.filter(|since| *since <= now_ms());
    Ok(conditions)
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    })
}

/// The conditions on the object that is to be renamed.
///
/// # Errors
/// `InvalidArgument` for one that can't be read.
pub(crate) fn of_rename_source(headers: &HeaderMap) -> S3Result<Conditions> {
    of_change(
        headers,
        [
            RENAME_IF_MATCH,
            RENAME_IF_NONE_MATCH,
            RENAME_IF_MODIFIED_SINCE,
            RENAME_IF_UNMODIFIED_SINCE,
        ],
    )
}

/// The conditions on what has the name that a renamed object is to have.
///
/// # Errors
/// `InvalidArgument` for one that can't be read.
pub(crate) fn of_rename_target(headers: &HeaderMap) -> S3Result<Conditions> {
    of_change(
        headers,
        [
            IF_MATCH,
            IF_NONE_MATCH,
            IF_MODIFIED_SINCE,
            IF_UNMODIFIED_SINCE,
        ],
    )
}

/// The conditions of what changes something. Those of a read are passed over where they can't be
/// read; here, what the client wanted to keep would be lost.
fn of_change(headers: &HeaderMap, names: [HeaderName; 4]) -> S3Result<Conditions> {
    let [if_match, if_none_match, modified, unmodified] = &names;
    for name in [if_match, if_none_match] {
        required_items(headers, name)?;
    }
    for name in [modified, unmodified] {
        check_date(headers, name)?;
    }
    Ok(conditions(headers, names))
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
///
/// # Errors
/// `InvalidArgument` for what can't be read, and `NotImplemented`.
pub(crate) fn of_write(headers: &HeaderMap) -> S3Result<Precondition> {
    if headers.contains_key(IF_UNMODIFIED_SINCE) || headers.contains_key(IF_MODIFIED_SINCE) {
        return Err(s3_error!(
            NotImplemented,
            "{NOT_IMPLEMENTED}: If-Modified-Since and If-Unmodified-Since on writes; use \
             If-Match or If-None-Match"
        ));
    }
    match (
        required_items(headers, &IF_MATCH)?.as_slice(),
        required_items(headers, &IF_NONE_MATCH)?.as_slice(),
    ) {
        ([], []) => Ok(Precondition::None),
        ([], [EtagItem::Any]) => Ok(Precondition::Absent),
        ([], _) => Err(s3_error!(
            NotImplemented,
            "{NOT_IMPLEMENTED}: on writes, If-None-Match is for * only"
        )),
        (etags, []) => matching(etags),
        (_, _) => Err(s3_error!(
            NotImplemented,
            "{NOT_IMPLEMENTED}: If-Match and If-None-Match together on writes"
        )),
    }
}

/// What an entry of a deletion requires by its `ETag`, which is read as `If-Match` is.
///
/// # Errors
/// As [`of_write`].
pub(crate) fn of_entry(text: &str) -> S3Result<Precondition> {
    let etags = etag_list(text);
    if etags.is_empty() {
        return Err(unreadable(&IF_MATCH));
    }
    matching(&etags)
}

fn matching(etags: &[EtagItem]) -> S3Result<Precondition> {
    match etags {
        [EtagItem::Any] => Ok(Precondition::Present),
        [EtagItem::Strong(etag)] => Ok(Precondition::Etag(etag.clone())),
        [EtagItem::Weak(_)] => Err(s3_error!(
            InvalidArgument,
            "If-Match needs a strong entity tag"
        )),
        _ => Err(s3_error!(
            NotImplemented,
            "{NOT_IMPLEMENTED}: on writes, If-Match is for one entity tag"
        )),
    }
}

/// The text of `If-Match` or `If-None-Match`; none where it names no entity tag, and so is no
/// condition.
pub(crate) fn text(headers: &HeaderMap, name: &str) -> Option<String> {
    let values = headers.get_all(name).iter();
    let values = values.map(|value| text_of(value.as_bytes()));
    let named: Vec<_> = values
        .filter(|value| !etag_list(value).is_empty())
        .collect();
    (!named.is_empty()).then(|| named.join(", "))
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
    let values = headers.get_all(name).iter();
    // What no tag here can be matches none: it is no less a condition for that.
    let tags = values.flat_map(|value| etag_list(&text_of(value.as_bytes())));
    tags.collect()
}

/// The entity tags of a header that names some, if it is there.
fn required_items(headers: &HeaderMap, name: &HeaderName) -> S3Result<Vec<EtagItem>> {
    let items = items(headers, name);
    if items.is_empty() && headers.contains_key(name) {
        return Err(unreadable(name));
    }
    Ok(items)
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

fn check_date(headers: &HeaderMap, name: &HeaderName) -> S3Result {
    let mut values = headers.get_all(name).iter();
    let Some(first) = values.next() else {
        return Ok(());
    };
    if date(headers, name).is_none() || values.any(|value| value != first) {
        return Err(unreadable(name));
    }
    Ok(())
}

fn unreadable(name: &HeaderName) -> S3Error {
    s3_error!(
        InvalidArgument,
        "The condition in {name} can't be read, and so not kept"
    )
}

#[cfg(test)]
mod tests;
