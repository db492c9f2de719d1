//! What rules say, as they are kept: JSON in `system.db` (`docs/FORMAT.md`); and what no rule may
//! say (Amazon S3 User Guide, "Lifecycle configuration elements").

use std::collections::HashSet;

use coffer_store::limits::OBJECT_NAME_MAX_BYTES;
use serde::{Deserialize, Serialize};

use crate::limits::{
    LIFECYCLE_DAYS_MAX, LIFECYCLE_ID_MAX_CHARS, LIFECYCLE_RULES_MAX, LIFECYCLE_TAGS_MAX,
    NEWER_NONCURRENT_MAX,
};

/// The rules of a bucket, in the order in which they were set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LifecycleRules(pub Vec<LifecycleRule>);

/// A rule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LifecycleRule {
    /// Its name; no other rule of the bucket has it.
    pub id: String,
    /// Whether it is in force.
    pub is_enabled: bool,
    /// What it is for.
    pub filter: LifecycleFilter,
    /// When the newest version of an object ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expiration: Option<Expiration>,
    /// When other versions end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noncurrent: Option<Noncurrent>,
    /// After how many days an upload is aborted that was not completed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub abort_uploads_days: Option<u32>,
}

/// Which objects a rule is for: those that all of it is true of.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LifecycleFilter {
    /// How it was written.
    pub form: FilterForm,
    /// What their names begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Tags that they have, among others.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<(String, String)>,
    /// They have more bytes than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub larger_than_bytes: Option<u64>,
    /// They have fewer bytes than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub smaller_than_bytes: Option<u64>,
}

/// How a filter was written, so that it can be told likewise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FilterForm {
    /// A `Filter` with one element, or none.
    #[default]
    One,
    /// A `Filter` with `And`.
    And,
    /// A `Prefix` in the rule itself, as it was before there were filters.
    OldPrefix,
}

/// When the newest version of an object ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Expiration {
    /// So many days after it was made.
    Days(u32),
    /// At a midnight, in milliseconds since 1970; objects made later end at once.
    DateMs(i64),
    /// Where it is a delete marker without a version behind it; else never.
    LoneMarkers(bool),
}

/// When a version ends that is not the newest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Noncurrent {
    /// So many days after a newer one was made.
    pub days: u32,
    /// But while fewer such versions than this are newer, it stays.
    #[serde(default)]
    pub newer_kept: u32,
}

/// What no rules may say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleFault {
    /// The document is none of its kind; a sentence.
    Malformed(&'static str),
    /// A value or a combination that there is not; a sentence.
    Invalid(&'static str),
    /// An action that the rule lacks, or that does not go with its filter, or a filter with a tag
    /// twice; a sentence.
    Unfit(&'static str),
}

use RuleFault::{Invalid, Malformed, Unfit};

impl LifecycleRules {
    /// Checks all of it. `day_ms`: how long a day is, by whose ends dates are.
    ///
    /// # Errors
    /// What is wrong first.
    pub fn check(&self, day_ms: i64) -> Result<(), RuleFault> {
        if self.0.is_empty() || self.0.len() > LIFECYCLE_RULES_MAX {
            return Err(Malformed("A lifecycle configuration has 1 to 1,000 rules"));
        }
        let mut ids = HashSet::new();
        if !self.0.iter().all(|rule| ids.insert(&rule.id)) {
            return Err(Invalid(
                "Rule ID must be unique. Found same ID for more than one rule",
            ));
        }
        self.0.iter().try_for_each(|rule| rule.check(day_ms))
    }
}

impl LifecycleRule {
    fn check(&self, day_ms: i64) -> Result<(), RuleFault> {
        if self.id.chars().count() > LIFECYCLE_ID_MAX_CHARS || self.id.chars().any(char::is_control)
        {
            return Err(Invalid("ID length should not exceed allowed limit of 255"));
        }
        self.filter.check()?;
        if self.expiration.is_none()
            && self.noncurrent.is_none()
            && self.abort_uploads_days.is_none()
        {
            return Err(Unfit("At least one action needs to be specified in a rule"));
        }
        let is_days = |days: u32| (1..=LIFECYCLE_DAYS_MAX).contains(&days);
        let has_tags = !self.filter.tags.is_empty();
        match self.expiration {
            Some(Expiration::Days(days)) if !is_days(days) => {
                return Err(Invalid(
                    "'Days' for Expiration action must be a positive integer",
                ));
            }
            Some(Expiration::DateMs(ms)) if ms.rem_euclid(day_ms) != 0 => {
                return Err(Invalid("'Date' must be at midnight GMT"));
            }
            Some(Expiration::LoneMarkers(_)) if has_tags => {
                return Err(Unfit(
                    "ExpiredObjectDeleteMarker cannot be specified with Tags",
                ));
            }
            _ => {}
        }
        if let Some(Noncurrent { days, newer_kept }) = self.noncurrent {
            if !is_days(days) {
                return Err(Invalid(
                    "'NoncurrentDays' for NoncurrentVersionExpiration action must be a positive \
                     integer",
                ));
            }
            if newer_kept > NEWER_NONCURRENT_MAX {
                return Err(Invalid("'NewerNoncurrentVersions' must be from 1 to 100"));
            }
            if newer_kept > 0 && self.filter.form == FilterForm::OldPrefix {
                return Err(Malformed(
                    "'NewerNoncurrentVersions' needs a Filter in its rule",
                ));
            }
        }
        let Some(days) = self.abort_uploads_days else {
            return Ok(());
        };
        if !is_days(days) {
            return Err(Invalid(
                "'DaysAfterInitiation' for AbortIncompleteMultipartUpload action must be a \
                 positive integer",
            ));
        }
        if has_tags {
            return Err(Unfit(
                "AbortIncompleteMultipartUpload cannot be specified with Tags",
            ));
        }
        let filter = &self.filter;
        if filter.larger_than_bytes.is_some() || filter.smaller_than_bytes.is_some() {
            return Err(Invalid(
                "AbortIncompleteMultipartUpload cannot be specified with object sizes",
            ));
        }
        Ok(())
    }
}

impl LifecycleFilter {
    fn check(&self) -> Result<(), RuleFault> {
        if self
            .prefix
            .as_ref()
            .is_some_and(|prefix| prefix.len() > OBJECT_NAME_MAX_BYTES)
        {
            return Err(Invalid("The maximum size of a prefix is 1024"));
        }
        let sizes = [self.larger_than_bytes, self.smaller_than_bytes];
        let elements =
            usize::from(self.prefix.is_some()) + self.tags.len() + sizes.iter().flatten().count();
        match self.form {
            FilterForm::One if elements > 1 => {
                return Err(Malformed("A Filter has one element; more stand in its And"));
            }
            FilterForm::And if elements == 0 => {
                return Err(Malformed("And has at least one element"));
            }
            _ => {}
        }
        if let [Some(larger), Some(smaller)] = sizes
            && larger >= smaller
        {
            return Err(Invalid(
                "'ObjectSizeLessThan' has to be a value greater than 'ObjectSizeGreaterThan'",
            ));
        }
        if self.smaller_than_bytes == Some(0) {
            return Err(Invalid("'ObjectSizeLessThan' must be a positive integer"));
        }
        if self.tags.len() > LIFECYCLE_TAGS_MAX {
            return Err(Invalid("A filter has at most ten tags"));
        }
        let mut keys = HashSet::new();
        if !self.tags.iter().all(|(key, _)| keys.insert(key)) {
            return Err(Unfit("Duplicate Tag Keys are not allowed."));
        }
        Ok(())
    }
}
