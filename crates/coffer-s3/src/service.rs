//! The service itself: s3s between our own first and last steps.

use std::net::IpAddr;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::{SignInFailures, Vault};
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use s3s::{HttpError, HttpResponse, S3Error, S3Result, s3_error};

use self::renames::is_rename;
use self::turns::{Turn, Turns};
use crate::around_s3s::finish_response::{self, BeforeEnd, ERROR_END};
use crate::around_s3s::header_compat;
use crate::around_s3s::hooks::{AccessCheck, BucketNames, NoSecrets};
use crate::around_s3s::xml_bodies::XmlBodies;
use crate::cors::answers;
use crate::counters::{S3Counters, Tally};
use crate::errors::details;
use crate::forms::fields::is_form;
use crate::http::hosts::Domains;
use crate::limits::DELETE_BODY_MAX_BYTES;
use crate::operations::Operations;
use crate::request::answer_room;
use crate::request::body::{BodyCheck, BrokenOff, RequestBody};
use crate::request::caller::fault_error;
use crate::request::context::{Client, RequestContext};
use crate::request::drain::{discard, waits_to_send};
use crate::request::memory_budget::MemoryBudget;
use crate::request::signed::Signed;
use crate::response_body::{InFlight, ResponseBody};
use crate::signature::authenticate::authenticate;
use crate::signature::claimed_key::{ClaimedKey, claimed_access_key, failure};
use crate::signature::payload::{Payload, unsigned_payload};
use crate::signature::requirements;
use crate::signature::signer::LastSigningKey;
use crate::transfers::announce::is_announcement;

mod announcements;

mod pages;

mod renames;

mod throttle;

mod turns;

/// How to serve S3.
#[derive(Clone, Debug, Default)]
pub struct S3Options {
    /// Domain names, without ports, below which a host names a bucket (virtual-host style). Path
    /// style works beside it, under these and all other names.
    pub domains: Vec<String>,
    /// Wrong signatures by one access key from one address within a minute, after which its
    /// requests from there are not looked at for as long; none says the vault's own number.
    pub sign_in_failures: Option<u32>,
}

/// S3 on a vault. Cheap to clone: all clones are the same service.
#[derive(Clone)]
pub struct S3Service {
    turns: Arc<Turns>,
    door: Door,
}

/// What is the same whichever vault is served.
#[derive(Clone)]
struct Door {
    domains: Domains,
    xml_bodies: Arc<XmlBodies>,
    tally: Arc<Tally>,
    failures: Arc<SignInFailures>,
    /// Of the connection.
    last_key: Arc<LastSigningKey>,
    /// For the answers of all connections.
    answers: MemoryBudget,
    /// Who is at the other end of the connection, where that is known: for the audit log.
    peer: Option<IpAddr>,
    /// The version of TLS, where that is known.
    tls_version: Option<&'static str>,
    /// Tells by a request's headers who that is, where a proxy says it.
    told_by: Option<Arc<ToldBy>>,
}

/// The service for one request: the vault that it is about, to its end.
struct Serving {
    at: Arc<Turn>,
    door: Door,
}

impl Deref for Serving {
    type Target = Door;

    fn deref(&self) -> &Door {
        &self.door
    }
}

type ToldBy = dyn Fn(&HeaderMap) -> IpAddr + Send + Sync;

/// Makes the S3 service of a vault.
pub fn service(vault: Vault, options: S3Options) -> S3Service {
    let budget = MemoryBudget::bodies();
    let domains = Domains::new(&options.domains);
    let xml_bodies = XmlBodies {
        budget: budget.clone(),
        domains: domains.clone(),
    };
    let turn = Turn {
        s3s: builder(&vault, budget, domains.clone()).build(),
        vault,
        lease: Arc::default(),
    };
    let door = Door {
        domains,
        xml_bodies: Arc::new(xml_bodies),
        tally: Arc::default(),
        failures: Arc::new(match options.sign_in_failures {
            Some(most) => SignInFailures::new(most),
            None => SignInFailures::default(),
        }),
        last_key: Arc::default(),
        answers: MemoryBudget::answers(),
        peer: None,
        tls_version: None,
        told_by: None,
    };
    S3Service {
        turns: Arc::new(Turns::new(turn)),
        door,
    }
}

fn builder(vault: &Vault, budget: MemoryBudget, domains: Domains) -> S3ServiceBuilder {
    let mut config = S3Config::default();
    // Each operation's own limit comes first; this is a second lock.
    config.xml_max_body_size = DELETE_BODY_MAX_BYTES;
    // Forms are answered before s3s sees them; this is a second lock.
    config.post_object_max_file_size = 0;
    config.form_max_fields_size = 0;

    let mut builder = S3ServiceBuilder::new(Operations {
        vault: vault.clone(),
    });
    builder.set_config(Arc::new(StaticConfigProvider::new(Arc::new(config))));
    builder.set_auth(NoSecrets);
    builder.set_access(AccessCheck {
        vault: vault.clone(),
        budget,
    });
    builder.set_host(domains);
    builder.set_validation(BucketNames);
    builder
}

impl S3Service {
    /// Serves another vault from now on, whose lease is held for as long as something of it is
    /// under way. What is under way in the one before goes on in that.
    pub fn turn_to(&self, vault: Vault, lease: Arc<()>) {
        let (budget, domains) = (
            self.door.xml_bodies.budget.clone(),
            self.door.domains.clone(),
        );
        let s3s = builder(&vault, budget, domains).build();
        self.turns.turn(Turn { s3s, vault, lease });
    }

    fn now(&self) -> Serving {
        Serving {
            at: self.turns.current(),
            door: self.door.clone(),
        }
    }

    /// The same service, for the connection of a client at this address.
    pub fn for_peer(&self, address: IpAddr) -> Self {
        let door = Door {
            peer: Some(address),
            last_key: Arc::default(),
            ..self.door.clone()
        };
        Self {
            door,
            turns: self.turns.clone(),
        }
    }

    /// The same service, for a connection by this version of TLS, such as `1.3`.
    #[must_use]
    pub fn over_tls(self, version: Option<&'static str>) -> Self {
        let door = Door {
            tls_version: version,
            ..self.door
        };
        Self { door, ..self }
    }

    /// The same service, for the connection of a proxy that tells with each request whose it is.
    pub fn for_proxy(
        &self,
        told_by: impl Fn(&HeaderMap) -> IpAddr + Send + Sync + 'static,
    ) -> Self {
        let door = Door {
            told_by: Some(Arc::new(told_by)),
            last_key: Arc::default(),
            ..self.door.clone()
        };
        Self {
            door,
            turns: self.turns.clone(),
        }
    }

    /// What has been counted since the service was made.
    pub fn counters(&self) -> S3Counters {
        self.door.tally.snapshot()
    }

    /// Answers one request.
    ///
    /// # Errors
    /// When no answer could be written at all; the connection is to be ended then.
    pub async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, HttpError>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        self.now().handle(request).await
    }

    /// Whom a request claims to be of: a subject by its id, whichever of its access keys is
    /// claimed, or what is claimed where no access key is that. It may be any text.
    pub fn claimed<B>(&self, request: &Request<B>) -> Option<String> {
        // What a form is signed by stands in its fields, which are read later.
        if is_form(request.method(), request.uri(), request.headers()) {
            return None;
        }
        let id = claimed_access_key(request)?;
        let subject = self.turns.current().vault.subject(&id);
        Some(subject.map_or(id, |subject| subject.id().to_string()))
    }

    /// The answer for a request that finds no turn to be served: S3's clients try again on it.
    pub fn slow_down(&self) -> Response<ResponseBody> {
        let context = RequestContext::new(&self.door.answers);
        let refusal = s3_error!(
            SlowDown,
            "The server has as many requests under way as it may. Please try again."
        );
        let mut response = refused(refusal).unwrap_or_default();
        let code = finish_response::complete(&mut response, &context);
        self.door.note(&response, &context, code.as_deref(), false);
        response.map(|body| ResponseBody::new(body, InFlight::new(self.door.tally.clone())))
    }
}

impl Serving {
    /// Refuses what changes something, where nothing may be changed.
    fn refuse_changes(&self, method: &Method) -> S3Result {
        match *method {
            Method::GET | Method::HEAD | Method::OPTIONS => Ok(()),
            _ => self
                .at
                .vault
                .check_changes()
                .map_err(crate::errors::from_vault),
        }
    }

    async fn handle<B>(&self, request: Request<B>) -> Result<Response<ResponseBody>, HttpError>
    where
        B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
    {
        let context = Arc::new(RequestContext::new(&self.answers));
        let in_flight = InFlight::new(self.tally.clone()).holding(self.at.lease.clone());
        let (parts, body) = request.into_parts();
        let claim = ClaimedKey::of(&parts);
        let peer = match &self.told_by {
            Some(told_by) => Some(told_by(&parts.headers)),
            None => self.peer,
        };
        context.set_client(Client {
            address: peer,
            tls_version: self.tls_version,
        });
        let waits = waits_to_send(&parts.headers);
        // hyper asks for no body that is empty, and botocore takes the answer to its next request
        // on a connection for one without an end when it had to do without "100 Continue".
        if waits && body.is_end_stream() {
            context.set_body_withheld();
        }
        let throttled = self.throttled(&claim, peer);
        let is_throttled = throttled.is_err();
        let refused_change = self.refuse_changes(&parts.method);
        let (asked, bucket) = self.asked_by_a_page(&parts);
        let answered = if parts.method == Method::OPTIONS {
            if discard(&parts.headers, body) {
                context.set_body_withheld();
            }
            let rules = self.cors_rules(&bucket);
            answers::asked_ahead(&parts.headers, rules.as_ref()).map(Ok)
        } else if let Err(refusal) = refused_change {
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
        if let Some(asked) = asked
            && let Some(rules) = self.cors_rules(&bucket)
        {
            asked.allow(&rules, response.headers_mut());
        }
        let mut code = finish_response::complete(&mut response, &context);
        if let Err(refusal) = answer_room::hold(&mut response, context.answer()) {
            response = refused(refusal)?;
            code = finish_response::complete(&mut response, &context);
        }
        self.note(&response, &context, code.as_deref(), is_throttled);
        if let Some(code) = code.as_deref()
            && let Some(failure) = failure(code, context.is_signed_in(), claim)
        {
            self.sign_in_failed(claim, failure, peer, context.is_signed_in());
        }
        Ok(response.map(|body| ResponseBody::new(body, in_flight)))
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
        let tally = self.tally.clone();
        let known = throttled.and_then(|()| self.known(&mut head, context));
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
        let check = BodyCheck::new(payload, &head.headers);
        let body = RequestBody::new(body, check, waits, context.clone(), tally);
        let mut body = s3s::Body::http_body(body);
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
                body = read.await?;
            }
        }
        head.extensions.insert(context.clone());
        let response = self.at.s3s.call(Request::from_parts(head, body)).await;
        match (response, context.fault()) {
            // s3s does not say why it could not read a body.
            (Ok(response), Some(fault)) if response.status().is_server_error() => {
                Err(fault_error(fault))
            }
            (response, _) => Ok(response),
        }
    }
}

impl Door {
    /// Counts and logs an answer. Names of objects stand in neither.
    fn note(
        &self,
        response: &HttpResponse,
        context: &RequestContext,
        code: Option<&str>,
        is_throttled: bool,
    ) {
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

fn refused(refusal: S3Error) -> Result<HttpResponse, HttpError> {
    let told = details::xml_of(&refusal);
    let response = refusal.to_http_response();
    let mut response = response.map_err(|error| HttpError::new(Box::new(error)))?;
    if let Some(xml) = told {
        let end = ERROR_END;
        response.extensions_mut().insert(BeforeEnd { end, xml });
    }
    Ok(response)
}

impl<B> hyper::service::Service<Request<B>> for S3Service
where
    B: Body<Data = Bytes, Error: BrokenOff> + Send + Sync + Unpin + 'static,
{
    type Response = Response<ResponseBody>;
    type Error = HttpError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, HttpError>> + Send>>;

    fn call(&self, request: Request<B>) -> Self::Future {
        let this = self.now();
        Box::pin(async move { this.handle(request).await })
    }
}
