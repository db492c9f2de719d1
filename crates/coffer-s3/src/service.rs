//! The service itself: s3s between our own first and last steps.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use coffer_vault::{BucketId, SignInFailures, SubjectId, Vault};
use http::{HeaderMap, Method, Request, Response};
use http_body::Body;
use s3s::config::{S3Config, StaticConfigProvider};
use s3s::service::S3ServiceBuilder;
use s3s::{HttpError, S3Error, s3_error};

use self::serving::refused;
use self::turns::{Serving, Turn, Turns};
use crate::around_s3s::finish_response::{self};
use crate::around_s3s::hooks::{AccessCheck, BucketNames, NoSecrets};
use crate::around_s3s::xml_bodies::XmlBodies;
use crate::counters::{S3Counters, Tally};
use crate::forms::fields::is_form;
use crate::http::hosts::Domains;
use crate::limits::DELETE_BODY_MAX_BYTES;
use crate::operations::Operations;
use crate::request::body::BrokenOff;
use crate::request::caller::fault_error;
use crate::request::context::{BodyFault, RequestContext};
use crate::request::memory_budget::MemoryBudget;
use crate::response_body::{InFlight, ResponseBody};
use crate::signature::claimed_key::claimed_access_key;
use crate::signature::signer::LastSigningKey;

mod turns;

mod announcements;

mod pages;

mod renames;

mod throttle;

mod serving;

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

/// Whom a request claims to be of, before its signature is checked.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Claim {
    /// A subject, whichever of its access keys is claimed.
    Of(SubjectId),
    /// What is claimed to be an access key, and is none. It may be any text.
    Unknown(String),
}

/// S3 on a vault. Cheap to clone: all clones are the same service.
#[derive(Clone)]
pub struct S3Service {
    turns: Arc<Turns>,
    door: Arc<Door>,
}

/// What is the same whichever vault is served: one for each connection, which its requests share.
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
    /// Whether what is not answered as it was asked for is answered elsewhere, and noted there.
    is_tentative: bool,
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
        is_tentative: false,
    };
    S3Service {
        turns: Arc::new(Turns::new(turn)),
        door: Arc::new(door),
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

    /// The same service behind another door.
    fn with(&self, door: Door) -> Self {
        Self {
            turns: self.turns.clone(),
            door: Arc::new(door),
        }
    }

    /// The same service, for the connection of a client at this address.
    pub fn for_peer(&self, address: IpAddr) -> Self {
        self.with(Door {
            peer: Some(address),
            last_key: Arc::default(),
            ..Door::clone(&self.door)
        })
    }

    /// The same service, for a connection by this version of TLS, such as `1.3`.
    #[must_use]
    pub fn over_tls(&self, version: Option<&'static str>) -> Self {
        self.with(Door {
            tls_version: version,
            ..Door::clone(&self.door)
        })
    }

    /// The same service for requests that another one answers where this one does not as they were
    /// asked: then nothing of it is counted here.
    #[must_use]
    pub fn tentative(&self) -> Self {
        self.with(Door {
            is_tentative: true,
            ..Door::clone(&self.door)
        })
    }

    /// The same service, for the connection of a proxy that tells with each request whose it is.
    pub fn for_proxy(
        &self,
        told_by: impl Fn(&HeaderMap) -> IpAddr + Send + Sync + 'static,
    ) -> Self {
        self.with(Door {
            told_by: Some(Arc::new(told_by)),
            last_key: Arc::default(),
            ..Door::clone(&self.door)
        })
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

    /// Whom a request claims to be of.
    pub fn claimed<B>(&self, request: &Request<B>) -> Option<Claim> {
        // What a form is signed by stands in its fields, which are read later; of what a page asks
        // ahead no signature is looked at.
        let is_asked_ahead = request.method() == Method::OPTIONS;
        if is_asked_ahead || is_form(request.method(), request.uri(), request.headers()) {
            return None;
        }
        let id = claimed_access_key(request)?;
        let subject = self.turns.current().vault.subject(&id);
        Some(match subject {
            Some(subject) => Claim::Of(subject.id()),
            None => Claim::Unknown(id),
        })
    }

    /// The bucket that a request names, if the vault that is served has it.
    pub fn bucket_named<B>(&self, request: &Request<B>) -> Option<BucketId> {
        let domains = &self.door.domains;
        let (bucket, _) = domains.bucket_and_object(request.uri(), request.headers());
        self.turns.current().vault.bucket_id(&bucket)
    }

    /// The answer for a request that finds no turn to be served: S3's clients try again on it.
    pub fn slow_down(&self) -> Response<ResponseBody> {
        self.answer(s3_error!(
            SlowDown,
            "The server has as many requests under way as it may. Please try again."
        ))
    }

    /// The answer for a request that can't be served now, with a sentence why.
    pub fn unavailable(&self, why: &str) -> Response<ResponseBody> {
        self.answer(s3_error!(ServiceUnavailable, "{why}"))
    }

    /// The answer for a request whose body broke off before it came here.
    pub fn broken_off(&self, is_too_slow: bool) -> Response<ResponseBody> {
        let fault = if is_too_slow {
            BodyFault::TooSlow
        } else {
            BodyFault::Disconnected
        };
        self.answer(fault_error(fault))
    }

    fn answer(&self, refusal: S3Error) -> Response<ResponseBody> {
        let context = RequestContext::new(&self.door.answers);
        let mut response = refused(refusal).unwrap_or_default();
        let code = finish_response::complete(&mut response, &context);
        self.door.note(&response, &context, code.as_deref(), false);
        response.map(|body| ResponseBody::new(body, InFlight::new(self.door.tally.clone())))
    }
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
