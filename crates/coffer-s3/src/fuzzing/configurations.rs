//! Bodies for documents that clients set.

use coffer_vault::AskedAcl;
use coffer_vault::policy::limits::GRANTS;
use s3s::dto::{AccessControlPolicy, BucketLifecycleConfiguration, CORSConfiguration, Tagging};
use s3s::xml::{Deserialize, Deserializer};

use crate::around_s3s::xml::canonical;
use crate::cors::rules::{Asked, Rules};
use crate::fuzzing::head;
use crate::lifecycle::document as lifecycle_document;
use crate::limits::{BUCKET_TAGS_MAX, CORS_RULES_MAX, OBJECT_TAGS_MAX};
use crate::parameters::{acl, tags};

/// A list that is taken, from headers or as a document, has no more grants than one may have, and
/// names whom it grants something.
pub fn acl(data: &[u8]) {
    let holds = |list: &AskedAcl| match list {
        AskedAcl::Grants(grants) => (1..=GRANTS).contains(&grants.len()),
        AskedAcl::Document { grants, .. } => grants.len() <= GRANTS,
        AskedAcl::None | AskedAcl::Canned(_) => true,
    };
    if let Some(list) = head(data).and_then(|head| acl::asked(&head.headers).ok()) {
        assert!(holds(&list), "{list:?}");
    }
    let mut xml = Deserializer::new(data);
    if let Ok(document) = AccessControlPolicy::deserialize(&mut xml)
        && let Ok(list) = acl::of_document(document)
    {
        assert!(matches!(list, AskedAcl::Document { .. }) && holds(&list));
    }
}

/// Lifecycle rules that are taken come back as they were, from the vault and to clients.
pub fn lifecycle(data: &[u8]) {
    const DAY_MS: i64 = 86_400_000;
    let mut xml = Deserializer::new(data);
    let Ok(given) = BucketLifecycleConfiguration::deserialize(&mut xml) else {
        return;
    };
    let Ok(rules) = lifecycle_document::of_client(given.rules, DAY_MS) else {
        return;
    };
    let kept = serde_json::to_string(&rules).expect("rules are JSON");
    assert_eq!(serde_json::from_str(&kept).ok().as_ref(), Some(&rules));
    let again = lifecycle_document::of_client(lifecycle_document::to_client(&rules), DAY_MS);
    assert_eq!(again.ok(), Some(rules));
}

/// CORS rules that are taken keep their limit, come back as they were, and allow what their
/// patterns say when these are taken for names.
pub fn cors(data: &[u8]) {
    let mut xml = Deserializer::new(data);
    let Ok(given) = CORSConfiguration::deserialize(&mut xml) else {
        return;
    };
    let Ok(rules) = Rules::of_client(given) else {
        return;
    };
    let kept = serde_json::to_string(&rules).expect("rules are JSON");
    assert_eq!(serde_json::from_str(&kept).ok().as_ref(), Some(&rules));
    let cors_rules = rules.to_client();
    assert!((1..=CORS_RULES_MAX).contains(&cors_rules.len()));
    for rule in &cors_rules {
        let headers: Vec<&str> = rule
            .allowed_headers
            .iter()
            .flatten()
            .map(String::as_str)
            .collect();
        for (origin, method) in rule.allowed_origins.iter().zip(&rule.allowed_methods) {
            let asked = Asked {
                origin,
                method,
                headers: &headers,
            };
            assert!(rules.matching(asked).is_some(), "{rule:?}");
        }
    }
    let again = Rules::of_client(CORSConfiguration { cors_rules });
    assert_eq!(again.ok(), Some(rules));
}

/// Tag sets that are taken keep their limit and come back as they were: of objects, of buckets and
/// of a bucket that is to be made.
pub fn tag_set(data: &[u8]) {
    let mut xml = Deserializer::new(data);
    if let Ok(tagging) = Tagging::deserialize(&mut xml) {
        for limit in [OBJECT_TAGS_MAX, BUCKET_TAGS_MAX] {
            if let Ok(taken) = tags::from_set(tagging.tag_set.clone(), limit) {
                assert!(taken.len() <= limit);
                let again = tags::from_set(tags::to_set(taken.clone()), limit);
                assert_eq!(again.ok(), Some(taken));
            }
        }
    }
    // The service writes the document anew before it is read.
    let Ok(document) = canonical(data, 1 << 16) else {
        return;
    };
    if let Ok(Some(taken)) = tags::of_new_bucket(document.as_bytes()) {
        assert!((1..=BUCKET_TAGS_MAX).contains(&taken.len()));
        let again = tags::from_set(tags::to_set(taken.clone()), BUCKET_TAGS_MAX);
        assert_eq!(again.ok(), Some(taken));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_must_hold_holds_for_lists(
            header in concat!(
                "x-amz-(acl: (private|public-read|x)|grant-(read|write-acp): ",
                "((id|uri|emailAddress|ID)=\"?(a|http://acs[.]a)\"?,? ?){0,3})"
            ),
            owner in "(<Owner>(<ID>[ab]?</ID>)?</Owner>)?",
            grants in concat!(
                "(<Grant>(<Grantee>(<ID>a</ID>|<URI>b</URI>|<EmailAddress>c</EmailAddress>){0,2}",
                "</Grantee>)?(<Permission>(READ|FULL_CONTROL|EAT)</Permission>)?</Grant>){0,3}"
            ),
        ) {
            acl(format!("\n{header}").as_bytes());
            let list = format!("<AccessControlList>{grants}</AccessControlList>");
            let whole = format!("<AccessControlPolicy>{owner}{list}</AccessControlPolicy>");
            acl(whole.as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_lifecycle_rules(
            action in concat!(
                "<Expiration><(Days>[0-3]</Days|Date>20[0-9]{2}-01-01T0[01]:00:00Z</Date)>",
                "</Expiration>|<NoncurrentVersionExpiration><NoncurrentDays>[0-2]</NoncurrentDays>",
                "(<NewerNoncurrentVersions>[0-9]{1,3}</NewerNoncurrentVersions>)?",
                "</NoncurrentVersionExpiration>|<AbortIncompleteMultipartUpload>",
                "<DaysAfterInitiation>-?[0-9]</DaysAfterInitiation>",
                "</AbortIncompleteMultipartUpload>"
            ),
            filter in concat!(
                "<Prefix>[a-c/]{0,3}</Prefix>|<Filter/>|<Filter><And><Prefix>a</Prefix>",
                "<Tag><Key>[a-b]</Key><Value>[a-b]?</Value></Tag></And></Filter>"
            ),
        ) {
            let rule = format!("<Rule><Status>Enabled</Status>{filter}{action}</Rule>");
            let whole = format!("<LifecycleConfiguration>{rule}</LifecycleConfiguration>");
            lifecycle(whole.as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_cors_rules(
            rule in concat!(
                "(<AllowedOrigin>(http://a|[*]|a[*]b)</AllowedOrigin>){0,2}",
                "(<AllowedMethod>(GET|PUT|EAT)</AllowedMethod>){0,2}",
                "(<AllowedHeader>(x-a|[*]|X-[*]|x-[*]-b)</AllowedHeader>){0,2}",
                "(<ExposeHeader>etag</ExposeHeader>)?(<MaxAgeSeconds>-?[0-9]{1,3}</MaxAgeSeconds>)?"
            ),
            count in 0..3usize,
        ) {
            let rules = format!("<CORSRule>{rule}</CORSRule>").repeat(count);
            cors(format!("<CORSConfiguration>{rules}</CORSConfiguration>").as_bytes());
        }

        #[test]
        fn what_must_hold_holds_for_tag_sets(
            tags in "(<Tag><Key>[a-c:é]{0,3}</Key>(<Value>[a-c=]?</Value>)?</Tag>){0,12}",
            around in prop_oneof![Just("TagSet"), Just("Tags"), Just("Tag")],
        ) {
            let set = format!("<{around}>{tags}</{around}>");
            for document in ["Tagging", "CreateBucketConfiguration"] {
                tag_set(format!("<{document}>{set}</{document}>").as_bytes());
            }
        }
    }
}
