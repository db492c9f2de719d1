//! `Resource` and `NotResource`.
//!
//! *Amazon S3 User Guide*, Policy resources for Amazon S3
//! (`AmazonS3/latest/userguide/security_iam_service-with-iam.html`): `arn:aws:s3:::BUCKET` and
//! `arn:aws:s3:::BUCKET/NAME`, where NAME may have wildcards and variables. A policy names its own
//! bucket alone; `BUCKET*` stands for the bucket and all in it.

use std::borrow::Cow;

use crate::conditions::{Key, Pattern, PatternError, Syntax, Values};
use crate::error::Fault;
use crate::names::ResourceKind;
use crate::truth::Truth;

/// One resource of a statement.
#[derive(Clone, PartialEq)]
pub(crate) struct ResourcePattern {
    /// As written.
    pub(crate) text: String,
    reach: Reach,
}

#[derive(Clone, PartialEq)]
enum Reach {
    /// The bucket.
    Bucket,
    /// Objects whose names match.
    Objects(Pattern),
    /// What is written after the bucket's name matches nothing for the bucket, and `/NAME` for an
    /// object.
    Both(Pattern),
}

impl ResourcePattern {
    pub(crate) fn parse(text: &str, bucket: &str, variables: bool) -> Result<Self, Fault> {
        let in_bucket = text
            .strip_prefix("arn:aws:s3:::")
            .and_then(|path| path.strip_prefix(bucket));
        let rest = in_bucket.ok_or(Fault::Resource)?;
        let syntax = Syntax {
            wildcards: true,
            variables,
        };
        let pattern = |text: &str| {
            Pattern::parse(text, syntax).map_err(|error| match error {
                PatternError::Variable => Fault::Variable,
                PatternError::TooLong(bytes) => Fault::PatternTooLong { bytes },
            })
        };
        let reach = match rest.strip_prefix('/') {
            None if rest.is_empty() => Reach::Bucket,
            None if rest.starts_with('*') => Reach::Both(pattern(rest)?),
            // No bucket has a name that ends in a slash.
            None | Some("") => return Err(Fault::Resource),
            Some(name) => Reach::Objects(pattern(name)?),
        };
        Ok(Self {
            text: text.to_owned(),
            reach,
        })
    }

    /// Whether it can be a resource of this kind.
    pub(crate) fn can_be(&self, kind: ResourceKind) -> bool {
        match self.reach {
            Reach::Bucket => kind == ResourceKind::Bucket,
            Reach::Objects(_) => kind == ResourceKind::Object,
            Reach::Both(_) => kind != ResourceKind::Account,
        }
    }

    /// The keys of its variables.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &Key> {
        let pattern = match &self.reach {
            Reach::Bucket => None,
            Reach::Objects(pattern) | Reach::Both(pattern) => Some(pattern),
        };
        pattern.into_iter().flat_map(Pattern::keys)
    }

    /// Whether it is the bucket, where there is no name, or the object of this name.
    pub(crate) fn matches(&self, name: Option<&str>, values: &dyn Values) -> Truth {
        match (&self.reach, name) {
            (Reach::Bucket, None) => Truth::Yes,
            (Reach::Bucket, Some(_)) | (Reach::Objects(_), None) => Truth::No,
            (Reach::Objects(pattern), Some(name)) => pattern.matches(name, values),
            (Reach::Both(pattern), name) => {
                let path = name.map_or(Cow::Borrowed(""), |name| Cow::Owned(format!("/{name}")));
                pattern.matches(&path, values)
            }
        }
    }
}
