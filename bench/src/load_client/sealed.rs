//! Sealed transfer, by the code that `coffer get` and `coffer put` move their bytes with.

use coffer_client::limits::TRANSFER_ANSWER_BYTES;
use coffer_client::s3::checksum::{Algorithm, checksum};
use coffer_client::s3::{Client, Request};
use coffer_client::sealed::{
    ANNOUNCE, Announced, Asked, LENGTH_HEADER, Lane, Offer, SEALED, TRANSFER_HEADER,
};
use http::Method;
use hyper::body::Bytes;
use tokio::runtime::Runtime;

use crate::error::{BenchError, Doing, Result};
use crate::load_client::content::Content;

/// What all lanes share: the HTTPS side.
pub struct SealedClient {
    runtime: Runtime,
    s3: Client,
    host: String,
    bucket: String,
}

impl SealedClient {
    /// For a bucket whose level allows sealed transfer.
    pub fn new(s3: Client, bucket: &str) -> Result<Self> {
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build();
        Ok(Self {
            runtime: runtime.doing(|| "starting the sealed client".into())?,
            host: s3.endpoint().host().to_owned(),
            s3,
            bucket: bucket.to_owned(),
        })
    }

    fn object(&self, method: Method, name: &str) -> Request {
        Request::of_object(method, &self.bucket, name)
    }

    fn answered(&self, request: &Request, header: &str) -> Result<(Option<String>, Bytes)> {
        let asking = async {
            let answer = self.s3.send(request).await?;
            let told = answer.header(header).map(str::to_owned);
            Ok((told, answer.whole(TRANSFER_ANSWER_BYTES).await?))
        };
        self.runtime.block_on(asking)
    }

    /// Fetches an object, and looks at the beginning of each piece that was opened.
    pub fn get(&self, lane: &mut Lane, name: &str, content: Content) -> Result<()> {
        let object_bytes = content.length_bytes;
        let mut range = 0..object_bytes;
        while !range.is_empty() {
            let bytes = format!("bytes={}-{}", range.start, range.end - 1);
            let request = self.object(Method::GET, name).header("range", bytes);
            let request = request.header(TRANSFER_HEADER, SEALED);
            let (way, document) = self.answered(&request, TRANSFER_HEADER)?;
            if way.as_deref() != Some(SEALED) {
                return Err(not_sealed(name));
            }
            let asked = Asked {
                range: range.clone(),
                object_bytes,
                host: &self.host,
            };
            let offer = Offer::read(&document, &asked)?;
            let wrong = || std::io::Error::other(format!("wrong contents in {name}"));
            lane.receive(&offer, |at, piece| {
                content.begins(at, piece).then_some(()).ok_or_else(wrong)
            })?;
            range.start = offer.range().end;
        }
        Ok(())
    }

    /// Announces an object, seals and sends it, and gives the ticket.
    pub fn send(&self, lane: &mut Lane, name: &str, plaintext: &[u8]) -> Result<String> {
        let bytes = plaintext.len() as u64;
        let request = self
            .object(Method::POST, name)
            .query(ANNOUNCE, "")
            .header(LENGTH_HEADER, bytes.to_string())
            .header("x-amz-checksum-algorithm", Algorithm::Crc64Nvme.name());
        let (_, document) = self.answered(&request, TRANSFER_HEADER)?;
        match Announced::read(&document, bytes, &self.host)? {
            Announced::ByTls => Err(not_sealed(name)),
            Announced::Sealed(announcement) => Ok(lane
                .send(announcement, plaintext, |_| {})?
                .as_str()
                .to_owned()),
        }
    }

    /// Commits what was sent. Gives what the server says of it: nothing, or `unverified`.
    pub fn commit(&self, name: &str, ticket: &str, checksum: &str) -> Result<Option<String>> {
        let request = self
            .object(Method::PUT, name)
            .header(TRANSFER_HEADER, ticket)
            .header(Algorithm::Crc64Nvme.header(), checksum);
        Ok(self.answered(&request, "x-coffer-stored")?.0)
    }
}

/// The checksum that a commit tells.
pub fn told_checksum(plaintext: &[u8]) -> String {
    checksum(Algorithm::Crc64Nvme, plaintext).text()
}

fn not_sealed(name: &str) -> BenchError {
    BenchError::Http {
        what: format!("{name} is to go by TLS"),
    }
}
