//! Announcements of uploads that will be sent sealed.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::Subject;
use http::request::Parts;
use http_body::Body;
use s3s::{HttpResponse, S3Result, s3_error};

use super::turns::Serving;
use crate::request::body::BrokenOff;
use crate::request::caller::Caller;
use crate::request::context::RequestContext;
use crate::request::drain::discard;
use crate::transfers::announce::announce;

impl Serving {
    /// Answers an announcement whose signature is right.
    pub(super) async fn answer_announcement<B>(
        &self,
        head: &Parts,
        body: B,
        context: &Arc<RequestContext>,
    ) -> S3Result<HttpResponse>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        if !body.is_end_stream() {
            if discard(&head.headers, body) {
                context.set_body_withheld();
            }
            return Err(s3_error!(InvalidRequest, "An announcement has no body"));
        }
        // Of who signs nothing there is none.
        let subject = head.extensions.get::<Arc<Subject>>();
        let caller = Caller {
            subject: subject
                .ok_or_else(|| s3_error!(AccessDenied, "Access Denied"))?
                .clone(),
            context: context.clone(),
        };
        let named = self.domains.bucket_and_object(&head.uri, &head.headers);
        if named.0.is_empty() || named.1.is_empty() {
            return Err(s3_error!(
                MethodNotAllowed,
                "An upload is announced at the address of an object"
            ));
        }
        announce(&self.at.vault, caller, head, named).await
    }
}
