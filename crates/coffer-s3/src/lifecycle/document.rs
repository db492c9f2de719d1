//! A lifecycle configuration as S3 writes it, and the rules that it says.

use std::collections::HashSet;

use coffer_vault::{
    Expiration, FilterForm, LifecycleFilter, LifecycleRule, LifecycleRules, Noncurrent, RuleFault,
};
use s3s::dto::{
    AbortIncompleteMultipartUpload, ExpirationStatus, LifecycleExpiration,
    LifecycleRule as RuleElement, LifecycleRuleAndOperator, LifecycleRuleFilter,
    NoncurrentVersionExpiration, Tag, Timestamp,
};
use s3s::{S3Error, S3Result, s3_error};
use time::OffsetDateTime;

use crate::errors::not_implemented;
use crate::limits::{TAG_KEY_MAX_CHARS, TAG_VALUE_MAX_CHARS};

/// Reads and checks the rules that a client sets. `day_ms`: how long a day is.
///
/// # Errors
/// As S3: `MalformedXML`, `InvalidArgument`, `InvalidRequest`, and `NotImplemented` for
/// transitions.
pub(crate) fn of_client(rules: Vec<RuleElement>, day_ms: i64) -> S3Result<LifecycleRules> {
    let mut read = Vec::with_capacity(rules.len());
    let ids = ids_of(&rules);
    for (rule, id) in rules.into_iter().zip(ids) {
        read.push(of_element(rule, id)?);
    }
    let rules = LifecycleRules(read);
    rules.check(day_ms).map_err(refused)?;
    Ok(rules)
}

/// As a client reads them.
pub(crate) fn to_client(rules: &LifecycleRules) -> Vec<RuleElement> {
    rules.0.iter().map(to_element).collect()
}

fn refused(fault: RuleFault) -> S3Error {
    match fault {
        RuleFault::Malformed(what) => s3_error!(MalformedXML, "{what}"),
        RuleFault::Invalid(what) => s3_error!(InvalidArgument, "{what}"),
        RuleFault::Unfit(what) => s3_error!(InvalidRequest, "{what}"),
    }
}

fn malformed(what: &'static str) -> S3Error {
    refused(RuleFault::Malformed(what))
}

/// The id of each rule. One that was left out is made, as S3 does, though its ids are drawn at
/// random; no other rule has it, also where rules that were read come back in another order.
fn ids_of(rules: &[RuleElement]) -> Vec<String> {
    fn given(rule: &RuleElement) -> Option<&String> {
        rule.id.as_ref().filter(|id| !id.is_empty())
    }
    let taken: HashSet<_> = rules.iter().filter_map(given).collect();
    let mut free = (1..).map(|number| format!("rule-{number}"));
    let mut made = || free.find(|id| !taken.contains(id)).unwrap_or_default();
    let ids = rules.iter().map(|rule| given(rule).cloned());
    ids.map(|id| id.unwrap_or_else(&mut made)).collect()
}

fn of_element(rule: RuleElement, id: String) -> S3Result<LifecycleRule> {
    let has_some = |list: Option<usize>| list.is_some_and(|length| length > 0);
    if has_some(rule.transitions.map(|list| list.len()))
        || has_some(rule.noncurrent_version_transitions.map(|list| list.len()))
    {
        return Err(not_implemented(
            "A transition to another storage class (there is only STANDARD)",
        ));
    }
    let is_enabled = match rule.status.as_str() {
        ExpirationStatus::ENABLED => true,
        ExpirationStatus::DISABLED => false,
        _ => return Err(malformed("Status is Enabled or Disabled")),
    };
    Ok(LifecycleRule {
        id,
        is_enabled,
        filter: filter_of(rule.filter, rule.prefix)?,
        expiration: rule.expiration.map(expiration_of).transpose()?,
        noncurrent: rule
            .noncurrent_version_expiration
            .map(noncurrent_of)
            .transpose()?,
        abort_uploads_days: rule
            .abort_incomplete_multipart_upload
            .map(|abort| match abort.days_after_initiation {
                Some(days) => Ok(positive(days)),
                None => Err(malformed(
                    "AbortIncompleteMultipartUpload has DaysAfterInitiation",
                )),
            })
            .transpose()?,
    })
}

/// A number that must be positive; the check of the rules refuses 0.
fn positive(number: i32) -> u32 {
    u32::try_from(number).unwrap_or(0)
}

fn filter_of(
    filter: Option<LifecycleRuleFilter>,
    old_prefix: Option<String>,
) -> S3Result<LifecycleFilter> {
    let filter = match (filter, old_prefix) {
        (Some(filter), None) => filter,
        (None, Some(prefix)) => {
            return Ok(LifecycleFilter {
                form: FilterForm::OldPrefix,
                prefix: Some(prefix),
                ..LifecycleFilter::default()
            });
        }
        _ => {
            return Err(malformed("A rule has a Filter, or a Prefix, and not both"));
        }
    };
    let alone = LifecycleFilter {
        form: FilterForm::One,
        prefix: filter.prefix,
        tags: filter
            .tag
            .into_iter()
            .map(tag_of)
            .collect::<S3Result<_>>()?,
        larger_than_bytes: size(filter.object_size_greater_than)?,
        smaller_than_bytes: size(filter.object_size_less_than)?,
    };
    let Some(and) = filter.and else {
        return Ok(alone);
    };
    if alone != LifecycleFilter::default() {
        return Err(malformed("A Filter has one element; more stand in its And"));
    }
    let tags = and.tags.unwrap_or_default().into_iter();
    Ok(LifecycleFilter {
        form: FilterForm::And,
        prefix: and.prefix,
        tags: tags.map(tag_of).collect::<S3Result<_>>()?,
        larger_than_bytes: size(and.object_size_greater_than)?,
        smaller_than_bytes: size(and.object_size_less_than)?,
    })
}

fn tag_of(tag: Tag) -> S3Result<(String, String)> {
    let (Some(key), Some(value)) = (tag.key, tag.value) else {
        return Err(malformed("A Tag has a Key and a Value"));
    };
    let key_chars = key.chars().count();
    if key_chars == 0 || key_chars > TAG_KEY_MAX_CHARS {
        return Err(s3_error!(
            InvalidTag,
            "The TagKey you have provided is invalid"
        ));
    }
    if value.chars().count() > TAG_VALUE_MAX_CHARS {
        return Err(s3_error!(
            InvalidTag,
            "The TagValue you have provided is invalid"
        ));
    }
    Ok((key, value))
}

fn size(bytes: Option<i64>) -> S3Result<Option<u64>> {
    let read = bytes.map(u64::try_from).transpose();
    read.map_err(|_| refused(RuleFault::Invalid("A size is not below 0")))
}

fn expiration_of(element: LifecycleExpiration) -> S3Result<Expiration> {
    let LifecycleExpiration {
        date,
        days,
        expired_object_delete_marker,
        ..
    } = element;
    match (date, days, expired_object_delete_marker) {
        (Some(date), None, None) => {
            let at = OffsetDateTime::from(date).unix_timestamp_nanos();
            let at_ms = i64::try_from(at / 1_000_000);
            let whole = at_ms.ok().filter(|_| at % 1_000_000 == 0);
            let at_ms = whole
                .ok_or_else(|| refused(RuleFault::Invalid("'Date' must be at midnight GMT")))?;
            Ok(Expiration::DateMs(at_ms))
        }
        (None, Some(days), None) => Ok(Expiration::Days(positive(days))),
        (None, None, Some(is_set)) => Ok(Expiration::LoneMarkers(is_set)),
        _ => Err(malformed(
            "Expiration has one of Date, Days and ExpiredObjectDeleteMarker",
        )),
    }
}

fn noncurrent_of(element: NoncurrentVersionExpiration) -> S3Result<Noncurrent> {
    let Some(days) = element.noncurrent_days else {
        return Err(malformed("NoncurrentVersionExpiration has NoncurrentDays"));
    };
    let newer_kept = match element.newer_noncurrent_versions.map(u32::try_from) {
        None => 0,
        Some(Ok(count)) if count > 0 => count,
        Some(_) => {
            let what = "'NewerNoncurrentVersions' must be from 1 to 100";
            return Err(refused(RuleFault::Invalid(what)));
        }
    };
    Ok(Noncurrent {
        days: positive(days),
        newer_kept,
    })
}

fn to_element(rule: &LifecycleRule) -> RuleElement {
    let status = if rule.is_enabled {
        ExpirationStatus::ENABLED
    } else {
        ExpirationStatus::DISABLED
    };
    let (filter, prefix) = to_filter(&rule.filter);
    let abort = |days| AbortIncompleteMultipartUpload {
        days_after_initiation: Some(number(days)),
    };
    RuleElement {
        abort_incomplete_multipart_upload: rule.abort_uploads_days.map(abort),
        expiration: rule.expiration.map(to_expiration),
        filter,
        id: Some(rule.id.clone()),
        noncurrent_version_expiration: rule.noncurrent.map(|noncurrent| {
            NoncurrentVersionExpiration {
                newer_noncurrent_versions: Some(number(noncurrent.newer_kept))
                    .filter(|count| *count > 0),
                noncurrent_days: Some(number(noncurrent.days)),
            }
        }),
        noncurrent_version_transitions: None,
        prefix,
        status: ExpirationStatus::from_static(status),
        transitions: None,
    }
}

fn number(count: u32) -> i32 {
    i32::try_from(count).unwrap_or(i32::MAX)
}

fn to_filter(filter: &LifecycleFilter) -> (Option<LifecycleRuleFilter>, Option<String>) {
    let bytes = |size: Option<u64>| size.map(|bytes| i64::try_from(bytes).unwrap_or(i64::MAX));
    let (larger, smaller) = (
        bytes(filter.larger_than_bytes),
        bytes(filter.smaller_than_bytes),
    );
    let mut tags = filter.tags.iter().map(|(key, value)| Tag {
        key: Some(key.clone()),
        value: Some(value.clone()),
    });
    let prefix = filter.prefix.clone();
    let written = match filter.form {
        FilterForm::OldPrefix => return (None, prefix),
        FilterForm::One => LifecycleRuleFilter {
            object_size_greater_than: larger,
            object_size_less_than: smaller,
            prefix,
            tag: tags.next(),
            ..LifecycleRuleFilter::default()
        },
        FilterForm::And => LifecycleRuleFilter {
            and: Some(LifecycleRuleAndOperator {
                object_size_greater_than: larger,
                object_size_less_than: smaller,
                prefix,
                tags: Some(tags.collect::<Vec<_>>()).filter(|tags| !tags.is_empty()),
            }),
            ..LifecycleRuleFilter::default()
        },
    };
    (Some(written), None)
}

fn to_expiration(expiration: Expiration) -> LifecycleExpiration {
    let mut element = LifecycleExpiration::default();
    match expiration {
        Expiration::Days(days) => element.days = Some(number(days)),
        Expiration::LoneMarkers(is_set) => element.expired_object_delete_marker = Some(is_set),
        Expiration::DateMs(ms) => {
            let at = OffsetDateTime::from_unix_timestamp_nanos(i128::from(ms) * 1_000_000);
            element.date = at.ok().map(Timestamp::from);
        }
    }
    element
}
