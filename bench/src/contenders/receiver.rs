//! What a durable upload costs at least on this stack: a server of the bench's own that receives
//! it over the same TLS, HTTP and stream layers as coffer and writes a plain file, with fdatasync.
//! No names, no signatures, no sealing, no catalog.

use std::convert::Infallible;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use http::{Response, StatusCode};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::BufReader;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::contenders::{Endpoint, Object, Receives};
use crate::error::{BenchError, Doing, Result};
use crate::load_client::connection::Request;
use crate::load_client::load::Client;
use crate::load_client::response::Expected;
use crate::load_client::tls_records::client_config;
use crate::machine::server_process::{Ready, ServerProcess, free_address};
use coffer_measure::tls::Identity;

/// The option of the bench's own program that makes it this server.
pub const OPTION: &str = "--receive-into";

/// Bytes that one system call may receive below TLS: at least as many as coffer lets it. From
/// 32 KiB on, the size makes no difference.
const RECEIVE_BYTES: usize = 256 * 1024;

/// A running receiver.
pub struct Receiver {
    endpoint: Endpoint,
    folder: PathBuf,
}

impl Receiver {
    /// Starts it with a folder of its own.
    pub fn start(folder: &Path, pinned: bool) -> Result<Self> {
        let identity = Identity::create(folder)?;
        let address = free_address()?;
        let program = std::env::current_exe().doing(|| "looking for this program".into())?;
        let mut command = Command::new(program);
        command
            .arg(OPTION)
            .arg(folder)
            .arg("--listen")
            .arg(address.to_string());
        let ready = Ready::Says("ready");
        let process = ServerProcess::start("receiver", command, pinned, ready, folder)?;
        let tls = client_config(&identity.certificate)?;
        let endpoint = Endpoint {
            name: "receive and write",
            process,
            address,
            tls,
        };
        Ok(Self {
            endpoint,
            folder: folder.into(),
        })
    }
}

impl Receives for Receiver {
    fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    fn put(&self, object: &Object) -> Request {
        let Object { name, content } = object;
        let head = format!(
            "PUT /{name} HTTP/1.1\r\nhost: {}\r\ncontent-length: {}\r\n\r\n",
            self.endpoint.address, content.length_bytes
        );
        Request {
            head,
            body: Some(*content),
            expected: Expected::Success,
        }
    }

    fn check(&self, _client: &Client, objects: &[Object]) -> Result<()> {
        for object in objects {
            let path = self.folder.join(&object.name);
            let right = object.content.is_in(&path);
            if !right.doing(|| format!("reading {}", path.display()))? {
                let request = self.put(object).line().to_owned();
                return Err(BenchError::WrongContents { request, offset: 0 });
            }
        }
        Ok(())
    }

    fn discard(&self, _client: &Client, objects: &[Object]) -> Result<()> {
        for object in objects {
            let path = self.folder.join(&object.name);
            fs::remove_file(&path).doing(|| format!("removing {}", path.display()))?;
        }
        Ok(())
    }
}

/// The server itself: runs until it is killed.
pub fn serve(folder: &Path, address: std::net::SocketAddr) -> Result<()> {
    let tls = TlsAcceptor::from(Identity::in_folder(folder).server()?);
    let folder: Arc<Path> = folder.into();
    // Not pinned, or on several cores: as many workers as cores, as coffer has.
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .doing(|| "starting the receiver".into())?;
    runtime.block_on(async move {
        let listener = TcpListener::bind(address)
            .await
            .doing(|| format!("binding {address}"))?;
        println!("ready");
        loop {
            let (stream, _) = listener.accept().await.doing(|| "accepting".into())?;
            tokio::spawn(connection(stream, tls.clone(), Arc::clone(&folder)));
        }
    })
}

async fn connection(stream: TcpStream, tls: TlsAcceptor, folder: Arc<Path>) {
    if stream.set_nodelay(true).is_err() {
        return;
    }
    let Ok(stream) = tls
        .accept(BufReader::with_capacity(RECEIVE_BYTES, stream))
        .await
    else {
        return;
    };
    let service = service_fn(move |request| answer(request, Arc::clone(&folder)));
    let served = http1::Builder::new()
        .timer(TokioTimer::new())
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = served.await {
        eprintln!("receiver: {error}");
    }
}

async fn answer(
    request: http::Request<Incoming>,
    folder: Arc<Path>,
) -> std::result::Result<Response<Empty<Bytes>>, Infallible> {
    let mut response = Response::new(Empty::new());
    if let Err(error) = receive(request, &folder).await {
        eprintln!("receiver: {error}");
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
    }
    Ok(response)
}

/// Writing goes to the page cache, without a change of threads: nothing is cheaper. Only the
/// wait for the disk is handed to another thread.
async fn receive(request: http::Request<Incoming>, folder: &Path) -> std::io::Result<()> {
    let mut file = File::create_new(folder.join(&request.uri().path()[1..]))?;
    let mut body = request.into_body();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(std::io::Error::other)?.into_data() {
            file.write_all(&data)?;
        }
    }
    tokio::task::spawn_blocking(move || file.sync_data()).await?
}
