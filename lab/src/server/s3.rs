//! A coffer server: HTTP/1.1 over TLS, on connections that are kept. It is asked for ranges of one
//! object, and stores one for each client, or one that is large.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use coffer_measure::tls::client_trusting;
use rustls::ClientConfig;
use rusty_s3::actions::{CreateBucket, GetObject, PutObject};
use rusty_s3::{Bucket, Credentials, S3Action, UrlStyle};

use crate::error::Result;
use crate::host::coffer_server::{CofferServer, REGION};
use crate::server::client::Client;
use crate::server::http::{HttpConnection, TlsStream, failed, open};
use crate::server::protocol::{REQUEST_BYTES_MAX, content};

/// How long a signed request may be repeated.
const SIGNED_FOR: Duration = Duration::from_secs(6 * 3600);

/// What ranges are asked of.
const SENT: &str = "content";

/// What is large.
const FILE: &str = "file";

/// A server that holds the content as an object.
pub(super) struct S3 {
    pub(super) server: CofferServer,
    tls: Arc<ClientConfig>,
    bucket: Bucket,
    key: Credentials,
}

impl S3 {
    /// Starts a server on an empty data folder, and puts the content there.
    pub(super) fn start(program: &Path, data: &Path) -> Result<Self> {
        let server = CofferServer::start(program, data)?;
        let endpoint = format!("https://{}", server.address);
        let endpoint = endpoint.parse().map_err(failed)?;
        let s3 = Self {
            tls: Arc::new(client_trusting(&server.authority())?),
            bucket: Bucket::new(endpoint, UrlStyle::Path, "lab", REGION).map_err(failed)?,
            key: server.credentials()?,
            server,
        };
        let made = target(&CreateBucket::new(&s3.bucket, &s3.key));
        let mut client = s3.connect()?;
        client.connection.send("PUT", &made, &[], 0)?;
        client.connection.answer(200, &[])?;
        client.put(SENT, 1)?;
        Ok(s3)
    }

    pub(super) fn connect(&self) -> Result<S3Client> {
        Ok(S3Client {
            connection: open(self.server.address, &self.tls)?,
            bucket: self.bucket.clone(),
            key: self.key.clone(),
            get: target(&GetObject::new(&self.bucket, Some(&self.key), SENT)),
            put: None,
        })
    }
}

/// Path and signature of a request: its first line names what follows the host.
fn target<'a>(action: &impl S3Action<'a>) -> String {
    let url = action.sign(SIGNED_FOR);
    let query = url.query().unwrap_or("");
    format!("{}?{query}", url.path())
}

pub(super) struct S3Client {
    connection: HttpConnection<TlsStream>,
    bucket: Bucket,
    key: Credentials,
    /// Signed once, since the range is not: the server checks it each time.
    get: String,
    /// The place that was stored last, and its request.
    put: Option<(usize, String)>,
}

impl S3Client {
    /// An object of so many times the content.
    fn put(&mut self, name: &str, times: usize) -> Result<()> {
        let put = target(&PutObject::new(&self.bucket, Some(&self.key), name));
        let content = content(REQUEST_BYTES_MAX);
        self.connection.send("PUT", &put, content, times)?;
        self.connection.answer(200, &[])
    }

    /// Uploads the file in one request: so many times the content.
    pub(super) fn put_file(&mut self, times: usize) -> Result<()> {
        self.put(FILE, times)
    }

    /// Sees that the file is so many times the content.
    pub(super) fn compare_file(&mut self, times: usize) -> Result<()> {
        let get = target(&GetObject::new(&self.bucket, Some(&self.key), FILE));
        for number in 0..times {
            let first = number * REQUEST_BYTES_MAX;
            let last = first + REQUEST_BYTES_MAX - 1;
            let range = format!("range: bytes={first}-{last}\r\n");
            self.connection.ask("GET", &get, &range)?;
            self.connection.answer(206, content(REQUEST_BYTES_MAX))?;
        }
        Ok(())
    }
}

/// The object of a place.
fn name(place: usize) -> String {
    format!("place-{place}")
}

impl Client for S3Client {
    fn ask(&mut self, bytes: usize) -> Result<()> {
        let range = format!("range: bytes=0-{}\r\n", bytes - 1);
        self.connection.ask("GET", &self.get, &range)?;
        self.connection.answer(206, content(bytes))
    }

    fn store(&mut self, bytes: usize, place: usize) -> Result<()> {
        let signed = self.put.take().filter(|(signed, _)| *signed == place);
        let (_, put) = self.put.insert(signed.unwrap_or_else(|| {
            let name = name(place);
            let put = PutObject::new(&self.bucket, Some(&self.key), &name);
            (place, target(&put))
        }));
        self.connection.send("PUT", put, content(bytes), 1)?;
        self.connection.answer(200, &[])
    }

    fn compare_stored(&mut self, bytes: usize, place: usize) -> Result<()> {
        let name = name(place);
        let get = target(&GetObject::new(&self.bucket, Some(&self.key), &name));
        self.connection.ask("GET", &get, "")?;
        self.connection.answer(200, content(bytes))
    }
}
