//! What the audit log tells of subjects: who they are and what they may do, whole.

use super::{SubjectChange, SubjectInfo};
use crate::access::{AccessKey, BucketName, Rights, Subject};
use crate::audit::{Facts, whole};

impl SubjectChange {
    /// What is asked for, whole.
    pub(super) fn told(&self) -> Told {
        let mut told = Told::new();
        if let Some(name) = &self.name {
            told.push(("name", vec![name.clone()]));
        }
        if let Some(clearance) = &self.clearance {
            told.push(("clearance", vec![clearance.clone()]));
        }
        if let Some(is_trusted) = self.is_trusted {
            told.push(("trusted", vec![is_trusted.to_string()]));
        }
        if let Some(roles) = self.roles {
            told.push(("roles", vec![roles.to_string()]));
        }
        if let Some(expires_ms) = self.expires_ms {
            told.push(("expires_ms", vec![expiry(expires_ms)]));
        }
        if let Some(is_disabled) = self.is_disabled {
            told.push(("disabled", vec![is_disabled.to_string()]));
        }
        if self.all_buckets {
            told.push(("all_buckets", vec!["true".to_owned()]));
        }
        if !self.grant.is_empty() {
            told.push(("grant", self.grant.iter().map(grant_text).collect()));
        }
        if !self.revoke.is_empty() {
            told.push((
                "revoke",
                self.revoke.iter().map(ToString::to_string).collect(),
            ));
        }
        told
    }
}

/// Facts of any length, by name.
pub(super) type Told = Vec<(&'static str, Vec<String>)>;

fn expiry(expires_ms: Option<i64>) -> String {
    expires_ms.map_or_else(|| "never".to_owned(), |ms| ms.to_string())
}

fn grant_text((bucket, rights): &(BucketName, Rights)) -> String {
    format!("{bucket}={rights}")
}

pub(in crate::admin) fn about_subject(subject: &Subject) -> Facts {
    Facts::from([
        ("subject", subject.name.to_string()),
        ("subject_id", subject.id.to_string()),
    ])
}

/// What is told of an access key that is made or changed.
pub(in crate::admin) fn key_facts(key: &AccessKey) -> Facts {
    Facts::from([
        ("access_key_id", key.id.clone()),
        ("disabled", key.is_disabled.to_string()),
        ("expires_ms", expiry(key.expires_ms)),
    ])
}

/// Who a subject is and what it may do, whole, for the records about it.
pub(super) fn state(info: &SubjectInfo) -> Vec<Facts> {
    let subject = &info.subject;
    let mut told: Told = vec![
        ("clearance", vec![subject.clearance.to_string()]),
        ("roles", vec![subject.roles.to_string()]),
        ("expires_ms", vec![expiry(info.expires_ms)]),
        ("disabled", vec![info.is_disabled.to_string()]),
    ];
    let keys = info.keys.iter().map(|key| key.id.clone()).collect();
    told.push(("access_keys", keys));
    if subject.is_trusted {
        told.push(("trusted", vec!["true".to_owned()]));
    }
    match &info.grants {
        None => told.push(("all_buckets", vec!["true".to_owned()])),
        Some(grants) => told.push(("grants", grants.iter().map(grant_text).collect())),
    }
    whole(&about_subject(subject), told)
}
