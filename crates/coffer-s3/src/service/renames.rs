//! Renaming of objects: `PUT /BUCKET/KEY?renameObject`.

use std::sync::Arc;

use coffer_vault::{Subject, Vault};
use http::request::Parts;
use http::{HeaderMap, Method, Uri};
use s3s::{Body, HttpResponse, S3Result, s3_error};

use super::turns::Serving;
use crate::http::percent::form_pairs;
use crate::operations::objects::rename::rename_object;
use crate::parameters::{acl, encryption, expected_owner, lock, not_implemented};
use crate::request::asked::describe::{Described, describe};
use crate::request::caller::{Caller, Original, fault_error};
use crate::request::context::RequestContext;

const OPERATION: &str = "RenameObject";

/// What the query of a rename has.
const RENAME: &str = "renameObject";

/// Whether a request is to rename an object.
pub(super) fn is_rename(method: &Method, uri: &Uri) -> bool {
    *method == Method::PUT
        && uri.query().is_some_and(|query| {
            let pairs = form_pairs(query).unwrap_or_default();
            pairs.iter().any(|(name, _)| name == RENAME)
        })
}

impl Serving {
    /// Renames an object, for who has signed in, or sends no signature to a bucket that may be
    /// public: who doesn't sign renames nothing.
    pub(super) async fn answer_rename(
        &self,
        head: &Parts,
        body: &mut Body,
        context: &Arc<RequestContext>,
    ) -> S3Result<HttpResponse> {
        context.set_operation(OPERATION);
        let subject = head.extensions.get::<Arc<Subject>>();
        let subject = subject.ok_or_else(|| s3_error!(AccessDenied, "Access Denied"))?;
        let named = self.domains.bucket_and_object(&head.uri, &head.headers);
        if named.0.is_empty() || named.1.is_empty() {
            return Err(s3_error!(
                MethodNotAllowed,
                "An object is renamed at the address of its new name"
            ));
        }
        // Read to its end, at which it is compared with what was signed.
        if body.store_all_limited(0).await.is_err() {
            let has_body = s3_error!(InvalidRequest, "RenameObject has no body");
            return Err(context.fault().map_or(has_body, fault_error));
        }
        let original = head.extensions.get::<Original>();
        let headers = original.map_or(&head.headers, |original| &original.0);
        not_implemented::check_query(OPERATION, head.uri.query().unwrap_or(""))?;
        not_implemented::check_headers(OPERATION, headers)?;
        encryption::check_headers(OPERATION, headers)?;
        acl::refuse_grants_to_others(headers)?;
        refuse_locks(headers)?;
        expected_owner::check(headers, self.at.vault.account_id().as_str())?;
        let caller = Caller {
            subject: asking(&self.at.vault, subject, headers, (head, &named), context),
            context: context.clone(),
        };
        rename_object(&self.at.vault, &caller, headers, named).await?;
        Ok(HttpResponse::new(Body::empty()))
    }
}

/// Refuses locks, as a PUT does where a bucket has none: where something can be locked, nothing is
/// renamed.
fn refuse_locks(headers: &HeaderMap) -> S3Result {
    let asked = lock::asked(headers)?;
    if asked.retention.is_none() && asked.hold != Some(true) {
        return Ok(());
    }
    Err(s3_error!(
        InvalidRequest,
        "Bucket is missing Object Lock Configuration"
    ))
}

/// The subject as it asks for a rename: a policy may come before that is committed.
fn asking(
    vault: &Vault,
    subject: &Arc<Subject>,
    headers: &HeaderMap,
    (head, (bucket, key)): (&Parts, &(String, String)),
    context: &Arc<RequestContext>,
) -> Arc<Subject> {
    let asked = describe(&Described {
        operation: OPERATION,
        bucket,
        object: Some(key),
        query: head.uri.query().unwrap_or(""),
        headers,
        around_form: None,
        xml: &[],
        tags: None,
        lock_now_ms: &|| vault.lock_now_ms(),
        asks: None,
        context,
    });
    match asked {
        Some(asked) => Arc::new(subject.asking(asked)),
        None => subject.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renames_are_told_from_other_puts() {
        let is = |method, uri: &str| is_rename(&method, &uri.parse().unwrap());
        assert!(is(Method::PUT, "/b/k?renameObject"));
        assert!(is(Method::PUT, "/b/k?x-id=RenameObject&renameObject="));
        assert!(is(Method::PUT, "/b/k?%72enameObject"));
        assert!(!is(Method::PUT, "/b/k?prefix=renameObject"));
        assert!(!is(Method::PUT, "/b/renameObject"));
        assert!(!is(Method::GET, "/b/k?renameObject"));
    }
}
