//! One request, from its head to the end of its answer.

use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::VaultError;
use http::request::Parts;
use http::{Method, Request, Response, StatusCode};
use http_body::Body;
use s3s::{HttpError, HttpResponse, S3Error, S3Result, s3_error};

use super::Door;
use super::renames::is_rename;
use super::turns::Serving;
use crate::around_s3s::finish_response::{self, BeforeEnd, ERROR_END};
use crate::around_s3s::header_compat;
use crate::cors::answers;
use crate::errors::{details, from_vault};
use crate::forms::fields::is_form;
use crate::http::percent::is_encoded;
use crate::request::answer_room;
use crate::request::body::{BodyCheck, BrokenOff, RequestBody};
use crate::request::caller::fault_error;
use crate::request::context::{Client, RequestContext};
use crate::request::drain::{discard, waits_to_send};
use crate::request::echo::Echo;
use crate::request::head_size;
use crate::request::signed::Signed;
use crate::response_body::{InFlight, ResponseBody};
use crate::signature::authenticate::authenticate;
use crate::signature::claimed_key::{ClaimedKey, failure};
use crate::signature::connection_headers::ConnectionHeaders;
use crate::signature::payload::{Payload, unsigned_payload};
use crate::signature::requirements;
use crate::transfers::announce::is_announcement;

/// Codes of refusals that follow from acts: of buckets that were made or taken away, and of rights.
const TELLS_OF_ACTS: [&str; 5] = [
    "AccessDenied",
    "BucketAlreadyExists",
    "BucketAlreadyOwnedByYou",
    NO_ACCESS_KEY,
    "NoSuchBucket",
];

const NO_ACCESS_KEY: &str = "InvalidAccessKeyId";

impl Serving {
    /// Refuses a head that is too long; an address that is not percent-encoded, and could mean the
    /// same as another that is; what changes something, where nothing may be changed; of a
    /// gateway that does not serve, all.
    fn refuse_at_once(&self, head: &Parts) -> S3Result {
        head_size::check(head)?;
        if !is_encoded(head.uri.path()) {
            return Err(s3_error!(InvalidURI, "Couldn't parse the specified URI."));
        }
        match head.method {
            Method::GET | Method::HEAD | Method::OPTIONS => self.at.vault.check_serves(),
            _ => self.at.vault.check_changes(),
        }
        .map_err(from_vault)
    }

    pub(super) async fn handle<B>(
        &self,
        request: Request<B>,
    ) -> Result<Response<ResponseBody>, HttpError>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        let context = Arc::new(RequestContext::new(&self.answers));
        let in_flight = InFlight::new(self.tally.clone()).holding(self.at.lease.clone());
        let (parts, body) = request.into_parts();
        let claim = ClaimedKey::of(&parts);
        let told_by = self.told_by.as_ref();
        let peer = told_by.map_or(self.peer, |told_by| Some(told_by(&parts.headers)));
        context.set_client(Client {
            address: peer,
            tls_version: self.tls_version,
        });
        context.set_echo(Echo::of(&parts, &self.domains));
        let waits = waits_to_send(&parts.headers);
        // hyper asks for no body that is empty, and botocore takes the answer to its next request
        // on a connection for one without an end when it had to do without "100 Continue".
        if waits && body.is_end_stream() {
            context.set_body_withheld();
        }
        let throttled = self.throttled(&claim, peer);
        let is_throttled = throttled.is_err();
        let refused_at_once = self.refuse_at_once(&parts);
        let (asked, bucket) = self.asked_by_a_page(&parts);
        let answered = if parts.method == Method::OPTIONS && refused_at_once.is_ok() {
            if discard(&parts.headers, body) {
                context.set_body_withheld();
            }
            let rules = self.cors_rules(&bucket);
            let settled = self.at.vault.settle_acts().await.map_err(from_vault);
            settled.and_then(|()| answers::asked_ahead(&parts.headers, rules.as_ref()).map(Ok))
        } else if let Err(refusal) = refused_at_once {
            if discard(&parts.headers, body) {
                context.set_body_withheld();
            }
            Err(refusal)
        } else if is_form(&parts.method, &parts.uri, &parts.headers) {
            // Apart, so that no other request pays for what a form needs.
            let form = self.answer_form(&parts, body, waits, peer, &context);
            Box::pin(form).await.map(Ok)
        } else {
            self.answer(throttled, parts, body, waits, &context).await
        };
        let claim = context.claim().unwrap_or(&claim);
        let mut response = match answered {
            Ok(answered) => answered?,
            Err(refusal) => refused(refusal)?,
        };
        if let Some(asked) = asked {
            self.tell_page(asked, &bucket, (&context, claim), &mut response)
                .await;
        }
        let code = finish_response::complete(&mut response, &context);
        // It counts whatever is told in its place.
        let failed = code.as_deref();
        let failed = failed.and_then(|code| failure(code, context.is_signed_in(), claim));
        let (response, code) = self.hold(response, code, &context, claim).await?;
        self.note(&response, &context, code.as_deref(), is_throttled);
        if let Some(failure) = failed {
            self.sign_in_failed(claim, failure, peer, context.is_signed_in());
        }
        Ok(response.map(|body| ResponseBody::new(body, in_flight)))
    }

    /// Holds an answer until it may be told and has room; another takes its place where that does
    /// not come. Gives the error's code as well.
    async fn hold(
        &self,
        mut response: HttpResponse,
        mut code: Option<String>,
        context: &RequestContext,
        claim: &ClaimedKey,
    ) -> Result<(HttpResponse, Option<String>), HttpError> {
        if let Err(error) = self.settle(code.as_deref(), context, claim).await {
            response = refused(from_vault(error))?;
            code = finish_response::complete(&mut response, context);
        }
        if let Err(refusal) = answer_room::hold(&mut response, context.answer()) {
            response = refused(refusal)?;
            code = finish_response::complete(&mut response, context);
        }
        Ok((response, code))
    }

    /// Waits before an answer of this code goes out, where it tells which buckets there are, or who
    /// may use them: another gateway could still go on without that. What is told of objects has
    /// waited already. Who only claims an access key waits for nothing, or its holder's requests
    /// would have no room meanwhile.
    async fn settle(
        &self,
        code: Option<&str>,
        context: &RequestContext,
        claim: &ClaimedKey,
    ) -> Result<(), VaultError> {
        let Some(code) = code.filter(|code| TELLS_OF_ACTS.contains(code)) else {
            return Ok(());
        };
        let vault = &self.at.vault;
        let tells = match claim.access_key_id() {
            // That it may not be used is told of one that is there.
            Some(id) if code == NO_ACCESS_KEY => vault.has_access_key(&id),
            Some(_) => context.is_signed_in(),
            None => true,
        };
        if tells {
            vault.settle_acts().await?;
        }
        Ok(())
    }

    /// Checks who signed a request, and notes who did. Gives what is known of its body, and whether
    /// it is let on.
    fn known(&self, head: &mut Parts, context: &RequestContext) -> S3Result<(Payload, bool)> {
        let query = head.uri.query().unwrap_or("");
        let presented = requirements::check(query, &head.headers)?;
        let last_key = &self.last_key;
        let signer = authenticate(&self.at.vault, &self.domains, last_key, head, &presented)?;
        if let Some(signed) = Signed::of(&presented, &head.headers) {
            context.set_signed(signed);
        }
        match signer {
            Some((subject, payload)) => {
                context.set_signed_in();
                head.extensions.insert(subject);
                Ok((payload, true))
            }
            // Refused by the access check, once the operation is known, unless it may be public.
            None => {
                let (bucket, _) = self.domains.bucket_and_object(&head.uri, &head.headers);
                let may_be_public = self.at.vault.may_be_public(&bucket);
                let payload = unsigned_payload(may_be_public, &head.headers)?;
                Ok((payload, may_be_public))
            }
        }
    }

    fn is_to_bucket(&self, head: &Parts) -> bool {
        let (bucket, object) = self.domains.bucket_and_object(&head.uri, &head.headers);
        !bucket.is_empty() && object.is_empty()
    }

    /// Checks who signed a request, and has it done.
    async fn answer<B>(
        &self,
        throttled: S3Result,
        mut head: Parts,
        body: B,
        waits: bool,
        context: &Arc<RequestContext>,
    ) -> S3Result<Result<HttpResponse, HttpError>>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        let known = throttled.and_then(|()| {
            ConnectionHeaders::restored(&mut head, |head| self.known(head, context))
        });
        let (payload, is_let_on) = match known {
            Ok(known) => known,
            Err(refusal) => {
                if discard(&head.headers, body) {
                    context.set_body_withheld();
                }
                return Err(refusal);
            }
        };
        if is_announcement(&head.method, &head.uri) {
            // Apart, so that no other request pays for it.
            return Box::pin(self.answer_announcement(&head, body, context))
                .await
                .map(Ok);
        }
        let is_chunked = matches!(payload, Payload::Chunks(_));
        // No operation that only reads looks at a body.
        let mut body = if head.method.is_safe() && body.is_end_stream() {
            s3s::Body::empty()
        } else {
            let check = BodyCheck::new(payload, &head.headers);
            let tally = self.tally.clone();
            let body = RequestBody::new(body, check, waits, context.clone(), tally);
            s3s::Body::http_body(body)
        };
        if is_let_on {
            header_compat::adapt(&mut head, is_chunked)?;
            if is_rename(&head.method, &head.uri) {
                // Apart, so that no other request pays for it.
                let renamed = Box::pin(self.answer_rename(&head, &mut body, context));
                return renamed.await.map(Ok);
            }
            if let Some(limit_bytes) = self
                .xml_bodies
                .limit(&head.method, &head.uri, &head.headers)
            {
                let read = self.xml_bodies.read(limit_bytes, body, &mut head, context);
                body = Box::pin(read).await?;
            }
        }
        head.extensions.insert(context.clone());
        // A POST says in its query what it is to do.
        let is_subresource = head.method == Method::POST && !query_is_empty(&head);
        let is_no_form = head.method == Method::POST && self.is_to_bucket(&head);
        let response = self.at.s3s.call(Request::from_parts(head, body)).await;
        match (response, context.fault()) {
            // s3s does not say why it could not read a body.
            (Ok(response), Some(fault)) if response.status().is_server_error() => {
                Err(fault_error(fault))
            }
            (Ok(response), _) if !is_subresource && is_no_operation(&response, context) => {
                Err(not_allowed(is_no_form))
            }
            (response, _) => Ok(response),
        }
    }
}

impl Door {
    /// Counts and logs an answer. Names of objects stand in neither.
    pub(super) fn note(
        &self,
        response: &HttpResponse,
        context: &RequestContext,
        code: Option<&str>,
        is_throttled: bool,
    ) {
        let is_as_asked =
            response.status().is_success() || response.status() == StatusCode::NOT_MODIFIED;
        if self.is_tentative && !is_as_asked {
            return;
        }
        let status = response.status().as_u16();
        let elapsed = context.elapsed();
        self.tally.answered(context.operation(), status, elapsed);
        macro_rules! line {
            ($level:ident) => {
                tracing::$level!(
                    target: "coffer::s3",
                    request_id = context.request_id(),
                    operation = context.operation_name(),
                    status,
                    code = code.unwrap_or(""),
                    elapsed_us = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX),
                    "answered"
                )
            };
        }
        match status {
            // One that is throttled was told of when that began.
            500 | 503 | 507 if !is_throttled => line!(warn),
            _ => line!(debug),
        }
    }
}

fn query_is_empty(head: &Parts) -> bool {
    head.uri.query().is_none_or(str::is_empty)
}

/// The refusal of what is no operation: a POST to a bucket is to be a form.
fn not_allowed(is_no_form: bool) -> S3Error {
    if !is_no_form {
        return s3_error!(
            MethodNotAllowed,
            "The specified method is not allowed against this resource."
        );
    }
    let error = s3_error!(
        PreconditionFailed,
        "At least one of the pre-conditions you specified did not hold."
    );
    let condition = "Bucket POST must be of the enclosure-type multipart/form-data";
    details::with(error, vec![("Condition", condition.to_owned())])
}

/// Whether s3s has answered that there is no such operation: it asks for the access of all others.
fn is_no_operation(response: &HttpResponse, context: &RequestContext) -> bool {
    response.status() == StatusCode::NOT_IMPLEMENTED && !context.has_operation()
}

pub(super) fn refused(refusal: S3Error) -> Result<HttpResponse, HttpError> {
    let told = details::xml_of(&refusal);
    let response = refusal.to_http_response();
    let mut response = response.map_err(|error| HttpError::new(Box::new(error)))?;
    if let Some(xml) = told {
        let end = ERROR_END;
        response.extensions_mut().insert(BeforeEnd { end, xml });
    }
    Ok(response)
}
