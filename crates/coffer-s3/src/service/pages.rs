//! Requests of pages in browsers: those of other origins, and forms.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::BucketName;
use futures::TryStreamExt;
use http::Method;
use http::request::Parts;
use http_body::Body;
use http_body_util::BodyDataStream;
use s3s::{HttpResponse, S3Result};

use super::turns::Serving;
use crate::cors::answers::CrossOrigin;
use crate::cors::rules::Rules;
use crate::forms::fields::{Form, check_query};
use crate::forms::signed;
use crate::forms::upload::{Target, upload};
use crate::request::body::{BodyCheck, BrokenOff, RequestBody};
use crate::request::caller::fault_error;
use crate::request::context::RequestContext;
use crate::signature::claimed_key::ClaimedKey;
use crate::signature::payload::Payload;

impl Serving {
    /// The cross-origin request that this is, if it is one, and the bucket that it names.
    pub(super) fn asked_by_a_page(&self, parts: &Parts) -> (Option<CrossOrigin>, String) {
        let asked = CrossOrigin::of(&parts.method, &parts.headers);
        if asked.is_none() && parts.method != Method::OPTIONS {
            return (None, String::new());
        }
        let named = self.domains.bucket_and_object(&parts.uri, &parts.headers);
        (asked, named.0)
    }

    pub(super) fn cors_rules(&self, bucket: &str) -> Option<Rules> {
        let document = self
            .at
            .vault
            .cors_configuration(&BucketName::new(bucket)?)?;
        serde_json::from_str(&document).ok()
    }

    /// Adds to an answer what a page may do with it: nothing by rules that another gateway could go
    /// on without. Who only claims an access key does not wait for them, as elsewhere, nor does
    /// what is refused ahead, which has waited.
    pub(super) async fn tell_page(
        &self,
        asked: CrossOrigin,
        bucket: &str,
        (context, claim): (&RequestContext, &ClaimedKey),
        answer: &mut HttpResponse,
    ) {
        let Some(rules) = self.cors_rules(bucket) else {
            return;
        };
        let (vault, status) = (&self.at.vault, answer.status());
        let may_wait = context.is_signed_in() || claim.access_key_id().is_none();
        let is_settled = if may_wait && !asked.is_refused(status) {
            vault.settle_acts().await.is_ok()
        } else {
            vault.acts_are_settled()
        };
        if is_settled {
            asked.allow(&rules, status, answer.headers_mut());
        }
    }

    /// Stores the file of a form, which names in its fields who signed it.
    pub(super) async fn answer_form<B>(
        &self,
        parts: &Parts,
        body: B,
        waits: bool,
        peer: Option<std::net::IpAddr>,
        context: &Arc<RequestContext>,
    ) -> S3Result<HttpResponse>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        context.set_operation("PostObject");
        let (bucket, object) = self.domains.bucket_and_object(&parts.uri, &parts.headers);
        if bucket.is_empty() || !object.is_empty() {
            return Err(s3s::s3_error!(
                MethodNotAllowed,
                "A form is sent to the address of a bucket"
            ));
        }
        let check = BodyCheck::new(Payload::Unsigned, &parts.headers);
        let body = RequestBody::new(body, check, waits, context.clone(), self.tally.clone());
        check_query(&parts.uri)?;
        let body = BodyDataStream::new(body).map_err(Into::into);
        let told = |refusal| context.fault().map_or(refusal, fault_error);
        let form = Form::read(&parts.headers, body).await.map_err(told)?;
        let claim = ClaimedKey::Form(signed::claimed(&form.fields).map(str::to_owned));
        self.throttled(&claim, peer)?;
        context.set_claim(claim);
        let signer = signed::subject(&self.at.vault, &form.fields)?;
        if signer.is_some() {
            context.set_signed_in();
            context.set_signed(signed::as_signed(&form.fields));
        }
        let target = Target {
            bucket: &bucket,
            is_in_host: parts.uri.path().trim_matches('/').is_empty(),
            headers: &parts.headers,
        };
        upload(&self.at.vault, (signer, context), form, &target)
            .await
            .map_err(told)
    }
}
