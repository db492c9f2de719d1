//! What s3s asks of its user: secrets, access, the bucket of a host, the names of buckets.
//!
//! Nothing here decides about access. A request without a subject is refused because the vault
//! must be told one, unless the vault gives one for those who sign nothing; what asks for things
//! that coffer has not is refused here because only here is the operation known before its body is
//! read.

use std::sync::Arc;

use coffer_vault::{Asked, BucketName, Subject, Vault};
use s3s::access::{S3Access, S3AccessContext};
use s3s::auth::{S3Auth, SecretKey};
use s3s::host::{S3Host, VirtualHost};
use s3s::validation::NameValidation;
use s3s::{S3Error, S3Result, s3_error};

use crate::around_s3s::xml_bodies::CanonicalXml;
use crate::http::hosts::Domains;
use crate::parameters::encryption;
use crate::parameters::expected_owner;
use crate::parameters::not_implemented;
use crate::parameters::transfer::asks_for_sealed;
use crate::request::asked::describe::{Described, describe};
use crate::request::caller::Original;
use crate::request::context::RequestContext;
use crate::request::memory_budget::{MemoryBudget, body_limit};

/// s3s asks for access only where it can check signatures. It never gets to see one.
pub(crate) struct NoSecrets;

#[async_trait::async_trait]
impl S3Auth for NoSecrets {
    async fn get_secret_key(&self, _: &str) -> S3Result<SecretKey> {
        Err(access_denied())
    }
}

/// Notes the operation of each request, and refuses what is not signed or not implemented.
pub(crate) struct AccessCheck {
    pub(crate) vault: Vault,
    /// For bodies that s3s will hold in memory.
    pub(crate) budget: MemoryBudget,
}

/// What is not done for those who sign nothing, whatever they may read and write (S3).
const SIGNED_ALWAYS: [&str; 2] = ["CopyObject", "UploadPartCopy"];

impl AccessCheck {
    /// What a request asks for, where a policy is to be asked, or may be by the time at which what
    /// it changes is committed.
    fn asked(
        &self,
        operation: &str,
        cx: &mut S3AccessContext<'_>,
        context: &Arc<RequestContext>,
        subject: Option<&Subject>,
    ) -> Option<Asked> {
        let bucket = cx.s3_path().get_bucket_name().unwrap_or_default();
        // What only reads is judged by what there is now, which for nearly all is nothing.
        let asks = match subject {
            _ if !cx.method().is_safe() => None,
            Some(subject) => {
                let asks = self.vault.asks_of(subject, bucket)?;
                // A sealed transfer is judged again for as long as it lasts.
                (!asks_for_sealed(cx.headers())).then_some(asks)
            }
            None if self.vault.may_be_public(bucket) => None,
            None => return None,
        };
        let original = cx.extensions_mut().get::<Original>().cloned();
        let xml = cx.extensions_mut().get::<Arc<CanonicalXml>>().cloned();
        describe(&Described {
            operation,
            bucket: cx.s3_path().get_bucket_name().unwrap_or_default(),
            object: cx.s3_path().get_object_key(),
            query: cx.uri().query().unwrap_or(""),
            headers: original
                .as_ref()
                .map_or(cx.headers(), |original| &original.0),
            around_form: None,
            xml: xml.as_ref().map_or(&[], |xml| &xml.text),
            tags: None,
            lock_now_ms: &|| self.vault.lock_now_ms(),
            asks: asks.as_ref(),
            context,
        })
    }
}

#[async_trait::async_trait]
impl S3Access for AccessCheck {
    async fn check(&self, cx: &mut S3AccessContext<'_>) -> S3Result<()> {
        let operation = cx.s3_op().name().to_owned();
        let context = cx.extensions_mut().get::<Arc<RequestContext>>().cloned();
        if let Some(context) = &context {
            context.set_operation(&operation);
        }
        let is_signed = cx.extensions_mut().get::<Arc<Subject>>().is_some();
        if !is_signed {
            let context = context.as_ref().ok_or_else(access_denied)?;
            if SIGNED_ALWAYS.contains(&operation.as_str()) {
                return Err(s3_error!(
                    AccessDenied,
                    "Access Denied: a request for a copy must be signed"
                ));
            }
            let asked = self.asked(&operation, cx, context, None);
            let anonymous = asked.and_then(|asked| self.vault.anonymous(asked));
            cx.extensions_mut()
                .insert(anonymous.ok_or_else(access_denied)?);
        }
        not_implemented::check_query(&operation, cx.uri().query().unwrap_or(""))?;
        not_implemented::check_headers(&operation, cx.headers())?;
        if let Some(xml) = cx.extensions_mut().get::<Arc<CanonicalXml>>() {
            not_implemented::check_document(&operation, &xml.text)?;
        }
        encryption::check_headers(&operation, cx.headers())?;
        expected_owner::check(cx.headers(), self.vault.account_id().as_str())?;
        if let Some(context) = context.as_ref().filter(|_| is_signed) {
            let subject = cx.extensions_mut().get::<Arc<Subject>>().cloned();
            let asked = self.asked(&operation, cx, context, subject.as_deref());
            if let Some(asked) = asked
                && let Some(subject) = cx.extensions_mut().get_mut::<Arc<Subject>>()
            {
                *subject = Arc::new(subject.asking(asked));
            }
        }
        if let (Some(context), Some(limit_bytes)) = (context, body_limit(&operation)) {
            context.set_reservation(self.budget.reservation(limit_bytes));
        }
        Ok(())
    }
}

fn access_denied() -> S3Error {
    s3_error!(AccessDenied, "Access Denied")
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
        BucketName::is_one(name)
    }
}
