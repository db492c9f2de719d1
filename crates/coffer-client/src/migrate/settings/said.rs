//! What a service says of a setting. That nothing is set is known by the code that S3 has for this
//! setting alone: any other refusal, and any other document, may be those of something that answers
//! in the service's place for a while.

use http::Method;
use hyper::body::Bytes;

use super::{BLOCKS, LIST, LOCK, OWNERSHIP, POLICY, is_unset, of_bucket};
use crate::limits::S3_ANSWER_BYTES;
use crate::migrate::Migration;
use crate::migrate::error::MigrateError;
use crate::migrate::place::Place;
use crate::s3::{Client, Element, S3Error};

/// What a service says of a setting.
pub(super) enum Said<T> {
    Is(T),
    /// It is not set.
    Unset,
    /// Neither: the service may know no such thing.
    Unknown,
}

/// Parameters, what their documents are called, and the codes that say that nothing is set.
const DOCUMENTS: [(&str, &str, &[&str]); 8] = [
    ("cors", "CORSConfiguration", &["NoSuchCORSConfiguration"]),
    ("tagging", TAGGING, &["NoSuchTagSet", "NoSuchTagSetError"]),
    (
        "encryption",
        "ServerSideEncryptionConfiguration",
        &["ServerSideEncryptionConfigurationNotFoundError"],
    ),
    (
        LOCK,
        "ObjectLockConfiguration",
        &["ObjectLockConfigurationNotFoundError"],
    ),
    (
        "lifecycle",
        "LifecycleConfiguration",
        &["NoSuchLifecycleConfiguration"],
    ),
    (
        OWNERSHIP,
        "OwnershipControls",
        &["OwnershipControlsNotFoundError"],
    ),
    (
        BLOCKS,
        "PublicAccessBlockConfiguration",
        &["NoSuchPublicAccessBlockConfiguration"],
    ),
    (POLICY, "", &["NoSuchBucketPolicy"]),
];

const TAGGING: &str = "Tagging";

/// What is wrong with another document.
const OTHER: &str = "is no document of this setting";

fn known(parameter: &str) -> (&'static str, &'static [&'static str]) {
    let found = { DOCUMENTS.iter() }.find(|(name, ..)| *name == parameter);
    found.map_or(("", &[]), |(_, root, codes)| (*root, *codes))
}

/// What a refusal says.
fn refused<T>(parameter: &str, error: S3Error) -> Result<Said<T>, S3Error> {
    let (_, codes) = known(parameter);
    match error.code() {
        Some(code) if codes.contains(&code) => Ok(Said::Unset),
        _ if is_unset(&error) => Ok(Said::Unknown),
        _ => Err(error),
    }
}

/// What a service says of a setting that is a document of XML. A document with nothing in it may be
/// half an answer.
pub(super) async fn said(
    client: &Client,
    bucket: &str,
    parameter: &'static str,
) -> Result<Said<Element>, S3Error> {
    let request = of_bucket(Method::GET, bucket, parameter);
    let document = match client.document(&request).await {
        Ok((document, _)) => document,
        Err(error) => return refused(parameter, error),
    };
    let (root, _) = known(parameter);
    let has_tags = |set: &Element| !set.children.is_empty();
    match document.name.as_str() {
        LIST => Ok(Said::Unknown),
        name if name != root => Err(S3Error::Unreadable {
            endpoint: client.endpoint().text().to_owned(),
            problem: OTHER,
        }),
        TAGGING if document.child("TagSet").is_some_and(|set| !has_tags(set)) => Ok(Said::Unset),
        _ if document.children.is_empty() && parameter != BLOCKS => Ok(Said::Unknown),
        _ => Ok(Said::Is(document)),
    }
}

/// The policy of a bucket.
pub(super) async fn policy(client: &Client, bucket: &str) -> Result<Said<Bytes>, S3Error> {
    let request = of_bucket(Method::GET, bucket, POLICY);
    match client.send(&request).await {
        Ok(answer) => Ok(Said::Is(answer.whole(S3_ANSWER_BYTES).await?)),
        Err(error) => refused(POLICY, error),
    }
}

/// What is set at the target, which has to say so: it might be replaced.
pub(super) fn there<T>(said: Said<T>) -> Result<Option<T>, MigrateError> {
    match said {
        Said::Is(there) => Ok(Some(there)),
        Said::Unset => Ok(None),
        Said::Unknown => Err(MigrateError::Setting {
            problem: "the target does not say what it has of it, so nothing of it was changed"
                .to_owned(),
        }),
    }
}

impl Migration {
    /// A setting of which the source says nothing. It is one that it does not know, unless it came
    /// from there.
    ///
    /// # Errors
    /// That it came.
    pub(super) fn unsaid(&self, place: &Place, parameter: &str) -> Result<(), MigrateError> {
        let ledger = &place.ledger;
        if ledger
            .has_set(parameter)
            .or_else(|| ledger.may_stand(parameter))
            .is_none()
        {
            return Ok(());
        }
        let problem = "it came from the source, which does not say whether it still has it: the \
                       target keeps it; see that the source answers, and run this again"
            .to_owned();
        Err(MigrateError::Setting { problem })
    }
}
