//! Who signed: secrets for s3s to check signatures with, and the subject for the vault.
//!
//! Nothing here decides about access. A request without a subject is refused because the vault
//! must be told one; what asks for things that coffer has not is refused here because only here
//! is the operation known before its body is read.

use std::sync::Arc;

use coffer_vault::{BucketName, Subject, Vault};
use http::HeaderMap;
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::validation::NameValidation;
use s3s::{S3Error, S3Result, s3_error};

use crate::http::hosts::Domains;
use crate::parameters::encryption;
use crate::parameters::not_implemented;
use crate::request::body_budget::{BodyBudget, body_limit};
use crate::request::context::RequestContext;

/// Operations whose XML bodies are compared with the digests that come with them.
const XML_BODIES: [&str; 6] = [
    "CompleteMultipartUpload",
    "CreateBucket",
    "DeleteObjects",
    "PutBucketEncryption",
    "PutBucketTagging",
    "PutObjectTagging",
];

/// Secrets from the vault.
pub(crate) struct Secrets(pub(crate) Vault);

#[async_trait::async_trait]
impl S3Auth for Secrets {
    async fn get_secret_key(&self, access_key: &str) -> S3Result<SecretKey> {
        match self.0.secret_access_key(access_key) {
            Some(secret) => Ok(SecretKey::from(secret.as_str())),
            None => Err(unknown_access_key()),
        }
    }
}

fn unknown_access_key() -> S3Error {
    s3_error!(
        InvalidAccessKeyId,
        "The AWS Access Key Id you provided does not exist in our records."
    )
}

/// Finds the subject behind an access key whose signature was right.
pub(crate) fn subject(vault: &Vault, access_key: Option<&str>) -> S3Result<Arc<Subject>> {
    let Some(access_key) = access_key else {
        return Err(s3_error!(AccessDenied, "Access Denied"));
    };
    vault.subject(access_key).ok_or_else(unknown_access_key)
}

/// Notes subject and operation of each request.
pub(crate) struct AccessCheck {
    pub(crate) vault: Vault,
    /// For bodies that s3s will hold in memory.
    pub(crate) budget: BodyBudget,
}

#[async_trait::async_trait]
impl S3Access for AccessCheck {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let operation = cx.s3_op().name().to_owned();
        let context = cx.extensions_mut().get::<Arc<RequestContext>>().cloned();
        if let Some(context) = &context {
            context.set_operation(&operation);
        }
        // Noted already when the request comes here a second time, without its signature.
        if cx.extensions_mut().get::<Arc<Subject>>().is_none() {
            let access_key = cx
                .credentials()
                .map(|credentials| credentials.access_key.as_str());
            let subject = subject(&self.vault, access_key)?;
            cx.extensions_mut().insert(subject);
            if let Some(context) = &context {
                context.set_signed_in();
            }
        }
        not_implemented::check_query(&operation, cx.uri().query().unwrap_or(""))?;
        not_implemented::check_headers(cx.headers())?;
        encryption::check_headers(cx.headers())?;
        let Some(context) = context else {
            return Ok(());
        };
        if let Some(limit_bytes) = body_limit(&operation) {
            context.set_reservation(self.budget.reservation(limit_bytes));
        }
        if XML_BODIES.contains(&operation.as_str())
            && (operation == "CreateBucket" || has_digests(cx.headers()))
        {
            context.keep_body();
        }
        Ok(())
    }
}

fn has_digests(headers: &HeaderMap) -> bool {
    let is_digest = |name: &str| name == "content-md5" || name.starts_with("x-amz-checksum-");
    headers.keys().any(|name| is_digest(name.as_str()))
}

// s3s's own parser takes any host that is none of its domains for a bucket, and compares ports.
impl S3Host for Domains {
    fn parse_host_header<'a>(&'a self, host: &'a str) -> S3Result<VirtualHost<'a>> {
        let style = VirtualHost::new(host);
        Ok(match self.bucket(host) {
            Some(bucket) => style.with_bucket(bucket),
            None => style,
        })
    }
}

/// What s3s takes for a bucket's name.
pub(crate) struct BucketNames;

impl NameValidation for BucketNames {
    fn validate_bucket_name(&self, name: &str) -> bool {
        BucketName::new(name).is_some()
    }
}
