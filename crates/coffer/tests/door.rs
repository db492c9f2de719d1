//! The listener over real sockets: what clients of all sorts get.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use coffer::certificates::ensure;
use coffer::door::{Door, listen};
use coffer::limits::Limits;
use coffer::request_body::PacedBody;
use coffer::server_names::names;
use coffer::shutdown::{Phase, Shutdown};
use coffer::tls::{Certificate, Source, server_config};
use coffer::tls_folder::Files;
use coffer::turnstile::Turnstile;
use coffer_admin::Traffic;
use futures::stream;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Bytes, Frame};
use hyper::service::Service;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

const PIECE_BYTES: usize = 256 * 1024;

/// `/count` counts the body's bytes; `/send/N` sends N pieces; `/wait` waits until it is told.
#[derive(Clone, Default)]
struct Answers {
    go: Arc<Notify>,
}

type Body = UnsyncBoxBody<Bytes, Infallible>;

impl Service<Request<PacedBody>> for Answers {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<PacedBody>) -> Self::Future {
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

async fn count(mut body: PacedBody) -> String {
    let mut bytes = 0;
    loop {
        match body.frame().await {
            Some(Ok(frame)) => bytes += frame.into_data().map_or(0, |data| data.len()),
            Some(Err(error)) => return format!("error: {error}"),
            None => return bytes.to_string(),
        }
    }
}

struct Running {
    address: SocketAddr,
    client: TlsConnector,
    traffic: Arc<Traffic>,
    shutdown: Shutdown,
    go: Arc<Notify>,
    task: JoinHandle<()>,
    _data: tempfile::TempDir,
}

fn start(limits: Limits) -> Running {
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
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let traffic = Arc::<Traffic>::default();
    let shutdown = Shutdown::default();
    let answers = Answers::default();
    let go = answers.go.clone();
    let door = Door {
        name: "test",
        tls: server_config(certificate).unwrap(),
        limits,
        connections: limits.connections,
        traffic: traffic.clone(),
        stop: shutdown.stop(),
        pool: Arc::default(),
    };
    let task =
        tokio::spawn(door.serve(listener, Turnstile::new(answers, &limits, traffic.clone())));
    let client = TlsConnector::from(Arc::new(config));
    Running {
        address,
        client,
        traffic,
        shutdown,
        go,
        task,
        _data: data,
    }
}

/// Patience of a second, where there is a choice.
fn short() -> Limits {
    Limits {
        handshake_timeout_seconds: 1,
        header_timeout_seconds: 1,
        progress_timeout_seconds: 1,
        request_wait_seconds: 1,
        ..Limits::default()
    }
}

impl Running {
    async fn connect(&self) -> TlsStream<TcpStream> {
        let tcp = TcpStream::connect(self.address).await.unwrap();
        self.client
            .connect(ServerName::try_from("localhost").unwrap(), tcp)
            .await
            .unwrap()
    }

    async fn ask(&self, path: &str) -> String {
        let mut stream = self.connect().await;
        send(
            &mut stream,
            &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n"),
        )
        .await;
        rest(&mut stream).await
    }
}

async fn send(stream: &mut TlsStream<TcpStream>, text: &str) {
    stream.write_all(text.as_bytes()).await.unwrap();
    stream.flush().await.unwrap();
}

/// All until the connection ends, however it does.
async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

/// How long until the connection ends, and what came before.
async fn end(stream: &mut TlsStream<TcpStream>) -> (Duration, String) {
    let start = Instant::now();
    let text = timeout(Duration::from_secs(20), rest(stream))
        .await
        .expect("cut off in the end");
    (start.elapsed(), text)
}

fn about_a_second(elapsed: Duration) -> bool {
    (Duration::from_millis(500)..Duration::from_secs(8)).contains(&elapsed)
}

#[tokio::test]
async fn large_bodies_go_both_ways_on_one_connection() {
    let server = start(Limits::default());
    let mut stream = server.connect().await;
    for _ in 0..2 {
        let piece = vec![1; PIECE_BYTES];
        let length = 40 * PIECE_BYTES;
        send(
            &mut stream,
            &format!("PUT /count HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n"),
        )
        .await;
        for _ in 0..40 {
            stream.write_all(&piece).await.unwrap();
        }
        stream.flush().await.unwrap();
        let mut answer = vec![0; 4096];
        let count = stream.read(&mut answer).await.unwrap();
        let answer = String::from_utf8_lossy(&answer[..count]).into_owned();
        assert!(answer.ends_with(&format!("\r\n\r\n{length}")), "{answer}");
    }
    send(
        &mut stream,
        "GET /send/40 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    let answer = rest(&mut stream).await;
    assert!(answer.len() > 40 * PIECE_BYTES);
    assert_eq!(
        answer.bytes().filter(|byte| *byte == 7).count(),
        40 * PIECE_BYTES
    );
    assert!(server.traffic.snapshot().received_bytes > 80 * PIECE_BYTES as u64);
    assert!(server.traffic.snapshot().sent_bytes > 40 * PIECE_BYTES as u64);
}

#[tokio::test]
async fn who_does_not_shake_hands_is_cut_off() {
    let server = start(short());
    let mut tcp = TcpStream::connect(server.address).await.unwrap();
    let start = Instant::now();
    let ended = timeout(Duration::from_secs(20), tcp.read(&mut [0; 8]))
        .await
        .unwrap();
    assert!(matches!(ended, Ok(0) | Err(_)));
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(server.traffic.snapshot().handshake_failed_count, 1);
}

#[tokio::test]
async fn idle_connections_and_endless_headers_are_cut_off() {
    let server = start(short());
    let mut idle = server.connect().await;
    let (elapsed, text) = end(&mut idle).await;
    assert!(about_a_second(elapsed), "{elapsed:?}");
    assert!(!text.contains("200"), "{text}");

    let stream = server.connect().await;
    let (mut reader, mut writer) = tokio::io::split(stream);
    let dripping = tokio::spawn(async move {
        let _ = writer
            .write_all(b"GET /count HTTP/1.1\r\nhost: a\r\nx-slow: ")
            .await;
        while writer.write_all(b"z").await.is_ok() {
            let _ = writer.flush().await;
            sleep(Duration::from_millis(100)).await;
        }
    });
    let start = Instant::now();
    let mut text = Vec::new();
    let _ = timeout(Duration::from_secs(20), reader.read_to_end(&mut text))
        .await
        .unwrap();
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    dripping.abort();
}

#[tokio::test]
async fn oversized_headers_are_refused() {
    let server = start(Limits::default());
    let mut stream = server.connect().await;
    let long = "z".repeat(40 * 1024);
    send(
        &mut stream,
        &format!("GET /count HTTP/1.1\r\nhost: a\r\nx-long: {long}\r\n\r\n"),
    )
    .await;
    let (_, text) = end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
}

#[tokio::test]
async fn a_body_that_stalls_ends() {
    let server = start(short());
    let mut stream = server.connect().await;
    send(
        &mut stream,
        "PUT /count HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000\r\n\r\nabc",
    )
    .await;
    let (elapsed, text) = end(&mut stream).await;
    assert!(about_a_second(elapsed), "{elapsed:?}");
    assert!(
        text.contains("error: the client moved too few bytes"),
        "{text}"
    );
    assert_eq!(server.traffic.snapshot().cut_off_count, 1);
}

#[tokio::test]
async fn a_client_that_does_not_read_is_cut_off() {
    let server = start(short());
    let mut stream = server.connect().await;
    send(&mut stream, "GET /send/400 HTTP/1.1\r\nhost: a\r\n\r\n").await;
    let start = Instant::now();
    while server.traffic.snapshot().open_count > 0 {
        assert!(start.elapsed() < Duration::from_secs(20), "still open");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(about_a_second(start.elapsed()), "{:?}", start.elapsed());
    assert_eq!(server.traffic.snapshot().cut_off_count, 1);
    assert!(rest(&mut stream).await.len() < 400 * PIECE_BYTES);
}

#[tokio::test]
async fn requests_beyond_the_limit_wait_and_then_are_told_to_slow_down() {
    let server = start(Limits {
        requests: 1,
        ..short()
    });
    let mut first = server.connect().await;
    send(
        &mut first,
        "GET /wait HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    sleep(Duration::from_millis(200)).await;
    let refused = server.ask("/count").await;
    assert!(refused.starts_with("HTTP/1.1 503 "), "{refused}");
    assert!(refused.contains("<Code>SlowDown</Code>"), "{refused}");
    assert!(refused.contains("retry-after: 1"), "{refused}");
    assert_eq!(server.traffic.snapshot().turned_away_count, 1);

    let (second, ()) = tokio::join!(server.ask("/count"), async {
        sleep(Duration::from_millis(200)).await;
        server.go.notify_one();
    });
    assert!(second.starts_with("HTTP/1.1 200 "), "{second}");
    assert!(rest(&mut first).await.ends_with("waited"));
}

#[tokio::test]
async fn a_turn_lasts_until_the_last_byte_of_the_answer() {
    let server = start(Limits {
        requests: 1,
        progress_timeout_seconds: 60,
        ..short()
    });
    let mut first = server.connect().await;
    send(
        &mut first,
        "GET /send/400 HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n",
    )
    .await;
    first.read_exact(&mut [0; 100]).await.unwrap();
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 503 "));
    rest(&mut first).await;
    assert!(server.ask("/count").await.starts_with("HTTP/1.1 200 "));
}

#[tokio::test]
async fn connections_beyond_the_limit_wait() {
    let server = start(Limits {
        connections: 1,
        ..Limits::default()
    });
    let first = server.connect().await;
    let mut later = Box::pin(server.ask("/count"));
    assert!(
        timeout(Duration::from_millis(300), &mut later)
            .await
            .is_err()
    );
    drop(first);
    let answer = timeout(Duration::from_secs(10), later).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
}

#[tokio::test]
async fn the_end_lets_requests_end_but_not_idle_connections() {
    let server = start(Limits::default());
    let mut idle = server.connect().await;
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    server.shutdown.enter(Phase::Drain);
    let (elapsed, _) = end(&mut idle).await;
    assert!(elapsed < Duration::from_secs(5), "{elapsed:?}");
    assert!(
        TcpStream::connect(server.address).await.is_err(),
        "nothing new"
    );
    assert!(!server.task.is_finished());
    server.go.notify_one();
    assert!(rest(&mut busy).await.ends_with("waited"));
    timeout(Duration::from_secs(10), server.task)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn what_does_not_end_is_cut_off() {
    let server = start(Limits::default());
    let mut busy = server.connect().await;
    send(&mut busy, "GET /wait HTTP/1.1\r\nhost: a\r\n\r\n").await;
    sleep(Duration::from_millis(200)).await;
    server.shutdown.enter(Phase::Abort);
    timeout(Duration::from_secs(10), server.task)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(rest(&mut busy).await, "");
    assert_eq!(server.traffic.snapshot().open_count, 0);
}
