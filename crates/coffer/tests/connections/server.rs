//! A listener in this process, and clients of it.

use std::convert::Infallible;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer::config::proxy_rules::{Listener, ProxyRules};
use coffer::connection::listen::listen;
use coffer::connection::proxies::Proxies;
use coffer::connection::shutdown::Shutdown;
use coffer::connection::slots::Slots;
use coffer::connection::tls_listener::TlsListener;
use coffer::limits::Limits;
use coffer::serve::request_body::WatchedBody;
use coffer::serve::request_limit::RequestLimit;
use coffer::tls::certificates::ensure;
use coffer::tls::folder::Files;
use coffer::tls::server_config::{Certificate, Source, server_config};
use coffer::tls::server_names::names;
use coffer_admin::Traffic;
use futures::stream;
use http::{Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::service::Service;
use parking_lot::Mutex;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

pub(crate) const PIECE_BYTES: usize = 256 * 1024;

/// `/count` counts the body's bytes; `/send/N` sends N pieces; `/wait` waits until it is told;
/// `/panic` is a fault of ours.
#[derive(Clone, Default)]
struct Answers {
    go: Arc<Notify>,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl Service<Request<WatchedBody>> for Answers {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<WatchedBody>) -> Self::Future {
        let go = self.go.clone();
        Box::pin(async move {
            let path = request.uri().path().to_owned();
            if let Some(count) = path.strip_prefix("/send/") {
                let pieces = (0..count.parse::<usize>().unwrap())
                    .map(|_| Ok(Frame::data(Bytes::from(vec![7; PIECE_BYTES]))));
                return Ok(Response::new(UnsyncBoxBody::new(StreamBody::new(
                    stream::iter(pieces),
                ))));
            }
            let text = match path.as_str() {
                "/panic" => panic!("on purpose"),
                "/wait" => {
                    go.notified().await;
                    "waited".to_owned()
                }
                _ => count(request.into_body()).await,
            };
            Ok(Response::new(UnsyncBoxBody::new(Full::new(text.into()))))
        })
    }
}

async fn count(mut body: WatchedBody) -> String {
    let mut bytes = 0;
    loop {
        match body.frame().await {
            Some(Ok(frame)) => bytes += frame.into_data().map_or(0, |data| data.len()),
            Some(Err(error)) => return format!("error: {error}"),
            None => return bytes.to_string(),
        }
    }
}

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) client: TlsConnector,
    pub(crate) traffic: Arc<Traffic>,
    pub(crate) shutdown: Shutdown,
    pub(crate) go: Arc<Notify>,
    pub(crate) task: JoinHandle<()>,
    /// The last client.
    pub(crate) client_address: Arc<Mutex<Option<IpAddr>>>,
    _data: tempfile::TempDir,
}

pub(crate) fn start(limits: Limits) -> Running {
    start_behind(limits, &ProxyRules::default())
}

/// One that is reached by way of proxies.
pub(crate) fn start_behind(limits: Limits, rules: &ProxyRules) -> Running {
    let data = tempfile::tempdir().unwrap();
    let files = Files::of(data.path());
    let names = names("localhost", &[], &[]);
    ensure(&files, &names, &[], std::time::SystemTime::now()).unwrap();
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_file(files.ca_cert()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let source = Source::Local {
        files,
        names,
        domains: Vec::new(),
    };
    let (certificate, _) = Certificate::load(source).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap(), "--listen").unwrap();
    let address = listener.local_addr().unwrap();
    let traffic = Arc::<Traffic>::default();
    let shutdown = Shutdown::default();
    let answers = Answers::default();
    let go = answers.go.clone();
    let tls_listener = TlsListener {
        name: "test",
        tls: server_config(certificate).unwrap(),
        limits,
        slots: Slots::new(limits.connections, 0),
        per_subject: limits.connections,
        proxies: Proxies::of(rules, Listener::S3),
        refusal: None,
        traffic: traffic.clone(),
        stop: shutdown.clone(),
        pool: Arc::default(),
    };
    let busy = || {
        let mut refused = Response::new(UnsyncBoxBody::new(Full::new(Bytes::from("busy"))));
        *refused.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        refused
    };
    let clients = Arc::new(Mutex::new(None));
    let told = clients.clone();
    let claimed = |_: &_, request: &Request<_>| {
        coffer_s3::claimed_access_key(request).map(coffer_s3::Claim::Unknown)
    };
    let service = RequestLimit::new(answers, busy, claimed, &limits, traffic.clone());
    let service_for = move |client, _: &_| {
        *told.lock() = Some(client);
        service.clone()
    };
    let task = tokio::spawn(tls_listener.serve(listener, service_for));
    let client = TlsConnector::from(Arc::new(config));
    Running {
        address,
        client,
        traffic,
        shutdown,
        go,
        task,
        client_address: clients,
        _data: data,
    }
}

/// Patience of a second, where there is a choice.
pub(crate) fn short() -> Limits {
    Limits {
        handshake_timeout_seconds: 1,
        header_timeout_seconds: 1,
        sign_in_timeout_seconds: 1,
        progress_timeout_seconds: 1,
        request_wait_seconds: 1,
        ..Limits::default()
    }
}

impl Running {
    pub(crate) async fn connect(&self) -> TlsStream<TcpStream> {
        self.connect_saying(b"").await.unwrap()
    }

    /// A connection that begins with something else than TLS.
    pub(crate) async fn connect_saying(&self, first: &[u8]) -> io::Result<TlsStream<TcpStream>> {
        let mut tcp = TcpStream::connect(self.address).await?;
        tcp.write_all(first).await?;
        let name = ServerName::try_from("localhost").unwrap();
        self.client.connect(name, tcp).await
    }

    pub(crate) async fn ask(&self, path: &str) -> String {
        let mut stream = self.connect().await;
        send(
            &mut stream,
            &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
        )
        .await;
        rest(&mut stream).await
    }
}

pub(crate) async fn send(stream: &mut TlsStream<TcpStream>, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

/// All until the connection ends, however it does.
pub(crate) async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How long until the connection ends, and what came before.
pub(crate) async fn end(stream: &mut TlsStream<TcpStream>) -> (Duration, String) {
    let start = Instant::now();
    let text = timeout(Duration::from_secs(20), rest(stream))
        .await
        .expect("cut off in the end");
    (start.elapsed(), text)
}

pub(crate) fn about_a_second(elapsed: Duration) -> bool {
    (Duration::from_millis(500)..Duration::from_secs(8)).contains(&elapsed)
}
