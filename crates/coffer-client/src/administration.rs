//! The administration of a running server, as commands ask it: over the socket in its data folder,
//! or over HTTPS.

use std::io;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Full, LengthLimitError};
use hyper::body::{Bytes, Incoming};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::error::ClientError;
use crate::http1::{collected, exchange};
use crate::https::{HttpsServer, connector};
use crate::limits::ANSWER_BYTES;
use crate::local_socket;
use crate::profiles::Credentials;

/// What stands in a path as it is (RFC 3986, section 2.3).
const PATH_SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// A name as it stands in a path.
pub fn segment(name: &str) -> String {
    // A client library, or a proxy, would take these for steps in the tree.
    match name {
        "." => "%2E".to_owned(),
        ".." => "%2E%2E".to_owned(),
        name => utf8_percent_encode(name, PATH_SEGMENT).to_string(),
    }
}

/// The administration of a server.
pub enum AdminClient {
    /// That of the server on a data folder of this machine, asked as its owner.
    Local {
        /// The data folder.
        data: PathBuf,
    },
    /// One that is reached over HTTPS, asked as the holder of an access key.
    Https(Box<SignedIn>),
}

/// A server that is reached over HTTPS, and how to sign in there.
pub struct SignedIn {
    server: HttpsServer,
    tls: TlsConnector,
    authorization: HeaderValue,
}

/// The body of every answer that is an error.
#[derive(Deserialize)]
struct ErrorBody {
    error: ErrorDetail,
}

#[derive(Deserialize)]
struct ErrorDetail {
    code: String,
    message: String,
}

impl AdminClient {
    /// The server at `endpoint`, asked with the access key of a file or of the environment, and
    /// trusted because of an authority in a file or of this system.
    ///
    /// # Errors
    /// When one of these is not what it should be.
    pub fn https(
        endpoint: &str,
        credentials: Option<&Path>,
        ca: Option<&Path>,
    ) -> Result<Self, ClientError> {
        let server = HttpsServer::parse(endpoint)?;
        let credentials = Credentials::find(credentials)?;
        Ok(Self::Https(Box::new(SignedIn {
            server,
            authorization: authorization(&credentials),
            tls: connector(ca)?,
        })))
    }

    /// Asks, and waits for the whole answer; what there is to send goes as JSON.
    ///
    /// # Errors
    /// When the server can't be reached, refuses, or says what is not understood.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        input: Option<&(impl Serialize + Sync)>,
    ) -> Result<T, ClientError> {
        let may_be_done = !method.is_safe();
        let answer = self.open(method, path, input).await?;
        let bytes = collected(answer, ANSWER_BYTES).await;
        let bytes = bytes.map_err(|error| self.not_collected(&*error, may_be_done))?;
        let bytes = if bytes.is_empty() {
            b"null"
        } else {
            &bytes[..]
        };
        serde_json::from_slice(bytes).map_err(|_| self.misunderstood("gave an unknown answer"))
    }

    /// What [`call`](Self::call) does without something to send.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        self.call(Method::GET, path, None::<&()>).await
    }

    /// The whole answer as text, also of a server that says that it is not ready.
    ///
    /// # Errors
    /// Those of [`open`](Self::open).
    pub async fn text(&self, path: &str) -> Result<String, ClientError> {
        let answer = self.ask(Method::GET, path, None::<&()>).await?;
        let answer = match answer.status() {
            StatusCode::SERVICE_UNAVAILABLE => answer.into_body(),
            _ => self.accepted(answer).await?,
        };
        let bytes = collected(answer, ANSWER_BYTES).await;
        let bytes = bytes.map_err(|error| self.not_collected(&*error, false))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// What [`call`](Self::call) does for what is deleted: there is no answer.
    ///
    /// # Errors
    /// Those of [`call`](Self::call).
    pub async fn delete(&self, path: &str) -> Result<(), ClientError> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    /// Asks, and hands over the answer as it comes.
    ///
    /// # Errors
    /// When the server can't be reached, or refuses.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        input: Option<&(impl Serialize + Sync)>,
    ) -> Result<Incoming, ClientError> {
        let answer = self.ask(method, path, input).await?;
        self.accepted(answer).await
    }

    async fn ask(
        &self,
        method: Method,
        path: &str,
        input: Option<&(impl Serialize + Sync)>,
    ) -> Result<Response<Incoming>, ClientError> {
        let body = input.map(|input| {
            serde_json::to_vec(input).expect("what commands send has no maps with odd keys")
        });
        let may_be_done = !method.is_safe();
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        // Input may hold a secret; the copy that travels is not kept anywhere else.
        let body = Full::new(Bytes::from_owner(Zeroizing::new(body.unwrap_or_default())));
        let request = match self {
            Self::Local { .. } => request.header(HOST, "coffer"),
            Self::Https(remote) => request
                .header(HOST, remote.server.host())
                .header(AUTHORIZATION, remote.authorization.clone()),
        };
        let request = request
            .body(body)
            .map_err(|_| self.misunderstood("was not asked: this makes no request"))?;
        let answer = match self {
            Self::Local { data } => {
                let refused = |source: io::Error| match source.kind() {
                    io::ErrorKind::PermissionDenied => ClientError::NotOwner { data: data.clone() },
                    _ => ClientError::NoServer {
                        data: data.clone(),
                        source,
                    },
                };
                exchange(local_socket::connect(data).await.map_err(refused)?, request).await
            }
            Self::Https(remote) => {
                exchange(remote.server.connect(&remote.tls).await?, request).await
            }
        };
        answer.map_err(|error| {
            if error.is_parse() {
                self.misunderstood("did not answer in HTTP")
            } else {
                self.broken_off(may_be_done)
            }
        })
    }

    /// The error for a server that gave its answer in part, or gave too much.
    fn not_collected(
        &self,
        error: &(dyn std::error::Error + 'static),
        may_be_done: bool,
    ) -> ClientError {
        if error.is::<LengthLimitError>() {
            self.misunderstood("gave an answer without an end")
        } else {
            self.broken_off(may_be_done)
        }
    }

    /// The body of an answer that is no refusal.
    async fn accepted(&self, answer: Response<Incoming>) -> Result<Incoming, ClientError> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer.into_body());
        }
        let bytes = collected(answer.into_body(), ANSWER_BYTES)
            .await
            .unwrap_or_default();
        match serde_json::from_slice::<ErrorBody>(&bytes) {
            Ok(ErrorBody { error }) => Err(ClientError::Refused {
                code: error.code,
                message: error.message.replace(char::is_control, " "),
            }),
            Err(_) if bytes.starts_with(b"<?xml") => Err(self.misplaced()),
            Err(_) => Err(self.misunderstood(&format!("answered {status}"))),
        }
    }

    /// The error for a server that answers as S3 does.
    fn misplaced(&self) -> ClientError {
        ClientError::Unreachable {
            endpoint: self.place(),
            problem: "an S3 service answers there; administration has a port of its own, 9001 \
                      unless the server was told otherwise (--admin-listen)"
                .to_owned(),
            may_pass: false,
        }
    }

    /// The error for a server that speaks, but not as this version does.
    pub fn misunderstood(&self, problem: &str) -> ClientError {
        ClientError::Answer {
            place: self.place(),
            problem: problem.to_owned(),
        }
    }

    /// The error for a report that ended before its last line.
    pub fn ended_early(&self) -> ClientError {
        self.broken_off(false)
    }

    /// The error for a server that closed the connection before its answer was whole.
    pub(crate) fn broken_off(&self, may_be_done: bool) -> ClientError {
        ClientError::BrokenOff {
            place: self.place(),
            may_be_done,
        }
    }

    fn place(&self) -> String {
        match self {
            Self::Local { data } => data.display().to_string(),
            Self::Https(remote) => remote.server.text().to_owned(),
        }
    }
}

/// HTTP Basic (RFC 7617).
fn authorization(credentials: &Credentials) -> HeaderValue {
    let Credentials {
        access_key_id,
        secret_access_key,
        ..
    } = credentials;
    let pair = Zeroizing::new(format!("{access_key_id}:{}", **secret_access_key));
    let text = Zeroizing::new(format!("Basic {}", BASE64.encode(pair.as_bytes())));
    let mut value = HeaderValue::try_from(text.as_str()).expect("Base64 fits into a header");
    value.set_sensitive(true);
    value
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed expectation of a test is its failure
mod tests {
    use serde_json::Value;
    use tokio::io::AsyncReadExt;
    use tokio::net::UnixListener;

    use super::*;

    #[tokio::test]
    async fn what_a_server_was_doing_that_closed_the_connection_is_in_doubt() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path();
        let listener = UnixListener::bind(local_socket::path(data)).unwrap();
        let closing = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 1_024]).await;
            }
        });
        let server = AdminClient::Local { data: data.into() };
        for (method, is_change) in [(Method::POST, true), (Method::GET, false)] {
            let asked = server.call::<Value>(method, "/v1/levels", None::<&()>);
            let told = asked.await.unwrap_err();
            let ClientError::BrokenOff { may_be_done, .. } = told else {
                panic!("{told}");
            };
            assert_eq!(may_be_done, is_change);
            assert!(!told.to_string().contains("version"), "{told}");
            assert_eq!(told.to_string().contains("audit show"), is_change);
        }
        closing.abort();
    }

    #[test]
    fn names_stay_one_segment() {
        assert_eq!(segment("a-b.c"), "a-b.c");
        assert_eq!(segment("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
        assert_eq!(segment(".."), "%2E%2E");
    }
}
