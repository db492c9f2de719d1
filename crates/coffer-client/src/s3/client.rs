//! Requests sent and answered: signed, over connections that are kept, again where that may help.

mod known;

use std::error::Error as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use http::header::{CONTENT_LENGTH, HOST};
use http::{HeaderMap, Method};
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;
use time::OffsetDateTime;
use tokio::time::{sleep, timeout};

use crate::error::{ClientError, ENDPOINT_BY};
use crate::https::AUTHORITY_BY;
use crate::limits::{S3_ANSWER_BYTES, S3_ANSWER_WAIT, S3_IDLE, S3_RETRIES, S3_STANDSTILL};
use crate::profiles::{Credentials, Settings};
use crate::s3::body::{Answer, Progress, Slices, told};
use crate::s3::endpoint::{Endpoint, Reached};
use crate::s3::error::{PAGE, S3Error, is_for_https, is_login};
use crate::s3::request::{Request, unsendable};
use crate::s3::retry::pause;
use crate::s3::wire::Connector;
use crate::s3::xml::Element;
use crate::signing::{Scope, Signer, UNSIGNED_PAYLOAD, sha256_hex};

/// Is told before a request is sent again: why, and after how long.
pub type Retrying = Arc<dyn Fn(&S3Error, Duration) + Send + Sync>;

/// How a client behaves.
#[derive(Clone)]
pub struct ClientOptions {
    /// How often a request is sent again.
    pub retries: u32,
    /// Who is told of that.
    pub retrying: Option<Retrying>,
    /// The option that names the service's authority.
    pub authority_by: &'static str,
    /// Whether it is the source of a migration, which other options name.
    pub is_source: bool,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            retries: S3_RETRIES,
            retrying: None,
            authority_by: AUTHORITY_BY,
            is_source: false,
        }
    }
}

/// An S3 service, and the access key to use it with. Its connections are kept for other requests.
pub struct Client {
    pool: Pool<Connector, Slices>,
    endpoint: Endpoint,
    endpoint_text: Arc<str>,
    credentials: Credentials,
    region: String,
    options: ClientOptions,
    tls: Option<Arc<ClientConfig>>,
    /// Whether any answer has come: before, the address may be wrong.
    was_reached: AtomicBool,
    /// Whether any answer shows that the service takes what this access key signs.
    was_accepted: AtomicBool,
    /// Whether it was waited for a server that did not come.
    was_waited_for: AtomicBool,
}

impl Client {
    /// Uses the service that was found.
    ///
    /// # Errors
    /// When the address is none, the authority's certificates can't be used, or the access key
    /// can't be sent.
    pub fn new(settings: Settings, options: ClientOptions) -> Result<Self, ClientError> {
        settings.credentials.check()?;
        let endpoint = Endpoint::parse(&settings.endpoint);
        let mut endpoint = endpoint.map_err(|error| error.of_source(options.is_source))?;
        if let Reached::Https(server) = endpoint.reached {
            endpoint.reached = Reached::Https(server.with_authority_by(options.authority_by));
        }
        let connector = Connector::new(&endpoint, settings.ca.as_deref())?;
        let mut pool = Pool::builder(TokioExecutor::new());
        pool.pool_idle_timeout(S3_IDLE)
            .pool_timer(TokioTimer::new())
            .set_host(false);
        Ok(Self {
            tls: connector.tls(),
            pool: pool.build(connector),
            endpoint_text: endpoint.text().into(),
            endpoint,
            credentials: settings.credentials,
            region: settings.region,
            options,
            was_reached: AtomicBool::new(false),
            was_accepted: AtomicBool::new(false),
            was_waited_for: AtomicBool::new(false),
        })
    }

    /// Where it is.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Whom it trusts to be that service, where it speaks TLS.
    pub(crate) fn tls(&self) -> Option<Arc<ClientConfig>> {
        self.tls.clone()
    }

    /// How often a request is sent again.
    pub fn retries(&self) -> u32 {
        self.options.retries
    }

    /// Sends a request, again where that may help, until there is an answer that is a success.
    ///
    /// # Errors
    /// What the last attempt met.
    pub async fn send(&self, request: &Request) -> Result<Answer, S3Error> {
        let mut attempt = 0;
        loop {
            let error = match self.attempt(request).await {
                Ok(answer) => return Ok(answer),
                Err(error) => error,
            };
            attempt += 1;
            self.pause(attempt, error).await?;
        }
    }

    /// Sends a request once, for who counts attempts by itself.
    ///
    /// # Errors
    /// What it met.
    pub(crate) async fn send_once(&self, request: &Request) -> Result<Answer, S3Error> {
        self.attempt(request).await
    }

    /// Waits before the attempt of this number, counted from one.
    ///
    /// # Errors
    /// The error itself, where another attempt would not help, or there were enough.
    pub async fn pause(&self, attempt: u32, error: S3Error) -> Result<(), S3Error> {
        let is_unknown = matches!(error, S3Error::Client(_)) && !self.was_reached.load(Relaxed);
        let retries = if is_unknown {
            self.retries_of_unknown(attempt, &error)
        } else {
            self.options.retries
        };
        if attempt > retries || !error.is_worth_asking_again() {
            return Err(error);
        }
        let wait = pause(attempt, &error);
        if let Some(retrying) = &self.options.retrying {
            retrying(&error, wait);
        }
        sleep(wait).await;
        Ok(())
    }

    /// Sends, and reads the whole answer as XML; an empty one has no elements.
    ///
    /// # Errors
    /// Those of [`send`](Self::send); an error in an answer that began as a success counts as one.
    pub async fn document(&self, request: &Request) -> Result<(Element, HeaderMap), S3Error> {
        let mut attempt = 0;
        loop {
            let error = match self.document_once(request).await {
                Ok(document) => return Ok(document),
                Err(error) => error,
            };
            attempt += 1;
            self.pause(attempt, error).await?;
        }
    }

    pub(super) async fn document_once(
        &self,
        request: &Request,
    ) -> Result<(Element, HeaderMap), S3Error> {
        let read = self.read_document(self.attempt(request).await?).await;
        if let (Err(_), Some(sent)) = (&read, &request.sent) {
            sent(-(request.body.len() as i64));
        }
        read
    }

    pub(super) async fn read_document(
        &self,
        answer: Answer,
    ) -> Result<(Element, HeaderMap), S3Error> {
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = answer.whole(S3_ANSWER_BYTES).await?;
        if body.trim_ascii().is_empty() {
            return Ok((Element::default(), headers));
        }
        let document = Element::parse(&body).map_err(|_| self.unreadable("can't be read"))?;
        if document.name == "Error" {
            let mut error = self.refused(status, &headers, &body);
            if let S3Error::Refused { status, code, .. } = &mut error {
                *status = if matches!(code.as_str(), "InternalError" | "SlowDown") {
                    503
                } else {
                    400
                };
            }
            return Err(error);
        }
        Ok((document, headers))
    }

    pub(crate) fn unreadable(&self, problem: &'static str) -> S3Error {
        S3Error::Unreadable {
            endpoint: self.endpoint_text.to_string(),
            problem,
        }
    }

    /// Sends once.
    async fn attempt(&self, request: &Request) -> Result<Answer, S3Error> {
        let (body, progress) = Slices::new(request.body.clone(), request.sent.clone());
        let signed = self.signed(request, body)?;
        let answered = self.answered(signed, &progress).await;
        let answer = match answered {
            Ok(answer) if answer.status.is_success() => {
                if answer.is_no_page() {
                    self.was_accepted.store(true, Relaxed);
                }
                return Ok(answer);
            }
            failed => failed,
        };
        // These bytes go again, or never were needed.
        if let Some(sent) = &request.sent {
            sent(-(progress.bytes() as i64));
        }
        let answer = answer?;
        let (status, headers) = (answer.status, answer.headers.clone());
        let body = match request.method {
            Method::HEAD => Vec::new(),
            _ => answer
                .whole(S3_ANSWER_BYTES)
                .await
                .unwrap_or_default()
                .into(),
        };
        if !self.endpoint.is_https() && is_for_https(status, &headers, &body) {
            return Err(self.speaks_tls());
        }
        if is_login(status, &headers, &body) {
            return Err(self.unreadable(PAGE));
        }
        Err(self.refused_to(request, (status, &headers, &body)))
    }

    /// Waits for the head of the answer, as long as something moves.
    async fn answered(
        &self,
        request: http::Request<Slices>,
        progress: &Progress,
    ) -> Result<Answer, S3Error> {
        let mut answering = self.pool.request(request);
        let mut moved = progress.bytes();
        let answered = loop {
            let patience = if progress.is_over() {
                S3_ANSWER_WAIT
            } else {
                S3_STANDSTILL
            };
            match timeout(patience, &mut answering).await {
                Ok(answered) => break answered,
                Err(_) if progress.bytes() == moved => {
                    return Err(self.broken("nothing moves any more".to_owned()));
                }
                Err(_) => moved = progress.bytes(),
            }
        };
        let answer = answered.map_err(|error| self.failed(&error))?;
        self.was_reached.store(true, Relaxed);
        let (head, body) = answer.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body,
            endpoint: Arc::clone(&self.endpoint_text),
        })
    }

    fn failed(&self, error: &hyper_util::client::legacy::Error) -> S3Error {
        let source = error.source();
        match source.and_then(|source| source.downcast_ref::<ClientError>()) {
            Some(ClientError::Unreachable {
                endpoint,
                problem,
                may_pass,
            }) => S3Error::Client(ClientError::Unreachable {
                endpoint: endpoint.clone(),
                problem: problem.clone(),
                may_pass: *may_pass,
            }),
            _ if self.is_first_answer_no_http(source) => self.speaks_tls(),
            _ => self.broken(told(source.unwrap_or(error))),
        }
    }

    /// Whether what came first from a server that is to speak plain HTTP was none.
    fn is_first_answer_no_http(&self, source: Option<&(dyn std::error::Error + 'static)>) -> bool {
        let error = source.and_then(|source| source.downcast_ref::<hyper::Error>());
        let is_plain = !self.endpoint.is_https() && !self.was_reached.load(Relaxed);
        // One with too many headers is one of HTTP.
        let is_none = |error: &hyper::Error| error.is_parse() && !error.is_parse_too_large();
        is_plain && error.is_some_and(is_none)
    }

    fn speaks_tls(&self) -> S3Error {
        let text = self.endpoint.text();
        let address = text.strip_prefix("http").unwrap_or(text);
        let error = ClientError::Endpoint {
            option: ENDPOINT_BY,
            problem: format!(
                "{text} does not speak plain HTTP; if it speaks TLS, write https{address}"
            ),
        };
        S3Error::Client(error.of_source(self.options.is_source))
    }

    fn broken(&self, problem: String) -> S3Error {
        S3Error::Broken {
            endpoint: self.endpoint_text.to_string(),
            problem,
        }
    }

    fn signed(&self, request: &Request, body: Slices) -> Result<http::Request<Slices>, S3Error> {
        let scope = Scope {
            region: &self.region,
            service: "s3",
        };
        let signer = Signer::new(&self.credentials, scope, OffsetDateTime::now_utc());
        // TLS guards the body, and a checksum is with it; without TLS, only its hash does.
        let payload = if self.endpoint.is_https() && !request.body.is_empty() {
            UNSIGNED_PAYLOAD.to_owned()
        } else {
            sha256_hex(&request.body)
        };
        let mut headers: Vec<(&str, &str)> = { request.headers.iter() }
            .map(|(name, value)| (name.as_ref(), value.trim()))
            .collect();
        headers.push(("host", &self.endpoint.authority));
        headers.push(("x-amz-content-sha256", &payload));
        headers.push(("x-amz-date", signer.amz_date()));
        if let Some(token) = &self.credentials.session_token {
            headers.push(("x-amz-security-token", token.as_str()));
        }
        // Values of one name are sent in the order that they have.
        headers.sort_by(|one, other| one.0.cmp(other.0));
        let query = request.encoded_query();
        let authorization = signer.authorization_of_query(
            request.method.as_str(),
            (&request.path, &query),
            &headers,
            &payload,
        );
        let scheme = if self.endpoint.is_https() {
            "https"
        } else {
            "http"
        };
        let (authority, path) = (&self.endpoint.authority, &request.path);
        let mark = if query.is_empty() { "" } else { "?" };
        let mut signed = http::Request::builder()
            .method(request.method.clone())
            .uri(format!("{scheme}://{authority}{path}{mark}{query}"))
            .header("authorization", authorization);
        for (name, value) in &headers {
            signed = signed.header(*name, value.as_bytes());
        }
        // Without a body hyper says no length, and some servers ask for one.
        let may_have_body = matches!(request.method, Method::PUT | Method::POST);
        if may_have_body && request.body.is_empty() {
            signed = signed.header(CONTENT_LENGTH, 0);
        }
        debug_assert!(
            signed
                .headers_ref()
                .is_none_or(|map| map.contains_key(HOST))
        );
        { signed.body(body) }.map_err(|_| S3Error::Client(unsendable(&headers)))
    }
}
