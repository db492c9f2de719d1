//! The running server, as commands ask it: over the socket in its data folder, or over HTTPS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use clap::Args;
use coffer_admin::{ErrorBody, connect};
use http::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use http::{Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1;
use hyper::rt::{Read, Write};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rustls::crypto::aws_lc_rs;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::limits::{ANSWER_BYTES, CONNECT_TIMEOUT};

pub mod credentials;

pub mod lines;

use self::credentials::Credentials;

/// Where the running server is, if not on the data folder of this machine.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Reaching a server elsewhere")]
pub struct RemoteArgs {
    /// Ask the server there, e.g. https://coffer.example.org:9001, not the one on --data
    #[arg(long, value_name = "URL", global = true)]
    pub endpoint: Option<String>,
    /// File with the access key to sign in with [default: as AWS's clients find one]
    #[arg(long, value_name = "FILE", global = true, requires = "endpoint")]
    pub credentials: Option<PathBuf>,
    /// Certificate authority of that server (PEM) [default: those of this system]
    #[arg(
        long,
        value_name = "FILE",
        env = "AWS_CA_BUNDLE",
        global = true,
        hide_env_values = true
    )]
    pub ca: Option<PathBuf>,
}

/// Where Debian keeps the authorities that the system trusts.
const SYSTEM_AUTHORITIES: &str = "/etc/ssl/certs/ca-certificates.crt";

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

/// A running server.
pub enum Remote {
    /// The one on a data folder of this machine, asked as its owner.
    Local {
        /// The data folder.
        data: PathBuf,
    },
    /// One that is reached over HTTPS, asked as the holder of an access key.
    Https(Box<Endpoint>),
}

/// A server that is reached over HTTPS.
pub struct Endpoint {
    text: String,
    host: String,
    port: u16,
    name: ServerName<'static>,
    authorization: HeaderValue,
    tls: TlsConnector,
}

impl Remote {
    /// The server that the command line means.
    pub fn new(data: PathBuf, args: &RemoteArgs) -> Result<Self, Error> {
        match &args.endpoint {
            None => Ok(Self::Local { data }),
            Some(endpoint) => Endpoint::new(endpoint, args).map(Box::new).map(Self::Https),
        }
    }

    /// Asks, and waits for the whole answer; what there is to send goes as JSON.
    pub async fn call<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        input: Option<&(impl Serialize + Sync)>,
    ) -> Result<T, Error> {
        let answer = self.open(method, path, input).await?;
        let bytes = collected(answer)
            .await
            .map_err(|_| self.nonsense("broke off its answer"))?;
        let bytes = if bytes.is_empty() {
            b"null"
        } else {
            &bytes[..]
        };
        serde_json::from_slice(bytes).map_err(|_| self.nonsense("gave an unknown answer"))
    }

    /// What [`call`](Self::call) does without something to send.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.call(Method::GET, path, None::<&()>).await
    }

    /// What [`call`](Self::call) does for what is deleted: there is no answer.
    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        self.call(Method::DELETE, path, None::<&()>).await
    }

    /// Asks, and hands over the answer as it comes.
    pub async fn open(
        &self,
        method: Method,
        path: &str,
        input: Option<&(impl Serialize + Sync)>,
    ) -> Result<Incoming, Error> {
        let body = input.map(|input| {
            serde_json::to_vec(input).expect("what commands send has no maps with odd keys")
        });
        let mut request = Request::builder().method(method).uri(path);
        if body.is_some() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        // Input may hold a secret; the copy that travels is not kept anywhere else.
        let body = Full::new(Bytes::from_owner(Zeroizing::new(body.unwrap_or_default())));
        let answer = match self {
            Self::Local { data } => {
                let request = request.header(HOST, "coffer");
                let stream = connect(data).await.map_err(|source| match source.kind() {
                    io::ErrorKind::PermissionDenied => Error::NotOwner { data: data.clone() },
                    _ => Error::NoServer {
                        data: data.clone(),
                        source,
                    },
                })?;
                self.send(TokioIo::new(stream), request, body).await?
            }
            Self::Https(endpoint) => {
                let host = format!("{}:{}", endpoint.host, endpoint.port);
                let request = request
                    .header(HOST, host)
                    .header(AUTHORIZATION, endpoint.authorization.clone());
                let stream = endpoint.connect().await?;
                self.send(TokioIo::new(stream), request, body).await?
            }
        };
        if answer.status().is_success() {
            return Ok(answer.into_body());
        }
        let status = answer.status();
        let bytes = collected(answer.into_body()).await.unwrap_or_default();
        match serde_json::from_slice::<ErrorBody>(&bytes) {
            Ok(ErrorBody { error }) => Err(Error::Refused {
                code: error.code,
                message: one_line(&error.message),
            }),
            Err(_) => Err(self.nonsense(&format!("answered {status}"))),
        }
    }

    async fn send(
        &self,
        stream: impl Read + Write + Unpin + Send + 'static,
        request: http::request::Builder,
        body: Full<Bytes>,
    ) -> Result<Response<Incoming>, Error> {
        let request = request
            .body(body)
            .map_err(|_| self.nonsense("was not asked: this makes no request"))?;
        let broke_off = |_| self.nonsense("did not answer");
        let (mut sender, connection) = http1::handshake(stream).await.map_err(broke_off)?;
        tokio::spawn(connection);
        sender.send_request(request).await.map_err(broke_off)
    }

    /// The error for a server that speaks, but not as this version does.
    pub fn nonsense(&self, problem: &str) -> Error {
        let place = match self {
            Self::Local { data } => data.display().to_string(),
            Self::Https(endpoint) => endpoint.text.clone(),
        };
        Error::Answer {
            place,
            problem: problem.to_owned(),
        }
    }
}

impl Endpoint {
    fn new(text: &str, args: &RemoteArgs) -> Result<Self, Error> {
        let wrong = |problem: &str| Error::Option {
            option: "--endpoint",
            problem: problem.to_owned(),
        };
        let advice = "write an address such as https://coffer.example.org:9001";
        let uri: Uri = text.parse().map_err(|_| wrong(advice))?;
        if uri.scheme_str() != Some("https") || !matches!(uri.path(), "" | "/") {
            return Err(wrong(advice));
        }
        let host = uri.host().ok_or_else(|| wrong(advice))?.to_owned();
        let bare = host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .to_owned();
        let name = ServerName::try_from(bare).map_err(|_| wrong(advice))?;
        let credentials = Credentials::find(args.credentials.as_deref())?;
        Ok(Self {
            text: text.to_owned(),
            port: uri.port_u16().unwrap_or(443),
            host,
            name,
            authorization: authorization(&credentials),
            tls: connector(args.ca.as_deref())?,
        })
    }

    async fn connect(&self) -> Result<tokio_rustls::client::TlsStream<TcpStream>, Error> {
        let unreachable = |problem: String| Error::Unreachable {
            endpoint: self.text.clone(),
            problem,
        };
        let connecting = async {
            let bare = self.host.trim_start_matches('[').trim_end_matches(']');
            let tcp = TcpStream::connect((bare, self.port)).await?;
            self.tls.connect(self.name.clone(), tcp).await
        };
        match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => Ok(stream),
            Ok(Err(error)) => Err(unreachable(error.to_string())),
            Err(_) => Err(unreachable("it does not answer".to_owned())),
        }
    }
}

/// HTTP Basic (RFC 7617).
fn authorization(credentials: &Credentials) -> HeaderValue {
    let Credentials {
        access_key_id,
        secret_access_key,
    } = credentials;
    let pair = Zeroizing::new(format!("{access_key_id}:{}", **secret_access_key));
    let text = Zeroizing::new(format!("Basic {}", BASE64.encode(pair.as_bytes())));
    let mut value = HeaderValue::try_from(text.as_str()).expect("Base64 fits into a header");
    value.set_sensitive(true);
    value
}

/// Makes TLS connections to servers that an authority vouches for: the one in this file, or those
/// that the system trusts.
pub fn connector(ca: Option<&Path>) -> Result<TlsConnector, Error> {
    let path = ca.unwrap_or(Path::new(SYSTEM_AUTHORITIES)).to_owned();
    let unusable = |problem: String| Error::Certificate {
        path: path.clone(),
        problem,
        advice: "give the server's certificate authority with --ca, such as DATA/tls/ca.pem",
    };
    let mut roots = RootCertStore::empty();
    let certificates = CertificateDer::pem_file_iter(&path)
        .and_then(|certificates| certificates.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unusable(error.to_string()))?;
    let (usable, _) = roots.add_parsable_certificates(certificates);
    if usable == 0 {
        return Err(unusable("it holds no certificate".to_owned()));
    }
    let provider = Arc::new(aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(error.to_string()))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(TlsConnector::from(Arc::new(config)))
}

async fn collected(body: Incoming) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    Ok(Limited::new(body, ANSWER_BYTES).collect().await?.to_bytes())
}

fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_stay_one_segment() {
        assert_eq!(segment("a-b.c"), "a-b.c");
        assert_eq!(segment("a/b?c#d e%"), "a%2Fb%3Fc%23d%20e%25");
        assert_eq!(segment(".."), "%2E%2E");
    }

    #[test]
    fn endpoints_are_https_and_nothing_more() {
        for wrong in [
            "example.org",
            "http://h:1",
            "https://h/p",
            "https://",
            "https://a b",
        ] {
            let Err(error) = Endpoint::new(wrong, &RemoteArgs::default()) else {
                panic!("{wrong} was taken");
            };
            assert!(error.to_string().starts_with("--endpoint: "), "{error}");
        }
    }
}
